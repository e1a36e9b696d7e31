"""The top of the page: what was measured, and what it says in three numbers."""

from eigentime.report.page.html import Markup, escaped, joined, number, tag
from eigentime.report.page.material import Material

SHOWN = 8
"""Evaluations that the first numbers are about, or the next smaller number there is."""
TOLD = ("uniform", "ods", "plan")


def facts(material: Material) -> Markup:
    """What was measured, and with what effort."""
    clock = material.clock
    kernel, noise = clock.process["kernel"], clock.process["noise"]
    given = clock.length - clock.free
    listed = {
        "kernel": f"{kernel['name']}, {kernel['size']:,} values" if "size" in kernel else kernel["name"],
        "noise": noise["name"],
        "sequence": f"{clock.length:,} tokens" + (f", {number(given)} given" if given else ""),
        "measured with": f"{clock.evaluations:,} network evaluations, seed {clock.seed}",
        "certificates": "absolute (an exact model)" if clock.exact else "above infinitely many steps",
        "eigentime": clock.package,
        "clock": clock.fingerprint,
    }
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in listed.items()), class_="facts")


def headline(material: Material) -> Markup:
    """Certified errors with equally few evaluations."""
    counts = sorted({count for found in material.certificates.values() for count in found})
    if not counts:
        return Markup("")
    shown = max((count for count in counts if count <= SHOWN), default=counts[0])
    cards = []
    for strategy in TOLD:
        found = material.certificates.get(strategy, {}).get(shown)
        if found is not None:
            value = joined([tag("strong", number(found.mean)), tag("span", f" ± {number(found.stderr, 2)} nats")])
            cards.append(tag("li", tag("span", strategy, class_="name"), tag("p", value), data_strategy=strategy))
    kind = "" if material.clock.exact else " above infinitely many steps"
    told = f"Certified error with {shown} network evaluations{kind}. Lower is better; nothing was sampled to know it."
    if any(found[shown].mean < 2 * found[shown].stderr for found in material.certificates.values() if shown in found):
        told += " A number within about two of its standard errors of 0 cannot be told from no error at all."
    return tag("div", tag("ul", *cards, class_="cards"), tag("p", escaped(told), class_="muted"), class_="headline")
