"""Long texts: block by block (LLaDA, Dream), or with a sliding window (MDLM's semi-autoregressive generation)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.models.block import Block
from eigentime.process.process import as_tokens
from eigentime.samplers.condition import Condition
from eigentime.samplers.loop import run
from eigentime.samplers.samples import SampleInfo, Samples
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

BLOCK_SEED = 2**32
"""Blocks draw from streams of their own."""
SHAPING = ("temperature", "top_p", "top_k", "normalise")


def generate_blocks(
    model: Model,
    schedules: Sequence[Schedule | Plan | None],
    prompt: Any,
    *,
    seed: int = 0,
    **options: Any,
) -> tuple[Int[Tensor, "n length"], float]:
    """Continue prompts (N, P) block by block, each with its own schedule or plan (None where the
    sampler needs none): tokens (N, model.length) and the NFE.

    The blocks share what the prompt leaves of the sequence evenly. While one is generated, those before it are known
    and those after it masked, as in the generate loops of LLaDA and Dream.
    """
    tokens = as_tokens(prompt, "`prompt`")
    if tokens.ndim != 2:
        raise EigentimeError(f"`prompt` must have the shape (N, P), not {tuple(tokens.shape)}.")
    model.process.check_tokens(tokens, "`prompt`")
    if isinstance(schedules, Schedule | Plan):
        raise EigentimeError("Give a list with one schedule for every block; [schedule] is one block.")
    left = model.length - tokens.shape[1]
    if not schedules or left <= 0 or left % len(schedules):
        raise EigentimeError(
            f"{left} tokens are left after the prompt; they must split evenly into the {len(schedules)} blocks."
        )
    tokens, infos = _blocks(model, schedules, tokens, seed, options)
    return tokens, sum(info.nfe for info in infos)


def sample_blocks(
    model: Model,
    schedule: Schedule | Plan | None,
    num_samples: int,
    block_length: int,
    *,
    seed: int = 0,
    **options: Any,
) -> Samples:
    """Whole sequences block by block, every one along the same schedule or plan, or by a sampler that needs none."""
    if not 0 < block_length <= model.length or model.length % block_length:
        raise EigentimeError(f"{model.length} tokens do not split into blocks of {block_length}.")
    nothing = torch.zeros(num_samples, 0, dtype=torch.long)
    tokens, infos = _blocks(model, [schedule] * (model.length // block_length), nothing, seed, options)
    return Samples.of(
        tokens,
        SampleInfo(
            nfe=sum(info.nfe for info in infos),
            evaluations=sum(info.evaluations for info in infos),
            seconds=sum(info.seconds for info in infos),
            clipped=max(info.clipped for info in infos),
            stopped=any(info.stopped for info in infos),
            batch_size=infos[-1].batch_size,
            spent=torch.stack([info.spent for info in infos]).sum(0),
            record=None,
            exact=False,
        ),
    )


def _blocks(
    model: Model,
    schedules: Sequence[Schedule | Plan | None],
    tokens: Int[Tensor, "n prompt"],
    seed: int,
    options: dict[str, Any],
) -> tuple[Int[Tensor, "n length"], list[SampleInfo]]:
    """One block after the other: all tokens, and what each block cost."""
    options, guidance = _settled(options)
    infos: list[SampleInfo] = []
    length = (model.length - tokens.shape[1]) // len(schedules)
    for k, schedule in enumerate(schedules):
        start = tokens.shape[1]
        block = Block(model, start, start + length)
        condition = Condition(cond=tokens, guidance=guidance)
        new, info = run(block, schedule, len(tokens), seed=seed + k * BLOCK_SEED, condition=condition, **options)
        tokens = torch.cat([tokens, new], 1)
        infos.append(info)
        if info.stopped:
            break
    return tokens, infos


def generate_canvases(
    model: Model, schedules: Sequence[Schedule], prompt: Any, *, end: int | None = None, seed: int = 0, **options: Any
) -> tuple[Int[Tensor, "n length"], float]:
    """Continue prompts (N, P) canvas by canvas, each with its own schedule, for models whose condition is everything
    that comes before a canvas (DiffusionGemma): tokens (N, P + canvases·length) and the NFE.

    end   the token that ends a text: once every sequence holds it, no further canvas is begun
    """
    options, guidance = _settled(options)
    tokens = as_tokens(prompt, "`prompt`")
    if tokens.ndim != 2 or not tokens.shape[1]:
        raise EigentimeError(f"`prompt` must have the shape (N, P), not {tuple(tokens.shape)}.")
    model.process.check_tokens(tokens, "`prompt`")
    if isinstance(schedules, Schedule | Plan) or not schedules:
        raise EigentimeError("Give a list with one schedule for every canvas; [schedule] is one canvas.")
    start, nfe = tokens.shape[1], 0.0
    for k, schedule in enumerate(schedules):
        condition = Condition(cond=tokens, guidance=guidance)
        new, info = run(model, schedule, len(tokens), seed=seed + k * BLOCK_SEED, condition=condition, **options)
        tokens, nfe = torch.cat([tokens, new], 1), nfe + info.nfe
        ended = end is not None and bool((tokens[:, start:] == end).any(1).all())
        if info.stopped or ended:
            break
    return tokens, nfe


def generate_windows(
    model: Model, schedule: Schedule, num_samples: int, length: int, stride: int, *, seed: int = 0, **options: Any
) -> tuple[Int[Tensor, "n length"], float]:
    """Sequences longer than the model: generate a window, then again and again keep its end and generate `stride` more
    tokens, as MDLM does. Returns tokens (N, length) and the NFE."""
    if not 0 < stride < model.length or length < model.length or (length - model.length) % stride:
        raise EigentimeError(
            f"{length} tokens cannot be reached from windows of {model.length} by strides of {stride}: choose a length "
            f"of {model.length} + k·{stride}."
        )
    options, guidance = _settled(options)
    tokens, info = run(model, schedule, num_samples, seed=seed, condition=Condition(guidance=guidance), **options)
    nfe, fixed = info.nfe, torch.arange(model.length) < model.length - stride
    for k in range((length - model.length) // stride):
        if info.stopped:
            break
        given = torch.zeros_like(tokens[:, : model.length])
        given[:, : model.length - stride] = tokens[:, -(model.length - stride) :]
        condition = Condition(given, fixed, guidance=guidance)
        new, info = run(model, schedule, num_samples, seed=seed + (k + 1) * BLOCK_SEED, condition=condition, **options)
        tokens, nfe = torch.cat([tokens, new[:, -stride:]], 1), nfe + info.nfe
    return tokens, nfe


def _settled(options: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
    """Options of `sample` as the loop takes them, and the weight of guidance; what blocks and windows decide themselves
    is refused."""
    for name in ("given", "fixed", "cond", "num_samples"):
        if name in options:
            raise EigentimeError(f"`{name}` cannot be given here: prompt and windows decide it.")
    shaping: Shaping = options.get("shaping") or Shaping()
    shaping = replace(shaping, **{name: options[name] for name in SHAPING if name in options})
    others = {name: value for name, value in options.items() if name not in (*SHAPING, "shaping", "guidance")}
    return {"shaping": shaping, **others}, options.get("guidance")
