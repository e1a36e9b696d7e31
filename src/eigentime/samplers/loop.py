"""The one loop: a grid in, samples out."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.absorbing import Absorbing
from eigentime.process.laws import OTHER_SAMPLERS, SAMPLER_LAWS
from eigentime.process.process import as_tokens, expand_mask
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.base import Mask, Network, Sampler, State, Step
from eigentime.samplers.chosen import (
    RULES,
    Adaptive,
    ByPosterior,
    EntropyBounded,
    Klass,
    Remasking,
    Threshold,
    masks_of,
)
from eigentime.samplers.corrected import PredictorCorrector
from eigentime.samplers.factorised import Factorised
from eigentime.samplers.first_hitting import first_hitting_step
from eigentime.samplers.guidance import make_guidance
from eigentime.samplers.planned import planned_step
from eigentime.samplers.shaping import Shaping
from eigentime.samplers.trapezoidal import Trapezoidal
from eigentime.schedules import Plan, Schedule

SAMPLERS = (*SAMPLER_LAWS, *OTHER_SAMPLERS)
CHOOSING: dict[str, type[Sampler]] = {
    "entropy-bounded": EntropyBounded,
    "threshold": Threshold,
    "klass": Klass,
    "remasking": Remasking,
}


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every step: return True to stop there."""

    step: int
    steps: int
    time: float
    tokens: Int[Tensor, "n length"]


@dataclass(frozen=True)
class SampleInfo:
    """What sampling cost."""

    nfe: float
    """Network evaluations a sequence, as the schedule asks for."""
    evaluations: int
    """Sequence evaluations really made: fewer, where nothing could change."""
    seconds: float
    clipped: float
    """Share of token laws that were clipped because a step was too long for the sampler."""
    stopped: bool
    """Whether a callback ended the run early."""


Callback = Callable[[Progress], bool | None]


def make_sampler(name: str | Sampler, theta: float = 0.5, ordinal: bool = False) -> Sampler | None:
    """The sampler of that name; None for first-hitting, which takes no grid."""
    if isinstance(name, Sampler):
        return name
    if name not in SAMPLERS:
        raise EigentimeError(f"Unknown sampler {name!r}; known are {', '.join(SAMPLERS)}.")
    if name == "predictor-corrector":
        return PredictorCorrector(ordinal=ordinal)
    if ordinal and name != "tau-leaping":
        raise EigentimeError("`ordinal` is for the tau-leaping and predictor-corrector samplers.")
    if name == "trapezoidal":
        return Trapezoidal(theta)
    if name in RULES:
        return ByPosterior(name)  # type: ignore[arg-type]
    if name in CHOOSING:
        return CHOOSING[name]()
    if name == "first-hitting":
        return None
    return Factorised(name, SAMPLER_LAWS[name], ordinal)


def run(
    model: Model,
    schedule: Schedule | Plan | None,
    *,
    num_samples: int,
    sampler: str | Sampler = "ancestral",
    seed: int = 0,
    given: Any = None,
    fixed: Any = None,
    cond: Tensor | None = None,
    guidance: float | None = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    normalise: bool = False,
    theta: float = 0.5,
    ordinal: bool = False,
    batch_size: int | None = None,
    callback: Callback | None = None,
) -> tuple[State, SampleInfo]:
    """Draw samples; see `eigentime.sample` for the arguments."""
    stepper = make_sampler(sampler, theta, ordinal)
    if not isinstance(model, Model):
        raise EigentimeError(
            "The first argument must be a model: et.load(name), or et.wrap(network, process, length=…)."
        )
    if not isinstance(num_samples, int) or num_samples < 1 or (batch_size is not None and batch_size < 1):
        raise EigentimeError(f"num_samples and batch_size must be at least 1, not {num_samples} and {batch_size}.")
    if isinstance(schedule, Plan) and sampler != "ancestral":
        raise EigentimeError(
            f"A plan is drawn token by token from the posterior, not by {sampler}; leave `sampler` out."
        )
    normalise = normalise or isinstance(schedule, Plan)  # the places are the plan's, so only a value is left to draw
    x, free = _start(model, num_samples, seed, given, fixed)
    shaping = Shaping(temperature, top_p, top_k)
    network = Network(model, seed, shaping, normalise, batch_size, cond)
    network.guidance, network.given = make_guidance(model, guidance, cond, prompted=bool((~free).any())), ~free
    if network.guidance is not None and not model.process.absorbing and (sampler != "ancestral" or not shaping.neutral):
        raise EigentimeError(
            "Guidance on a kernel without a mask mixes exact token laws: use the ancestral sampler, unsharpened."
        )
    began = time.perf_counter()
    with torch.no_grad():
        if isinstance(schedule, Plan):
            x, nfe, stopped = _planned(network, schedule, x, free, callback)
        elif stepper is None:
            x, nfe, stopped = _first_hitting(network, x, free, callback)
        elif isinstance(stepper, Adaptive):
            x, nfe, stopped = _adaptive(network, stepper, schedule, x, free, callback)
        else:
            x, nfe, stopped = _walk(network, stepper, schedule, x, free, callback)
    if network.guidance is not None:
        nfe *= 2
    clipped = network.clipped / max(network.drawn, 1)
    if clipped > 0:
        name = sampler if isinstance(sampler, str) else sampler.name
        remedy = "" if name == "ancestral" else ", or sampler='ancestral',"
        warnings.warn(
            f"{clipped:.1%} of the token laws of {name} were clipped: some steps are too long for this model. More "
            f"steps{remedy} avoid that.",
            stacklevel=3,
        )
    return x, SampleInfo(nfe, network.evaluations, time.perf_counter() - began, clipped, stopped)


def _planned(
    network: Network, plan: Plan, x: State, free: Mask, callback: Callback | None
) -> tuple[State, float, bool]:
    if not network.model.process.absorbing:
        raise EigentimeError("A plan reveals masked tokens: it needs an absorbing kernel.")
    if plan.length != network.model.length:
        raise EigentimeError(f"The plan is for {plan.length} tokens, the model has {network.model.length}.")
    step_of = plan.step_of(len(x), network.seed, ~free)
    for index in range(plan.steps):
        x = planned_step(network, x, free, step_of, index)
        if callback and callback(Progress(index + 1, plan.steps, 1 - (index + 1) / plan.steps, x)):
            return x, index + 1, True
    return x, plan.steps, False


def _walk(
    network: Network, sampler: Sampler, schedule: Schedule | None, x: State, free: Mask, callback: Callback | None
) -> tuple[State, float, bool]:
    steps = grid_steps(network.model, schedule)
    nfe = 0
    for step in steps:
        x = sampler.step(network, x, free, step)
        nfe += sampler.evaluations(step)
        if callback and callback(Progress(step.index + 1, len(steps), step.s, x)):
            return x, nfe, True
    return x, nfe, False


def _adaptive(
    network: Network, sampler: Adaptive, schedule: Schedule | None, x: State, free: Mask, callback: Callback | None
) -> tuple[State, float, bool]:
    """Steps until nothing is masked; the NFE is what a sequence took on average."""
    if schedule is not None:
        raise EigentimeError(f"The {sampler.name} sampler chooses its own steps; pass None as schedule.")
    most, passes, stopped = int(free.sum(1).max()), 1 if network.guidance is None else 2, False
    for index in range(most):
        left = free & masks_of(network, x)
        if not left.any():
            break
        share = 1 - left.sum().item() / free.sum().item()
        x = sampler.step(network, x, free, Step(index, 1 - share, 0.0, share, 1.0))
        if callback and callback(Progress(index + 1, most, 1 - share, x)):
            stopped = True
            break
    return x, network.evaluations / passes / len(x), stopped


def grid_steps(model: Model, schedule: Schedule | None) -> list[Step]:
    """The steps of a schedule, with the denoising step that a grid ending above 0 still needs."""
    if not isinstance(schedule, Schedule):
        raise EigentimeError("This sampler needs a Schedule (see et.schedule); only first-hitting goes without.")
    if schedule.noise != model.process.noise:
        raise EigentimeError(
            f"The schedule belongs to {schedule.noise}, the model to {model.process.noise}; "
            "use schedule.convert(model.process.noise)."
        )
    times, alphas = schedule.times, schedule.alphas
    if not np.allclose(alphas, model.process.grid_alphas(times), atol=1e-6):
        raise EigentimeError("The schedule was made for another kernel than the model's: its α do not fit its times.")
    if times[-1] > 0:
        times, alphas = np.append(times, 0.0), np.append(alphas, 1.0)
    return [
        Step(k, float(times[k]), float(times[k + 1]), float(alphas[k]), float(alphas[k + 1]))
        for k in range(len(times) - 1)
    ]


def _first_hitting(network: Network, x: State, free: Mask, callback: Callback | None) -> tuple[State, float, bool]:
    kernel = network.model.process.kernel
    if not isinstance(kernel, Absorbing):
        raise EigentimeError("first-hitting reveals masked tokens: it needs an absorbing kernel.")
    most = int(free.sum(1).max())
    survival = torch.ones(len(x), dtype=torch.float64)
    for index in range(most):
        x, survival = first_hitting_step(network, x, free, survival, index)
        if callback and callback(Progress(index + 1, most, 1 - (index + 1) / most, x)):
            return x, index + 1, True
    return x, most, False


def _start(model: Model, count: int, seed: int, given: Any, fixed: Any) -> tuple[State, Mask]:
    """Noise, with the given tokens put in; and which tokens are free."""
    x = model.process.prior(uniforms(seed, Purpose.PRIOR, count, model.length))
    if (given is None) != (fixed is None):
        raise EigentimeError("Conditioning takes both: `given` (the tokens) and `fixed` (which of them count).")
    mask = expand_mask(fixed, x.shape)
    if given is not None:
        tokens = as_tokens(given, "`given`")
        try:
            tokens = tokens.expand(x.shape)
        except RuntimeError:
            raise EigentimeError(
                f"`given` has shape {tuple(tokens.shape)}, which does not fit {tuple(x.shape)}."
            ) from None
        model.process.check_tokens(tokens[mask], "`given`")
        x = torch.where(mask, tokens, x)
    return x, ~mask
