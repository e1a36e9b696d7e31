"""A trial where the law of the data is known: how far samples are from it, in both directions, in nats per sequence.

    KL(data ‖ q) = E_data[ln p - ln q]      from data that the sampler is taught,
    KL(q ‖ data) = E_q[ln q - ln p]         from its own samples, which come with their ln q.

Where chance chooses places c, ln q(x | c) stands for ln q(x), and both are upper bounds: for data by Jensen's
inequality, for samples because E[ln q(x | c)] - E[ln q(x)] is what c and x tell of each other.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from eigentime.experiments.trial import Cell, Trial
from eigentime.report.rows import Row
from eigentime.samplers import Samples, make_sampler
from eigentime.samplers.planned import Planned
from eigentime.samplers.teacher import Walked, one_at_a_time, teach
from eigentime.schedules import Plan
from eigentime.tasks.law import DataLaw
from eigentime.tasks.metrics import Estimate, over_sequences

KL_DATA, KL_SAMPLES, REVERSE = "kl_data", "kl_samples", "reverse"
"""The two divergences, and the certificate that needs no law: its own samples against the same steps one at a time."""
DIGITS = 3


class MeasuredRow(Row):
    """A row of a sampler whose law is known."""

    exact: bool
    """Whether the divergences are exact; else chance chooses places, and they are upper bounds."""
    nats: list[float]
    """ln p - ln q of every sequence of the data, that differences between rows can be paired."""


@dataclass(kw_only=True)
class Divergent(Trial):
    """Both divergences beside what the judge says, which is told ln p of the samples too."""

    judge: Callable[..., dict[str, Any]]
    law: DataLaw
    held_out: Int[Tensor, "n length"]
    """Data that chose nothing; a cell is taught as many of them as it draws samples."""
    references: int = 8
    """Tokens of every sample that the reverse certificate looks at."""
    log_p: Float[Tensor, " n"] = field(init=False)

    def __post_init__(self) -> None:
        self.log_p = self.law.log_likelihood(self.held_out)

    def row(self, cell: Cell) -> Row:
        row, planned = super().row(cell), self.planned(cell)
        stepper = Planned() if isinstance(planned, Plan) else make_sampler(cell.sampler)
        covered = stepper.likelihood_of(planned) if self.model.process.absorbing else None
        if covered is None:
            return row
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # clipping is in the row
            taught = teach(self.model, self.held_out[: cell.samples], planned, sampler, seed=self.seed)
        nats = self.log_p[: cell.samples] - taught.logs.sum(1)
        found = over_sequences(nats)
        row["metrics"][KL_DATA] = {"mean": found.mean, "stderr": found.stderr}
        measured: MeasuredRow = {
            **row,
            "exact": covered == "exact",
            "nats": [round(value, DIGITS) for value in nats.tolist()],
        }
        return measured

    def judged(self, samples: Samples) -> dict[str, Any]:
        x, record = samples.as_subclass(Tensor), samples.info.record
        log_p = self.law.log_likelihood(x)
        found: dict[str, Any] = self.judge(x, log_p)
        if record is not None:
            free = record.free.cpu()
            walked = Walked(x, free, record.logs, record.asked.long(), samples.info.spent, samples.info.exact)
            found |= {KL_SAMPLES: over_sequences(record.logs.sum(1) - log_p), REVERSE: self._reverse(walked)}
        return found

    def _reverse(self, walked: Walked) -> Estimate:
        """ln q less what the same samples would have cost one token at a time (see `reverse_kl`)."""
        single, chosen, weights = one_at_a_time(self.model, walked, self.references, seed=self.seed)
        return over_sequences((weights * (walked.logs.gather(1, chosen) - single)).sum(1))
