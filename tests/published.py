"""The interfaces of research engines as published, in a few lines of our own: what adapters are called with, and when.

With checkouts of the repositories in a folder named by $EIGENTIME_ENGINES (dllm, dInfer, Diffulex, Fast-dLLM), their
own files are tried as well.
"""

import os
import sys
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import torch

CHECKOUTS = Path(os.environ["EIGENTIME_ENGINES"]) if "EIGENTIME_ENGINES" in os.environ else None


@contextmanager
def modules(**contents):
    """Modules that can be imported for a while: names with __ for dots, values what they hold, or a folder."""
    before = dict(sys.modules)
    try:
        for name, content in contents.items():
            name = name.replace("__", ".")
            module = sys.modules[name] = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            if isinstance(content, Path):
                module.__path__ = [str(content)]
            else:
                vars(module).update(content)
        yield
    finally:
        for name in set(sys.modules) - set(before):
            if name.partition(".")[0] in {each.partition("__")[0] for each in contents}:
                del sys.modules[name]


class BaseAlphaScheduler:
    """dllm: subclasses are registered by name and give α(t), from 1 at t = 0 (data) to 0 at t = 1."""

    registry: ClassVar = {}

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        BaseAlphaScheduler.registry[cls.__name__] = cls

    def alpha(self, t):
        found = self._alpha(torch.as_tensor(t, dtype=torch.float32))
        return found.item() if isinstance(t, float) else found

    def alpha_derivative(self, t):
        return self._alpha_derivative(torch.as_tensor(t, dtype=torch.float32)).item()

    def reverse_mask_prob(self, s, t):
        return (1 - self.alpha(s)) / (1 - self.alpha(t))


def dllm_counts(scheduler, masks, steps):
    """dllm: tokens per step, each rounded from what is left; steps without a token are dropped."""
    counts = []
    for k in range(steps, 0, -1):
        counts.append(round(masks * (1 - scheduler.reverse_mask_prob((k - 1) / steps, k / steps))))
        masks -= counts[-1]
        if masks == 0:
            break
    return [count for count in counts if count]


def dinfer_generate(network, decoder, x, block, dropping=True):
    """dInfer: block after block; several evaluations may be asked for at once, complete rows may be dropped."""
    forwards = 0
    for number, start in enumerate(range(0, x.shape[1], block)):
        decoder.block_init(x[:, start : start + block], number)
        rows = torch.arange(len(x))
        part = x
        if dropping:
            rows = rows[(x[:, start : start + block] == decoder.mask_id).any(1)]
            part = x[rows]
        while (part[:, start : start + block] == decoder.mask_id).any():
            for _ in range(2):
                decoder.decode(network(part)[:, start : start + block], start, start + block, part)
                forwards += 1
            if dropping:
                x[rows] = part
                rows = rows[(part[:, start : start + block] == decoder.mask_id).any(1)]
                part = x[rows]
    return forwards


class AutoSampler:
    """Diffulex: samplers by the name of their model."""

    SAMPLER_MAPPING: ClassVar = {}

    @classmethod
    def register(cls, name, sampler, *, use_full_config=False, exist_ok=False):
        assert exist_ok or name not in cls.SAMPLER_MAPPING
        cls.SAMPLER_MAPPING[name] = (sampler, use_full_config)


class DiffulexSampler:
    """Diffulex: draws a token for every mask of every active block, and keeps those that it accepts."""

    def __call__(self, requests, network):
        answers = network(torch.tensor([request.token_ids for request in requests]))
        for request, logits in zip(requests, answers, strict=True):
            writes = []
            for block in request.dllm_blocks:
                if masks := block.mask_token_relative_ids:
                    laws = logits[[block.start + i for i in masks]].softmax(-1)
                    sampled = torch.multinomial(laws, 1).squeeze(1)
                    confidence = laws.gather(1, sampled[:, None]).squeeze(1)
                    accepted = self._compute_accepted_ids(block, confidence, confidence.clone(), sampled, threshold=0.9)
                    writes += [(block.start + masks[i], int(sampled[i])) for i in accepted.tolist()]
            for place, token in writes:
                request.token_ids[place] = token

    def _compute_accepted_ids(self, block, confidence, initial_confidence, sampled_tokens, **settings):
        raise NotImplementedError


class DiffulexBlock:
    """Diffulex: a view of some tokens of a request."""

    def __init__(self, request, start, block_size, mask, prev_block):
        self.req, self.start, self.block_size = request, start, block_size
        self.mask_token_id, self.prev_block = mask, prev_block

    @property
    def mask_token_relative_ids(self):
        ids = self.req.token_ids[self.start : self.start + self.block_size]
        return [i for i, token in enumerate(ids) if token == self.mask_token_id]

    @property
    def is_complete(self):
        return not self.mask_token_relative_ids


def diffulex_request(name, token_ids, block, mask):
    request = SimpleNamespace(req_id=name, token_ids=list(token_ids), dllm_blocks=[])
    for start in range(0, len(token_ids), block):
        before = request.dllm_blocks[-1] if request.dllm_blocks else None
        request.dllm_blocks.append(DiffulexBlock(request, start, block, mask, before))
    return request


FAST_DLLM = SimpleNamespace(get_num_transfer_tokens=None, get_transfer_index=None)
"""Fast-dLLM: a module in which its loops look two functions up."""


def fast_dllm_generate(network, x, prompt, block, steps, mask, window, module=FAST_DLLM):
    """Fast-dLLM: its three loops differ in the window of x that they show: all of it, from the block on, the block."""
    forwards = 0
    for start in range(prompt, x.shape[1], block):
        end = start + block
        counts = module.get_num_transfer_tokens(x[:, start:end] == mask, steps)
        for step in range(steps + 1):
            first, last = {"all": (0, None), "rest": (start, None), "block": (start, end)}[window if step else "all"]
            part = x[:, first:last]
            masks = part == mask
            masks[:, end - first :] = False
            logits = network(x)[:, first:last]
            forwards += 1
            tokens, chosen = module.get_transfer_index(logits, 1.0, "low_confidence", masks, part, counts[:, step])
            part[chosen] = tokens[chosen]
            if not (x[:, start:end] == mask).any():
                break
    return forwards


def dllm_files():
    """dllm's own schedulers and counts, from a checkout."""
    root = CHECKOUTS / "dllm" / "dllm"
    return modules(dllm=root, dllm__core=root / "core", dllm__core__samplers=root / "core" / "samplers")


def dinfer_files():
    """dInfer's own loops, from a checkout."""
    root = CHECKOUTS / "dInfer" / "python" / "dinfer"
    return modules(dinfer=root, dinfer__decoding=root / "decoding")


class DiffulexRequest:
    """What Diffulex' own samplers and blocks ask of a request."""

    has_to_cache_block = True

    def __init__(self, name, token_ids):
        self.req_id, self.token_ids, self.dllm_blocks = name, list(token_ids), []

    def __getitem__(self, index):
        return self.token_ids[index]

    @property
    def to_cache_last_token_id(self):
        """Which row speaks of the first token, where rows speak of the next one: the last, as `roll` leaves it."""
        return len(self.token_ids) - 1

    @property
    def dllm_block_buffer(self):
        return SimpleNamespace(first_running_block=self.dllm_blocks[0])


def diffulex_own_request(name, token_ids, block, mask):
    """A request of Diffulex' own blocks."""
    blocks = import_module("diffulex.engine.dllm_block")
    thresholds = import_module("diffulex.config_types").DecodingThresholds(0.1, 0.9, 0.9)
    request = DiffulexRequest(name, token_ids)
    for number, start in enumerate(range(0, len(token_ids), block)):
        before = request.dllm_blocks[-1] if request.dllm_blocks else None
        made = blocks.DllmBlock(number, start, start + block, block, mask, thresholds, prev_block=before)
        made.post_init_dllm_block(request, None)
        request.dllm_blocks.append(made)
    return request


@contextmanager
def diffulex_files(lengths):
    """Diffulex' own samplers and blocks, from a checkout; `lengths` tells them how the logits of requests are split."""
    root = CHECKOUTS / "Diffulex" / "diffulex"
    metadata = SimpleNamespace(cu_seqlens_q=None, is_prefill=[False] * len(lengths))
    metadata.cu_seqlens_q = torch.tensor([0, *lengths]).cumsum(0)
    config = type("Config", (), {})
    with modules(
        diffulex=root,
        diffulex__sampler=root / "sampler",
        diffulex__engine=root / "engine",
        diffulex__attention={"fetch_attn_metadata": lambda: metadata},
        diffulex__engine__request={"DllmReq": object},
        diffulex__profiling={"record_function": nullcontext, "ProfilerConfig": object},
    ):
        held = vars(import_module("diffulex.config_types"))
        with modules(
            diffulex__config={"Config": config, "DecodingThresholds": held["DecodingThresholds"]},
            easydict={"EasyDict": dict},
        ):
            for name in ("llada", "llada2", "dream"):
                import_module(f"diffulex.sampler.{name}")
            yield import_module("diffulex.sampler.auto_sampler").AutoSampler


@contextmanager
def fast_dllm_files():
    """Fast-dLLM's own loops, from a checkout; the network's class is only named there."""
    with modules(
        model={}, model__modeling_llada={"LLaDAModelLM": None}, fast_dllm_v1=CHECKOUTS / "Fast-dLLM" / "llada"
    ):
        yield import_module("fast_dllm_v1.generate")
