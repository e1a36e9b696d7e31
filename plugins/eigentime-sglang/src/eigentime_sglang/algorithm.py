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
        masked = self._masked(forward_batch)
        return [self._begin(forward_batch, row, free) for row, free in enumerate(masked)]

    @torch.no_grad()
    def step(self, forward_batch: Any, full_logits: Float[Tensor, "tokens size"], states: list[Walk]) -> list[bool]:
        """True for blocks that were complete on entry: the forward at hand has stored their final tokens."""
        masked = self._masked(forward_batch)
        drawn: defaultdict[Shaping, list[tuple[np.ndarray, Tensor]]] = defaultdict(list)
        for row, waiting in enumerate(masked):
            if not waiting.any():
                continue
            if not np.array_equal(states[row].masked, waiting):  # the state of another block, as after a retraction
                states[row] = self._begin(forward_batch, row, waiting)
            places, u = states[row].take()
            drawn[self._shaping(forward_batch, row)].append((row * self.block_size + places, u))
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

    def _begin(self, forward_batch: Any, row: int, free: Bool[np.ndarray, " block"]) -> Walk:
        request = forward_batch.rids[row] if forward_batch.rids else row
        start = int(forward_batch.positions[row * self.block_size])
        return Walk(self.settings.follows, free, key_of(self.settings.seed, request, start))

    def _shaping(self, forward_batch: Any, row: int) -> Shaping:
        if self.settings.shaping is not None:
            return self.settings.shaping
        asked = forward_batch.sampling_info  # SGLang turns temperature 0 into top_k = 1
        return Shaping(float(asked.temperatures[row]), float(asked.top_ps[row]), int(asked.top_ks[row]))
