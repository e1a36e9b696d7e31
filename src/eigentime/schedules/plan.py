"""Plans: when and where. How many tokens each evaluation reveals, and in which order, chosen by a certificate.

With cumulative counts 0 = n_0 < … < n_K = n and an order π that does not look at content, a sampler that draws the
tokens of one step independently has, for a fixed π,

    KL(data ‖ samples) = Σ_k Σ_{j=n_{k-1}}^{n_k - 1} h_π(j | n_{k-1}) - H(data),

and at most that, on average over π, where the order is drawn for every sequence.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.files import check_seal, sealed, write_atomically
from eigentime.measure.clock import Clock
from eigentime.measure.ordered import PlanCosts, one_by_one
from eigentime.measure.profile import Estimator
from eigentime.process.orders import Custom, Order, make_order, order_from_spec
from eigentime.process.process import expand_mask
from eigentime.schedules.certificate import Certificate
from eigentime.schedules.paths import lightest_paths, path_nodes
from eigentime.schedules.schedule import check_steps
from eigentime.sharing import Shareable

FORMAT, VERSION = "eigentime-plan", 1
MOST_NODES = 1024
"""How many counts a plan may choose from at most."""
Stops = Int[np.ndarray, " k"]
Blocks = Int[np.ndarray, " b"] | None


@dataclass(frozen=True, eq=False)
class Plan(Shareable):
    """Tokens revealed by each network evaluation, and the order in which they are."""

    shared_as = "plan.json"

    counts: tuple[int, ...]
    order: Order
    length: int
    predicted_error: Certificate | None = None
    """Path error in nats, cross-fitted; None for a plan of the user's own."""
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = all(isinstance(count, int | np.integer) and count >= 1 for count in self.counts)
        if not self.counts or not whole or sum(self.counts) > self.length:
            raise EigentimeError(
                f"A plan reveals at least one token a step and at most {self.length} in all, not {self.counts}."
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

    def stops(self, free: int) -> Stops:
        """Cumulative counts for a sequence with this many free tokens, in proportion where that differs."""
        reached = np.concatenate([[0], np.cumsum(self.counts)])
        return reached if free == reached[-1] else np.round(reached * free / reached[-1]).astype(int)

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
        """For every sequence the positions that each step reveals."""
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
                "predicted_error": None if error is None else vars(error),
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
            None if error is None else Certificate(**error),
            content["provenance"],
        )

    def save(self, path: str | Path) -> None:
        """Write JSON; the file appears whole or not at all."""
        order_from_spec(self.order.spec())  # an order that no file can hold is refused here
        write_atomically(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "Plan":
        """Read what `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise EigentimeError(f"There is no plan file {path}; make one with `eigentime plan`.")
        try:
            content = json.loads(path.read_text())
            if content.get("format") != FORMAT or content.get("version") != VERSION:
                raise EigentimeError(f"{path} is not an eigentime plan of version {VERSION}.")
            check_seal(content, path, "certify counts of your own with et.plan(clock, order=…, counts=[…])")
            return cls.from_dict(content)
        except EigentimeError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as failure:
            raise EigentimeError(f"{path} is a damaged plan file ({failure}).") from None

    def __repr__(self) -> str:
        return f"Plan({self.order.name}, {self.steps} steps: {', '.join(map(str, self.counts))})"


def plan(clock: Clock, steps: int | None = None, *, order: Any = None, counts: Sequence[int] | None = None) -> Plan:
    """The plan with the lowest certified error.

    clock    measured with orders=[…], for example et.measure(model, data, orders=["low-discrepancy"])
    steps    network evaluations
    order    only this one, by name; otherwise the best of those measured
    counts   your own numbers of tokens per step, with a given order: then this only certifies them
    """
    if not clock.orders:
        raise EigentimeError("This clock knows no orders: measure it with orders=['low-discrepancy', …].")
    names = list(clock.orders) if order is None else [_measured_name(clock, order)]
    free = next(iter(clock.orders.values())).free
    if counts is not None:
        if steps is not None or order is None:
            raise EigentimeError("Your own counts come with an order, and say themselves how many steps there are.")
        name, stops = names[0], np.concatenate([[0], np.cumsum(counts)]).astype(int)
        if min(counts, default=0) < 1 or stops[-1] != free:
            raise EigentimeError(f"counts must be positive and add up to the {free} free tokens, not {stops[-1]}.")
        error = _certified(clock, len(counts), [name], stops)
    else:
        steps = check_steps(steps)
        if steps > free:
            raise EigentimeError(f"A plan for {free} free tokens has at most {free} steps, not {steps}.")
        name, stops = _best(clock, steps, names, None)
        error = _certified(clock, steps, names, None)
    provenance = {"clock": clock.fingerprint, "model": clock.model, "candidates": names, "package": clock.package}
    spec, own = clock.orders[name].order, order is not None and not isinstance(order, str)
    if spec["name"] == Custom.name and not own:
        raise EigentimeError("The order to use is a function, which a clock cannot hold: pass it again as order=….")
    made = make_order(order) if own else order_from_spec(spec)
    return Plan(tuple(np.diff(stops).tolist()), made, clock.length, error, provenance)


def _measured_name(clock: Clock, order: Any) -> str:
    """Under which name the clock knows an order, given by name, as a permutation or as a function."""
    if isinstance(order, str):
        if order in clock.orders:
            return order
        raise EigentimeError(f"The order {order!r} was not measured; this clock knows {', '.join(clock.orders)}.")
    spec = make_order(order).spec()
    for name, profile in clock.orders.items():
        if profile.order == spec:
            return name
    raise EigentimeError(f"This {spec['name']} order was not measured; this clock knows {', '.join(clock.orders)}.")


def is_plan(path: str | Path) -> bool:
    """Whether a file says that it holds a plan."""
    try:
        return json.loads(Path(path).read_text()).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return False


def plan_order(strategy: str) -> str | None:
    """The order that a strategy's name asks for: "plan" any ("" here), "plan-raster" that one; None is no plan."""
    if strategy == "plan":
        return ""
    return strategy.removeprefix("plan-") if strategy.startswith("plan-") else None


def plan_errors(clock: Clock, name: str, most: int) -> Float[np.ndarray, " most"]:
    """Path errors of the best plans of an order with 1 … `most` steps, from one dynamic programme."""
    costs, few = _costs(clock, name), len(clock.orders[name].levels) - 1
    weights = np.empty(0)
    for steps in sorted({min(few, most), most} - {0}):  # up to `few` steps plans stop only at measured counts
        found, _ = lightest_paths(costs.matrix(_nodes(costs, steps)), steps)
        weights = np.append(weights, found[len(weights) :])
    return weights - _one_by_one(clock)


def plan_steps_for(clock: Clock, error: float, order: str | None, most: int) -> int:
    """The fewest steps of the best plan whose predicted path error is at most `error` nats."""
    names = list(clock.orders) if order is None else [order]
    if not names or any(name not in clock.orders for name in names):
        raise EigentimeError("This clock was not measured in that order: et.measure(model, data, orders=[…]).")
    most = min(most, clock.orders[names[0]].free)
    errors = np.min([plan_errors(clock, name, most) for name in names], 0)
    enough = np.flatnonzero(errors <= error)
    if not len(enough):
        raise EigentimeError(f"Even {most} steps of a plan stay above {error:g} nats; allow more error.")
    return int(enough[0]) + 1


def _costs(
    clock: Clock, name: str, blocks: Blocks = None, estimator: Estimator = "entropy", thin: int = 1
) -> PlanCosts:
    levels, table = _rows(clock, name, blocks, estimator, thin)
    return PlanCosts(levels, table)


def _one_by_one(clock: Clock, blocks: Blocks = None, thin: int = 1) -> float:
    """What no plan can save, H(data): known for an oracle, else as the model sees it in random order.

    It is the same for every order, so that orders compare.
    """
    if clock.entropy is not None:
        return clock.entropy
    return one_by_one(*_rows(clock, "random", blocks, "entropy", thin))


def _rows(
    clock: Clock, name: str, blocks: Blocks, estimator: Estimator, thin: int
) -> tuple[Int[np.ndarray, " g"], Float[np.ndarray, "g n"]]:
    """Levels and table of an order, every `thin`-th and the last."""
    profile = clock.orders[name]
    kept = np.union1d(np.arange(0, len(profile.levels), thin), [len(profile.levels) - 1])
    return profile.levels[kept], profile.table(estimator, blocks)[kept]


def _nodes(costs: PlanCosts, steps: int) -> Stops:
    """The counts to choose from: where there are enough of them only measured ones, so that nothing is interpolated."""
    if steps < len(costs.levels):
        return np.append(costs.levels, costs.free)
    if costs.free < MOST_NODES:
        return np.arange(costs.free + 1)
    even = np.round(np.linspace(0, costs.free, MOST_NODES)).astype(int)
    return np.unique(np.concatenate([even, costs.levels, [costs.free]]))


def _best(clock: Clock, steps: int, names: list[str], blocks: Blocks) -> tuple[str, Stops]:
    """Order and stops of least error on some blocks.

    Stops are chosen by the model's own entropies. Among orders a network is judged by cross-entropy, which is what data
    cost under the plan, network error and all; an exact model's own entropies say the same with less noise.
    """
    found = []
    for name in names:
        costs = _costs(clock, name, blocks)
        nodes = _nodes(costs, steps)
        _, previous = lightest_paths(costs.matrix(nodes), steps)
        stops = nodes[path_nodes(previous, steps)]
        judge = costs if clock.exact else _costs(clock, name, blocks, "cross-entropy")
        found.append((judge.total(stops), name, stops))
    _, name, stops = min(found, key=lambda entry: entry[0])
    return name, stops


def _certified(clock: Clock, steps: int, names: list[str], stops: Stops | None) -> Certificate:
    """Cross-fitted: chosen on one half of the blocks, certified on the other, and the halves exchanged."""
    count = next(iter(clock.orders.values())).blocks
    if count < 2:
        raise EigentimeError("Certifying a plan needs at least two measured sequences.")
    halves = [np.arange(0, count, 2), np.arange(1, count, 2)]
    errors, left_out = [], []
    for chosen_on, certified_on in (halves, halves[::-1]):
        name, found = (names[0], stops) if stops is not None else _best(clock, steps, names, chosen_on)

        def error(blocks: Int[np.ndarray, " b"], name: str = name, found: Stops = found) -> float:
            return _costs(clock, name, blocks).total(found) - _one_by_one(clock, blocks)

        errors.append(error(certified_on))
        if len(certified_on) > 1:
            parts = [error(np.delete(certified_on, k)) for k in range(len(certified_on))]
            left_out.append((len(parts) - 1) * float(np.var(parts)))
    stderr = float(np.sqrt(sum(left_out)) / 2) if len(left_out) == 2 else float("inf")
    thinned = _interpolation(clock, steps, names, stops)
    return Certificate(float(np.mean(errors)), float(np.hypot(stderr, thinned)), clock.exact)


def _interpolation(clock: Clock, steps: int, names: list[str], stops: Stops | None) -> float:
    """About how far interpolating between measured counts moves the error: a third of what half of them moves it."""
    name, found = (names[0], stops) if stops is not None else _best(clock, steps, names, None)
    profile = clock.orders[name]
    if len(profile.levels) == profile.free:
        return 0.0
    fine, coarse = (_costs(clock, name, thin=k).total(found) - _one_by_one(clock, thin=k) for k in (1, 2))
    return abs(fine - coarse) / 3
