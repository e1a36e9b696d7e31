"""One generation as it unfolds, two schedules next to each other."""

from eigentime.report.page.html import escaped, table
from eigentime.report.page.material import Material, Missing, Section
from eigentime.report.page.scenes import NO_MODEL, changed

TITLE = "Watch one sequence unfold"


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
            "play, or move the slider. What the last evaluation changed is marked."
        ),
        {"from": "samples"},
        table("Places that each evaluation changes", ["strategy", "places, evaluation by evaluation"], rows),
    )
