"""Anybody's network as a model."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import checked, function, kind, one_of, optional, whole, words
from eigentime.code import code_fingerprint
from eigentime.errors import EigentimeError
from eigentime.models.base import Model, SplitModel, rows_at, weights_fingerprint, width_of
from eigentime.models.batching import is_out_of_memory
from eigentime.process import Process


class Wrapped(Model):
    """A callable (x[, time[, cond]]) → (B, L, V) with the conventions that `wrap` was told."""

    def __init__(
        self, function: Callable[..., Tensor], process: Process, length: int, predicts: str, time: str | None, name: str
    ) -> None:
        self.function, self.process, self.length, self.name = function, process, length, name
        self.predicts = "score" if predicts == "score" else "posterior"
        self.time_dependent = time is not None
        self._logits = predicts == "logits"
        self._time, self._tried = time, False
        if isinstance(function, torch.nn.Module):
            function.eval()  # dropout would make every call different

    @property
    def device(self) -> torch.device:
        if isinstance(self.function, torch.nn.Module):
            return next((parameter.device for parameter in self.function.parameters()), torch.device("cpu"))
        return torch.device("cpu")

    @property
    def width(self) -> int:
        return width_of(self.function) if isinstance(self.function, torch.nn.Module) else 0

    def to(self, device: torch.device | str) -> "Wrapped":
        """The same on another device; a plain function lives where it likes."""
        if isinstance(self.function, torch.nn.Module):
            self.function.to(device)
        return self

    @property
    def fingerprint(self) -> str:
        """Of a network's weights; a plain function is known by its code."""
        if isinstance(self.function, torch.nn.Module):
            return weights_fingerprint(self.name, self.function.state_dict())
        return f"{self.name}, {code_fingerprint(self.function)}"

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        logs = self._output(x, t, cond)
        self._check_shape(logs, x)
        rows = self._finished(logs if where is None else rows_at(logs, where))
        return rows.log_softmax(-1) if self._logits else rows

    def _output(self, x: Tensor, t: Tensor, cond: Tensor | None) -> Tensor:
        """What the network returns for these arguments."""
        device = self.device
        arguments = [x.to(device)]
        if self._time is not None:
            noise = self.process.noise
            time = t if self._time == "t" else noise.sigma(t) if self._time == "sigma" else noise.alpha(t)
            arguments.append(time.to(device, torch.float32))
        if cond is not None:
            arguments.append(cond.to(device))
        try:
            with torch.no_grad():
                output = self.function(*arguments)
        except (IndexError, TypeError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            raise self._failed(error, x, len(arguments)) from error
        return getattr(output, "logits", output)  # as networks of the transformers library return them

    def _failed(self, error: Exception, x: Tensor, arguments: int) -> EigentimeError:
        """What a network could not do, and what it was asked: another vocabulary, length or number of arguments."""
        detail = (str(error).splitlines() or [""])[0].rstrip(".")
        time = f"a time ({self._time})" if self._time is not None else "no time"
        return EigentimeError(
            f"{self.name} failed on tokens of shape {tuple(x.shape)} with ids 0 … {self.process.kernel.size - 1}, "
            f"asked with {time} and {arguments} argument{'s' if arguments > 1 else ''} in all "
            f"({type(error).__name__}: {detail}); check `length`, `time` and the vocabulary of the process."
        )

    def _check_shape(self, rows: Any, x: Tensor) -> None:
        size = self.process.kernel.size
        sizes = (size, size - 1) if self.process.absorbing else (size,)
        if not isinstance(rows, Tensor) or tuple(rows.shape[:-1]) != tuple(x.shape) or rows.shape[-1] not in sizes:
            returned = f"shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise EigentimeError(
                f"{self.name} returned {returned} for tokens {tuple(x.shape)}; expected a tensor of shape "
                f"{(*x.shape, size)} (batch, length, vocabulary of the {self.process.kernel.name} kernel)."
            )
        if not rows.is_floating_point() or rows.is_meta:
            where = "on no device (meta)" if rows.is_meta else f"of {rows.dtype}"
            raise EigentimeError(
                f"{self.name} returned rows {where}; expected floating-point numbers, {self.predicts}s."
            )

    def _finished(self, rows: Float[Tensor, "... values"]) -> Float[Tensor, "... size"]:
        """Rows of the output as log-posteriors up to a constant of each row, or log-scores, checked."""
        rows = rows.float()
        if rows.shape[-1] < self.process.kernel.size:
            rows = self._with_mask(rows)
        if not self._tried and len(rows):  # what a network returns once it returns always
            self._try(rows)
        if self.predicts == "posterior":
            rows = self.process.kernel.forbid_(rows.clone())  # a network may have handed out a tensor that it keeps
        return rows

    def _try(self, rows: Float[Tensor, "... size"]) -> None:
        """Look at the first rows; what is no number later is looked for elsewhere."""
        self._tried = True
        if torch.isnan(rows).any() or torch.isposinf(rows).any():
            raise EigentimeError(f"{self.name} returned NaN or infinity; check the network and its `predicts`.")
        if self.predicts == "posterior" and not self._logits:
            total = rows.reshape(-1, rows.shape[-1])[:64].logsumexp(-1)
            if (total.abs() > 0.05).any():
                raise EigentimeError(
                    f"{self.name} was wrapped with predicts='posterior', but its rows are no log-probabilities (they "
                    f"sum to {total.abs().max().exp().item():.3g}); raw outputs are predicts='logits'."
                )

    def _with_mask(self, logs: Float[Tensor, "... values"]) -> Float[Tensor, "... size"]:
        """The output of a head over clean tokens only, with the mask's column put in: no probability, or score 1."""
        mask = self.process.mask
        column = torch.full_like(logs[..., :1], 0.0 if self.predicts == "score" else -torch.inf)
        return torch.cat([logs[..., :mask], column, logs[..., mask:]], -1)


class SplitWrapped(Wrapped, SplitModel):
    """A network (x[, time[, cond]]) → (B, L, D) and its head, rows (n, D) → (n, V), run only where it is needed."""

    def __init__(self, projection: Callable[[Tensor], Tensor], *described: Any) -> None:
        super().__init__(*described)
        self.projection = projection
        if isinstance(projection, torch.nn.Module):
            projection.eval()

    def to(self, device: torch.device | str) -> "SplitWrapped":
        if isinstance(self.projection, torch.nn.Module):
            self.projection.to(device)
        super().to(device)
        return self

    @property
    def fingerprint(self) -> str:
        if isinstance(self.projection, torch.nn.Module):
            return f"{super().fingerprint}, {weights_fingerprint('head', self.projection.state_dict())}"
        return f"{super().fingerprint}, {code_fingerprint(self.projection)}"

    def hidden(
        self, x: Int[Tensor, "b length"], t: Float[Tensor, " b"], cond: Tensor | None = None
    ) -> Float[Tensor, "b length d"]:
        rows = self._output(x, t, cond)
        if not isinstance(rows, Tensor) or rows.ndim != 3 or rows.shape[:2] != x.shape:
            returned = f"shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise EigentimeError(
                f"{self.name} was wrapped with a head, so the network must return (batch, length, width) for it; it "
                f"returned {returned} for tokens {tuple(x.shape)}."
            )
        return rows

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        with torch.no_grad():
            logs = self.projection(rows)
        self._check_shape(logs, rows[..., 0])
        return self._finished(logs)

    __call__ = SplitModel.__call__


@checked(
    function=function,
    process=kind(Process, "a Process(kernel, noise)"),
    length=whole(1),
    predicts=one_of("logits", "posterior", "score"),
    time=one_of("t", "sigma", "alpha", None),
    name=words,
    head=optional(function),
)
def wrap(
    function: Callable[..., Tensor],
    process: Process,
    *,
    length: int,
    predicts: Literal["logits", "posterior", "score"] = "logits",
    time: Literal["t", "sigma", "alpha"] | None = "t",
    name: str = "wrapped model",
    head: Callable[[Tensor], Tensor] | None = None,
) -> Wrapped:
    """Make a model of your own network.

    function   called as function(x) or function(x, time), x of shape (B, L); returns (B, L, V), for a masked process
               with or without a column for the mask
    process    the noise it was trained with, e.g. Process(Absorbing(50258), LogLinear())
    length     how many tokens a sequence has
    predicts   "logits" (raw network outputs over x0: the mask is removed and log-softmax applied), "posterior"
               (log-probabilities of x0) or "score" (log s_y, as SEDD)
    time       what the network takes as time: t in [0, 1], total noise "sigma", "alpha", or None for no time at all
    head       the vocabulary projection, rows (n, D) → (n, V), where `function` returns (B, L, D) without it: it then
               runs only for the tokens that are needed, which saves most of its time and memory
    """
    described = (function, process, length, predicts, time, name)
    return Wrapped(*described) if head is None else SplitWrapped(head, *described)
