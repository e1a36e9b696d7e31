"""The same texts begun, and continued in several ways: a page to read, in Markdown and in HTML.

In HTML every piece of text is the redder the less likely the true law finds it after what comes before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

RED = 12.0
"""Nats from which on a piece of text is as red as it gets."""
FAINT = 0.02
"""Share of that red below which nothing is coloured."""
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1500px; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
td, th { border-top: 1px solid #ddd; padding: .5rem .6rem; text-align: left; vertical-align: top; }
th { width: 9rem; font-weight: 600; } .nats { color: #777; font-weight: 400; font-size: 85%; }
.given { color: #888; } .story { white-space: pre-wrap; }
"""


@dataclass(frozen=True)
class Told:
    """Texts that were continued in one way."""

    name: str
    evaluations: int | None
    """None for data."""
    pieces: list[list[str]]
    """Of every text."""
    nats: list[list[float]]
    """-ln p of every piece, given those before."""

    def per_piece(self, text: int, given: int) -> float:
        """Nats of what was not given, on average."""
        free = self.nats[text][given:]
        return sum(free) / len(free)


def as_markdown(real: Told, told: Sequence[Told], given: int, network: str) -> str:
    """One table per text and number of evaluations."""
    parts = [
        f"# Stories side by side: `{network}`",
        f"The first {given} tokens are given, the same to all, and so are the random numbers. In brackets: nats per "
        "token under the true law of the data; lower is likelier. The HTML file beside this one shows the same "
        "with colours.",
    ]
    for number in range(len(real.pieces)):
        parts.append(f"## Story {number + 1}: “{_flat(real.pieces[number][:given])} …”")
        parts.append(f"The law itself ({real.per_piece(number, given):.1f}): {_flat(real.pieces[number][given:])}")
        for evaluations, group in groupby(told, key=lambda each: each.evaluations):
            lines = [f"| {evaluations} evaluations | |", "|---|---|"]
            for each in group:
                text = _flat(each.pieces[number][given:]).replace("|", "\\|")
                lines.append(f"| {each.name} ({each.per_piece(number, given):.1f}) | {text} |")
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def as_html(real: Told, told: Sequence[Told], given: int, network: str) -> str:
    """One file that needs nothing else."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>Stories side by side: {escape(network)}</title><style>{STYLE}</style>",
        f"<h1>Stories side by side: {escape(network)}</h1><p>The first {given} tokens (grey) are given, the same to "
        "all, and so are the random numbers. A piece of text is the redder the less likely the true law of the data "
        "finds it after what comes before it; the number is nats per token under that law.</p>",
    ]
    for number in range(len(real.pieces)):
        parts.append(f"<h2>Story {number + 1}</h2><table>{_line(real, number, given)}</table>")
        for evaluations, group in groupby(told, key=lambda each: each.evaluations):
            lines = "".join(_line(each, number, given) for each in group)
            parts.append(f"<h3>{evaluations} evaluations</h3><table>{lines}</table>")
    return "\n".join(parts) + "</html>\n"


def _line(told: Told, number: int, given: int) -> str:
    """One text with its name and its colours."""
    pieces, nats = told.pieces[number], told.nats[number]
    spans = [f"<span class='given'>{escape(''.join(pieces[:given]))}</span>"]
    for piece, cost in zip(pieces[given:], nats[given:], strict=True):
        share = min(1.0, cost / RED) ** 2
        shade = f"<span style='background:rgba(220,50,30,{0.75 * share:.2f})' title='{cost:.1f} nats'>"
        spans.append(f"{shade}{escape(piece)}</span>" if share > FAINT else escape(piece))
    score = f"{told.per_piece(number, given):.2f} nats per token"
    return (
        f"<tr><th>{escape(told.name)}<br><span class='nats'>{score}</span></th>"
        f"<td class='story'>{''.join(spans)}</td></tr>"
    )


def _flat(pieces: Sequence[str]) -> str:
    """On one line."""
    return " ".join("".join(pieces).split())
