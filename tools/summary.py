"""The README's one table: what schedules and plans save on every kind of data."""

from typing import Any

from domains import speedup_cell
from results import load

STRATEGIES = ("eds", "wds", "ods")
Lines = list[dict[str, Any]]


def table() -> str:
    """One line per network: as good as how many uniform steps."""
    countdown, text = load("countdown/countdown.json"), load("text/text.json")
    images, music = load("images/images.json"), load("music/music.json")
    shown = [
        ("countdown", "share of wrong steps", 8, countdown["speedup"]["network"], _planned_countdown(8)),
        ("text, 256 characters", "bits per character, 6-gram judge", 4, text["speedup"]["bits"], None),
        ("images, CIFAR-10", "Fréchet distance, small classifier", 16, images["speedup"], None),
        (
            "folk tunes, uniform kernel",
            "Hellinger distance",
            8,
            music["speedup"]["tau-leaping"]["hellinger"],
            "no plans",
        ),
    ]
    lines = [
        f"| data | judged by | evaluations | {' | '.join(name.upper() for name in STRATEGIES)} | plan |",
        "|---" * (4 + len(STRATEGIES)) + "|",
    ]
    for data, judge, steps, found, planned in shown:
        cells = [_cell(found, name, steps) for name in STRATEGIES]
        cells.append(f"**{planned or _cell(found, 'plan', steps)}**" if planned != "no plans" else "–")
        lines.append(f"| {data} | {judge} | {steps} | {' | '.join(cells)} |")
    return "\n".join(lines)


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


def _cell(found: Lines, strategy: str, steps: int) -> str:
    tried = sorted({line["steps"] for line in found})
    return next(speedup_cell(line, tried) for line in found if (line["strategy"], line["steps"]) == (strategy, steps))


def _planned_countdown(steps: int) -> str:
    """A plan's violation rate lies below that of the longest uniform run, or beside it."""
    claims = load("plans/countdown.json")["claims"]
    rates = {name: claim["metrics"]["violation"] for name, claim in claims.items()}
    longest = max(int(name.split()[1]) for name in claims if name.startswith("uniform"))
    plan, uniform = rates[f"plan {steps}"], rates[f"uniform {longest}"]
    clear = uniform["mean"] - plan["mean"] > 2 * (plan["stderr"] ** 2 + uniform["stderr"] ** 2) ** 0.5
    if not clear:
        raise SystemExit(f"The plan with {steps} evaluations no longer beats {longest} uniform steps: say how many.")
    return f"> {longest}"
