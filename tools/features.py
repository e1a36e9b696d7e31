"""Train the small CIFAR-10 classifier whose features judge images during development.

python tools/features.py            about a quarter of an hour on one core; writes the weights into the package
"""

import time

import torch
import torch.nn.functional as F
from safetensors.torch import save

from eigentime.data.images import cifar10
from eigentime.files import write_atomically
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import save_results
from eigentime.tasks.features import CLASSIFIER, Classifier, centred

EPOCHS, BATCH, RATE, SEED = 5, 64, 4e-3, 0


def main() -> None:
    """One cycle of the learning rate, random flips, half-precision weights."""
    (x, y), (test_x, test_y) = (tuple(torch.from_numpy(part) for part in pair) for pair in cifar10())
    torch.manual_seed(SEED)
    network = Classifier()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    steps = EPOCHS * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    began, done = time.perf_counter(), 0
    with progress_bar("Training the classifier") as advance:
        for _ in range(EPOCHS):
            for index in torch.randperm(len(x)).split(BATCH)[: len(x) // BATCH]:
                images = centred(x[index])
                flip = torch.rand(len(images)) < 0.5
                images[flip] = images[flip].flip(-1)
                loss = F.cross_entropy(network(images), y[index].long())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                done += 1
                advance(done, steps, f"loss {loss.item():.2f}")
    network.eval()
    with torch.no_grad():
        features = torch.cat([network.penultimate(centred(part)) for part in x[:20_000].split(256)])
        network.centre.copy_(features.mean(0))
        network.spread.copy_(features.std(0))
        right = torch.cat([network(centred(part)).argmax(1) for part in test_x.split(256)]) == test_y
    weights = {k: v.half() if v.is_floating_point() else v for k, v in network.state_dict().items()}
    CLASSIFIER.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(CLASSIFIER, save(weights))
    about = {
        "accuracy": right.double().mean().item(),
        "test_images": len(right),
        "parameters": sum(p.numel() for p in network.parameters()),
        "seconds": round(time.perf_counter() - began),
    }
    settings = {"epochs": EPOCHS, "batch": BATCH, "learning_rate": RATE, "seed": SEED}
    save_results(CLASSIFIER.parent / "evaluation.json", about, **settings)
    print(f"accuracy {about['accuracy']:.1%} on the test images after {about['seconds']} s")


if __name__ == "__main__":
    main()
