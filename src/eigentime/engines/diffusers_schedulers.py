"""Schedulers of diffusers that take measured steps: the uniform kernel's exact posterior on any grid, and plans.

Diffusers finds a class that it does not know under its module's name, and how it loads under the name of its base, so
`SchedulerMixin` stands in this module too.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from diffusers import BlockRefinementScheduler, DiscreteDDIMScheduler, SchedulerMixin
from diffusers.configuration_utils import register_to_config
from diffusers.pipelines.pipeline_loading_utils import LOADABLE_CLASSES
from diffusers.schedulers.scheduling_block_refinement import BlockRefinementSchedulerOutput
from diffusers.schedulers.scheduling_discrete_ddim import DiscreteDDIMSchedulerOutput
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime import api
from eigentime.engines.diffusers_carried import unpacked, whole_alphas
from eigentime.engines.uniform_step import refuse_others, step_given_clean
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.models.base import row_pieces, rows_at
from eigentime.models.placement import widest
from eigentime.orders import order_from_spec
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers import Shaping
from eigentime.schedules import Plan, check_steps, plan

__all__ = ["MaskedScheduler", "SchedulerMixin", "UniformScheduler"]

# Pipelines on the hub may only name modules that are known here.
LOADABLE_CLASSES.setdefault(__name__, {"SchedulerMixin": ["save_pretrained", "from_pretrained"]})

UNMADE = "This scheduler follows nothing yet: make it with et.diffusers.scheduler(clock), or load one that was saved."
Settled = Callable[[Bool[Tensor, "b length"], int], Int[Tensor, "b length"]]
"""Which step reveals each token: of masked ones, with a seed; tokens that are not masked mean nothing."""


class UniformScheduler(DiscreteDDIMScheduler):  # type: ignore[misc]
    """The uniform kernel's exact posterior q(x_s | x_t) on a grid of α that was measured or given: x0 is drawn from the
    network's posterior (at a temperature), then x_s given both. The corrector is diffusers' own, at the α of this grid.
    """

    order = 1

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        alphas: list[float] | None = None,
        clock: str | None = None,
        strategy: str = "ods",
        corrector_steps: int = 0,
        corrector_k: int = 1,
        corrector_selection: str = "lowest_log_margin",
        corrector_selection_tau: float = 1.0,
    ) -> None:
        """
        alphas     α before the first evaluation and after each one
        clock      instead, a packed clock: α are computed for any number of steps
        strategy   what the clock chooses by, or what chose the α
        corrector  as `DiscreteDDIMScheduler` has it
        """
        self._clock = None if clock is None else unpacked(clock)
        self._grid: list[float] = []
        self.num_inference_steps = 0
        if alphas is not None:
            self._follow(_checked(alphas), None)

    def set_timesteps(self, num_inference_steps: int, device: str | torch.device | None = None) -> None:
        """Lay out the grid for so many predictor steps; a clock can for any."""
        if self._clock is not None:
            grid = api.schedule(self._clock, self.config.strategy, steps=check_steps(num_inference_steps))
            self._follow(whole_alphas(grid).tolist(), device)
        elif self.config.alphas is None:
            raise EigentimeError(UNMADE)
        else:
            refuse_others(len(self.config.alphas) - 1, num_inference_steps)
            self._follow(_checked(self.config.alphas), device)

    def _follow(self, alphas: list[float], device: str | torch.device | None) -> None:
        self._grid, self.num_inference_steps = alphas, len(alphas) - 1
        self.timesteps = torch.arange(self.num_inference_steps, device=device)

    def _alpha(self, step_index: int) -> float:
        """α at a point of the grid: what the corrector asks for."""
        return self._grid[step_index]

    @property
    def alphas(self) -> list[float]:
        """α before the first evaluation and after each one, of the grid that is followed now."""
        return list(self._grid)

    def step(
        self,
        model_output: Float[Tensor, "b length size"],
        timestep: int | Tensor,
        sample: Int[Tensor, "b length"],
        *,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        return_dict: bool = True,
    ) -> Any:
        """The state after step number `timestep`, counted from 0, given the network's logits at the state before."""
        step = _number(timestep, self.num_inference_steps)
        alpha_t, alpha_s = self._grid[step], self._grid[step + 1]
        u = _random((3, *sample.shape), generator)
        clean, chance = _drawn(model_output.flatten(0, 1), Shaping(temperature), u[0].flatten())
        clean, chance = clean.view_as(sample), chance.view_as(sample)
        after = step_given_clean(sample, clean, alpha_t, alpha_s, model_output.shape[-1], u[1:])
        found = {"prev_sample": after, "sampled_tokens": clean, "sampled_probs": chance, "pred_logits": model_output}
        return DiscreteDDIMSchedulerOutput(**found) if return_dict else tuple(found.values())


class MaskedScheduler(BlockRefinementScheduler):  # type: ignore[misc]
    """Reveals masked tokens of a block as a plan or a schedule says, each drawn from the network's posterior.

    How many and which is decided when a block begins; no threshold adds to it, and nothing is edited afterwards.
    """

    order = 1

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        block_length: int = 32,
        counts: list[int] | None = None,
        order: dict[str, Any] | None = None,
        alphas: list[float] | None = None,
        clock: str | None = None,
        strategy: str = "ods",
        exact_counts: bool = False,
    ) -> None:
        """
        block_length  tokens of a block
        counts,order  a plan: how many tokens each evaluation reveals, and the order's description
        alphas        a schedule: the share of tokens known before the first evaluation and after each one
        clock         instead, a packed clock: a plan or schedule is computed for any number of steps
        strategy      what the clock chooses by, or what chose the α
        exact_counts  along a schedule reveal exact numbers of tokens, in place of each token with its chance
        """
        self._clock = None if clock is None else unpacked(clock)
        self._settle: Settled | None = None
        self._step_of: Int[Tensor, "b length"] | None = None
        self._left = True
        self.num_inference_steps = 0
        if counts is not None or alphas is not None:
            self._follow_own(None)

    def set_timesteps(
        self, num_inference_steps: int, device: str | torch.device | None = None, block_length: int | None = None
    ) -> None:
        """Lay out so many evaluations for each block; a clock can for any number."""
        planned = self.config.counts is not None or self._clock is not None
        if planned and block_length not in (None, self.config.block_length):
            raise EigentimeError(
                f"This scheduler is for blocks of {self.config.block_length} tokens, not of {block_length}: pass "
                f"block_length={self.config.block_length} to the pipeline."
            )
        if self._clock is not None:
            self._follow(*_from_clock(self._clock, check_steps(num_inference_steps), self.config), device)
            return
        steps = len(self.config.counts or self.config.alphas or ()) - (self.config.counts is None)
        if steps < 1:
            raise EigentimeError(UNMADE)
        refuse_others(steps, num_inference_steps)
        self._follow_own(device)

    def _follow_own(self, device: str | torch.device | None) -> None:
        """What the configuration itself says."""
        counts, order = self.config.counts, self.config.order
        if counts is not None:
            own = Plan(tuple(counts), order_from_spec(dict(order)), self.config.block_length)
            self._follow(_planned(own), own.steps, device)
        else:
            alphas = _checked(self.config.alphas)
            settle = _counted(alphas) if self.config.exact_counts else _by_chance(alphas)
            self._follow(settle, len(alphas) - 1, device)

    def _follow(self, settle: Settled, steps: int, device: str | torch.device | None) -> None:
        self._settle, self._step_of, self.num_inference_steps = settle, None, steps
        self.timesteps = torch.arange(steps, device=device)

    def step(
        self,
        model_output: Float[Tensor, "b length size"],
        timestep: int | Tensor,
        sample: Int[Tensor, "b length"],
        *,
        mask_token_id: int | None = None,
        temperature: float = 1.0,
        top_p: float | None = None,
        top_k: int | None = None,
        sampling_method: str = "multinomial",
        threshold: float | None = None,
        editing_threshold: float | None = None,
        minimal_topk: int | None = None,
        prompt_mask: Bool[Tensor, " length"] | None = None,
        generator: torch.Generator | None = None,
        return_dict: bool = True,
    ) -> Any:
        """The block after step number `timestep`, counted from 0, given the network's logits at the block before.

        `threshold`, `editing_threshold`, `minimal_topk` and `prompt_mask`, which pipelines hand over, change nothing:
        the plan says how many tokens are revealed, and what is known stays.
        """
        if mask_token_id is None:
            raise EigentimeError(
                "This scheduler reveals masked tokens, and there is no mask here: for DiffusionGemma make it from a "
                "clock or schedule of the uniform kernel."
            )
        step = _number(timestep, self.num_inference_steps)
        masked = sample == mask_token_id
        if step == 0:
            assert self._settle is not None
            seed = int(torch.randint(2**62, (), generator=generator, device=_home(generator)))
            self._step_of = self._settle(masked.cpu(), seed).to(sample.device)
        if self._step_of is None or self._step_of.shape != sample.shape:
            raise EigentimeError("Every block begins with step 0, where the places of its steps are chosen.")
        chosen = masked & (self._step_of == step)
        rows = rows_at(model_output, chosen)
        if mask_token_id < rows.shape[-1]:
            rows[:, mask_token_id] = -torch.inf
        greedy = sampling_method == "greedy"
        shaping = Shaping(0.0 if greedy else temperature, 1.0 if top_p is None else top_p, top_k)
        u = _random(sample.shape, generator)[chosen.cpu()]
        values, chance = _drawn(rows, shaping, u)
        tokens = sample.masked_scatter(chosen, values.to(sample))
        probs = chance.new_zeros(sample.shape).masked_scatter(chosen, chance)
        self._left = bool((tokens == mask_token_id).any())
        found = {
            "prev_sample": tokens,
            "transfer_index": chosen,
            "editing_transfer_index": torch.zeros_like(chosen),
            "sampled_tokens": tokens,
            "sampled_probs": probs,
            "pred_logits": model_output,
        }
        return BlockRefinementSchedulerOutput(**found) if return_dict else tuple(found.values())

    def check_block_should_continue(self, *args: Any, **kwargs: Any) -> bool:
        """Not once everything is revealed: nothing is edited afterwards."""
        return self._left and bool(super().check_block_should_continue(*args, **kwargs))


def _from_clock(clock: Clock, steps: int, config: Any) -> tuple[Settled, int]:
    if clock.orders:
        return _planned(plan(clock, steps)), steps
    sampler = "counted" if config.exact_counts else "ancestral"
    alphas = whole_alphas(api.schedule(clock, config.strategy, steps=steps, sampler=sampler)).tolist()
    return (_counted if config.exact_counts else _by_chance)(alphas), steps


def _planned(own: Plan) -> Settled:
    """The places of a plan."""

    def settle(masked: Bool[Tensor, "b length"], seed: int) -> Int[Tensor, "b length"]:
        if masked.shape[1] != own.length:
            raise EigentimeError(f"The plan is for {own.length} tokens, the block has {masked.shape[1]}.")
        return own.step_of(len(masked), seed, ~masked)

    return settle


def _counted(alphas: list[float]) -> Settled:
    """round(α·L) of the L masked tokens are known after a step, in a random order."""

    def settle(masked: Bool[Tensor, "b length"], seed: int) -> Int[Tensor, "b length"]:
        order = uniforms(seed, Purpose.CHOOSE, *masked.shape).masked_fill(~masked, 2.0).argsort(1).argsort(1)
        stops = torch.round(torch.tensor(alphas[1:-1], dtype=torch.float64) * masked.sum(1, keepdim=True))
        return (order[..., None] >= stops[:, None]).sum(-1)

    return settle


def _by_chance(alphas: list[float]) -> Settled:
    """Each token is known after a step with probability α."""

    def settle(masked: Bool[Tensor, "b length"], seed: int) -> Int[Tensor, "b length"]:
        inner = torch.tensor(alphas[1:-1], dtype=torch.float64)
        return torch.bucketize(uniforms(seed, Purpose.CHOOSE, *masked.shape), inner, right=True)

    return settle


def _drawn(
    logits: Float[Tensor, "n size"], shaping: Shaping, u: Float[Tensor, " n"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    """One value for each row of logits, and its probability before sharpening; piece by piece."""
    tokens, chances = [torch.zeros(0, dtype=torch.long, device=logits.device)], [logits.new_zeros(0)]
    for piece in row_pieces(*logits.shape):
        rows = logits[piece]
        posterior = (rows if rows.dtype == torch.float64 else rows.float()).softmax(-1)
        tokens.append(draw(shaping(posterior), u[piece]))
        chances.append(posterior.gather(-1, tokens[-1][:, None]).squeeze(-1))
    return torch.cat(tokens), torch.cat(chances)


def _random(shape: tuple[int, ...], generator: torch.Generator | None) -> Float[Tensor, "..."]:
    """Uniforms from the generator, on the CPU."""
    home = _home(generator)
    return torch.rand(shape, generator=generator, device=home, dtype=widest(home)).cpu().double()


def _home(generator: torch.Generator | None) -> torch.device:
    return torch.device("cpu") if generator is None else generator.device


def _number(timestep: int | Tensor, steps: int) -> int:
    """A step's number, checked."""
    if not steps:
        raise EigentimeError("Say how many steps there are first: scheduler.set_timesteps(num_inference_steps).")
    step = int(timestep)
    if not 0 <= step < steps:
        raise EigentimeError(f"Steps are numbered 0 … {steps - 1} from noise to data, not {step}.")
    return step


def _checked(alphas: list[float]) -> list[float]:
    """α that a grid can have: from noise up to 1."""
    rising = all(before < after for before, after in pairwise(alphas))
    if len(alphas) < 2 or not rising or not alphas[0] >= 0 or alphas[-1] != 1:
        raise EigentimeError("The α of a scheduler increase from noise to 1.")
    return [float(alpha) for alpha in alphas]
