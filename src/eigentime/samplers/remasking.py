"""A sampler that takes back: known tokens may be masked again, so that mistakes can be mended."""

from dataclasses import dataclass

from eigentime.arguments import number, settle
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Step, needs_masks
from eigentime.samplers.run import Run
from eigentime.samplers.state import Draws, State


@dataclass(frozen=True)
class Remasking(GridSampler):
    """ReMDM: known tokens are masked again with probability σ = min(eta, (1 - α_s)/α_t) in every step, so that mistakes
    can be mended; masked ones are revealed with probability (α_s - (1 - σ)·α_t)/(1 - α_t), which keeps marginals."""

    eta: float = 0.05
    name = "remasking"

    def __post_init__(self) -> None:
        settle(self, eta=number(0, 1))

    def step(self, run: Run, state: State, step: Step) -> State:
        needs_masks(state)
        again = min(self.eta, (1 - step.alpha_s) / step.alpha_t) if step.alpha_t > 0 else 0.0
        reveal = min(1.0, (step.alpha_s - (1 - again) * step.alpha_t) / (1 - step.alpha_t))
        u, draws = run.uniforms(Purpose.DRAW, state, step.index), Draws(state)
        for answer in run.answers(state, step.t, state.active & (u < reveal)):
            place = answer.sequence, answer.position
            draws.put(*place, draw(run.law(answer), u[place] / reveal))
        draws.hide(state.free & ~state.active & (u < again))
        return draws.done()
