"""What a step costs on kernels without a mask: the total correlation of a step from any α_t to any α_s.

One evaluation at x_t predicts, token by token, the score at any earlier time t' < t: ŝ_y = w_y/w_a, where a is the
token at t' and w the ratio of `Kernel.ratio`. It is the average of the true score over what x_t does not know,
so by Jensen
    TC(x_s | x_t) = ∫_s^t E Σ_i Σ_y β·Q(y→a)·[ s_y ln(s_y/ŝ_y) - s_y + ŝ_y ] dt',
over states x_t' and x_t of one forward path. The integrand is never negative, so small errors are measured as well as
large ones. Everything is laid out in the angle θ = arccos √α: data at 0, noise at π/2.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import PchipInterpolator

from eigentime.errors import EigentimeError
from eigentime.measure.costs import RATES, Estimator, Setting, StepCosts, Times, angle_of
from eigentime.measure.groups import check_levels, check_sums, jackknife, thinned
from eigentime.measure.pair_costs import AngleCosts, PairCosts
from eigentime.process.laws import Law

PAIR_SUMS = ("sequences", "slope", "rates", "divergence", "cross", "euler", "poisson")
"""What is added up over sequences."""


@dataclass(frozen=True)
class Pairs:
    """Sums over groups of sequences (b) at measured angles (g), all per sequence and per unit σ.

    Divergences and step laws are measured between some of the angles, the `nodes` (n).
    """

    angles: Float[np.ndarray, " g"]
    """Increasing, all above 0; the last is θ(t = 1)."""
    nodes: Float[np.ndarray, " n"]
    sequences: Float[np.ndarray, " b"]
    slope: Float[np.ndarray, "b g"]
    """dH(p)/dσ."""
    rates: Float[np.ndarray, "b g r"]
    """The rates of `RATES`."""
    divergence: Float[np.ndarray, "b n n"]
    """The integrand at (t', t), with the model's own score as weight; zero unless t' < t."""
    cross: Float[np.ndarray, "b n n"]
    """The same with the score given the true x0 as weight, which includes the model's error."""
    euler: Float[np.ndarray, "b n v"]
    """KL(exact token law ‖ Euler's) at every step share, infinite where Euler cannot follow."""
    poisson: Float[np.ndarray, "b n v"]
    """KL(exact token law ‖ Poisson τ-leaping's)."""

    @property
    def groups(self) -> int:
        """How many groups of sequences there are."""
        return len(self.sequences)

    @property
    def complete(self) -> bool:
        """Angles are always interpolated between."""
        return False

    unit, per = 0.0, " between levels"
    """What `calibration` is counted in: by shares only."""

    def calibration(self) -> tuple[float, float]:
        """Divergences between all levels, by the model's own scores and by those given the truth: one number where a
        model is calibrated."""
        return float(self.mean("divergence").sum()), float(self.mean("cross").sum())

    def check(self) -> None:
        """Refuse what no measurement gives."""
        check_levels(self.angles, np.pi / 2)
        check_levels(self.nodes, np.pi / 2)
        check_sums(
            self,
            finite=["slope", "rates"],
            positive=["sequences", "divergence"],
            numbers=["cross", "euler", "poisson"],
        )

    def mean(self, what: str) -> Float[np.ndarray, "..."]:
        """Average over sequences of one of the sums."""
        return np.asarray(getattr(self, what).sum(0) / self.sequences.sum())

    def take(self, groups: Int[np.ndarray, " n"]) -> "Pairs":
        """Only what these groups measured."""
        return replace(self, **{name: getattr(self, name)[groups] for name in PAIR_SUMS})

    def thinned(self) -> "Pairs":
        """Without every second inner node."""
        kept = thinned(len(self.nodes))
        between = {name: getattr(self, name)[:, kept][:, :, kept] for name in ("divergence", "cross")}
        laws = {name: getattr(self, name)[:, kept] for name in ("euler", "poisson")}
        return replace(self, nodes=self.nodes[kept], **between, **laws)

    def costs(self, setting: Setting, law: Law, estimator: Estimator, smooth: bool) -> StepCosts:
        """What steps of a sampler with this token law cost; sums of what is never negative need no smoothing.

        KL(p_1 ‖ prior) ≈ -dKL/dσ / (2·gap), for KL falls like e^{-2·gap·σ} by then.
        """
        if law == "counted":
            raise EigentimeError("Counts are of revealed tokens: this clock's kernel has no mask.")
        divergence = self.mean("cross" if estimator == "cross-entropy" else "divergence")
        between = AngleCosts(self.nodes, divergence, None if law == "exact" else self.mean(law))
        decay = self.mean("rates")[-1, RATES.index("nonadiabatic")]
        return PairCosts(between, float(max(decay, 0.0) / (2 * setting.gap)))

    def rates_at(self, setting: Setting, times: Times) -> dict[str, Times]:
        """Interpolated per unit angle, where all rates vanish at the data, then carried back to time."""
        per_angle = self.mean("rates") * 2 * np.tan(self.angles)[:, None]
        nodes = np.concatenate([[0.0], self.angles])
        angle = angle_of(setting.noise.alpha(times).numpy())
        curves = PchipInterpolator(nodes, np.concatenate([np.zeros((1, len(RATES))), per_angle]))
        values = curves(np.clip(angle, 0, nodes[-1]))
        speed = setting.noise.beta(times).numpy() / (2 * np.tan(np.maximum(angle, 1e-12)))
        return {name: values[:, k] * speed for k, name in enumerate(RATES)}

    def settled(self, tolerance: float) -> bool:
        """Whether the entropy produced, ∫ dH/dσ dσ, is known to the tolerance: progress schedules rest on it."""

        def produced(part: "Pairs") -> float:
            return float(np.trapezoid(part.mean("slope") * np.tan(part.angles), part.angles))

        return bool(jackknife(produced, self) <= tolerance * abs(produced(self)))
