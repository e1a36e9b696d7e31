"""The paper's first figure and its appendix curves: does the estimator find the truth on a tractable law?

Binomial(14, ½), one token, geometric noise 0.01 → 5. For both kernels the exact rates, by enumeration, beside what one
Monte Carlo pass over a network trained with DWDSE estimates, with as many evaluations as the paper's 1024 × 1024.
"""

from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.experiments.dynamics import four_curves
from eigentime.measure import exact_rates
from eigentime.measure.curves import default_times, integrate, practical_speed
from eigentime.report.dynamics import dynamics_figure
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.provenance import save_results

NETWORKS = {"uniform": "binomial-uniform", "absorbing": "binomial"}
ABSORBING_NOTE = (
    "With geometric noise the absorbing rate peaks at t = {peak:.3f} and is negative below t = {zero:.3f}: the "
    "exponential spike near t = 1 that the paper draws does not follow from its stated noise (log-linear noise does)."
)


def reproduce(
    out: Path, times: int = 64, samples: int = 16_384, seed: int = 0, progress: bool = False
) -> dict[str, Any]:
    """Measure both networks, compare with the truth, write results and figure to `out`."""
    check_figures()
    out.mkdir(parents=True, exist_ok=True)
    results = {kernel: _dynamics(kernel, times, samples, seed, progress) for kernel in NETWORKS}
    at = default_times(2048)
    truth = exact_rates(api.load("binomial-exact", "absorbing"), at).nonadiabatic
    note = ABSORBING_NOTE.format(peak=at[truth.argmax()], zero=at[truth > 0][0])
    content = {"kernels": results, "note": note}
    save_results(out / "binomial.json", content, times=times, samples=samples, seed=seed)
    save_figure(
        dynamics_figure({kernel: result["curves"] for kernel, result in results.items()}, note), out / "binomial.png"
    )
    return content


def _dynamics(kernel: str, count: int, samples: int, seed: int, progress: bool) -> dict[str, Any]:
    """Truth and estimate of the four curves of one kernel, and of the entropy produced in all."""
    network, exact = api.load(NETWORKS[kernel]), api.load("binomial-exact", kernel)
    times = default_times(count)
    truth = vars(exact_rates(exact, times))
    clock = api.measure(network, times=count, samples=samples, seed=seed, progress=progress)
    speed = practical_speed(truth)
    exactly = {
        "entropy rate": truth["nonadiabatic"],
        "cumulative entropy": integrate(times, truth["nonadiabatic"]),
        "Wasserstein rate": speed,
        "Wasserstein distance": integrate(times, speed),
    }
    estimated = four_curves(clock, times)
    produced, estimate = exactly["cumulative entropy"], estimated["cumulative entropy"]
    return {
        "model": network.name,
        "evaluations": clock.evaluations,
        "entropy_produced": {
            "truth": produced[-1],
            "estimate": {"mean": estimate.mean[-1], "stderr": estimate.stderr[-1]},
            "relative_error": estimate.mean[-1] / produced[-1] - 1,
        },
        "curves": {name: {"truth": exactly[name], **vars(found)} for name, found in estimated.items()},
    }
