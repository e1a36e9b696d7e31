"""Long texts: block by block (LLaDA, Dream, LLaDA2, SDAR), or with a sliding window (MDLM's semi-autoregressive
generation)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.arguments import SEED, Check, checked, function, kind, listed, number, optional, whole
from eigentime.errors import EigentimeError
from eigentime.models.base import MODEL, Model
from eigentime.models.block import Block
from eigentime.models.ending import Ending
from eigentime.models.prompts import PADDING, laid_out
from eigentime.process.process import as_tokens
from eigentime.samplers.condition import Condition
from eigentime.samplers.loop import run
from eigentime.samplers.samples import SampleInfo, Samples
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

BLOCK_SEED = 2**32
"""Blocks draw from streams of their own."""
SHAPING = ("temperature", "top_p", "top_k", "normalise")


OPTIONS: dict[str, Check] = {
    "guidance": optional(number()),
    "shaping": optional(kind(Shaping, "a Shaping(temperature, …)")),
    "callback": optional(function),
}
"""What `options` may hold that the loop does not check itself."""
LOOP = ("sampler", "batch_size", "callback")


@checked(model=MODEL, end=optional(whole()), seed=SEED)
def generate_blocks(
    model: Model,
    schedules: Sequence[Schedule | Plan | None],
    prompt: Any,
    *,
    end: int | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Int[Tensor, "n length"], float]:
    """Continue prompts block by block, each with its own schedule or plan, None for samplers that need none: tokens
    (N, model.length) and the NFE.

    prompt   tokens (N, P), or a list of prompts of different lengths: shorter ones begin with padding, -1, which comes
             back in the tokens and which no token sees
    end      the token that ends a text: what follows it is filled up with it, and neither drawn nor evaluated; the NFE
             is then the mean of what the sequences took

    The blocks share what the prompt leaves of the sequence evenly. While one is generated, those before it are known
    and those after it masked, as in the generate loops of LLaDA and Dream. Models trained in blocks (LLaDA2, SDAR)
    count them from the first token of the prompt, as their own loops do, so that the first one to be generated may hold
    the prompt's last tokens.
    """
    schedules = _listed(schedules, "block")
    tokens, given = laid_out(prompt, model)
    left = given.shape[1]
    if not schedules or left <= 0 or left % len(schedules):
        raise EigentimeError(
            f"{left} tokens are left after the prompt; they must split evenly into the {len(schedules)} blocks."
        )
    tokens, nfe, _ = _blocks(model, schedules, tokens, given, end, seed, options)
    return tokens, nfe


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
    tokens = torch.zeros(num_samples, 0, dtype=torch.long)
    given = torch.full((num_samples, model.length), PADDING)
    schedules = [schedule] * (model.length // block_length)
    tokens, nfe, infos = _blocks(model, schedules, tokens, given, None, seed, options)
    return Samples.of(
        tokens,
        SampleInfo(
            nfe=nfe,
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
    given: Int[Tensor, "n rest"],
    end: int | None,
    seed: int,
    options: dict[str, Any],
) -> tuple[Int[Tensor, "n length"], float, list[SampleInfo]]:
    """One block after the other, where `given` tokens of the blocks that are not padding are known: all tokens, the
    mean number of evaluations, and what each block cost."""
    options, guidance = _settled(options)
    if guidance is not None and bool((tokens < 0).any()):
        raise EigentimeError("Guidance hides prompts behind masks, which padding is not: give prompts of one length.")
    infos: list[SampleInfo] = []
    length, nfe = given.shape[1] // len(schedules), 0.0
    going = torch.ones(len(tokens), dtype=torch.bool)
    for k, schedule in enumerate(schedules):
        start, new = tokens.shape[1], given[:, k * length : (k + 1) * length].clone()
        held = new != PADDING
        chosen = (going & ~held.all(1)).nonzero().squeeze(1)
        if len(chosen):
            ending = model if end is None else Ending(model, end, start + int(held[chosen].sum(1).max()))
            known = held[chosen] if held[chosen].any() else None
            condition = Condition(None if known is None else new[chosen], known, tokens[chosen], guidance)
            new[chosen], info = run(
                Block(ending, start, start + length),
                schedule,
                len(chosen),
                seed=seed + k * BLOCK_SEED,
                condition=condition,
                **options,
            )
            infos.append(info)
            nfe += (info.nfe * len(chosen) if end is None else info.spent.sum().item()) / len(tokens)
        if end is not None:
            ended = ((new == end) & ~held).long().cumsum(1) > 0
            late = torch.cat([torch.zeros_like(ended[:, :1]), ended[:, :-1]], 1) | ~going[:, None]
            new, going = new.masked_fill(late, end), going & ~ended.any(1)
        tokens = torch.cat([tokens, new], 1)
        if infos and infos[-1].stopped:
            break
    return tokens, nfe, infos


@checked(model=MODEL, end=optional(whole()), seed=SEED)
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
    planned = _listed(schedules, "canvas")
    if end is not None:
        model.process.check_tokens(torch.tensor([end]), "`end`")
    start, nfe = tokens.shape[1], 0.0
    for k, schedule in enumerate(planned):
        condition = Condition(cond=tokens, guidance=guidance)
        new, info = run(model, schedule, len(tokens), seed=seed + k * BLOCK_SEED, condition=condition, **options)
        tokens, nfe = torch.cat([tokens, new], 1), nfe + info.nfe
        ended = end is not None and bool((tokens[:, start:] == end).any(1).all())
        if info.stopped or ended:
            break
    return tokens, nfe


@checked(model=MODEL, num_samples=whole(1), length=whole(1), stride=whole(1), seed=SEED)
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


def _listed(schedules: Any, of: str) -> list[Schedule | Plan | None]:
    """One schedule for every block or canvas."""
    if not isinstance(schedules, list | tuple) or not schedules:
        raise EigentimeError(f"Give a list with one schedule for every {of}; [schedule] is one {of}.")
    return listed(optional(kind((Schedule, Plan), "a schedule or a plan")))(schedules, "schedules")  # type: ignore[no-any-return]


def _settled(options: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
    """Options of `sample` as the loop takes them, and the weight of guidance; what blocks and windows decide themselves
    is refused."""
    for name in ("given", "fixed", "cond", "num_samples"):
        if name in options:
            raise EigentimeError(f"`{name}` cannot be given here: prompt and windows decide it.")
    for name in options:
        if name not in (*SHAPING, *OPTIONS, *LOOP):
            raise EigentimeError(f"`{name}` is none of {', '.join(dict.fromkeys((*SHAPING, *OPTIONS, *LOOP)))}.")
        if name in OPTIONS:
            OPTIONS[name](options[name], name)
    shaping: Shaping = options.get("shaping") or Shaping()
    shaping = replace(shaping, **{name: options[name] for name in SHAPING if name in options})
    others = {name: value for name, value in options.items() if name not in (*SHAPING, "shaping", "guidance")}
    return {"shaping": shaping, **others}, options.get("guidance")
