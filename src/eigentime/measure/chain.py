"""Measuring kernels without a mask: one forward path a sequence, evaluated at every level, compared between levels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.ledger import hashed
from eigentime.measure.costs import angle_of
from eigentime.measure.levels import Source
from eigentime.measure.pair_costs import STEP_SHARES
from eigentime.measure.pairs import Pairs
from eigentime.measure.pointwise import entropy_slope, pointwise_rates
from eigentime.models.base import Evaluation, Model, posterior_rows, row_pieces
from eigentime.models.placement import widest
from eigentime.process.kernel import DATA, Rows, one_hot
from eigentime.process.randomness import Purpose

PAIR_ELEMENTS = 2**20
"""Positions × vocabulary × pairs of levels that one sequence may cost; fewer positions are looked at beyond."""
KEPT_ELEMENTS = 2**25
"""Numbers of a network's rows that are kept: sequences × nodes × positions × width, or × the vocabulary where there is
no head that makes it of them."""
LEVEL_ELEMENTS, LAW_ELEMENTS = 2**20, 2**23
"""Numbers of the laws made of these rows that are there at a time: at one level, and at all nodes together."""
LAW_STRIDE = 4
"""What Euler and Poisson add to the exact law is measured at a fourth of the positions."""
MOST_NODES = 24
"""Levels between which divergences are measured."""

Sums = dict[str, Float[np.ndarray, "count ..."]]


def node_indices(levels: int) -> Int[np.ndarray, " n"]:
    """Which of the levels serve as nodes: all, or an even choice that keeps the first and the last."""
    return np.unique(np.round(np.linspace(0, levels - 1, min(levels, MOST_NODES))).astype(int))


def chain_sums(source: Source, times: Sequence[float], first: int, count: int) -> Sums:
    """The sums of `Pairs` for sequences first … first+count-1 at increasing times, one row a sequence."""
    model, nodes = source.model, len(node_indices(len(times)))
    positions = max(16, PAIR_ELEMENTS // (model.process.kernel.size * nodes * nodes // 2))
    kept = max(model.width, 1) if model.splits else model.process.kernel.size
    affordable = KEPT_ELEMENTS // (nodes * min(positions, model.length) * kept)
    return source.ledger.rows(
        f"paths {hashed(list(times))}",
        first,
        count,
        source.batch,
        lambda start, number: _path_sums(source, times, start, number, positions),
        most=max(1, affordable),
    )


def collect_pairs(source: Source, times: Sequence[float], sums: Sums, sequences: Float[np.ndarray, " b"]) -> Pairs:
    """Block sums as data of the clock."""
    angles = angle_of(source.model.process.noise.alpha(np.array(times)).numpy())
    return Pairs(angles=angles, nodes=angles[node_indices(len(times))], sequences=sequences, **sums)


def _path_sums(source: Source, times: Sequence[float], first: int, count: int, positions: int) -> Sums:
    model, nodes = source.model, node_indices(len(times))
    x0, fixed, cond = source.rows(first, count)
    where, looked_closely = _positions(source, fixed, first, count, positions)
    scale = (~fixed).sum(1) / where.sum(1)
    close = looked_closely[where]
    close_scale = where.sum(1) / looked_closely.sum(1)
    owner, truth = where.nonzero()[:, 0], x0[where]
    slopes, rates, steps = [], [], []
    states: list[PathState] = []
    x, before = x0, None
    for k, t in enumerate(times):
        u = source.uniforms(Purpose.CORRUPT, first, count, step=k)
        x = torch.where(fixed, x0, _forward(model, x, before, t, u))
        before = t
        at = torch.full((count,), t, dtype=torch.float64)
        state = PathState(t, x[where], model.evaluate(x, at, where, cond))
        found = [_pointwise(level, posterior, close[piece], k in nodes) for piece, level, posterior in state.levels()]
        slope, rate, step = (torch.cat(parts).cpu().double() for parts in zip(*found, strict=True))
        slopes.append(slope)
        rates.append(rate)
        if k in nodes:
            states.append(state)
            steps.append(step)
    between = _between(model, states, truth)
    laws = torch.zeros(len(owner), len(nodes), 2, len(STEP_SHARES), dtype=torch.float64)
    laws[close] = torch.stack(steps, 1) * close_scale[owner[close]][:, None, None, None]
    rows = {
        "slope": torch.stack(slopes, 1),
        "rates": torch.stack(rates, 1),
        "divergence": between[:, 0],
        "cross": between[:, 1],
        "euler": laws[:, :, 0],
        "poisson": laws[:, :, 1],
    }
    sums: Sums = {}
    for name, values in rows.items():
        total = torch.zeros(count, *values.shape[1:], dtype=torch.float64).index_add_(0, owner, values)
        sums[name] = (total * scale.reshape(-1, *[1] * (values.ndim - 1))).numpy()
    return sums


@dataclass(frozen=True)
class PathState:
    """A path's state at one time, at the positions looked at (one row each), and what the network found there."""

    t: float
    tokens: Int[Tensor, " n"]
    evaluation: Evaluation

    def levels(self) -> "Iterator[tuple[slice, Level, Rows]]":
        """All rows and their posteriors, piece by piece."""
        for piece, logs in self.evaluation.pieces(LEVEL_ELEMENTS):
            yield piece, *self._level(piece, logs)

    def level(self, piece: slice) -> "Level":
        """Some rows, made again of what the network found."""
        return self._level(piece, self.evaluation.model.head(self.evaluation.rows[piece]))[0]

    def _level(self, piece: slice, logs: Rows) -> "tuple[Level, Rows]":
        """Laws at neighbouring levels are nearly equal: they are compared as precisely as the device can."""
        model, t = self.evaluation.model, torch.tensor(self.t, dtype=torch.float64)
        tokens = self.tokens[piece].to(logs.device)
        posterior = posterior_rows(model, logs.to(widest(logs.device)), tokens, t, normalise=True)
        return Level(model, t, tokens, posterior), posterior


class Level:
    """Some rows of a state: the quotient q(x0)/P_t(x|x0), which all else is made of."""

    def __init__(self, model: Model, t: Float[Tensor, ""], tokens: Int[Tensor, " n"], posterior: Rows) -> None:
        self.model, self.t, self.tokens = model, t, tokens
        self.alpha = model.process.noise.alpha(t)
        self.quotient = model.process.dense.quotient(posterior, tokens, self.alpha)

    @property
    def score(self) -> Rows:
        """s_y."""
        return self.model.process.dense.spread(self.quotient, self.alpha)

    @property
    def into(self) -> Rows:
        """Q(y→a)."""
        return self.model.process.dense.rates_into(self.tokens, self.alpha, self.quotient)


class Earlier:
    """What comparisons with all later levels share."""

    def __init__(self, level: Level, truth: Int[Tensor, " n"]) -> None:
        kernel, score = level.model.process.dense, level.score
        self.tokens, self.alpha, self.into = level.tokens, level.alpha, level.into
        self.flow = self.into * score
        """Q(y→a)·s_y"""
        self.total = self.flow.sum(-1)
        known = kernel.score(one_hot(truth, kernel.size, level.quotient), level.tokens, level.alpha)
        self.known = self.into * known
        """The same with the score given the true x0."""
        self.log_score = score.clamp(min=torch.finfo(score.dtype).tiny).log()


def _pointwise(
    level: Level, posterior: Rows, close: Bool[Tensor, " n"], node: bool
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n r"], Float[Tensor, "chosen 2 v"]]:
    """Slope and rates per unit σ and, where the level is a node, what other samplers' laws add."""
    process = level.model.process
    beta = process.noise.beta(level.t).item()
    slope = entropy_slope(process, level.score, level.tokens, level.t) / beta
    rates = torch.stack(pointwise_rates(process, posterior, level.tokens, level.t), -1) / beta
    nothing = rates.new_zeros(0, 2, len(STEP_SHARES))
    return slope, rates, _law_divergences(level.model, level, close) if node else nothing


def _between(model: Model, states: list[PathState], truth: Int[Tensor, " n"]) -> Float[Tensor, "n 2 nodes nodes"]:
    """Divergences between all pairs of nodes, for as many rows at a time as memory holds at all of them."""
    size, nodes = model.process.kernel.size, len(states)
    between = torch.zeros(len(truth), 2, nodes, nodes, dtype=torch.float64)
    for piece in row_pieces(len(truth), size * nodes, LAW_ELEMENTS):
        levels = [state.level(piece) for state in states]
        for i, level in enumerate(levels):
            earlier = Earlier(level, truth[piece])
            for j in range(i + 1, nodes):
                between[piece, :, i, j] = _divergences(model, earlier, levels[j]).cpu().double()
    return between


def _forward(model: Model, x: Tensor, before: float | None, t: float, u: Float[Tensor, "b length"]) -> Tensor:
    """The forward path's next state; the first step starts from clean data."""
    alpha, kernel = model.process.noise.alpha, model.process.kernel
    since = DATA if before is None else alpha(before)
    return kernel.carry(x, alpha(t).expand(x.shape), u, since.expand(x.shape))


def _positions(
    source: Source, fixed: Bool[Tensor, "b length"], first: int, count: int, most: int
) -> tuple[Bool[Tensor, "b length"], Bool[Tensor, "b length"]]:
    """The free positions to look at in each sequence, at random where there are too many; and a few of them, also at
    random, for the laws of other samplers."""
    order = source.uniforms(Purpose.POSITIONS, first, count).masked_fill(fixed, 2.0).argsort(1).argsort(1)
    where = ~fixed & (order < most)
    return where, where & (order % LAW_STRIDE == 0)


def _divergences(model: Model, earlier: Earlier, later: Level) -> Float[Tensor, "n 2"]:
    """Σ_y Q(y→a)·[weight·ln(s_y/ŝ_y) - s_y + ŝ_y] with ŝ_y = w_y/w_a predicted from the later state.

    The weight is the model's score s_y, and the score given the true x0.
    """
    kernel = model.process.dense
    ratio = kernel.spread(later.quotient, earlier.alpha)
    here = ratio.gather(1, earlier.tokens[:, None]).squeeze(1)
    common = (earlier.into * ratio).sum(-1) / here - earlier.total
    log_quotient = earlier.log_score - ratio.log_() + here.log()[:, None]  # ln(s_y/ŝ_y)
    own, known = ((flow * log_quotient).sum(-1) + common for flow in (earlier.flow, earlier.known))
    return torch.stack([own, known], -1)


def _law_divergences(model: Model, level: Level, rows: Bool[Tensor, " n"]) -> Float[Tensor, "chosen 2 v"]:
    """KL(exact token law ‖ Euler's) and (‖ Poisson's) for steps from this level that take each of the `STEP_SHARES`.

    Off the present token both laws are proportional to the reverse rates R̄, so one logarithm of the exact law serves
    both.
    """
    process, kernel = model.process, model.process.dense
    chosen = rows.nonzero().squeeze(1).to(level.tokens.device)
    t, alpha, tokens, quotient = level.t, level.alpha, level.tokens[chosen], level.quotient[chosen]
    angle = torch.arccos(alpha.sqrt())
    rates = process.noise.beta(t).item() * (level.into * level.score)[chosen]
    total, log_rates = rates.sum(-1), rates.log()
    columns = []
    for share in STEP_SHARES:
        alpha_s = torch.cos(angle * (1 - share)) ** 2
        exact = kernel.channel(tokens, alpha, quotient, alpha_s) * kernel.spread(quotient, alpha_s)
        stay = exact.gather(1, tokens[:, None]).squeeze(1)
        moving = exact.scatter(1, tokens[:, None], 0.0)
        negentropy = torch.xlogy(exact, exact).sum(-1)
        common = negentropy - torch.where(moving > 0, moving * log_rates, 0.0).sum(-1)
        leap = (t - process.noise.time_of_alpha(alpha_s)).to(rates.dtype)
        jumps, moved = leap * total, moving.sum(-1)
        euler = (
            common - moved * leap.log() - torch.where(jumps < 1, stay * torch.log1p(-jumps.clamp(max=1)), -torch.inf)
        )
        poisson = common - moved * (-torch.expm1(-jumps) / total).log() + stay * jumps
        columns.append(torch.stack([euler, poisson], -1))
    return torch.stack(columns, -1).clamp(min=0.0)
