"""Anybody's network as a model."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process import Process
from eigentime.process.absorbing import Absorbing


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
        first_parameter = next(iter(function.parameters()), None) if isinstance(function, torch.nn.Module) else None
        self.device = torch.device("cpu") if first_parameter is None else first_parameter.device

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        arguments = [x.to(self.device)]
        if self._time is not None:
            time = {"t": lambda t: t, "sigma": self.process.noise.sigma, "alpha": self.process.noise.alpha}[self._time](
                t
            )
            arguments.append(time.to(self.device, torch.float32))
        if cond is not None:
            arguments.append(cond)
        with torch.no_grad():
            logs = self.function(*arguments)
        expected = (*x.shape, self.process.kernel.size)
        if tuple(logs.shape) != expected:
            raise EigentimeError(
                f"{self.name} returned shape {tuple(logs.shape)} for tokens {tuple(x.shape)}; expected {expected} "
                f"(batch, length, vocabulary of the {self.process.kernel.name} kernel)."
            )
        rows = logs if where is None else logs[where.to(logs.device)]
        if torch.isnan(rows).any():
            raise EigentimeError(f"{self.name} returned NaN; check the network and the `predicts` it was wrapped with.")
        return self._log_posterior(rows) if self._logits else rows

    def _log_posterior(self, logits: Float[Tensor, "... size"]) -> Float[Tensor, "... size"]:
        """Raw logits as log-posteriors: ids that data never holds get no mass, then log-softmax (MDLM's SUBS)."""
        if isinstance(self.process.kernel, Absorbing):
            logits = logits.masked_fill(self.process.kernel.excluded.to(logits.device), -torch.inf)
        return logits.log_softmax(-1)


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

    function   called as function(x) or function(x, time), x of shape (B, L); returns (B, L, V)
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
