"""A trial that also follows held-out data with every sampler, and says what they cost under it."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from eigentime.experiments.trial import Cell, Trial
from eigentime.intervals import PerSequence
from eigentime.samplers import make_sampler
from eigentime.samplers.planned import Planned
from eigentime.samplers.teacher import teach
from eigentime.schedules import Plan


@dataclass(kw_only=True)
class Taught(Trial):
    """Held-out data under a sampler's own steps, in nats (see `teacher`)."""

    held_out: Int[Tensor, "n length"]

    def cost(self, cell: Cell) -> PerSequence | None:
        """Of every held-out sequence; nothing where no likelihood covers the sampler."""
        planned = self.planned(cell)
        followed = Planned() if isinstance(planned, Plan) else make_sampler(cell.sampler)
        if not self.model.process.absorbing or followed.likelihood_of(planned) is None:
            return None
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        taught = teach(self.model, self.held_out, planned, sampler, seed=self.seed, batch_size=self.batch_size)
        return PerSequence(-taught.logs.sum(1).numpy())
