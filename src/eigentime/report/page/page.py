"""The page put together: template, styles, scripts and sections in one file."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files

from eigentime.report.page import dynamics, errors, film, overview, plans, quality, samples, steps
from eigentime.report.page.html import Markup, escaped, joined, script_data, tag
from eigentime.report.page.material import Material, Missing, Section

SECTIONS: tuple[Callable[[Material], Section | Missing], ...] = (
    film.section,
    samples.section,
    steps.section,
    dynamics.section,
    errors.section,
    plans.section,
    quality.section,
)
"""In the order of the page. A new section is a file with a `section`, a script of its name, and one line here."""
SCRIPTS = ("base", "chart", "tokens", "dynamics", "steps", "errors", "plans", "quality", "samples", "film", "start")


EMBEDDED = (film.section, samples.section, steps.section, plans.section)
"""Sections of a page inside another: the film plays what the samples hold."""
Sections = Sequence[Callable[[Material], Section | Missing]]


def render(material: Material, title: str | None = None) -> str:
    """The whole page as HTML that asks nobody for anything."""
    return _rendered("template.html", material, SECTIONS, title)


def embedded(material: Material, title: str) -> str:
    """Film, steps and plan alone, to stand inside another page."""
    return _rendered("embedded.html", material, EMBEDDED, title)


def _rendered(template: str, material: Material, sections: Sections, title: str | None) -> str:
    made = [section(material) for section in sections]
    present = [each for each in made if isinstance(each, Section)]
    missing = [each for each in made if isinstance(each, Missing)]
    script = "'use strict';\n(() => {\n" + "\n".join(_read("script", f"{name}.js") for name in SCRIPTS) + "\n})();"
    content = {
        "TITLE": escaped(title or f"{material.clock.model}: when to step"),
        "POLICY": escaped(_policy(script)),
        "STYLE": Markup(_read("style.css")),
        "LINKS": joined(tag("li", tag("a", each.title, href=f"#{each.name}")) for each in present),
        "HEADLINE": overview.headline(material),
        "FACTS": overview.facts(material),
        "SECTIONS": joined(_section(each) for each in present),
        "MISSING": _missing(missing),
        "DATA": script_data({each.name: each.data for each in present}),
        "SCRIPT": Markup(script),
    }
    page = _read(template)
    parts = page.split("{{")  # filled in one pass, so that nothing in a value is taken for a place to fill
    return parts[0] + "".join(_filled(part, content) for part in parts[1:])


def _filled(part: str, content: dict[str, Markup]) -> str:
    name, _, rest = part.partition("}}")
    return content[name] + rest


def _section(section: Section) -> Markup:
    heading = f"{section.name}-title"
    return tag(
        "section",
        tag("h2", section.title, id=heading),
        tag("p", section.lead, class_="lead"),
        tag("div", class_="drawing"),
        tag("details", tag("summary", "The numbers"), section.numbers),
        id=section.name,
        aria_labelledby=heading,
    )


def _missing(missing: list[Missing]) -> Markup:
    if not missing:
        return Markup("")
    items = (tag("li", tag("b", each.title), f": {each.why}.") for each in missing)
    return tag("aside", tag("h2", "Not on this page", id="missing"), tag("ul", *items), aria_labelledby="missing")


def _policy(script: str) -> str:
    """Only this very script may run, and nothing may be fetched, whatever a file smuggled in."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _read(*path: str) -> str:
    return files("eigentime.report.page").joinpath(*path).read_text(encoding="utf-8")
