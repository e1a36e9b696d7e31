"""Tiny language models with the interfaces of published ones, in folders as the hub holds them: configuration, weights
and Python code of their own, which only runs with trust_remote_code=True.

One transformer of two layers with rotary positions; what differs between the families is how it is asked: which
attention masks it understands, whether it takes positions, and how it keeps keys and values.
"""

import json

import torch
from safetensors.torch import save_file

CODE = '''
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast


class TinyConfig(PretrainedConfig):
    model_type = "{kind}"

    def __init__(self, vocab_size=7, width=8, layers=2, **kwargs):
        self.vocab_size, self.width, self.layers = vocab_size, width, layers
        super().__init__(**kwargs)


def turned(x, position):
    """Rotary positions of (b, 2, n, 4), for heads of width 4."""
    angle = position[:, None, :, None].to(x.dtype) * torch.tensor([1.0, 0.3], dtype=x.dtype)
    cos, sin, (one, other) = angle.cos(), angle.sin(), x.chunk(2, -1)
    return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)


def attend(q, k, v, mask):
    """Boolean masks hide where they are False, others are added."""
    scores = q @ k.transpose(-1, -2) / 2
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


class Layer(nn.Module):
    def __init__(self, width, number):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down, self.number = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), number

    def heads(self, x):
        return x.unflatten(-1, (2, -1)).transpose(1, 2)

    def forward(self, x, attention):
        x = x + self.o(attention(self, x).transpose(1, 2).flatten(-2))
        return x + self.down(torch.tanh(self.up(x)))


class TinyModel(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.width)
        self.blocks = nn.ModuleList(Layer(config.width, k) for k in range(config.layers))
        self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.post_init()

    def get_output_embeddings(self):
        return self.lm_head if self.config.splits else None

    def run(self, input_ids, attention, **more):
        x = self.embed(input_ids)
        for layer in self.blocks:
            x = layer(x, attention)
        return CausalLMOutputWithPast(logits=self.lm_head(x), **more)

{interface}
'''

LLADA = """
    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, use_cache=None):
        assert past_key_values is None and not use_cache, "no cache here"
        position = torch.arange(input_ids.shape[1])[None]

        def attention(layer, x):  # as published: the mask goes nowhere
            q, k, v = (layer.heads(part(x)) for part in (layer.q, layer.k, layer.v))
            return attend(turned(q, position), turned(k, position), v, None)

        return self.run(input_ids, attention)
"""
LLADA_MENDED = LLADA.replace(
    "turned(k, position), v, None)",
    "turned(k, position), v, None if attention_mask is None else attention_mask[:, None, None].bool())",
)
FAST_LLADA = """
    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, use_cache=None, replace_position=None):
        made = []

        def attention(layer, x):  # keys are kept as they are before they are turned
            q, k, v = (layer.heads(part(x)) for part in (layer.q, layer.k, layer.v))
            end = None
            if past_key_values is not None:
                old_k, old_v = past_key_values[layer.number]
                if replace_position is None:
                    k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
                else:
                    index = replace_position.nonzero(as_tuple=True)[1]
                    old_k[:, :, index], old_v[:, :, index] = k, v  # in place
                    k, v, end = old_k, old_v, int(index.max()) + 1
            made.append((k, v))
            end = k.shape[-2] if end is None else end
            place = torch.arange(end - q.shape[-2], end)[None]
            return attend(turned(q, place), turned(k, torch.arange(k.shape[-2])[None]), v, None)

        found = self.run(input_ids, attention)
        found.past_key_values = made if use_cache else None
        return found
"""
DREAM = """
    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None):
        before = 0 if past_key_values is None else past_key_values.get_seq_length()
        position = torch.arange(before, before + input_ids.shape[1])[None] if position_ids is None else position_ids
        mask = attention_mask if isinstance(attention_mask, torch.Tensor) else None

        def attention(layer, x):
            q, k, v = (layer.heads(part(x)) for part in (layer.q, layer.k, layer.v))
            q, k = turned(q, position), turned(k, position)
            if past_key_values is not None:
                k, v = past_key_values.update(k, v, layer.number)
            return attend(q, k, v, mask)

        return self.run(input_ids, attention)
"""
FAST_DREAM = """
    def forward(
        self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None,
        dual_cache=False, replace_position=None,
    ):
        made = []

        def attention(layer, x):  # (b, tokens, width): heads are made after
            q, k, v, end = layer.heads(layer.q(x)), layer.k(x), layer.v(x), None
            if past_key_values is not None:
                old_k, old_v = past_key_values[layer.number]
                if dual_cache:
                    index = replace_position.nonzero(as_tuple=True)[1]
                    old_k[:, index], old_v[:, index] = k, v
                    k, v, end = old_k, old_v, int(index.max()) + 1
                else:
                    k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
            made.append((k, v))
            end = k.shape[-2] if end is None else end
            place, k, v = torch.arange(end - q.shape[-2], end)[None], layer.heads(k), layer.heads(v)
            return attend(turned(q, place), turned(k, torch.arange(k.shape[-2])[None]), v, None)

        found = self.run(input_ids, attention)
        found.past_key_values = made if use_cache else None
        return found
"""
LLADA2 = """
    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None):
        assert attention_mask.dtype == self.lm_head.weight.dtype if hasattr(self.lm_head, "weight") else True
        assert attention_mask.ndim == 4 and attention_mask.is_floating_point()
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()

        def attention(layer, x):
            q, k, v = (layer.heads(part(x)) for part in (layer.q, layer.k, layer.v))
            q, k = turned(q, position_ids), turned(k, position_ids)
            if past_key_values is not None:
                k, v = past_key_values.update(k, v, layer.number, {"sin": None})
            return attend(q, k, v, attention_mask)

        return self.run(input_ids, attention)
"""
SDAR = """
    def forward(
        self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None,
        store_kv=False, **kwargs,
    ):
        if not isinstance(past_key_values, (type(None), Cache)):
            raise ValueError("not a Cache")

        def attention(layer, x):
            q, k, v = (layer.heads(part(x)) for part in (layer.q, layer.k, layer.v))
            q, k = turned(q, position_ids), turned(k, position_ids)
            if past_key_values is not None:
                if store_kv:
                    k, v = past_key_values.update(k, v, layer.number)
                elif len(past_key_values) > layer.number:
                    old_k, old_v = past_key_values[layer.number]
                    k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
            return attend(q, k, v, attention_mask.bool())

        return self.run(input_ids, attention)
"""
INTERFACES = {
    "llada": ("llada", LLADA, "AutoModel"),
    "llada-mended": ("llada", LLADA_MENDED, "AutoModel"),
    "fast-llada": ("llada", FAST_LLADA, "AutoModel"),
    "dream": ("Dream", DREAM, "AutoModel"),
    "fast-dream": ("Dream", FAST_DREAM, "AutoModel"),
    "llada2": ("llada2_moe", LLADA2, "AutoModelForCausalLM"),
    "sdar": ("sdar", SDAR, "AutoModelForCausalLM"),
}
SIZE, WIDTH = 7, 8
MASK = 6


def lookalike(folder, name, splits=True, **config):
    """Write the folder of a look-alike; ids 0 … 5 and the mask, 6."""
    kind, interface, auto = INTERFACES[name]
    folder.mkdir(parents=True)
    # the class's file has a name of its own: transformers keeps what it imported by name
    module = f"modeling_{name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(CODE.replace("{kind}", kind).replace("{interface}", interface))
    draw = torch.Generator().manual_seed(0)
    shapes = {"embed.weight": (SIZE, WIDTH), "lm_head.weight": (SIZE, WIDTH)}
    for k in range(2):
        shapes |= {f"blocks.{k}.{part}.weight": (WIDTH, WIDTH) for part in "qkvo"}
        shapes |= {f"blocks.{k}.up.weight": (2 * WIDTH, WIDTH), f"blocks.{k}.up.bias": (2 * WIDTH,)}
        shapes |= {f"blocks.{k}.down.weight": (WIDTH, 2 * WIDTH), f"blocks.{k}.down.bias": (WIDTH,)}
    weights = {key: 0.6 * torch.randn(shape, generator=draw) for key, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    described = {
        "model_type": kind,
        "architectures": ["TinyModel"],
        "auto_map": {"AutoConfig": f"{module}.TinyConfig", auto: f"{module}.TinyModel"},
        "vocab_size": SIZE,
        "mask_token_id": MASK,
        "splits": splits,
        "dtype": "float32",
        **config,
    }
    (folder / "config.json").write_text(json.dumps(described))
    return str(folder)
