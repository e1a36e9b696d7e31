"""How much time is ours beside the network's? Ratios within one run, on a small transformer with random weights.

python benchmarks/speed.py                writes results/speed.json
"""

import time

import torch
from provenance import save

import eigentime as et

LENGTH, WIDTH, BATCH, STEPS = 256, 128, 16, 16


class Network(torch.nn.Module):
    """Embedding, four transformer layers, vocabulary projection."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(size, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True, dropout=0.0)
        self.trunk = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, L) tokens → (B, L, V) logits."""
        return self.head(self.trunk(self.embedding(x)))


def seconds(work, repeat: int = 3) -> float:  # type: ignore[no-untyped-def]
    """The fastest of a few runs."""
    work()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Time sampling and measuring against the network evaluations they make."""
    torch.manual_seed(0)
    results = []
    for kernel_name, size in (("absorbing", 33), ("absorbing", 8192), ("uniform", 32)):
        kernel = et.Absorbing(size) if kernel_name == "absorbing" else et.Uniform(size)
        network = Network(size).eval()
        model = et.wrap(
            network, et.Process(kernel, et.LogLinear()), length=LENGTH, time=None, name="random transformer"
        )
        x = torch.randint(0, size - 1, (BATCH, LENGTH))
        with torch.no_grad():
            evaluation = seconds(lambda network=network, x=x: network(x)) / BATCH
        grid = et.schedule("uniform", steps=STEPS, model=model)
        _, info = et.sample(model, grid, BATCH, return_info=True)
        sampling = seconds(lambda model=model, grid=grid: et.sample(model, grid, BATCH))
        clock = et.measure(model, x, budget=128, tolerance=0.0)
        measuring = seconds(lambda model=model, x=x: et.measure(model, x, budget=128, tolerance=0.0), 1)
        results.append(
            {
                "kernel": kernel_name,
                "size": size,
                "seconds_per_evaluation": evaluation,
                "sampling_over_network": sampling / (info.evaluations * evaluation),
                "measuring_over_network": measuring / (clock.evaluations * evaluation),
            }
        )
        print(results[-1])
    save("speed.json", {"rows": results}, length=LENGTH, width=WIDTH, batch=BATCH, steps=STEPS, seed=0)


if __name__ == "__main__":
    main()
