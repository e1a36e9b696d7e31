"""Tables that ask why the paper's ordering appears or does not: network, sampler, JYS, or the judge?"""

from typing import Any

from domains import MUSIC, metric_table
from results import load

from eigentime.report.claims import INTERVAL, against_uniform

Row = dict[str, Any]
CLAIMED = (("wds", 8), ("uniform", 8), ("uniform", 16), ("uniform", 32))
JUDGES = {"violation": "violation", "unigrams": "token frequencies"}


def _value(found: dict[str, float], scale: float, digits: int) -> str:
    return f"{scale * found['mean']:.{digits}f} ± {scale * INTERVAL * found['stderr']:.{digits}f}"


def countdown() -> str:
    """Where EDS and WDS beat uniform steps, case by case and judge by judge, and does the judge saturate?"""
    content = load("countdown/ordering.json")
    settings = content["provenance"]["settings"]
    lines = [
        "| model | kernel | sampler | judged by | uniform steps, first → last | WDS better than uniform at / worse at "
        "| EDS better at / worse at |",
        "|---" * 7 + "|",
    ]
    for case in content["cases"]:
        rows = case["rows"]
        cells = {(row["strategy"], row["steps"]): row["metrics"] for row in rows}
        first, last = (choose(steps for _, steps in cells) for choose in (min, max))
        for metric, title in JUDGES.items():
            ends = " → ".join(f"{cells['uniform', k][metric]['mean']:.3f} ({k})" for k in (first, last))
            against = [" / ".join(against_uniform(rows, name, metric)) for name in ("wds", "eds")]
            where = f"{case['model']} | {case['kernel']} | {case['sampler']}"
            lines.append(f"| {where} | {title} | {ends} | {' | '.join(against)} |")
    lines.append(
        f"\n{settings['samples']} sequences per cell, 95 % intervals; violation is the share of wrong transitions, "
        "token frequencies their Hellinger distance from the truth."
    )
    return "\n".join([*lines, "", *(f"- {_factor(case)}" for case in content["cases"])])


def _factor(case: Row) -> str:
    """Is WDS with 8 evaluations as good as uniform steps with four times as many?"""
    found = {(row["strategy"], row["steps"]): row["metrics"]["violation"] for row in case["rows"]}
    shown = [f"{name} with {k} {_value(found[name, k], 100, 1)} %" for name, k in CLAIMED]
    return f"Violation, {case['model']}, {case['kernel']} kernel, {case['sampler']}: {', '.join(shown)}."


def jys() -> str:
    """JYS with few sequences and with as many as its paper takes."""
    cases = [case for case in load("countdown/ordering.json")["cases"] if any(key.startswith("jys") for key in case)]
    lines: list[str] = []
    for case in cases:
        columns = {"wds": [row for row in case["rows"] if row["strategy"] == "wds"]}
        columns |= {f"{key} sequences": case[key] for key in case if key.startswith("jys")}
        steps = sorted({row["steps"] for row in columns[next(iter(set(columns) - {"wds"}))]})
        if not lines:
            lines = [
                "| violation, % | | " + " | ".join(f"{k} NFE" for k in steps) + " |",
                "|---" * (len(steps) + 2) + "|",
            ]
        for name, rows in columns.items():
            found = {row["steps"]: row["metrics"]["violation"] for row in rows}
            shown = " | ".join(_value(found[k], 100, 1) for k in steps)
            lines.append(f"| {case['model']}, {case['sampler']} | {name} | {shown} |")
    return "\n".join(lines) or "JYS with 1,024 sequences has not been searched yet; the same command goes on to it."


def music_nats() -> str:
    """The certified path error of the music experiment, which does not saturate."""
    rows = [row | {"metrics": {"nats": row["path_error"]}} for row in load(MUSIC)["rows"]["tau-leaping"]]
    lines = [metric_table(rows, "nats", 1), "", "± 95 % interval. Beyond it"]
    for name in ("eds", "wds", "ods"):
        better, worse = against_uniform(rows, name, "nats")
        lines[-1] += f"{',' if name != 'eds' else ''} {name} is better than uniform at {better}, worse at {worse}"
    return "\n".join(lines) + "."
