"""tauLDR's sequence transformer (monophonic piano) in plain PyTorch, with the parameter names of its checkpoints.

Post-norm encoder layers over one-hot tokens and sinusoidal positions; an embedding of the time scales and shifts (FiLM)
what every norm returns. As published it rounds the time down to an integer first, so that every t < 1 looks like 0.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from eigentime.arguments import settle, whole
from eigentime.models.denoiser import LAYERS, WIDTH, Denoiser, Head, time_sinusoids


@dataclass(frozen=True)
class PianoConfig:
    """The shape of a piano transformer."""

    size: int
    length: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    time_width: int
    output_layers: int = 2
    time_scale: float = 1000.0
    dropout: float = 0.0
    head: Head = "posterior"
    time_conditioned: bool = True
    scale_by_sigma: bool = False

    def __post_init__(self) -> None:
        widths = dict.fromkeys(("size", "width", "feed_forward", "time_width"), WIDTH)
        settle(self, **widths, layers=LAYERS, heads=LAYERS, output_layers=whole(0, 1000), length=whole(1, 2**16))


class PianoTransformer(Denoiser):
    """Tokens and time in, logits over clean tokens out."""

    config: PianoConfig
    takes = "t"
    positions: Tensor

    def __init__(self, config: PianoConfig) -> None:
        super().__init__()
        self.config = config
        self.temb_net = nn.Sequential(
            nn.Linear(config.time_width, config.feed_forward),
            nn.ReLU(),
            nn.Linear(config.feed_forward, 4 * config.time_width),
        )
        self.input_embedding = nn.Linear(config.size, config.width)
        self.encoder_layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.layers)])
        self.output_resid_layers = nn.ModuleList([ResidualLayer(config) for _ in range(config.output_layers)])
        self.output_linear = nn.Linear(config.width, config.size)
        self.register_buffer("positions", _positions(config.length, config.width), persistent=False)

    def features(
        self, x: Int[Tensor, "b length"], time: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length d"]:
        """The last hidden rows, with each row's own token beside them: the projection adds it to the logits."""
        temb = self.temb_net(
            time_sinusoids(self.config.time_scale * time.long().to(time.dtype), self.config.time_width)
        )
        one_hot = F.one_hot(x, self.config.size).to(self.output_linear.weight.dtype)
        hidden = F.dropout(self.input_embedding(one_hot) + self.positions, self.config.dropout, self.training)
        for layer in (*self.encoder_layers, *self.output_resid_layers):
            hidden = layer(hidden, temb)
        return torch.cat([hidden, one_hot], -1)

    def project(self, features: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        logits: Tensor = self.output_linear(features[..., : self.config.width]) + features[..., self.config.width :]
        return logits


class EncoderLayer(nn.Module):
    """Attention and feed-forward, each added, normed, then scaled and shifted by the time."""

    def __init__(self, config: PianoConfig) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(config.width, config.heads, dropout=config.dropout, batch_first=True)
        self.linear1 = nn.Linear(config.width, config.feed_forward)
        self.linear2 = nn.Linear(config.feed_forward, config.width)
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.film_from_temb = nn.Linear(4 * config.time_width, 2 * config.width)
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "b length d"], temb: Float[Tensor, "b t"]) -> Float[Tensor, "b length d"]:
        """a·norm(x + attention(x)) + b, then the same with the feed-forward part."""
        scale, shift = self.film_from_temb(temb)[:, None].chunk(2, -1)
        attended = self.self_attn(x, x, x, need_weights=False)[0]
        x = scale * self.norm1(x + F.dropout(attended, self.dropout, self.training)) + shift
        inner = F.dropout(F.relu(self.linear1(x)), self.dropout, self.training)
        out: Tensor = scale * self.norm2(x + F.dropout(self.linear2(inner), self.dropout, self.training)) + shift
        return out


class ResidualLayer(nn.Module):
    """A feed-forward part, added, normed, then scaled and shifted by the time."""

    def __init__(self, config: PianoConfig) -> None:
        super().__init__()
        self.linear1 = nn.Linear(config.width, config.feed_forward)
        self.linear2 = nn.Linear(config.feed_forward, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.film_from_temb = nn.Linear(4 * config.time_width, 2 * config.width)
        self.dropout = config.dropout

    def forward(self, x: Float[Tensor, "b length d"], temb: Float[Tensor, "b t"]) -> Float[Tensor, "b length d"]:
        """a·norm(x + feed-forward(x)) + b."""
        scale, shift = self.film_from_temb(temb)[:, None].chunk(2, -1)
        inner = F.dropout(F.relu(self.linear1(x)), self.dropout, self.training)
        out: Tensor = scale * self.norm(x + F.dropout(self.linear2(inner), self.dropout, self.training)) + shift
        return out


def _positions(length: int, width: int) -> Float[Tensor, "length d"]:
    """Sines and cosines, one after the other."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
