"""Where a run stands: the tokens, kept where the network is, and on the CPU which of them may still change."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Mask = Bool[Tensor, "n length"]


@dataclass(frozen=True)
class State:
    """All sequences at one moment."""

    tokens: Int[Tensor, "n length"]
    """Where the network is."""
    free: Mask
    """On the CPU, as all that follows: the tokens that are not given."""
    active: Mask
    """Those of them that a step may change: masks, or on kernels without a mask all."""
    mask: int | None
    """The masked kernels' mask: what has another value is known and stays."""

    @property
    def device(self) -> torch.device:
        """Where the tokens are."""
        return self.tokens.device

    def places(self, sequence: Int[Tensor, " n"], position: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Places on the CPU as places in the flat tokens."""
        return (sequence * self.tokens.shape[1] + position).to(self.device)


class Draws:
    """The next state, as it comes together from what is drawn."""

    def __init__(self, state: State) -> None:
        self.before = state
        self.tokens, self.active = state.tokens.clone(), state.active.clone()
        self._undecided: list[tuple[Tensor, Tensor, Tensor]] = []

    def put(self, sequence: Int[Tensor, " n"], position: Int[Tensor, " n"], values: Int[Tensor, " n"]) -> None:
        """Values drawn at places that the CPU has chosen."""
        self.tokens.view(-1)[self.before.places(sequence, position)] = values.to(self.tokens.device)
        if self.before.mask is not None:
            self.active[sequence, position] = False

    def put_some(self, sequence: Int[Tensor, " n"], position: Int[Tensor, " n"], values: Int[Tensor, " n"]) -> None:
        """The same where only the device knows which are drawn: -1 stands for nothing."""
        places, values = self.before.places(sequence, position), values.to(self.tokens.device)
        flat = self.tokens.view(-1)
        flat[places] = torch.where(values < 0, flat[places], values)
        self._undecided.append((sequence, position, values >= 0))

    def move(self, sequence: Int[Tensor, " n"], position: Int[Tensor, " n"], values: Int[Tensor, " n"]) -> None:
        """Values that may be what they were before: a mask that stays a mask is not revealed."""
        if self.before.mask is None:
            self.put(sequence, position, values)
        else:
            self.put_some(sequence, position, torch.where(values == self.before.mask, -1, values))

    def hide(self, which: Mask) -> None:
        """Masks again at places that the CPU has chosen."""
        assert self.before.mask is not None
        self.tokens.view(-1)[self.before.places(*which.nonzero(as_tuple=True))] = self.before.mask
        self.active |= which

    def done(self) -> State:
        """The next state. What the device has chosen is read now, once."""
        if self._undecided:
            sequence, position, drawn = (torch.cat(parts) for parts in zip(*self._undecided, strict=True))
            found = drawn.nonzero().squeeze(1).int().cpu().long()
            self.active[sequence[found], position[found]] = False
        return replace(self.before, tokens=self.tokens, active=self.active)
