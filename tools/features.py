"""Train the small classifiers whose features judge images.

python tools/features.py cifar      about a quarter of an hour on one core; writes the weights into the package
python tools/features.py mnist      about five minutes
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor

from eigentime.data.images import Part, cifar10
from eigentime.data.mnist import mnist
from eigentime.files import write_atomically
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import save_results
from eigentime.tasks import features, mnist_judge
from eigentime.tasks.features import Classifier

BATCH, RATE, SEED = 64, 4e-3, 0
FEATURES_FROM = 20_000
"""Training images whose features are standardised."""
Pictures = Float[Tensor, "b channels h w"]


def flipped(images: Pictures) -> Pictures:
    """Half of them left to right."""
    flip = torch.rand(len(images)) < 0.5
    images[flip] = images[flip].flip(-1)
    return images


def moved(images: Pictures) -> Pictures:
    """All by up to two pixels, across an edge that is empty anyway."""
    down, right = torch.randint(-2, 3, (2,)).tolist()
    return images.roll((down, right), (-2, -1))


@dataclass(frozen=True)
class Judge:
    """One classifier: what it learns from, and where its weights go."""

    data: Callable[[], tuple[Part, Part]]
    network: Callable[[], Classifier]
    centred: Callable[[Tensor], Pictures]
    varied: Callable[[Pictures], Pictures]
    weights: Path
    epochs: int


JUDGES = {
    "cifar": Judge(cifar10, Classifier, features.centred, flipped, features.CLASSIFIER, 5),
    "mnist": Judge(mnist, mnist_judge.new_classifier, mnist_judge.centred, moved, mnist_judge.WEIGHTS, 4),
}


def train(judge: Judge) -> None:
    """One cycle of the learning rate, varied pictures, half-precision weights."""
    (x, y), (test_x, test_y) = (tuple(torch.from_numpy(part) for part in pair) for pair in judge.data())
    torch.manual_seed(SEED)
    network = judge.network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    steps = judge.epochs * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    began, done = time.perf_counter(), 0
    with progress_bar("Training the classifier") as advance:
        for _ in range(judge.epochs):
            for index in torch.randperm(len(x)).split(BATCH)[: len(x) // BATCH]:
                loss = F.cross_entropy(network(judge.varied(judge.centred(x[index]))), y[index].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                done += 1
                advance(done, steps, f"loss {loss.item():.2f}")
    network.eval()
    with torch.no_grad():
        parts = x[:FEATURES_FROM].split(256)
        found = torch.cat([network.penultimate(judge.centred(part)) for part in parts])
        network.centre.copy_(found.mean(0))
        network.spread.copy_(found.std(0))
        right = torch.cat([network(judge.centred(part)).argmax(1) for part in test_x.split(256)]) == test_y
    weights = {k: v.half() if v.is_floating_point() else v for k, v in network.state_dict().items()}
    judge.weights.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(judge.weights, save(weights))
    about = {
        "accuracy": right.double().mean().item(),
        "test_images": len(right),
        "parameters": sum(p.numel() for p in network.parameters()),
        "seconds": round(time.perf_counter() - began),
    }
    settings = {"epochs": judge.epochs, "batch": BATCH, "learning_rate": RATE, "seed": SEED}
    save_results(judge.weights.parent / "evaluation.json", about, **settings)
    print(f"accuracy {about['accuracy']:.1%} on the test images after {about['seconds']} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=JUDGES)
    train(JUDGES[parser.parse_args().name])
