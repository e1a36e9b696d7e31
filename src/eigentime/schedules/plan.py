"""Plans: when and where. How many tokens each network evaluation reveals, and in which order."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.arguments import SEED, checked, kind, listed, place, settle, shown, whole
from eigentime.errors import EigentimeError
from eigentime.files import check_seal, sealed, write_atomically
from eigentime.orders import Order, order_from_spec
from eigentime.pictured import Pictured
from eigentime.process.process import expand_mask
from eigentime.reading import DAMAGED, first_line, read_json
from eigentime.schedules.certificate import Certificate
from eigentime.sharing import Shareable

FORMAT, VERSION = "eigentime-plan", 1
MOST_SHOWN = 16
"""Counts that are shown in short."""
Stops = Int[np.ndarray, " k"]


@dataclass(frozen=True, eq=False)
class Plan(Pictured, Shareable):
    """Tokens revealed by each network evaluation, and the order in which they are."""

    shared_as = "plan.json"

    counts: tuple[int, ...]
    order: Order
    length: int
    predicted_error: Certificate | None = None
    """Path error in nats, cross-fitted; None for a plan of the user's own."""
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settle(self, order=kind(Order, "an order: et.plan chooses one"), length=whole(1))
        try:
            settle(self, counts=lambda value, name: tuple(listed(whole(1), 1)(value, name)))
        except EigentimeError:
            fits = False
        else:
            fits = sum(self.counts) <= self.length
        if not fits:
            raise EigentimeError(
                f"A plan reveals at least one token a step and at most {self.length} in all, not {shown(self.counts)}."
            )

    @property
    def strategy(self) -> str:
        """The order's name, as comparisons show it."""
        return f"plan-{self.order.name}"

    @property
    def steps(self) -> int:
        """Network evaluations."""
        return len(self.counts)

    @property
    def evaluations(self) -> int:
        """Network evaluations, as a schedule calls them."""
        return len(self.counts)

    @checked(free=whole(0))
    def stops(self, free: int) -> Stops:
        """Cumulative counts for a sequence with this many free tokens, in proportion where that differs."""
        reached = np.concatenate([[0], np.cumsum(self.counts)])
        return reached if free == reached[-1] else np.round(reached * free / reached[-1]).astype(int)

    @checked(num_samples=whole(1), seed=SEED, first=whole(0))
    def step_of(self, num_samples: int, seed: int = 0, fixed: Any = None, first: int = 0) -> Int[Tensor, "n length"]:
        """At which step each token is revealed, -1 where it is given: what a sampling loop of your own needs."""
        free = ~expand_mask(fixed, torch.Size((num_samples, self.length)))
        ranks = self.order.ranks(free, seed, first)
        steps = torch.full_like(ranks, -1)
        for row in range(num_samples):
            inner = torch.from_numpy(self.stops(int(free[row].sum()))[1:-1].copy())
            steps[row] = torch.where(free[row], torch.bucketize(ranks[row], inner, right=True), -1)
        return steps

    def positions(self, num_samples: int, seed: int = 0, fixed: Any = None) -> list[list[list[int]]]:
        """For every sequence the positions that each step reveals. Of a block's plan they count from the block's first
        token, and the same seed gives the same places in every block: take another seed for each."""
        return [
            [(row == step).nonzero().squeeze(1).tolist() for step in range(self.steps)]
            for row in self.step_of(num_samples, seed, fixed)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        error = self.predicted_error
        return sealed(
            {
                "format": FORMAT,
                "version": VERSION,
                "counts": [int(count) for count in self.counts],
                "order": self.order.spec(),
                "length": self.length,
                "predicted_error": None if error is None else error.to_dict(),
                "provenance": self.provenance,
            }
        )

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Plan":
        """What `to_dict` made."""
        error = content["predicted_error"]
        return cls(
            tuple(content["counts"]),
            order_from_spec(content["order"]),
            content["length"],
            None if error is None else Certificate.from_dict(error),
            content["provenance"],
        )

    @checked(path=place)
    def save(self, path: str | Path) -> None:
        """Write JSON; the file appears whole or not at all."""
        order_from_spec(self.order.spec())  # an order that no file can hold is refused here
        write_atomically(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    @checked(path=place)
    def load(cls, path: str | Path) -> "Plan":
        """Read what `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise EigentimeError(f"There is no plan file {path}; make one with `eigentime plan`.")
        try:
            content = read_json(path)
            if content.get("format") != FORMAT or content.get("version") != VERSION:
                raise EigentimeError(f"{path} is not an eigentime plan of version {VERSION}.")
            check_seal(content, path, "certify counts of your own with et.plan(clock, order=…, counts=[…])")
            return cls.from_dict(content)
        except EigentimeError:
            raise
        except DAMAGED as failure:
            raise EigentimeError(f"{path} is a damaged plan file ({first_line(failure)}).") from None

    def __eq__(self, other: object) -> bool:
        """The same counts in the same order, with the same certificate: what was saved equals what is loaded again."""
        return isinstance(other, Plan) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.order.name, self.counts))

    def __repr__(self) -> str:
        shown = list(map(str, self.counts))
        counts = shown if self.steps <= MOST_SHOWN else [*shown[:4], "…", *shown[-2:]]
        error = "" if self.predicted_error is None else f"; {self.predicted_error}"
        return f"Plan({self.order.name}, {self.steps} steps: {', '.join(counts)} tokens{error})"


def is_plan(path: str | Path) -> bool:
    """Whether a file says that it holds a plan."""
    try:
        return bool(read_json(path).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def plan_order(strategy: str) -> str | None:
    """The order that a strategy's name asks for: "plan" any ("" here), "plan-raster" that one; None is no plan."""
    if strategy == "plan":
        return ""
    return strategy.removeprefix("plan-") if strategy.startswith("plan-") else None
