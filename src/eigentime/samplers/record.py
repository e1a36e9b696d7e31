"""What was drawn with which probability, written down as a walk goes: a sampler's own likelihood.

Every masked token is revealed once, and drawn from the law that the network gave when it was last asked for it. So the
logarithm of that law at the value, overwritten at every evaluation, is in the end

    ln q(x_i | known before i's step)   at every place,

and the sum over places is ln q(x), given which tokens came when. With a teacher the values are not drawn but given:
then the same walk tells what data cost.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.process.kernel import Rows
from eigentime.samplers.state import State


class Record:
    """Logarithms of laws at the values that were drawn or given, and at which evaluation each place got its value."""

    def __init__(self, state: State, teacher: Int[Tensor, "n length"] | None = None) -> None:
        self.free, self.teacher = state.free, None if teacher is None else teacher.to(state.device).contiguous()
        self.asked = torch.full(state.tokens.shape, -1, dtype=torch.int32)
        """The evaluation at which each place was last asked for, on the CPU; -1 where it is given."""
        self._logs: Tensor | None = None

    @classmethod
    def of(cls, free: Tensor, asked: Tensor, logs: Tensor) -> "Record":
        """What other records hold, put together."""
        record = cls.__new__(cls)
        record.free, record.teacher, record.asked, record._logs = free, None, asked, logs
        return record

    def settle(
        self,
        state: State,
        place: tuple[Tensor, Tensor],
        rows: Rows,
        values: Int[Tensor, " rows"],
        index: int,
        least: float,
    ) -> Int[Tensor, " rows"]:
        """The values that count of laws that sum to one: the teacher's where there is one; -1, no value, stays. No
        probability is taken to be below `least`."""
        places = state.places(*place)
        if self.teacher is not None:
            values = torch.where(values < 0, values, self.teacher.view(-1)[places].to(values.device))
        if self._logs is None:
            self._logs = torch.zeros(state.tokens.shape, dtype=rows.dtype, device=state.device)
        chosen = rows.gather(1, values.clamp(min=0)[:, None]).squeeze(1).clamp(min=least)
        self._logs.view(-1)[places] = chosen.log().to(state.device)
        self.asked[place] = index
        return values

    @property
    def logs(self) -> Float[Tensor, "n length"]:
        """ln q(x_i | known before i's step), 0 where a token is given; they come to the CPU only if one looks."""
        if self._logs is None:
            return torch.zeros(self.free.shape, dtype=torch.float64)
        return self._logs.cpu().double().masked_fill(~self.free, 0.0)
