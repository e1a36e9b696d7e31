"""Samples of every strategy side by side, at equal cost."""

from eigentime.report.page.html import escaped, table
from eigentime.report.page.material import Material, Missing, Section
from eigentime.report.page.scenes import NO_MODEL, packed

TITLE = "Samples at equal cost"


def section(material: Material) -> Section | Missing:
    """The finished sequences; the film's data hold the first of each."""
    if not material.scenes or material.view is None:
        return Missing(TITLE, NO_MODEL)
    rows = [
        [f"{scene.strategy}, {count} evaluations", 1 + len(scene.others)]
        for count, scenes in material.scenes.items()
        for scene in scenes
    ]
    return Section(
        "samples",
        TITLE,
        escaped(
            f"Drawn for this page with seed {material.seed}, not chosen: the same model, the same number of network "
            "evaluations, the same random numbers. Only the schedule differs."
        ),
        packed(material),
        table("What was drawn", ["strategy", "sequences"], rows),
    )
