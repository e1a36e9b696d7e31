"""The paper's first figure and its appendix curves: does the estimator find the truth on a tractable law?

Binomial(14, ½), one token, geometric noise 0.01 → 5. For both kernels the exact rates, by enumeration, beside what one
Monte Carlo pass over a network trained with DWDSE estimates, with as many evaluations as the paper's 1024 × 1024.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment, four_curves
from eigentime.measure import exact_rates
from eigentime.measure.curves import default_times, integrate, practical_speed
from eigentime.report.dynamics import dynamics_figure
from eigentime.report.figures import save_figure

NETWORKS = {"uniform": "binomial-uniform", "absorbing": "binomial"}
ABSORBING_NOTE = (
    "With geometric noise the absorbing rate peaks at t = {peak:.3f} and is negative below t = {zero:.3f}: the "
    "exponential spike near t = 1 that the paper draws does not follow from its stated noise (log-linear noise does)."
)


@dataclass(frozen=True, kw_only=True)
class Binomial(Experiment):
    """Measure both networks and compare with the truth."""

    times: int = 64
    samples: int = 16_384
    stem = "binomial"

    def check(self) -> None:
        if self.times < 16 or self.samples < 16:
            raise EigentimeError(f"times and samples must be at least 16, not {self.times} and {self.samples}.")

    def results(self, desk: Desk) -> dict[str, Any]:
        kernels = {kernel: self._dynamics(kernel, desk.progress) for kernel in NETWORKS}
        at = default_times(2048)
        truth = exact_rates(api.load("binomial-exact", "absorbing"), at).nonadiabatic
        return {"kernels": kernels, "note": ABSORBING_NOTE.format(peak=at[truth.argmax()], zero=at[truth > 0][0])}

    def draw(self, content: dict[str, Any], out: Path) -> None:
        curves = {kernel: result["curves"] for kernel, result in content["kernels"].items()}
        save_figure(dynamics_figure(curves, content["note"]), out / "binomial.png")

    def _dynamics(self, kernel: str, progress: bool) -> dict[str, Any]:
        """Truth and estimate of the four curves of one kernel, and of the entropy produced in all."""
        network, exact = api.load(NETWORKS[kernel]), api.load("binomial-exact", kernel)
        times = default_times(self.times)
        truth = vars(exact_rates(exact, times))
        clock = api.measure(network, times=self.times, samples=self.samples, seed=self.seed, progress=progress)
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
