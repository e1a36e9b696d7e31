"""Anybody's network as a model."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.code import code_fingerprint
from eigentime.errors import EigentimeError
from eigentime.models.base import Model, log_posterior, weights_fingerprint
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
        self._time = time
        if isinstance(function, torch.nn.Module):
            function.eval()  # dropout would make every call different

    @property
    def device(self) -> torch.device:
        """Where the network lives now."""
        if isinstance(self.function, torch.nn.Module):
            return next((parameter.device for parameter in self.function.parameters()), torch.device("cpu"))
        return torch.device("cpu")

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
        device = self.device
        arguments = [x.to(device)]
        if self._time is not None:
            noise = self.process.noise
            time = t if self._time == "t" else noise.sigma(t) if self._time == "sigma" else noise.alpha(t)
            arguments.append(time.to(device, torch.float32))
        if cond is not None:
            arguments.append(cond.to(device))
        with torch.no_grad():
            output = self.function(*arguments)
        logs = getattr(output, "logits", output)  # as networks of the transformers library return them
        expected = (*x.shape, self.process.kernel.size)
        if isinstance(logs, Tensor) and self.process.absorbing and tuple(logs.shape) == (*x.shape, expected[-1] - 1):
            logs = self._with_mask(logs)
        if not isinstance(logs, Tensor) or tuple(logs.shape) != expected:
            returned = f"shape {tuple(logs.shape)}" if isinstance(logs, Tensor) else type(logs).__name__
            raise EigentimeError(
                f"{self.name} returned {returned} for tokens {tuple(x.shape)}; expected a tensor of shape {expected} "
                f"(batch, length, vocabulary of the {self.process.kernel.name} kernel)."
            )
        rows = (logs if where is None else logs[where.to(logs.device)]).float()
        rows = log_posterior(rows, self.process.kernel) if self._logits else rows
        if torch.isnan(rows).any() or torch.isposinf(rows).any():
            raise EigentimeError(f"{self.name} returned NaN or infinity; check the network and its `predicts`.")
        if self.predicts == "posterior" and not self._logits and len(rows):
            total = rows.reshape(-1, rows.shape[-1])[:64].logsumexp(-1)
            if (total.abs() > 0.05).any():
                raise EigentimeError(
                    f"{self.name} was wrapped with predicts='posterior', but its rows are no log-probabilities (they "
                    f"sum to {total.abs().max().exp().item():.3g}); raw outputs are predicts='logits'."
                )
        return rows

    def _with_mask(self, logs: Float[Tensor, "b length values"]) -> Float[Tensor, "b length size"]:
        """The output of a head over clean tokens only, with the mask's column put in: no probability, or score 1."""
        mask = self.process.kernel.mask  # type: ignore[attr-defined]
        column = torch.full_like(logs[..., :1], 0.0 if self.predicts == "score" else -torch.inf)
        return torch.cat([logs[..., :mask], column, logs[..., mask:]], -1)


def wrap(
    function: Callable[..., Tensor],
    process: Process,
    *,
    length: int,
    predicts: Literal["logits", "posterior", "score"] = "logits",
    time: Literal["t", "sigma", "alpha"] | None = "t",
    name: str = "wrapped model",
) -> Wrapped:
    """Make a model of your own network.

    function   called as function(x) or function(x, time), x of shape (B, L); returns (B, L, V), for a masked process
               with or without a column for the mask
    process    the noise it was trained with, e.g. Process(Absorbing(50258), LogLinear())
    length     how many tokens a sequence has
    predicts   "logits" (raw network outputs over x0: the mask is removed and log-softmax applied), "posterior"
               (log-probabilities of x0) or "score" (log s_y, as SEDD)
    time       what the network takes as time: t in [0, 1], total noise "sigma", "alpha", or None for no time at all
    """
    known: dict[str, tuple[Any, ...]] = {
        "predicts": ("logits", "posterior", "score"),
        "time": ("t", "sigma", "alpha", None),
    }
    for argument, value in (("predicts", predicts), ("time", time)):
        if value not in known[argument]:
            raise EigentimeError(f"{argument} must be one of {known[argument]}, not {value!r}.")
    if length < 1:
        raise EigentimeError(f"length must be at least 1, not {length}.")
    return Wrapped(function, process, length, predicts, time, name)
