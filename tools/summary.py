"""The README's one table: what schedules and plans save on every kind of data."""

from typing import Any

from domains import is_worse, speedup_cell
from results import load

from eigentime.experiments.speedup import speedups

STRATEGIES = ("eds", "wds", "ods", "plan")
Lines = list[dict[str, Any]]


def table() -> str:
    """One line per network: as good as how many uniform steps, the most of a line in bold."""
    digits, stories = load("mnist/mnist.json"), load("stories/stories.json")
    lined = [row for row in digits["rows"] if row["sampler"] == "ancestral"]
    walked = [row for row in stories["rows"] if row["sampler"] == "ancestral"]
    told = speedups(walked, "kl_samples", stories["provenance"]["settings"]["seed"])
    told = [{**line, "surely": _beaten(walked, line, "kl_samples")} for line in told]
    music = load("music/music.json")["speedup"]["tau-leaping"]["hellinger"]
    scribbled = load("mnist/mnist-uniform.json")["speedup"]["frechet_small"]
    shown = [
        ("countdown", "share of wrong steps", 8, _countdown(8)),
        ("[stories](docs/stories.md), 128 tokens", "distance from the true law", 8, told),
        ("text, 256 characters", "bits, 6-gram model", 4, load("text/text.json")["speedup"]["bits"]),
        ("[digits](docs/digits.md), 28 × 28", "cost of unseen digits", 8, speedups(lined, "excess", 0)),
        ("digits, the same", "Fréchet distance", 8, digits["speedup"]["frechet_small"]),
        ("images, CIFAR-10", "Fréchet distance", 16, load("images/images.json")["speedup"]),
        ("text, uniform kernel", "bits, 6-gram model", 4, load("text/text-uniform.json")["speedup"]["bits"]),
        ("digits, uniform kernel", "Fréchet distance", 8, scribbled),
        ("folk tunes, uniform kernel", "Hellinger distance", 8, music),
    ]
    lines = [
        f"| data | judged by | evaluations | {' | '.join(name.upper() for name in STRATEGIES[:-1])} | plan |",
        "|---" * (3 + len(STRATEGIES)) + "|",
    ]
    for data, judge, steps, found in shown:
        cells = {line["strategy"]: line for line in found if line["steps"] == steps}
        tried = sorted({line["steps"] for line in found})
        texts = {name: _cell(cells[name], tried) if name in cells else "" for name in STRATEGIES}
        best = max(
            (name for name in cells if name in STRATEGIES), key=lambda name: cells[name]["uniform_steps"]["mean"]
        )
        if cells[best]["uniform_steps"]["mean"] > steps and texts[best] != "–":
            texts[best] = f"**{texts[best]}**"
        lines.append(f"| {data} | {judge} | {steps} | {' | '.join(texts.values())} |")
    return "\n".join(lines)


def _cell(line: dict[str, Any], tried: list[int]) -> str:
    """What noise hides may still surely be more than so many."""
    cell = line.get("said") or speedup_cell(line, tried)
    return f"> {line['surely']}" if cell == "–" and line.get("surely", 0) >= line["steps"] else str(cell)


def _beaten(rows: Lines, line: dict[str, Any], metric: str) -> int:
    """The most uniform steps that a strategy beats beyond the 95 % interval of the difference."""
    cells = {(row["strategy"], row["steps"]): row["metrics"][metric] for row in rows}
    mine = cells[line["strategy"], line["steps"]]
    return max((k for name, k in cells if name == "uniform" and is_worse(cells[name, k], mine)), default=0)


def _countdown(steps: int) -> Lines:
    """With the plan, which was compared with more uniform steps than schedules were."""
    longest = _longest_beaten(steps)
    planned = {"strategy": "plan", "steps": steps, "uniform_steps": {"mean": longest, "stderr": 0.0}}
    found: Lines = load("countdown/countdown.json")["speedup"]["network"]
    return [*found, {**planned, "said": f"> {longest}"}]


def promise() -> str:
    """What the first picture shows, in two sentences."""
    cells = {(row["strategy"], row["steps"]): row["metrics"]["violation"] for row in _countdown_rows()}
    planned = load("plans/countdown.json")["claims"]["plan 8"]["metrics"]["violation"]
    return (
        f"With 8 evaluations {_percent(cells['uniform', 8])} of the transitions are wrong after equal steps, "
        f"{_percent(cells['ods', 8])} with the best schedule. A *plan*, which also chooses where tokens are revealed, "
        f"leaves {_percent(planned)}: less than equal steps with 256 evaluations, {_percent(cells['uniform', 256])}."
    )


def _countdown_rows() -> Lines:
    rows: Lines = load("countdown/countdown.json")["network"]["rows"]
    return rows


def _percent(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.2g} %"


def _longest_beaten(steps: int) -> int:
    """A plan's violation rate lies below that of the longest uniform run, or beside it."""
    claims = load("plans/countdown.json")["claims"]
    rates = {name: claim["metrics"]["violation"] for name, claim in claims.items()}
    longest = max(int(name.split()[1]) for name in claims if name.startswith("uniform"))
    plan, uniform = rates[f"plan {steps}"], rates[f"uniform {longest}"]
    clear = uniform["mean"] - plan["mean"] > 2 * (plan["stderr"] ** 2 + uniform["stderr"] ** 2) ** 0.5
    if not clear:
        raise SystemExit(f"The plan with {steps} evaluations no longer beats {longest} uniform steps: say how many.")
    return longest
