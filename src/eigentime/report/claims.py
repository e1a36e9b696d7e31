"""The paper's claims beside ours: what it says, its number, ours from a folder of results, a verdict, and why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from eigentime.report.provenance import load_results

INTERVAL = 1.96
Value = dict[str, float]
PAPERS = ("uniform", "jys", "eds", "wds")
TEXTS = {"text/text.json": "MDLM", "text/text-sedd.json": "SEDD"}


class Claim(NamedTuple):
    """One line of the table."""

    says: str
    papers: str
    ours: str
    verdict: str
    why: str


def binomial(folder: Path) -> list[Claim]:
    """Where the entropy rate peaks, and whether networks measure it."""
    kernels = load_results(folder / "binomial/binomial.json")["kernels"]
    rate = kernels["uniform"]["curves"]["entropy rate"]
    peak = rate["times"][max(range(len(rate["truth"])), key=rate["truth"].__getitem__)]
    errors = [abs(found["entropy_produced"]["relative_error"]) for found in kernels.values()]
    return [
        Claim(
            "binomial, uniform kernel: information flows fastest in the middle",
            "t ≈ 0.6",
            f"t = {peak:.2f}",
            "holds" if abs(peak - 0.6) < 0.05 else "does not hold",
            "exact answer, by enumeration",
        ),
        Claim(
            "binomial: a network measures the true dynamics",
            "curves lie together",
            f"entropy produced within {max(errors):.1%}",
            "holds" if max(errors) < 0.05 else "does not hold",
            "estimated against enumerated, both kernels",
        ),
    ]


def countdown(folder: Path) -> list[Claim]:
    """The headline, and WDS against JYS."""
    results = load_results(folder / "countdown/countdown.json")
    equal = {
        part: next(line["uniform_steps"] for line in found if (line["strategy"], line["steps"]) == ("wds", 8))
        for part, found in results["speedup"].items()
    }
    met = any(value["mean"] + 2 * value["stderr"] >= 32 for value in equal.values())
    cells = {(row["strategy"], row["steps"]): row["metrics"]["violation"] for row in results["network"]["rows"]}
    shared = sorted(steps for strategy, steps in cells if strategy == "jys")
    behind = [k for k in shared if is_worse(cells["wds", k], cells["jys", k])]
    ahead = [k for k in shared if is_worse(cells["jys", k], cells["wds", k])]
    rows = results["network"]["rows"]
    better, worse = zip(*(against_uniform(rows, name, "violation") for name in ("eds", "wds")), strict=True)
    return [
        Claim(
            "countdown: WDS with 8 evaluations is as good as uniform steps with 32",
            "4 ×",
            " and ".join(f"{v['mean']:.0f} ± {v['stderr']:.0f} ({part})" for part, v in equal.items()),
            "holds" if met else "in part",
            "even the best time schedule stops short of 32 here; a plan with 8 beats 256",
        ),
        Claim(
            "countdown: EDS and WDS beat uniform steps at all budgets",
            "2 … 64 evaluations",
            _told(better, worse),
            _verdict(better, worse),
            "trained network, 95 % intervals",
        ),
        Claim(
            "countdown: WDS beats JYS at all budgets",
            "2 … 64 evaluations",
            where(_listed(ahead), _listed(behind)),
            "holds" if len(ahead) == len(shared) else "in part" if ahead else "does not hold",
            "JYS asked again for every number of steps",
        ),
    ]


def music(folder: Path) -> list[Claim]:
    """Uniform kernel: EDS and WDS against uniform steps, and EDS against the long reference."""
    results = load_results(folder / "music/music.json")
    rows = results["rows"]["tau-leaping"]
    better, worse = zip(*(against_uniform(rows, name, "hellinger") for name in ("eds", "wds")), strict=True)
    reference = results["reference"]["metrics"]["hellinger"]
    cells = {(row["strategy"], row["steps"]): row["metrics"]["hellinger"] for row in rows}
    first = {
        name: min(
            (k for strategy, k in cells if strategy == name and not is_worse(cells[name, k], reference)), default=None
        )
        for name in ("eds", "uniform")
    }
    return [
        Claim(
            "music: EDS and WDS beat uniform steps",
            "2 … 64 evaluations",
            f"Hellinger: {_told(better, worse)}",
            _verdict(better, worse),
            "folk tunes and a small network in place of Lakh; it stops improving after few uniform steps",
        ),
        Claim(
            "music: EDS matches 512 evaluations at a fraction of them",
            "≤ 64",
            f"not told apart from {first['eds']} on; uniform steps from {first['uniform']} on",
            "holds, but so do uniform steps",
            f"512 uniform steps: {shown(reference)}",
        ),
    ]


def images(folder: Path) -> list[Claim]:
    """The fourfold saving on CIFAR-10, and who is best."""
    rows = load_results(folder / "images/images.json")["rows"]
    cells = {(row["strategy"], row["steps"]): row["metrics"]["frechet_small"] for row in rows}
    met = not is_worse(cells["eds", 32], cells["uniform", 128])
    better, worse = zip(*(against_uniform(rows, name, "frechet_small") for name in ("eds", "wds")), strict=True)
    steps = sorted({k for _, k in cells})
    ahead = [k for k in steps if is_worse(cells["wds", k], cells["eds", k])]
    behind = [k for k in steps if is_worse(cells["eds", k], cells["wds", k])]
    return [
        Claim(
            "CIFAR-10: EDS with 32 evaluations is as good as uniform steps with 128",
            "4 ×",
            f"{shown(cells['eds', 32])} against {shown(cells['uniform', 128])}",
            "holds" if met else "does not hold",
            "Fréchet distance on a small classifier; the network stops improving near 64 uniform steps",
        ),
        Claim(
            "CIFAR-10: EDS and WDS beat uniform steps at all budgets",
            "16 … 512 evaluations",
            _told(better, worse),
            _verdict(better, worse),
            "16 … 128 evaluations here",
        ),
        Claim(
            "CIFAR-10: EDS beats WDS",
            "all budgets",
            where(_listed(ahead), _listed(behind)),
            "in part" if ahead else "does not hold",
            f"intervals of {INTERVAL} standard errors",
        ),
    ]


def text(folder: Path) -> list[Claim]:
    """WDS has the lowest perplexity at all budgets."""
    claims = []
    for file, name in TEXTS.items():
        cells = {(row["strategy"], row["steps"]): row["metrics"]["bits"] for row in load_results(folder / file)["rows"]}
        steps = sorted({k for _, k in cells})
        won = [k for k in steps if min(PAPERS, key=lambda strategy: cells[strategy, k]["mean"]) == "wds"]
        lost = [k for k in steps if is_worse(cells["wds", k], cells["uniform", k])]
        claims.append(
            Claim(
                f"text, {name}: WDS has the lowest perplexity at all budgets",
                "64 … 1,024 evaluations, 1,024 tokens",
                f"lowest bits at {_listed(won)}; worse than uniform at {_listed(lost)} of {_listed(steps)}",
                "holds" if won == steps else "in part" if won else "does not hold",
                "256 characters, a small network; the bare gauge spends its steps on the noise of masking",
            )
        )
    return claims


def _verdict(better: Any, worse: Any) -> str:
    if all(each == "none" for each in better):
        return "does not hold"
    return "holds where told apart" if all(each == "none" for each in worse) else "in part"


def _told(better: Any, worse: Any) -> str:
    """Where EDS and WDS are better and worse than uniform steps."""
    pairs = zip(("EDS", "WDS"), better, worse, strict=True)
    return "; ".join(f"{name} {where(ahead, behind)}" for name, ahead, behind in pairs)


def where(ahead: str, behind: str) -> str:
    """In words, from two lists of numbers of evaluations."""
    return ", ".join(
        f"{word} nowhere" if listed == "none" else f"{word} at {listed}"
        for word, listed in (("better", ahead), ("worse", behind))
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


CLAIMS: dict[str, Callable[[Path], list[Claim]]] = {
    "binomial": binomial,
    "countdown": countdown,
    "music": music,
    "images": images,
    "text": text,
}
"""What the paper says about each of its experiments."""


def claims_table(folder: Path) -> str:
    """Every claim, as a Markdown table."""
    lines = ["| the paper's claim | its number | ours | verdict | why |", "|---" * 5 + "|"]
    claims = [claim for made in CLAIMS.values() for claim in made(folder)]
    return "\n".join([*lines, *(f"| {' | '.join(claim)} |" for claim in claims)])


def shown(value: Value) -> str:
    """A mean with its 95 % interval."""
    return f"{value['mean']:.2f} ± {INTERVAL * value['stderr']:.2f}"


def is_worse(a: Value, b: Value) -> bool:
    """Whether a is above b by more than a 95 % interval of the difference."""
    return a["mean"] - b["mean"] > INTERVAL * float((a["stderr"] ** 2 + b["stderr"] ** 2) ** 0.5)


def against_uniform(rows: list[dict[str, Any]], strategy: str, metric: str) -> tuple[str, str]:
    """At which numbers of evaluations a strategy is better, and worse, than uniform, beyond the intervals."""
    cells = {(row["strategy"], row["steps"]): row["metrics"][metric] for row in rows}
    steps = sorted({count for name, count in cells if name == strategy})
    better = [k for k in steps if is_worse(cells["uniform", k], cells[strategy, k])]
    worse = [k for k in steps if is_worse(cells[strategy, k], cells["uniform", k])]
    return _listed(better), _listed(worse)
