"""The algorithm: after every forward, reveal what the plan says, drawn from the posteriors."""

from collections import defaultdict
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from sglang.srt.dllm.algorithm.base import DllmAlgorithm
from sglang.srt.dllm.config import DllmConfig
from torch import Tensor

from eigentime.engines.reveals import Walk, key_of, tokens_from
from eigentime.engines.sglang import Settings
from eigentime.samplers import Shaping

UNSUPPORTED = ("json_schema", "regex", "ebnf", "structural_tag", "logit_bias")
"""What a request may ask for in its sampling parameters that revealing many tokens at once cannot honour."""


class Eigentime(DllmAlgorithm):
    """Evaluation k of a block reveals the places S_k of the plan; tokens come from softmax(logits), never argmax unless
    the temperature is 0. A block takes K forwards, and one more that stores its cache.

    Every random number is a function of the seed, the request's id, the block's place and the step: tensor-parallel
    ranks agree, and a request gets the same tokens whatever else is in its batch.
    """

    def __init__(self, config: DllmConfig) -> None:
        super().__init__(config)
        self.settings = Settings.from_dict(config.algorithm_config)
        self.settings.follows.check_length(self.block_size)

    @classmethod
    def validate_request(cls, req: Any) -> str | None:
        """Refuse what the tokens would silently not obey."""
        asked = [name for name in UNSUPPORTED if getattr(req.sampling_params, name, None)]
        asked += ["return_logprob"] if getattr(req, "return_logprob", False) else []
        return f"Eigentime follows a plan and does not support {', '.join(asked)}; leave it out." if asked else None

    def max_steps(self, block_size: int) -> int:
        return self.settings.follows.evaluations + 1

    def init_step_state(self, forward_batch: Any) -> list[Walk]:
        """One walk per request."""
        starts = forward_batch.positions[:: self.block_size].tolist()
        names = forward_batch.rids or range(forward_batch.batch_size)
        return [
            Walk(self.settings.follows, free, key_of(self.settings.seed, name, start))
            for free, name, start in zip(self._masked(forward_batch), names, starts, strict=True)
        ]

    @torch.no_grad()
    def step(self, forward_batch: Any, full_logits: Float[Tensor, "tokens size"], states: list[Walk]) -> list[bool]:
        """True for blocks that were complete on entry: the forward at hand has stored their final tokens."""
        masked, shapings = self._masked(forward_batch), self._shapings(forward_batch)
        if any(row.any() and (state.masked != row).any() for row, state in zip(masked, states, strict=True)):
            states[:] = self._mended(forward_batch, masked, states)
        drawn: defaultdict[Shaping, list[tuple[np.ndarray, Tensor]]] = defaultdict(list)
        for row in np.flatnonzero(masked.any(1)):
            places, u = states[row].take()
            drawn[shapings[row]].append((row * self.block_size + places, u))
        for shaping, entries in drawn.items():
            places, u = (np.concatenate([each[0] for each in entries]), torch.cat([each[1] for each in entries]))
            where = torch.from_numpy(places).to(full_logits.device)
            tokens = tokens_from(full_logits[where], u, shaping, self.mask_id)
            forward_batch.input_ids.index_copy_(0, where, tokens.to(forward_batch.input_ids))  # the same tensor: graphs
        return (~masked.any(1)).tolist()

    def _masked(self, forward_batch: Any) -> Bool[np.ndarray, "rows block"]:
        """What is to be revealed; a mask inside a prompt is a given token."""
        masked = forward_batch.input_ids.view(forward_batch.batch_size, self.block_size) == self.mask_id
        given = forward_batch.dllm_prompt_mask
        return (masked if given is None else masked & ~given).cpu().numpy()

    def _mended(self, forward_batch: Any, masked: Bool[np.ndarray, "rows block"], states: list[Walk]) -> list[Walk]:
        """States of other blocks, as a retraction may leave them, are begun anew from what is masked."""
        fresh = self.init_step_state(forward_batch)
        return [
            state if (state.masked == row).all() else new for state, new, row in zip(states, fresh, masked, strict=True)
        ]

    def _shapings(self, forward_batch: Any) -> list[Shaping]:
        """Of every request: the file's, or its own. SGLang turns temperature 0 into top_k = 1."""
        if self.settings.shaping is not None:
            return [self.settings.shaping] * forward_batch.batch_size
        asked = forward_batch.sampling_info
        lists = (asked.temperatures.flatten().tolist(), asked.top_ps.tolist(), asked.top_ks.tolist())
        return [Shaping(*values) for values in zip(*lists, strict=True)]
