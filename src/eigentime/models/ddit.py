"""The diffusion transformer of SEDD and MDLM (DDiT) in plain PyTorch, with the parameter names of their checkpoints.

Bidirectional attention with rotary positions, every block modulated by an embedding of the total noise σ (adaLN).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from eigentime.arguments import settle, whole
from eigentime.errors import EigentimeError
from eigentime.models.denoiser import LAYERS, WIDTH, ClassTable, Denoiser, Head, NoiseEmbedding
from eigentime.models.projection import projected

ROTARY_BASE = 10_000.0


@dataclass(frozen=True)
class DDiTConfig:
    """The shape of a DDiT."""

    size: int
    width: int
    blocks: int
    heads: int
    cond_width: int = 128
    head: Head = "posterior"
    time_conditioned: bool = False
    scale_by_sigma: bool = True
    dropout: float = 0.0
    classes: int = 0
    """Rows of the class table (UDLM), none without one."""

    def __post_init__(self) -> None:
        settle(self, size=WIDTH, width=WIDTH, blocks=LAYERS, heads=LAYERS, cond_width=WIDTH, classes=whole(0, 2**20))
        if self.width % (2 * self.heads):
            raise EigentimeError(f"A DDiT's width must be a multiple of 2·heads = {2 * self.heads}, not {self.width}.")


class DDiT(Denoiser):
    """Tokens and total noise in, log-scores or logits out."""

    config: DDiTConfig
    modulated = "adaLN_modulation"

    def __init__(self, config: DDiTConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_embed = EmbeddingLayer(config.size, config.width)
        self.sigma_map = NoiseEmbedding(config.cond_width)
        self.rotary_emb = Rotary(config.width // config.heads)
        self.blocks = nn.ModuleList([TransformerBlock(config) for _ in range(config.blocks)])
        self.output_layer = OutputLayer(config)
        if config.classes:
            self.cond_map = ClassTable(config.classes, config.cond_width)

    def features(
        self, x: Int[Tensor, "b length"], sigma: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length width"]:
        modulation = F.silu(self.sigma_map(sigma))
        if cond is not None:
            modulation = modulation + F.silu(self.cond_map(cond))
        hidden = self.vocab_embed(x)
        rotation = self.rotary_emb(x.shape[1])
        for block in self.blocks:
            hidden = block(hidden, rotation, modulation)
        projected: Tensor = self.output_layer(hidden, modulation)
        return projected

    def project(self, features: Float[Tensor, "... width"]) -> Float[Tensor, "... size"]:
        return projected(self.output_layer.linear, features)


class EmbeddingLayer(nn.Module):
    """A table of token vectors."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(size, width))
        nn.init.kaiming_uniform_(self.embedding, a=math.sqrt(5))

    def forward(self, x: Int[Tensor, "b length"]) -> Float[Tensor, "b length width"]:
        """The vectors of the tokens."""
        return self.embedding[x]


class Rotary(nn.Module):
    """Angles of the rotary position embedding; `inv_freq` is stored in published checkpoints."""

    inv_freq: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        exponents = torch.arange(0, head_width, 2).float() / head_width
        self.register_buffer("inv_freq", 1.0 / ROTARY_BASE**exponents)

    def forward(self, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin of shape (length, head width), the two halves alike."""
        positions = torch.arange(length, dtype=self.inv_freq.dtype, device=self.inv_freq.device)
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()


class LayerNorm(nn.Module):
    """Layer norm with a weight and no bias, in float32 whatever comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
        """weight·(x - mean)/√(variance + 1e-5)."""
        return F.layer_norm(x.float(), x.shape[-1:], self.weight.float())


class TransformerBlock(nn.Module):
    """Attention and MLP, each modulated and gated by the noise."""

    def __init__(self, config: DDiTConfig) -> None:
        super().__init__()
        width = config.width
        self.heads, self.dropout = config.heads, config.dropout
        self.norm1 = LayerNorm(width)
        self.attn_qkv = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.norm2 = LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.adaLN_modulation = _zeroed(nn.Linear(config.cond_width, 6 * width))

    def forward(
        self, x: Float[Tensor, "b length width"], rotation: tuple[Tensor, Tensor], cond: Float[Tensor, "b cond"]
    ) -> Float[Tensor, "b length width"]:
        """x + gate·attention(modulated x), then the same with the MLP."""
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.adaLN_modulation(cond)[:, None].chunk(6, -1)
        attended = self._attention(modulate(self.norm1(x), shift_a, scale_a), rotation)
        x = x + gate_a * F.dropout(attended, self.dropout, self.training)
        out: Tensor = x + gate_m * F.dropout(
            self.mlp(modulate(self.norm2(x), shift_m, scale_m)), self.dropout, self.training
        )
        return out

    def _attention(self, x: Float[Tensor, "b length width"], rotation: tuple[Tensor, Tensor]) -> Tensor:
        b, length, width = x.shape
        qkv = self.attn_qkv(x).view(b, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = rotate(qkv[0], rotation), rotate(qkv[1], rotation), qkv[2]
        mixed = F.scaled_dot_product_attention(q, k, v)
        attended: Tensor = self.attn_out(mixed.transpose(1, 2).reshape(b, length, width))
        return attended


class OutputLayer(nn.Module):
    """The last norm, modulated; `linear` is the vocabulary projection."""

    def __init__(self, config: DDiTConfig) -> None:
        super().__init__()
        self.norm_final = LayerNorm(config.width)
        self.linear = _zeroed(nn.Linear(config.width, config.size))
        self.adaLN_modulation = _zeroed(nn.Linear(config.cond_width, 2 * config.width))

    def forward(
        self, x: Float[Tensor, "b length width"], cond: Float[Tensor, "b cond"]
    ) -> Float[Tensor, "b length width"]:
        """What the projection sees."""
        shift, scale = self.adaLN_modulation(cond)[:, None].chunk(2, -1)
        return modulate(self.norm_final(x), shift, scale)


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """x·(1 + scale) + shift."""
    return x * (1 + scale) + shift


def rotate(x: Float[Tensor, "b heads length d"], rotation: tuple[Tensor, Tensor]) -> Float[Tensor, "b heads length d"]:
    """Rotary embedding of the half-split (not interleaved) kind."""
    cos, sin = rotation
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def _zeroed(layer: nn.Linear) -> nn.Linear:
    """Start at zero: a block is then the identity, and the output uniform."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
