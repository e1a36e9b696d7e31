"""How networks learned: held-out negative ELBO against sequences seen, beside the entropy that none can beat."""

from typing import TYPE_CHECKING, Any

from eigentime.report.figures import check_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def training_figure(
    logs: dict[str, list[dict[str, Any]]], batches: dict[str, int], length: int, entropy: float
) -> "Figure":
    """One line per network, nats per token.

    logs     what `eigentime train` wrote down: step, nelbo, stderr
    batches  sequences per step
    entropy  of the data, nats per token
    """
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, log in logs.items():
        seen = [row["step"] * batches[name] / 1000 for row in log]
        axes.errorbar(
            seen,
            [row["nelbo"] / length for row in log],
            yerr=[row["stderr"] / length for row in log],
            label=name,
            marker="o",
            ms=3,
            lw=1.6,
        )
    axes.axhline(entropy, color="#555", lw=1, ls="--")
    axes.annotate("entropy of the data", (0.99, entropy), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    axes.set(xlabel="thousand sequences seen", ylabel="negative ELBO, nats per token", ylim=(0, None))
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    return figure
