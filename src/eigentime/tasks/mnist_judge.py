"""What samples of MNIST are judged by: a small classifier's features, how sure it is, and which digits it sees."""

from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from eigentime.data.mnist import MNIST_SHAPE, MNIST_VALUES
from eigentime.models.zoo import FOLDER
from eigentime.tasks.features import Classifier, Features, compared, load_classifier
from eigentime.tasks.metrics import Estimate, of_the_whole, over_sequences

WEIGHTS = FOLDER / "mnist-classifier" / "model.safetensors"
REAL = 10_000
"""Training images that samples are compared with."""
Images = Integer[Tensor, "n 784"]


def new_classifier() -> Classifier:
    """Untrained."""
    return Classifier(channels=1, width=16)


@cache
def classifier() -> Classifier:
    """The bundled one."""
    return load_classifier(new_classifier(), WEIGHTS)


def centred(tokens: Images) -> Float[Tensor, "n 1 28 28"]:
    """Grey levels from -1 to 1."""
    return tokens.reshape(-1, *MNIST_SHAPE).float() * (2 / (MNIST_VALUES - 1)) - 1


def features(tokens: Images) -> Features:
    """The penultimate layer, each feature with mean 0 and deviation 1 on the training images."""
    return classifier().standardised(tokens, centred)


@torch.no_grad()
def classes(tokens: Images) -> Float[Tensor, "n 10"]:
    """The probability of each digit."""
    network = classifier()
    return torch.cat([network(centred(part)).double().softmax(-1) for part in tokens.split(256)])


def judged(training: Callable[[], Images]) -> Callable[[Images], dict[str, Estimate]]:
    """Fréchet distance and variance of features, and

    unsure      1 - the mean probability of the likeliest digit: high where a picture is no digit
    class_gap   KL(digits of the samples ‖ digits of real images) in nats: high where some digits are missing
    """

    @cache
    def real() -> tuple[Features, Float[Tensor, " 10"]]:
        images = training()[:REAL]
        return features(images), classes(images).mean(0)

    def class_gap(found: Float[Tensor, "n 10"]) -> float:
        shares = found.mean(0)
        return float(torch.xlogy(shares, shares / real()[1]).sum())

    by_features = compared(lambda: real()[0], features, "frechet_small")

    def metrics(x: Images) -> dict[str, Estimate]:
        found = classes(x)
        return by_features(x) | {
            "unsure": over_sequences(1 - found.max(-1).values),
            "class_gap": of_the_whole(found, class_gap),
        }

    return metrics
