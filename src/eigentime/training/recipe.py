"""The description of one training run."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from eigentime.errors import EigentimeError
from eigentime.models.trained import NetworkConfig
from eigentime.process import Process


@dataclass(frozen=True)
class Recipe:
    """Everything that decides which weights come out."""

    name: str
    process: Process
    length: int
    network: NetworkConfig
    steps: int
    batch: int
    learning_rate: float
    warmup: int = 200
    """Steps in which the learning rate rises to its value."""
    cooldown: float = 0.3
    """Last share of the steps, in which it falls linearly to zero."""
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0
    """Largest gradient norm."""
    ema: float = 0.999
    """Decay of the weight average that is kept; it starts smaller, min(ema, (1+n)/(10+n))."""
    first_time: float = 1e-3
    """Times are drawn from [first_time, 1]."""
    given: int = 0
    """How many tokens at the start stay clean: a conditional network learns the rest."""
    start_from: str | None = None
    """A trained model whose weights are taken over where they fit."""
    sequences: int | None = None
    """How many of the task's training sequences are used; None for as many as the task has."""
    seed: int = 0

    def __post_init__(self) -> None:
        positive = {"steps": self.steps, "batch": self.batch, "learning rate": self.learning_rate, "clip": self.clip}
        for what, value in positive.items():
            if not value > 0:
                raise EigentimeError(f"The {what} of a training run must be positive, not {value}.")
        if self.sequences is not None and self.sequences < 1:
            raise EigentimeError(f"A training run needs at least one sequence, not {self.sequences}.")
        if not 0 <= self.given < self.length:
            raise EigentimeError(f"The given tokens must leave some of {self.length} to learn, not {self.given}.")
        if not (0 <= self.cooldown <= 1 and 0 <= self.ema < 1 and 0 <= self.first_time < 1):
            raise EigentimeError("cooldown must lie in [0, 1], ema and first_time in [0, 1).")

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        falling = round(self.cooldown * self.steps)
        fall = min(1.0, (self.steps - step) / falling) if falling else 1.0
        return self.learning_rate * rise * fall

    def describe(self) -> dict[str, Any]:
        """As JSON, just as it comes back from a file."""
        content = {key: value for key, value in vars(self).items() if key not in ("process", "network")}
        for unused in [key for key, default in (("given", 0), ("sequences", None)) if content[key] == default]:
            del content[unused]
        content |= {"process": self.process.spec(), "network": asdict(self.network)}
        described: dict[str, Any] = json.loads(json.dumps(content))
        return described
