"""A stretch of a longer sequence as a model of its own: what comes before is known, what comes after masked."""

from typing import Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import checked, whole
from eigentime.errors import EigentimeError
from eigentime.models.around import Around
from eigentime.models.base import MODEL, Evaluation, Model


class Block(Around):
    """Tokens start … stop-1 of a masked model. `cond` holds the tokens before them, (B, start).

    This is what language models see when they generate block by block, so one clock for every block position is
    `measure(Block(model, start, stop), data[:, start:stop], cond=data[:, :start])`. What can be kept of the tokens
    around the block is not computed again (`Model.window`).
    """

    @checked(model=MODEL, start=whole(0), stop=whole(1))
    def __init__(self, model: Model, start: int, stop: int) -> None:
        if model.process.kernel.mask is None:
            raise EigentimeError("Blocks need a masked model: what comes later must be hidden.")
        if not 0 <= start < stop <= model.length:
            raise EigentimeError(f"A block must lie within the {model.length} tokens, not from {start} to {stop}.")
        self.model, self.start, self.length = model, start, stop - start
        self.asked, self.end, self.block = model.window(start, stop), model.end, model.block
        self.process, self.predicts, self.time_dependent = model.process, model.predicts, model.time_dependent
        self.name = f"{model.name}[{start}:{stop}]"
        self.mask = self.no_class = model.process.kernel.mask  # guidance hides what comes before

    def to(self, device: torch.device | str) -> Self:
        super().to(device)
        self.asked = self.model.window(self.start, self.start + self.length)
        return self

    def cast(self, dtype: torch.dtype) -> None:
        super().cast(dtype)
        self.asked = self.model.window(self.start, self.start + self.length)

    @property
    def fingerprint(self) -> str:
        return f"{self.model.fingerprint}[{self.start}:{self.start + self.length}]"

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        asked = torch.ones_like(x, dtype=torch.bool) if where is None else where
        rows = self.asked(self._whole(x, cond), t, self._inside(asked))
        return rows if where is not None else rows.reshape(*x.shape, -1)

    def evaluate(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> Evaluation:
        return self.asked.evaluate(self._whole(x, cond), t, self._inside(where))

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        return self.asked.head(rows)

    def cut(self, x: Int[Tensor, "n length"], cond: Tensor | None = None) -> Int[Tensor, "n length"]:
        return x if self.end is None else self.model.cut(self._whole(x, cond))[:, self.start :][:, : self.length]

    def busy(
        self, x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"], cond: Tensor | None = None
    ) -> Bool[Tensor, " b"]:
        return where.any(1) if self.end is None else self.asked.busy(self._whole(x, cond), self._inside(where))

    def _inside(self, asked: Bool[Tensor, "b length"]) -> Bool[Tensor, "b whole"]:
        """Which tokens of the whole sequence are asked for."""
        inside = torch.zeros(len(asked), self.model.length, dtype=torch.bool)
        inside[:, self.start : self.start + self.length] = asked.cpu()
        return inside

    def _whole(self, x: Int[Tensor, "b length"], before: Tensor | None) -> Int[Tensor, "b whole"]:
        if self.start and (before is None or before.shape != (len(x), self.start)):
            raise EigentimeError(
                f"{self.name} needs the {self.start} tokens before it: cond=tokens of shape (N, {self.start})."
            )
        if before is not None and not self.model.takes_padding and bool((before < 0).any()):
            raise EigentimeError(f"{self.model.name} takes no padding, -1: give it prompts of one length.")
        whole = torch.full((len(x), self.model.length), self.mask, dtype=x.dtype, device=x.device)
        if before is not None and self.start:
            whole[:, : self.start] = before.to(x.device)
        whole[:, self.start : self.start + self.length] = x
        return whole
