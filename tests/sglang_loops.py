"""SGLang's own loops on a machine without a GPU: its files as they are, with stand-ins for what they only name.

The files come from an installed sglang, or are read from its wheel in the cache folder, which no test fetches:

    pip download --no-deps --only-binary :all: --dest ~/.cache/eigentime sglang==0.5.23
"""

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch

from eigentime.data import cache_folder

VERSION = "0.5.23"
PLUGIN = Path(__file__).parent.parent / "plugins" / "eigentime-sglang"
FOLDERS = ("sglang", "sglang.srt")
"""Packages whose own first lines need a GPU's libraries; only their files are wanted."""
NAMED = (
    "sglang.srt.arg_groups",
    "sglang.srt.arg_groups.overrides",
    "sglang.srt.configs",
    "sglang.srt.configs.model_config",
    "sglang.srt.layers",
    "sglang.srt.layers.logits_processor",
    "sglang.srt.model_executor",
    "sglang.srt.model_executor.forward_batch_info",
    "sglang.srt.model_executor.model_runner",
    "sglang.srt.server_args",
    "sglang.srt.utils",
)
"""Modules that the loops import names from, for annotations and one question about the machine."""


class StandIn(ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return (lambda: False) if name.startswith("is_") else type(name, (), {})


def files():
    """Where sglang's files are; None where there are none."""
    spec = find_spec("sglang")
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]).parent
    return next(iter(sorted(cache_folder().glob(f"sglang-{VERSION}-*.whl"))), None)


@contextmanager
def real_sglang():
    """Within it, `sglang.srt.dllm` and `sglang.srt.plugins` are SGLang's own, and the plugin can be imported."""

    def ours(name):
        return name.partition(".")[0] in ("sglang", "eigentime_sglang")

    root = files()
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if ours(name)}
    sys.path.insert(0, str(PLUGIN / "src"))
    try:
        for name in FOLDERS:
            module = ModuleType(name)
            module.__path__ = [str(root / name.replace(".", "/"))]
            sys.modules[name] = module
        for name in NAMED:
            sys.modules[name] = StandIn(name)
        yield
    finally:
        sys.path.remove(str(PLUGIN / "src"))
        for name in [name for name in sys.modules if ours(name)]:
            del sys.modules[name]
        sys.modules.update(before)


class Runner:
    """A model runner that counts: logits of every position of every row, from a function of the block's tokens."""

    def __init__(self, logits):
        self.logits, self.forwards, self.seen = logits, 0, []

    def forward(self, forward_batch, pp_proxy_tensors):
        self.forwards += 1
        rows = forward_batch.input_ids.view(forward_batch.batch_size, -1)
        self.seen.append(rows.clone())
        out = SimpleNamespace(full_logits=self.logits(rows).flatten(0, 1))
        return SimpleNamespace(logits_output=out, can_run_graph=False)


def batch(rows, rids=None, start=0, prompt_mask=None, sampling=None):
    """A forward batch of whole blocks, as SGLang makes them."""
    rows = torch.as_tensor(rows)
    count, block = rows.shape
    starts = torch.as_tensor(start).expand(count)
    return SimpleNamespace(
        batch_size=count,
        input_ids=rows.flatten().clone(),
        positions=(starts[:, None] + torch.arange(block)).flatten(),
        rids=rids,
        dllm_prompt_mask=prompt_mask,
        sampling_info=sampling,
    )
