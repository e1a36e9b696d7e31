"""What the help of every command says of running it in several processes."""

LAUNCHED = "Distributed (torchrun, accelerate launch): "
ALONE = "Not distributed: one process does it all."
EXPERIMENTS = f"{LAUNCHED}the processes share the sequences of every cell; the first writes."
SHARED = {
    "measure": f"{LAUNCHED}the processes share the sequences; the first writes. Or in jobs: --shard, then merge.",
    "sample": f"{LAUNCHED}every process draws its share of the sequences; the first writes.",
    "nll": f"{LAUNCHED}the processes share every batch of sequences; the first writes.",
    "recommend": f"{LAUNCHED}the processes share the sequences of every candidate; the first writes.",
    "compare": f"{LAUNCHED}the processes share the sequences of every cell; the first writes.",
    "train": f"{LAUNCHED}the processes share every batch, which they must divide; the first writes.",
    "merge": "Not distributed: it adds up what separate jobs have measured with --shard.",
}
