"""A small UNet for pictures of few grey levels: every value has a vector and a logit of its own.

A pixel of a drawing is black or white rather than something between, and a logistic bump (see `unet`) cannot say so.
Pixels are gathered in square patches, so that the convolutions run on a picture of a quarter of the places:

    values ─► vectors ─► patches ─► fine ─► half the size, attention ─► fine ─► pixels ─► logits
                                     └──────────── skipped to ───────────┘
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from eigentime.arguments import listed, settle
from eigentime.errors import EigentimeError
from eigentime.models.denoiser import LAYERS, WIDTH, Denoiser, Head, NoiseEmbedding
from eigentime.models.projection import projected
from eigentime.models.unet import Attention, Down, Residual, Up, group_norm


@dataclass(frozen=True)
class MosaicConfig:
    """The shape of a Mosaic."""

    size: int
    """How many values a pixel can take, a mask included."""
    shape: Sequence[int]
    """(1, height, width); both must be divisible by twice the patch."""
    width: int
    """Channels of the fine level."""
    coarse: int
    """Channels of the coarse level."""
    blocks: int = 2
    """Of the fine level, before and again after the coarse one."""
    coarse_blocks: int = 3
    patch: int = 2
    value_width: int = 8
    pixel_width: int = 16
    """Features of a pixel, from which its logits are made."""
    cond_width: int = 48
    dropout: float = 0.0
    head: Head = "posterior"
    time_conditioned: bool = False
    scale_by_sigma: bool = False

    def __post_init__(self) -> None:
        widths = dict.fromkeys(("size", "width", "coarse", "patch", "value_width", "pixel_width", "cond_width"), WIDTH)
        settle(self, **widths, blocks=LAYERS, coarse_blocks=LAYERS)
        settle(self, shape=lambda value, name: tuple(listed(WIDTH, 1)(value, name)))  # a list, where it comes from JSON
        for width in (self.width, self.coarse):
            if width % 4 or not 4 <= width <= 128:
                raise EigentimeError(f"A Mosaic's widths must be multiples of 4 from 4 to 128, not {width}.")
        channels, *sides = self.shape
        if channels != 1 or any(side % (2 * self.patch) for side in sides):
            raise EigentimeError(
                f"A Mosaic's pictures have one channel and sides divisible by {2 * self.patch}, not {self.shape}."
            )


class Mosaic(Denoiser):
    """Tokens and total noise in, log-scores or logits out."""

    config: MosaicConfig
    modulated = "dense0"

    def __init__(self, config: MosaicConfig) -> None:
        super().__init__()
        self.config = config
        width, coarse, cond, patch = config.width, config.coarse, config.cond_width, config.patch
        self.values = nn.Embedding(config.size, config.value_width)
        self.sigma_map = NoiseEmbedding(cond)
        self.input_conv = nn.Conv2d(patch**2 * config.value_width, width, 3, padding=1)
        self.places = nn.Parameter(torch.zeros(1, width, *(side // patch for side in config.shape[1:])))
        self.before = nn.ModuleList([Residual(width, width, cond, config.dropout) for _ in range(config.blocks)])
        self.down, self.up = Down(width), Up(coarse)
        widths = [width, *[coarse] * config.coarse_blocks]
        self.middle = nn.ModuleList(
            [
                part
                for inside in widths[:-1]
                for part in (Residual(inside, coarse, cond, config.dropout), Attention(coarse))
            ]
        )
        widths = [coarse, *[width] * config.blocks]
        self.after = nn.ModuleList([Residual(inside + width, width, cond, config.dropout) for inside in widths[:-1]])
        self.output_norm = group_norm(width)
        self.output_conv = nn.Conv2d(width, patch**2 * config.pixel_width, 3, padding=1)
        self.pixel_conv = nn.Conv2d(config.pixel_width + config.value_width, config.pixel_width, 3, padding=1)
        self.linear = nn.Linear(config.pixel_width, config.size)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # convolutions are faster so

    def features(
        self, x: Int[Tensor, "b length"], sigma: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length pixel_width"]:
        """A vector for every pixel."""
        _, height, wide = self.config.shape
        temb = self.sigma_map(sigma)
        pixels = self.values(x.reshape(-1, height, wide)).movedim(-1, 1)
        patches = F.pixel_unshuffle(pixels, self.config.patch).contiguous(memory_format=torch.channels_last)
        hidden = self.input_conv(patches) + self.places
        skipped = []
        for module in self.before:
            hidden = module(hidden, temb)
            skipped.append(hidden)
        hidden = self.down(hidden, temb)
        for module in self.middle:
            hidden = module(hidden, temb)
        hidden = self.up(hidden, temb)
        for module in self.after:
            hidden = module(torch.cat([hidden, skipped.pop()], 1), temb)
        hidden = F.pixel_shuffle(self.output_conv(F.silu(self.output_norm(hidden))), self.config.patch)
        hidden = F.silu(self.pixel_conv(torch.cat([hidden, pixels], 1).contiguous(memory_format=torch.channels_last)))
        return hidden.flatten(2).transpose(1, 2)

    def project(self, features: Float[Tensor, "... pixel_width"]) -> Float[Tensor, "... size"]:
        return projected(self.linear, features)
