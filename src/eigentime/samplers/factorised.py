"""Samplers that draw every token of x_s independently given x_t: Euler, Poisson τ-leaping and ancestral.

They differ only in the token law (`process.laws`) they draw from.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.arguments import flag, settle
from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows
from eigentime.process.laws import Law, clip_law, reveal_probability, token_law
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Step
from eigentime.samplers.jumps import SummedJumps, jump_rates
from eigentime.samplers.run import Answer, Run
from eigentime.samplers.state import Draws, State


class Factorised(GridSampler):
    """x_s,i ~ law(· | x_t), independently for every i."""

    law: Law
    likelihood = "bound"
    ordinal: bool = False

    def step(self, run: Run, state: State, step: Step) -> State:
        law: Law = "exact" if step.last else self.law
        u = run.uniforms(Purpose.DRAW, state, step.index)
        if state.mask is not None:
            return _reveal(run, state, step, law, u)
        draws = Draws(state)
        jumps = SummedJumps(run, state, draws, Purpose.COUNT, step.index)
        for answer in run.answers(state, step.t, state.active):
            if self.ordinal and not step.last:
                rates = jump_rates(run.model.process, run.shaping(answer.laws[0]), answer.tokens, step.t)
                jumps.add(answer, (step.t - step.s) * rates)
            else:
                place = answer.sequence, answer.position
                draws.put(*place, draw(_token_laws(run, step, law, answer), u[place]))
        return draws.done()


class Ancestral(Factorised):
    """P(x_s,i | x_t) exactly (Tweedie, analytic, ddpm)."""

    name, law = "ancestral", "exact"


class Euler(Factorised):
    """one_hot(x) + (t-s)·R̄, negative stay-probabilities clipped."""

    name, law = "euler", "euler"


@dataclass(frozen=True)
class TauLeaping(Factorised):
    """Jump counts Poisson((t-s)·R̄); the first jump wins, or with `ordinal` values jumps add up and are clamped."""

    ordinal: bool = False
    name = "tau-leaping"
    law = "poisson"

    def __post_init__(self) -> None:
        settle(self, ordinal=flag)


ANCESTRAL = Ancestral()
"""Also the last step of every other sampler."""


def _token_laws(run: Run, step: Step, law: Law, answer: Answer) -> Rows:
    """Kernels without a mask: what each token's next value is drawn from, guided where there is a condition."""
    at = [torch.tensor(value, dtype=torch.float64) for value in (step.t, step.s, step.alpha_t, step.alpha_s)]
    laws = [
        clip_law(token_law(run.model.process, law, run.shaping(posterior), answer.tokens, *at))
        for posterior in answer.laws
    ]
    run.clipped, run.drawn = run.clipped + laws[0][1].sum(), run.drawn + len(answer.tokens)
    return run.guided([rows for rows, _ in laws])


def _reveal(run: Run, state: State, step: Step, law: Law, u: Float[Tensor, "n length"]) -> State:
    """Absorbing kernel: reveal masked tokens with the step's probability, their values drawn from the posterior.

    For a normalised posterior one knows which tokens are revealed before asking the network: it is evaluated only on
    sequences where something happens and only at those rows. One uniform does both draws: given u < r, u/r is uniform.
    """
    process, masked = run.model.process, state.active
    at = [torch.tensor(value, dtype=torch.float64) for value in (step.t, step.s, step.alpha_t, step.alpha_s)]
    chance = reveal_probability(process, law, *at)
    run.drawn += int(masked.sum())
    draws = Draws(state)
    if not run.keeps_mass:
        if law == "euler":
            alpha = process.noise.alpha(step.t).item()
            rate = (step.t - step.s) * process.noise.beta(step.t).item() * alpha / (1 - alpha)
            run.clipped = run.clipped + (int(masked.sum()) if rate > 1 + 1e-9 else 0)
        for answer in run.answers(state, step.t, masked & (u < chance)):
            place = answer.sequence, answer.position
            draws.put(*place, run.draw(state, answer, u[place] / chance))
        return draws.done()
    for answer in run.answers(state, step.t, masked):
        place, posterior = (answer.sequence, answer.position), answer.laws[0]
        if step.last:
            draws.put(*place, run.draw(state, answer, u[place]))
            continue
        mass = posterior.sum(-1)  # a score's mass Σ_y q_y is part of its published law
        if law == "poisson":
            reveal = -torch.expm1(torch.log1p(-chance).to(mass.dtype) * mass)
        else:
            reveal = chance.to(mass.dtype) * mass
            run.clipped = run.clipped + (reveal > 1 + 1e-6).sum()
        values = draw(posterior, u[place], reveal.clamp(max=1.0))
        draws.put_some(*place, run.settled(state, answer, posterior, values))
    return draws.done()
