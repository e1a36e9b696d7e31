"""One generation as it unfolds, two schedules next to each other."""

from eigentime.report.page.html import escaped, table
from eigentime.report.page.material import Material, Missing, Section
from eigentime.report.page.scenes import NO_MODEL, changed

TITLE = "Watch one sequence unfold"
UNKNOWN = {
    "text": "Grey bars are not known yet.",
    "image": "Blue pixels are not known yet.",
    "graph": "Places with a grey mark below are not known yet.",
    "roll": "Places with a grey mark below are not known yet.",
}
"""By how tokens look."""


def section(material: Material) -> Section | Missing:
    """The film needs no data of its own: it plays what the samples hold."""
    if not material.scenes or material.view is None:
        return Missing(TITLE, NO_MODEL)
    mask = material.view.mask
    rows = [
        [f"{scene.strategy}, {count} evaluations", ", ".join(str(len(places)) for places, _ in changed(scene, mask))]
        for count, scenes in material.scenes.items()
        for scene in scenes
    ]
    return Section(
        "film",
        TITLE,
        escaped(
            "Two schedules with the same number of network evaluations generate the same sequence side by side. Press "
            "play, or move the slider. "
            + ("" if material.view.kind == "image" else "What the last evaluation changed is marked. ")
            + ("" if mask is None else UNKNOWN[material.view.kind])
        ),
        {"from": "samples"},
        table("Places that each evaluation changes", ["strategy", "places, evaluation by evaluation"], rows),
    )
