"""A plan drawn as places × steps."""

from eigentime.report.page.html import escaped, table
from eigentime.report.page.material import Material, Missing, Section, rounded

TITLE = "When and where: the plan"


def section(material: Material) -> Section | Missing:
    """Which places each evaluation reveals, for every number of evaluations."""
    clock, plans = material.clock, material.plans
    if not plans:
        why = (
            "this clock was measured without orders; measure it with orders=['low-discrepancy'] or --orders"
            if clock.absorbing
            else "plans are for masked models, and this kernel has no mask"
        )
        return Missing(TITLE, why)
    rows = [
        [count, plan.order.name, str(plan.predicted_error or ""), ", ".join(map(str, plan.counts))]
        for count, plan in plans.items()
    ]
    return Section(
        "plans",
        TITLE,
        escaped(
            "A plan also chooses where. Each row is one network evaluation, each column a place of the sequence; a "
            "mark says that this evaluation reveals this place. Places of one row are drawn at the same time, so the "
            "plan keeps them far apart where that costs least. The number at the right is how many places a row "
            "reveals."
        ),
        {
            "length": clock.length,
            "plans": [
                {
                    "count": count,
                    "order": plan.order.name,
                    "tokens": list(plan.counts),
                    "error": None
                    if plan.predicted_error is None
                    else [rounded(plan.predicted_error.mean, 4), rounded(plan.predicted_error.stderr, 3)],
                    "steps": plan.step_of(1, material.seed)[0].tolist(),
                }
                for count, plan in plans.items()
            ],
        },
        table("The best plan for each number of evaluations", ["evaluations", "order", "certified", "places"], rows),
    )
