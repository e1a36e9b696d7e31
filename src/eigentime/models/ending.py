"""Texts that end: once the token that ends a text is known, what follows it is settled and does not count."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import checked, whole
from eigentime.errors import EigentimeError
from eigentime.models.around import Around
from eigentime.models.base import MODEL, Evaluation, Model


class Ending(Around):
    """A masked model whose posteriors after a known end token are certain: nothing but end tokens.

        P(x_i = end | x_j = end is known for some j < i) = 1

    So whatever walks over it, sampler, teacher or measurement, finds that these tokens cost nothing, and the network is
    not asked for them. Tokens that come after the end, but were revealed before it was known, count: nobody could know.
    End tokens before `start`, in a prompt, end nothing.
    """

    @checked(model=MODEL, end=whole(), start=whole(0))
    def __init__(self, model: Model, end: int, start: int = 0) -> None:
        kernel = model.process.kernel
        if kernel.mask is None or model.predicts != "posterior":
            raise EigentimeError("Only texts of a masked model that predicts posteriors have an end.")
        if end not in kernel.values.tolist():
            raise EigentimeError(f"The end must be one of the values that {model.name} draws, not {end}.")
        self.model, self.end, self.start = model, end, start
        self.process, self.length, self.name = model.process, model.length, model.name
        self.time_dependent, self.no_class, self.block = model.time_dependent, model.no_class, model.block
        self.exact, self.task, self.takes_padding = model.exact, model.task, model.takes_padding
        self._columns: int | None = None

    @property
    def fingerprint(self) -> str:
        return f"{self.model.fingerprint} until {self.end} from {self.start}"

    def window(self, start: int, stop: int) -> "Ending":
        return Ending(self.model.window(start, stop), self._end, self.start)

    def cached(self, kind: str) -> "Ending":
        return Ending(self.model.cached(kind), self._end, self.start)

    @property
    def _end(self) -> int:
        assert self.end is not None
        return self.end

    def over(self, x: Int[Tensor, "b length"]) -> Bool[Tensor, "b length"]:
        """What follows a known end."""
        ended = (x == self.end) & (torch.arange(x.shape[1], device=x.device) >= self.start)
        return ended.long().cumsum(1) - ended.long() > 0

    def cut(self, x: Int[Tensor, "n length"], cond: Tensor | None = None) -> Int[Tensor, "n length"]:
        return x.masked_fill(self.over(x), self._end)

    def busy(
        self, x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"], cond: Tensor | None = None
    ) -> Bool[Tensor, " b"]:
        return self.model.busy(x, where & ~self.over(x).to(where.device), cond)

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        asked = torch.ones_like(x, dtype=torch.bool) if where is None else where
        logs = self.head(self.evaluate(x, t, asked, cond).rows).log_softmax(-1)
        return logs if where is not None else logs.reshape(*x.shape, -1)

    def evaluate(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> Evaluation:
        """Rows of the inner model with one more column: 1 where a token is settled and the rest means nothing."""
        where = where.cpu()
        over = self.over(x).cpu() & where
        open_ = (where & ~over).any(1)
        if self._columns is None and not open_.any():
            open_[:] = True  # one evaluation too many, once: how wide are the rows?
        settled = over[where]
        rows: Tensor | None = None
        if open_.any():
            index = open_.nonzero().squeeze(1)
            given = None if cond is None else cond[index.to(cond.device)]
            found = self.model.evaluate(x[index.to(x.device)], t[index.to(t.device)], where[index], given).rows
            self._columns = found.shape[1]
            rows = found.new_zeros(len(settled), self._columns + 1)
            rows[open_[where.nonzero()[:, 0]].to(rows.device), :-1] = found
        elif self._columns is not None:
            rows = torch.zeros(len(settled), self._columns + 1, device=self.device)
        assert rows is not None
        rows[:, -1] = settled.to(rows)
        return Evaluation(self, rows)

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        settled = rows[..., -1] != 0
        certain = torch.full((self.process.kernel.size,), -torch.inf, device=rows.device)
        certain[self._end] = 0.0
        if bool(settled.all()):
            return certain.to(rows).expand(*rows.shape[:-1], -1)
        logs = self.model.head(rows[..., :-1])
        return torch.where(settled[..., None], certain.to(logs), logs)
