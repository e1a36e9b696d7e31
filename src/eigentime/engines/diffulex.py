"""Diffulex (SJTU-DENG-Lab/Diffulex): a plan or a schedule inside the sampler of a model.

Its samplers draw a token for every masked place and ask `_compute_accepted_ids` which of them to keep. Diffulex finds
a model's sampler by the model's name, so following a plan means registering, under that name, one that makes the same
sampler and answers this question for it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.engines.reveals import Reveals, Walk, key_of, reveals
from eigentime.engines.tested import engine
from eigentime.errors import EigentimeError
from eigentime.schedules import Plan, Schedule

TESTED = ("0.1.0",)
REMEMBERED = 4096
"""Blocks under way that are remembered; requests that were aborted leave theirs behind."""


def follow(followed: Schedule | Plan, model_name: str, seed: int = 0) -> Callable[..., Any]:
    """Register what makes the sampler of this `model_name` ("llada", "llada2", "dream", …) keep the places of
    `followed`.

    Call it before the engine is built, in the process that samples. Tokens are drawn by Diffulex at the request's
    temperature: `SamplingParams(temperature=1.0)` draws from the posteriors.
    """
    registry = engine("diffulex.sampler.auto_sampler", "SJTU-DENG-Lab/Diffulex", TESTED).AutoSampler
    if model_name not in registry.SAMPLER_MAPPING:
        known = ", ".join(sorted(registry.SAMPLER_MAPPING)) or "none (import diffulex.sampler first)"
        raise EigentimeError(f"Diffulex has no sampler for {model_name!r}; known are {known}.")
    theirs, full_config = registry.SAMPLER_MAPPING[model_name]
    if isinstance(theirs, type):
        _check(theirs, model_name)
    kept = BlockWalks(reveals(followed), seed)

    def compute(block: Any, *drawn: Tensor, **settings: Any) -> Int[Tensor, " n"]:
        return kept.accepted(block).to(drawn[0].device)

    def never(*asked: Any) -> bool:
        return False

    def made(*config: Any) -> Any:
        sampler = theirs(*config)
        _check(sampler, model_name)
        sampler._compute_accepted_ids = compute
        sampler._can_compute_accepted_ids_cpu = sampler._can_vectorize_request = never  # shortcuts around the question
        return sampler

    registry.register(model_name, made, use_full_config=full_config, exist_ok=True)
    return made


def _check(sampler: Any, model_name: str) -> None:
    """Refuse samplers that do not ask, or that write more than was accepted."""
    if not hasattr(sampler, "_compute_accepted_ids"):
        raise EigentimeError(
            f"Diffulex's sampler for {model_name!r} cannot be told what to keep (it has no _compute_accepted_ids); "
            "take a newer Diffulex."
        )
    if hasattr(sampler, "_build_block_writes_map"):
        raise EigentimeError(
            f"Diffulex's sampler for {model_name!r} rewrites tokens that are known, which no plan speaks of; give the "
            'engine sampling_mode="naive".'
        )


class BlockWalks:
    """Which of a block's masked places to keep, for all the blocks that are under way."""

    def __init__(self, follows: Reveals, seed: int) -> None:
        self.follows, self.seed = follows, seed
        self.walks: OrderedDict[tuple[Any, int], Walk] = OrderedDict()

    def accepted(self, block: Any) -> Int[Tensor, " n"]:
        """Indices into `block.mask_token_relative_ids`; none while an earlier block is incomplete."""
        if block.prev_block is not None and not block.prev_block.is_complete:
            return torch.empty(0, dtype=torch.long)
        name, masked = (block.req.req_id, block.start), np.zeros(block.block_size, dtype=bool)
        masked[block.mask_token_relative_ids] = True
        walk = self.walks.pop(name, None)
        if walk is None or (walk.masked != masked).any():
            walk = Walk(self.follows, masked, key_of(self.seed, *name))
        places, _ = walk.take()
        if not walk.done:
            self.walks[name] = walk
        if len(self.walks) > REMEMBERED:
            self.walks.popitem(last=False)
        return torch.from_numpy(np.searchsorted(np.flatnonzero(masked), places))
