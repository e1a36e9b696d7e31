"""DiffusionGemma's own `generate` with measured steps, and the network as a model.

with et.gemma.sampling(network, clock):
    network.generate(input_ids, max_denoising_steps=16, max_new_tokens=512)
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime import api
from eigentime.engines.diffusers_carried import whole_alphas
from eigentime.engines.uniform_step import refuse_others, step_given_clean
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.models.checkpoints.diffusion_gemma import TESTED, DiffusionGemma, SelfConditioning
from eigentime.models.placement import widest
from eigentime.packages import need
from eigentime.schedules import Schedule, check_steps


def model(network: Any, self_conditioning: SelfConditioning = "off", name: str = "DiffusionGemma") -> DiffusionGemma:
    """A network that transformers has loaded, such as a pipeline's, as a model to measure and to sample."""
    need("transformers", "hub", TESTED)
    return DiffusionGemma(network, name, self_conditioning)


@contextmanager
def sampling(
    network: Any,
    source: Clock | Schedule,
    *,
    temperature: float = 1.0,
    self_conditioning: SelfConditioning = "previous",
) -> Iterator[Any]:
    """Within this, `network.generate` takes the steps of a schedule, or of the best one that a clock finds for its
    `max_denoising_steps`: it stops nowhere before, anneals no temperature and returns what was drawn.

    Its default is to look back at the previous step's logits; "off" and "once" are what can be measured.
    """
    need("transformers", "hub", TESTED)
    if not isinstance(source, Clock | Schedule):
        raise EigentimeError("DiffusionGemma takes the steps of a clock or of a schedule of the uniform kernel.")
    if not temperature > 0:
        raise EigentimeError(f"temperature must be positive, not {temperature}.")
    if self_conditioning not in get_args(SelfConditioning):
        known = ", ".join(get_args(SelfConditioning))
        raise EigentimeError(f"self_conditioning is one of {known}, not {self_conditioning!r}.")
    steps = network._denoising_step
    replaced = {
        "_prepare_sampler": partial(_prepare, network, source),
        "_prepare_diffusion_stopping_criteria": lambda settings: None,
        "_prepare_logits_processor": partial(_processors, temperature),
        "_denoising_step": partial(_denoise, steps, self_conditioning),
    }
    for name, function in replaced.items():
        setattr(network, name, function)
    try:
        yield network
    finally:
        for name in replaced:
            delattr(network, name)


class CanvasSampler:
    """What `generate` asks of a sampler: the exact posterior step, given the clean canvas that it has drawn."""

    def __init__(self, alphas: list[float], length: int, size: int) -> None:
        self.alphas, self.length, self.size = alphas, length, size

    def initialize_canvas(self, batch_size: int, device: torch.device) -> Int[Tensor, "b length"]:
        """Noise."""
        return torch.randint(0, self.size, (batch_size, self.length), device=device)

    def accept_canvas(
        self,
        current_canvas: Int[Tensor, "b length"],
        denoiser_canvas: Int[Tensor, "b length"],
        logits: Float[Tensor, "b length size"],
        cur_step: int | Tensor,
    ) -> Int[Tensor, "b length"]:
        """The next canvas; `cur_step` counts the steps that are left, this one included."""
        step = len(self.alphas) - 1 - int(cur_step)
        device = current_canvas.device
        u = torch.rand(2, *current_canvas.shape, device=device, dtype=widest(device))
        return step_given_clean(current_canvas, denoiser_canvas, self.alphas[step], self.alphas[step + 1], self.size, u)

    def renoise_canvas(self, accepted_canvas: Int[Tensor, "b length"], cur_step: int | Tensor) -> Tensor:
        """The step has put its noise in already."""
        return accepted_canvas


class Temperature:
    """A logits processor: one temperature for all steps."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, input_ids: Tensor, scores: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Logits of the sharpened law."""
        return scores / self.temperature


def _prepare(network: Any, source: Clock | Schedule, settings: Any) -> CanvasSampler:
    """In place of `_prepare_sampler`."""
    steps = check_steps(settings.max_denoising_steps)
    grid = api.schedule(source, "ods", steps=steps) if isinstance(source, Clock) else source
    refuse_others(grid.evaluations, steps)
    size = network.config.get_text_config(decoder=True).vocab_size
    return CanvasSampler(whole_alphas(grid).tolist(), network.config.canvas_length, size)


def _processors(temperature: float, settings: Any, logits_processor: Any = None) -> Any:
    """In place of `_prepare_logits_processor`: the user's, and this temperature."""
    from transformers import LogitsProcessorList

    own = [] if temperature == 1 else [Temperature(temperature)]
    return LogitsProcessorList([*(logits_processor or []), *own])


def _denoise(
    step: Callable[..., Any], how: SelfConditioning, *, decoder_forward: Callable[..., Any], **rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """In place of `_denoising_step`: `generate` keeps the argmax of the last step; here that is what was drawn."""
    canvas, likeliest, logits, finished = step(decoder_forward=_told(decoder_forward, how), **rest)
    return canvas, canvas if int(rest["cur_step"]) == 1 else likeliest, logits, finished


def _told(forward: Callable[..., Any], how: SelfConditioning) -> Callable[..., Any]:
    """The decoder, told what it thought before as `how` says."""

    def told(*, self_conditioning_logits: Tensor | None, **rest: Any) -> Any:
        if how == "previous":
            return forward(self_conditioning_logits=self_conditioning_logits, **rest)
        first = forward(self_conditioning_logits=None, **rest)
        return first if how == "off" else forward(self_conditioning_logits=first.logits, **rest)

    return told
