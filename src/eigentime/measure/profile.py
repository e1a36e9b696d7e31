"""What an absorbing process costs, as one curve: the mean entropy of a masked token when a share of tokens is known.

h_count(m) = mean entropy of a masked token given m revealed ones (the rest masked), and under Bernoulli masks
h(α) = Σ_m Bin(m; L-1, α)·h_count(m). The noise curve drops out: h is measured once and serves every schedule.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import isotonic_regression

from eigentime.measure.costs import Estimator, Setting, StepCosts, Times
from eigentime.measure.counted_costs import CountedCosts
from eigentime.measure.groups import check_levels, check_sums, thinned
from eigentime.measure.level_curve import LevelCurve
from eigentime.measure.masked import MASKED_SUMS
from eigentime.measure.reveal_costs import RevealCosts
from eigentime.process.laws import Law


@dataclass(frozen=True)
class Profile:
    """Sums over groups of sequences (b) at measured levels (g), absorbing kernel.

    With `counts`, level m means exactly m free tokens revealed; otherwise levels are α of Bernoulli masks.
    """

    levels: Float[np.ndarray, " g"]
    counts: bool
    free: int
    """L, how many tokens of a sequence are free (not given)."""
    masked: Float[np.ndarray, "b g"]
    """How many masked tokens were looked at."""
    entropy: Float[np.ndarray, "b g"]
    """Σ over them of H(q), q normalised."""
    cross: Float[np.ndarray, "b g"]
    """Σ of -ln q(x0), the same on average where the model is calibrated."""
    mass: Float[np.ndarray, "b g"]
    """Σ of Σ_y q_y before normalising: 1 a token for posteriors, what a score network makes of it otherwise."""
    raw: Float[np.ndarray, "b g"]
    """Σ of -Σ_y q_y ln q_y before normalising."""

    @property
    def groups(self) -> int:
        """How many groups of sequences there are."""
        return len(self.masked)

    def mean(self, what: str) -> Float[np.ndarray, " g"]:
        """A masked token's average of one of the sums at every level."""
        masked = self.masked.sum(0)
        return np.asarray(
            np.divide(getattr(self, what).sum(0), masked, out=np.full(len(masked), np.nan), where=masked > 0)
        )

    unit, per = 1.0, " per token"
    """What `calibration` is counted in."""

    def calibration(self) -> tuple[float, float]:
        """Mean entropy and cross-entropy of a masked token over all levels: one number where a model is calibrated."""
        masked = self.masked.sum()
        return float(self.entropy.sum() / masked), float(self.cross.sum() / masked)

    def check(self) -> None:
        """Refuse what no measurement gives."""
        check_levels(self.levels, self.free - 1 if self.counts else 1.0)
        check_sums(self, finite=["raw"], positive=["masked", "entropy", "mass"], numbers=["cross"])

    @property
    def complete(self) -> bool:
        """Whether every possible count was measured, so that nothing is interpolated."""
        return self.counts and len(self.levels) == self.free

    def take(self, groups: Int[np.ndarray, " n"]) -> "Profile":
        """Only what these groups measured."""
        return replace(self, **{name: getattr(self, name)[groups] for name in MASKED_SUMS})

    def thinned(self) -> "Profile":
        """Without every second inner level."""
        kept = thinned(len(self.levels))
        return replace(self, levels=self.levels[kept], **{name: getattr(self, name)[:, kept] for name in MASKED_SUMS})

    def curve(self, what: str, smooth: bool = False) -> LevelCurve:
        """One of the averages over α. `smooth` makes it decrease, as the entropy does in truth, by isotonic
        regression."""
        values = self.mean(what)
        if smooth:
            weights = self.masked.sum(0)
            known = weights > 0
            values[known] = isotonic_regression(values[known], weights=weights[known], increasing=False).x
        return LevelCurve(self.levels, values, self.free, self.counts)

    def costs(self, setting: Setting, law: Law, estimator: Estimator, smooth: bool) -> StepCosts:
        """What steps of a sampler with this token law cost."""
        curve = self.curve("cross" if estimator == "cross-entropy" else "entropy", smooth)
        if law == "counted":
            return CountedCosts(curve, setting.free)
        return RevealCosts(curve, setting.free, setting.noise, law)

    def rates_at(self, setting: Setting, times: Times) -> dict[str, Times]:
        """L·(-α')·h and, in the bare gauge, L·(-α')·[h + ln((1-α)/α)]; total and adiabatic rates are infinite."""
        alpha = setting.noise.alpha(times).numpy()
        speed = setting.free * setting.noise.beta(times).numpy() * alpha
        mass = self.curve("mass").at(alpha)
        # a posterior is normalised, so its raw entropy is its entropy, which may be smoothed
        normalised = np.allclose(self.mass, self.masked, rtol=1e-4)
        entropy = self.curve("entropy", smooth=True).at(alpha)
        raw = entropy if normalised else self.curve("raw").at(alpha)
        with np.errstate(divide="ignore"):
            where = np.log((1 - alpha) / alpha)
        infinite = np.full(len(times), np.inf)
        return {
            "total": infinite,
            "adiabatic": infinite,
            "nonadiabatic": speed * (raw + mass * where),
            "nonadiabatic_data": speed * entropy,
            "activity": speed * mass,
            "mobility": np.zeros(len(times)),
        }

    def settled(self, tolerance: float) -> bool:
        """Whether the entropy produced is known too: one curve serves it and the costs, whose noise is looked at."""
        return True
