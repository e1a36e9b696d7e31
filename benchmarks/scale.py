"""What several processes gain, and what they tell each other: the same measurement by one process and by two.

python benchmarks/scale.py     writes results/bench/scale.json and draws results/bench/scale.png

Both are timed in one run, in turns, so that what is compared saw the same machine: while one process works alone the
other waits. Every process has one thread. Bytes and messages are counted where they are sent.
"""

import multiprocessing
import os
import resource
import socket
import statistics
import time
from multiprocessing.queues import Queue
from typing import Any

import numpy as np
import torch
from provenance import ROOT, save
from torch import distributed, nn

import eigentime as et
from eigentime.ranks import apart, here
from eigentime.report.bench import scale_figure
from eigentime.report.figures import save_figure

PROCESSES, REPEATS, SEED = 2, 5, 0
VOCABULARY, LENGTH, WIDTH, BLOCKS = 4096, 128, 256, 4
BATCH, LEVELS, SEQUENCES = 4, 4, 16


class Network(nn.Module):
    """A small transformer with random weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.blocks, self.head = nn.TransformerEncoder(layer, BLOCKS), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of all tokens."""
        found: torch.Tensor = self.head(self.blocks(self.words(x) + self.places))
        return found


def measured(model: et.Model, data: np.ndarray) -> et.Clock:
    """The work that is timed: so many sequences at so many times, whatever comes out."""
    return et.measure(model, data, times=LEVELS, samples=SEQUENCES, batch_size=BATCH)


def process(rank: int, port: int, out: "Queue[Any]") -> None:
    """One of the processes."""
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
    os.environ["WORLD_SIZE"] = str(PROCESSES)
    distributed.init_process_group("gloo")
    model = et.wrap(Network(), et.Process(et.Absorbing(VOCABULARY), et.LogLinear()), length=LENGTH, time=None)
    data = np.random.default_rng(SEED).integers(0, VOCABULARY - 1, (SEQUENCES, LENGTH))
    measured(model, data)
    ranks, alone, both = here(), [], []
    messages, sent, evaluations = 0, 0, 0
    for _ in range(REPEATS):
        distributed.barrier()
        began = time.perf_counter()
        if rank == 0:
            with apart():
                measured(model, data)
        distributed.barrier()
        alone.append(time.perf_counter() - began)
        before, began = (ranks.messages, ranks.sent), time.perf_counter()
        clock = measured(model, data)
        distributed.barrier()
        both.append(time.perf_counter() - began)
        messages, sent = messages + ranks.messages - before[0], sent + ranks.sent - before[1]
        evaluations += clock.evaluations
    out.put(
        {
            "rank": rank,
            "alone": alone,
            "both": both,
            "messages_per_evaluation": messages / evaluations,
            "bytes_per_evaluation": sent / evaluations,
            "evaluations": evaluations // REPEATS,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )
    distributed.barrier()
    os._exit(0)


def main() -> None:
    """Start the processes, collect what they found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    out: Queue[Any] = context.Queue()
    running = [context.Process(target=process, args=(rank, port, out)) for rank in range(PROCESSES)]
    for each in running:
        each.start()
    found = sorted((out.get(timeout=3600) for _ in running), key=lambda one: one["rank"])
    for each in running:
        each.join()
    first = found[0]
    ratios = [one / two for one, two in zip(first["alone"], first["both"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    content = {
        "processes": PROCESSES,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "evaluations": first["evaluations"],
        "seconds": {"1": first["alone"], str(PROCESSES): first["both"]},
        "throughput_ratio": {"median": middle, "low": low, "high": high, "all": ratios},
        "messages_per_evaluation": first["messages_per_evaluation"],
        "bytes_per_evaluation": first["bytes_per_evaluation"],
        "peak_mib": [each["peak_mib"] for each in found],
    }
    network = {"vocabulary": VOCABULARY, "length": LENGTH, "width": WIDTH, "blocks": BLOCKS}
    save("bench/scale.json", content, seed=SEED, repeats=REPEATS, batch=BATCH, levels=LEVELS, **network)
    save_figure(scale_figure(content), ROOT / "results/bench/scale.png")


if __name__ == "__main__":
    main()
