"""A tiny DiffusionGemma with random weights, and what its pipelines need beside it."""

import torch


def tiny_gemma(seed=0, canvas=8, vocabulary=97, sharp=20.0, **text):
    from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig
    from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"num_key_value_heads": 1, "head_dim": 16, "global_head_dim": 16, "sliding_window": 16}
    sizes |= {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32, **text}
    vision = Gemma4VisionConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
    )
    special = {"boi_token_id": 3, "eoi_token_id": 4, "image_token_id": 5}
    if vocabulary > 16:
        special = {name: vocabulary - k for k, name in enumerate(special, 1)}
    layers = ["sliding_attention"] * (sizes["num_hidden_layers"] - 1) + ["full_attention"]
    config = DiffusionGemmaConfig(
        text_config=DiffusionGemmaTextConfig(vocab_size=vocabulary, layer_types=layers, **sizes),
        vision_config=vision,
        canvas_length=canvas,
        **special,
    )
    torch.manual_seed(seed)
    network = DiffusionGemmaForBlockDiffusion(config).eval()
    with torch.no_grad():  # random networks are nearly indifferent; a sharper one has laws that differ
        for parameter in network.model.decoder.norm.parameters():
            parameter.mul_(sharp)
    return network


class Prompts:
    """In place of a processor: prompts are numbers."""

    tokenizer = None

    def __init__(self, tokens):
        self.tokens = tokens

    def apply_chat_template(self, *_, **__):
        return {"input_ids": self.tokens, "attention_mask": torch.ones_like(self.tokens)}
