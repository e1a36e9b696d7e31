"""HTML that cannot be broken out of: every text is escaped where it enters, and only `Markup` goes in as it is."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from eigentime.report.provenance import jsonable


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """A value as HTML text."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; `class_` stands for class, and `aria_label` for aria-label."""
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{listed}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Markup:
    """One after the other."""
    return Markup("".join(escaped(part) for part in parts))


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """A table whose first column names its rows."""
    columns = tag("tr", *(tag("th", each, scope="col") for each in head))
    body = (tag("tr", tag("th", row[0], scope="row"), *(tag("td", each) for each in row[1:])) for row in rows)
    inner = tag("table", tag("caption", caption), tag("thead", columns), tag("tbody", *body))
    return tag("div", inner, class_="wide", tabindex=0, role="region", aria_label=caption)


def script_data(value: Any) -> Markup:
    """JSON to put between script tags: no character of it can end the script or begin a comment."""
    text = json.dumps(jsonable(value), ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def number(value: float, digits: int = 3) -> str:
    """A number for people: so many digits, thousands apart."""
    if value != value or value in (float("inf"), float("-inf")):
        return "–" if value != value else ("∞" if value > 0 else "−∞")
    rounded = float(f"{value:.{digits}g}")
    text = f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.{digits}g}"
    return text.replace("-", "−")


def plus_minus(mean: float, stderr: float) -> str:
    """A mean with its standard error."""
    return number(mean) if stderr != stderr else f"{number(mean)} ± {number(stderr, 2)}"
