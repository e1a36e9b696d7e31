"""Tables of the page on more than one machine: what was measured, and a plan on paper, which is arithmetic."""

from results import load

WEIGHTS, TOKENS, NODES, DEVICES = 100e9, 4096, 64, 8
"""A network's weights, tokens of a sequence, machines, and accelerators of each."""
PER_SECOND, USED = 1e15, 0.4
"""Operations of an accelerator in half precision, and the share of them that large networks reach."""
SUMS, NUMBER = 5, 8
"""Numbers that counts need per evaluation, and bytes of each."""
JOBS = {
    "a clock, `budget=4096`": 4096,
    "a clock, `budget=65536`": 65_536,
    "4 orders for plans, `budget=4096` each": 4 * 4096,
    "`recommend`, about 100 ways on 128 sequences, 16 steps": 30_000,
    "65,536 samples, 16 steps each": 65_536 * 16,
}


def measured() -> str:
    """One process against two, in one run."""
    found = load("bench/scale.json")
    ratio, memory = found["throughput_ratio"], " and ".join(f"{each:.0f}" for each in found["peak_mib"])
    return "\n".join(
        [
            "| quantity | value |",
            "|---|---|",
            f"| evaluations per second of {found['processes']} processes, in those of one | {ratio['median']:.2f} "
            f"(quartiles {ratio['low']:.2f} … {ratio['high']:.2f}) |",
            f"| messages per evaluation | {found['messages_per_evaluation']:.3f} |",
            f"| bytes that a process sends to each other one, per evaluation | {found['bytes_per_evaluation']:.0f} |",
            f"| peak memory by rank | {memory} MiB |",
            f"\nOn {found['cores']} cores, with a load of {found['load']:.1f} when it ended: above the number of cores "
            "others were working too, and the ratio says less than it could.",
        ]
    )


def on_paper() -> str:
    """Hours for every job, with the accelerators of a machine at work together or one after the other."""
    operations = 2 * WEIGHTS * TOKENS
    together = operations / (DEVICES * PER_SECOND * USED)
    in_turn = operations / (PER_SECOND * USED)
    lines = [
        "| job | evaluations | per machine | tensor-parallel | `device_map` |",
        "|---|---|---|---|---|",
    ]
    for job, evaluations in JOBS.items():
        each = evaluations / NODES
        lines.append(
            f"| {job} | {evaluations:,} | {each:,.0f} | {_duration(each * together)} | {_duration(each * in_turn)} |"
        )
    lines.append(
        f"\nOne evaluation of a sequence is 2 × {WEIGHTS / 1e9:.0f}·10⁹ × {TOKENS:,} = {operations:.2g} operations: "
        f"{together:.2f} s on {DEVICES} accelerators together, {in_turn:.1f} s where they take turns. Counts send "
        f"{SUMS * NUMBER} bytes per evaluation, orders {2 * NUMBER * TOKENS:,}."
    )
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
