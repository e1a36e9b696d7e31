"""Networks so small that examples of engines run anywhere: real classes, random weights."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor


def tiny_diffusion_gemma(
    canvas: int = 16, vocabulary: int = 97, sharp: float = 20.0, seed: int = 0, **text: Any
) -> Any:
    """A `DiffusionGemmaForBlockDiffusion` of two layers; `sharp` scales its last norm, so that laws are not flat."""
    from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig
    from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig

    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }
    sizes |= {"head_dim": 16, "global_head_dim": 16, "sliding_window": 16}
    sizes |= {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32, **text}
    layers = ["sliding_attention", "full_attention"]
    words = DiffusionGemmaTextConfig(vocab_size=vocabulary, num_hidden_layers=2, layer_types=layers, **sizes)
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8}
    vision = Gemma4VisionConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=1, **heads)
    names = ("boi_token_id", "eoi_token_id", "image_token_id")
    special: dict[str, Any] = {name: vocabulary - k for k, name in enumerate(names, 1)}
    config = DiffusionGemmaConfig(text_config=words, vision_config=vision, canvas_length=canvas, **special)
    torch.manual_seed(seed)
    network: Any = DiffusionGemmaForBlockDiffusion(config)
    with torch.no_grad():
        network.model.decoder.norm.weight.mul_(sharp)
    return network.eval()


class Numbers:
    """In place of a processor: a prompt is numbers, and so is a text."""

    tokenizer = None

    def apply_chat_template(self, messages: Any, **_: Any) -> dict[str, Tensor]:
        """Token ids of one conversation or of several."""
        several = messages if isinstance(messages[0], list) else [messages]
        ids = torch.tensor([[int(word) for word in one[-1]["content"].split()] for one in several])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def batch_decode(self, sequences: Any, **_: Any) -> list[str]:
        """The numbers again."""
        return [" ".join(str(int(token)) for token in row) for row in sequences]


numbers = Numbers()


class TinyMasked(torch.nn.Module):
    """A masked network as LLaDA2's pipeline calls one: every token sees its neighbours."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(size, 16)
        self.mix = torch.nn.Conv1d(16, 16, 5, padding=2)
        self.head = torch.nn.Linear(16, size)
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Any:
        """Logits under the name that networks of transformers give them."""
        mixed = self.mix(self.words(input_ids).transpose(1, 2)).transpose(1, 2).tanh()
        return SimpleNamespace(logits=self.head(mixed))


def tiny_masked(size: int = 21) -> TinyMasked:
    """Such a network with random weights."""
    torch.manual_seed(0)
    return TinyMasked(size).eval()
