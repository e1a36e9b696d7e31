"""What a model is: one call that predicts log-posteriors or log-scores for the tokens asked."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import kind
from eigentime.errors import EigentimeError
from eigentime.process import Process
from eigentime.process.kernel import Kernel, Rows, Tokens
from eigentime.process.noise import Times

Predicts = Literal["posterior", "score"]
ROW_ELEMENTS = 2**23 - 2**16
"""How many numbers of one piece of the rows (rows × vocabulary) are handled at a time."""


class Model(ABC):
    """Predicts, for noisy tokens x at times t, log P(x0_i = y | x_t) ("posterior") or log s_y ("score")."""

    name: str
    process: Process
    length: int
    predicts: Predicts = "posterior"
    time_dependent: bool = True
    no_class: int | None = None
    """Among the classes of `cond`, the one that stands for none."""
    passes: int = 1
    """Passes through the network that one evaluation takes; they are what is counted."""
    exact: bool = False
    """Whether the posteriors are the data's own, so that certificates are absolute."""
    block: int | None = None
    """Tokens of the blocks that a network was trained in, none of which sees later ones; None where all see all."""
    takes_padding: bool = False
    """Whether sequences may begin with padding, -1, which no token sees."""
    end: int | None = None
    """The token that ends a text, where what follows it does not count (`Ending`)."""
    task: Any = None
    """The task of a model that `load` knows: where its data, its prompts and its judge come from."""

    @property
    def fingerprint(self) -> str:
        """Tells this model from others, its weights included: what was kept of one is not taken for another's."""
        weights: dict[str, Tensor] = {}
        for key, part in vars(self).items():
            if isinstance(part, torch.nn.Module):
                weights |= part.state_dict(prefix=f"{key}.")
            parts = part if isinstance(part, list | tuple) else [part]
            weights |= {f"{key}.{k}": one for k, one in enumerate(parts) if isinstance(one, Tensor)}
        return weights_fingerprint(self.name, weights)

    def __repr__(self) -> str:
        kernel, kind = self.process.kernel, "exact " if self.exact else ""
        return (
            f"{type(self).__name__}({self.name!r}, {kind}{self.predicts}s, {self.length} tokens × {kernel.size} "
            f"values, {kernel.name}, {self.process.noise})"
        )

    @abstractmethod
    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        """Logs for every position (B, L, V), or only the rows of `where` (n, V) in row-major order."""

    @property
    def device(self) -> torch.device:
        """Where the network lives now."""
        return torch.device("cpu")

    def to(self, device: torch.device | str) -> "Model":
        """The same model on another device."""
        if torch.device(device).type != "cpu":
            raise EigentimeError(f"{self.name} lives on the CPU; only networks move to {device}.")
        return self

    def cast(self, dtype: torch.dtype) -> None:
        """Compute in another precision from now on."""
        raise EigentimeError(f"{self.name} has no precision to choose; only networks have.")

    @property
    def splits(self) -> bool:
        """Whether the vocabulary projection runs only for the rows asked, so that no more outputs are ever made."""
        return False

    @property
    def width(self) -> int:
        """How many numbers a network keeps for each token, roughly; 0 for models without weights."""
        return 0

    def evaluate(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> "Evaluation":
        """One evaluation of the batch, for the rows at `where`."""
        return Evaluation(self, self(x, t, where, cond))

    def evaluate_along(
        self,
        path: dict[int, Tensor],
        index: Int[Tensor, " b"],
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> "Evaluation":
        """The same for sequences number `index` of a sampling run. `path` is for models that look back: it holds what
        they have put there about each sequence at the step before."""
        return self.evaluate(x, t, where, cond)

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        """Log-scores, or log-posteriors up to a constant of each row, of rows that were evaluated: here they are that
        already."""
        return rows

    def window(self, start: int, stop: int) -> "Model":
        """The model to ask where only tokens start … stop-1 are asked for: one that keeps what it can of the others."""
        return self

    def cached(self, kind: str) -> "Model":
        """The same model, in whose blocks keys and values are kept although they change: "prefix" or "dual"."""
        raise EigentimeError(f"{self.name} has no keys and values to keep; language models that attend have.")

    def cut(self, x: Int[Tensor, "n length"], cond: Tensor | None = None) -> Int[Tensor, "n length"]:
        """Data as they count: where a text has an end, what follows it is settled."""
        return x

    def busy(
        self, x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"], cond: Tensor | None = None
    ) -> Bool[Tensor, " b"]:
        """For which sequences the network is needed to know the tokens of `where`."""
        return where.any(1)


MODEL = kind(Model, "a model: et.load(name), or et.wrap(network, process, length=…)")
"""What every verb asks of its first argument."""


class Evaluation:
    """What a network found for the rows asked, before the vocabulary projection where there is one: logs over the
    vocabulary are made of it in pieces of bounded size, as often as they are needed."""

    def __init__(self, model: Model, rows: Float[Tensor, "n d"]) -> None:
        self.model, self.rows = model, rows

    def pieces(self, most: int | None = None) -> Iterator[tuple[slice, Float[Tensor, "n size"]]]:
        """Logs of all rows, piece by piece (`row_pieces`). What is no number is refused at the end, with one look."""
        total = None
        for piece in row_pieces(len(self.rows), self.model.process.kernel.size, most):
            logs = self.model.head(self.rows[piece])
            total = logs.sum() if total is None else total + logs.sum()
            yield piece, logs
        if total is not None:
            self._check(total.item())

    def _check(self, total: float) -> None:
        """NaN and +∞ survive a sum; -∞, a probability of zero, is allowed."""
        if math.isnan(total) or total == math.inf:
            raise EigentimeError(f"{self.model.name} returned NaN or infinity; check its weights and its precision.")


class SplitModel(Model):
    """A model in two parts, `hidden` and `head`: the vocabulary projection runs only for the rows needed, piece by
    piece."""

    @abstractmethod
    def hidden(
        self, x: Int[Tensor, "b length"], t: Float[Tensor, " b"], cond: Tensor | None = None
    ) -> Float[Tensor, "b length d"]:
        """Everything before the vocabulary projection."""

    @abstractmethod
    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        """Log-scores of these rows, or log-posteriors up to a constant of each row."""

    @property
    def splits(self) -> bool:
        return True

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        hidden = self.hidden(x, t, cond)
        logs = self.head(hidden if where is None else rows_at(hidden, where))
        return logs if self.predicts == "score" else logs.log_softmax(-1)

    def evaluate(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"],
        cond: Tensor | None = None,
    ) -> Evaluation:
        return Evaluation(self, rows_at(self.hidden(x, t, cond), where))


def rows_at(output: Float[Tensor, "b length d"], where: Bool[Tensor, "b length"]) -> Float[Tensor, "n d"]:
    """The rows of `where` in row-major order. The CPU finds where they are, so that no device has to be waited for."""
    places = where.cpu().flatten().nonzero().squeeze(1)
    return output.flatten(0, 1)[places.to(output.device)]


def row_pieces(count: int, size: int, most: int | None = None) -> Iterator[slice]:
    """Rows 0 … count-1 in runs whose rows × vocabulary stay bounded, by `most` numbers where that is less."""
    step = max(1, (ROW_ELEMENTS if most is None else min(most, ROW_ELEMENTS)) // size)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def width_of(*modules: torch.nn.Module) -> int:
    """The largest width of a network's matrices: the shorter side, so that a vocabulary does not count."""
    return max((min(p.shape) for module in modules for p in module.parameters() if p.ndim == 2), default=0)


def weights_fingerprint(name: str, weights: dict[str, Tensor]) -> str:
    """A short hash of a name and of every weight."""
    digest = hashlib.sha256(name.encode())
    for key, value in weights.items():
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def posterior_rows(model: Model, logs: Rows, x: Tokens, t: Times, normalise: bool = False) -> Rows:
    """A model's output as posteriors q(x0), where the model made it and as precisely: single precision for networks,
    double for exact models.

    A score network's posterior is kept as it is, with its own mass and, off the absorbing kernel, possibly negative
    entries; `normalise` makes it a probability, which any other model's is.
    """
    logs = logs.detach()
    if model.predicts == "posterior":
        return logs.softmax(-1)
    rows = model.process.kernel.posterior_of_scores(logs, x, model.process.noise.alpha(t))
    if not normalise:
        return rows
    rows = rows.clamp(min=0.0)
    return rows / rows.sum(-1, keepdim=True)


def log_posterior(logits: Float[Tensor, "... size"], kernel: Kernel) -> Float[Tensor, "... size"]:
    """Raw logits as log-posteriors: ids that data never holds get no mass, then log-softmax (MDLM's SUBS)."""
    return kernel.forbid_(logits.clone()).log_softmax(-1)
