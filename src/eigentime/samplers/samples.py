"""What sampling returns: the tokens, and with them what they cost."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.pictured import Pictured
from eigentime.samplers.record import Record


@dataclass(frozen=True)
class SampleInfo:
    """What sampling cost."""

    nfe: float
    """Network evaluations per sequence, as the schedule asks for."""
    evaluations: int
    """Sequence evaluations really made: fewer, where nothing could change."""
    seconds: float
    clipped: float
    """Share of token laws that were clipped because a step was too long for the sampler."""
    stopped: bool
    """Whether a callback ended the run early."""
    batch_size: int
    """Sequences that the network saw at a time."""
    spent: Int[Tensor, " n"]
    """Network evaluations of each sequence."""
    record: Record | None
    """What was drawn with which probability, where the sampler has a likelihood."""
    exact: bool
    """Whether that is the likelihood itself, and not one that depends on which tokens came when by chance."""


class Samples(Pictured, Tensor):
    """Tokens (N, L), a tensor like any other that also knows what it cost; what is computed of it is a plain one."""

    info: SampleInfo
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def of(tokens: Tensor, info: SampleInfo) -> "Samples":
        """These tokens, which cost so much."""
        samples = tokens.as_subclass(Samples)
        samples.info = info
        return samples

    def __deepcopy__(self, memo: dict[int, object]) -> "Samples":
        return Samples.of(self.as_subclass(Tensor).clone(), self.info)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """In files they are a plain tensor, which anyone can read."""
        return self.as_subclass(Tensor).__reduce_ex__(protocol)

    def __repr__(self) -> str:  # type: ignore[override]
        plain = repr(self.as_subclass(Tensor))
        if not hasattr(self, "info"):
            return plain
        known, shape = self.info, " × ".join(map(str, self.shape))
        return f"Samples({shape} tokens, {known.nfe:g} evaluations each, {known.seconds:.2g} s)\n{plain}"

    @property
    def nfe(self) -> float:
        """Network evaluations per sequence, as the schedule asks for."""
        return self.info.nfe

    @property
    def log_q(self) -> Float[Tensor, " n"] | None:
        """ln q of every sequence in nats, where the sampler's own law is known: masked kernels, and a choice of places
        that follows from what is known."""
        known = self.info.exact and not self.info.stopped
        return self.info.record.logs.sum(1) if known and self.info.record is not None else None

    @property
    def evaluations(self) -> int:
        """Sequence evaluations really made."""
        return self.info.evaluations

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.info.seconds
