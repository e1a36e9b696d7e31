"""tauLDR's UNet with the truncated-logistic head (CIFAR-10) in plain PyTorch, with its checkpoints' parameter names.

Pixels are tokens, channel by channel and row by row. The network returns a location and a scale for every pixel; the
probability of a value is the mass of a logistic distribution in its bin, so the projection needs two numbers a row. The
guidance repository uses the same network with one more bin for every id and a table of classes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from eigentime.arguments import listed, optional, settle, whole
from eigentime.errors import EigentimeError
from eigentime.models.denoiser import LAYERS, WIDTH, ClassTable, Denoiser, Head, time_sinusoids


@dataclass(frozen=True)
class UNetConfig:
    """The shape of a UNet."""

    size: int
    """How many values a pixel can take, a mask and other ids included."""
    shape: Sequence[int]
    """(channels, height, width)."""
    width: int
    multipliers: Sequence[int] = (1, 2, 2, 2)
    blocks: int = 2
    attention_scale: int = 1
    time_width: int | None = None
    highest: float = 255.0
    """The value that is centred to +1."""
    classes: int = 0
    """Rows of the class table, none without one."""
    mask_channel: bool = False
    """Show the network a masked pixel (the last id) as the middle value and a flag, not as a value beyond white."""
    takes: Literal["sigma", "t"] = "t"
    """What is embedded as time: t itself (tauLDR), or the total noise (the guidance repository)."""
    time_scale: float = 1000.0
    dropout: float = 0.0
    head: Head = "posterior"
    time_conditioned: bool = True
    scale_by_sigma: bool = False

    def __post_init__(self) -> None:
        for name in ("shape", "multipliers"):  # lists, where they come from JSON
            settle(self, **{name: lambda value, name: tuple(listed(WIDTH, 1)(value, name))})
        settle(self, size=WIDTH, width=WIDTH, blocks=LAYERS, time_width=optional(WIDTH), classes=whole(0, 2**20))
        if len(self.multipliers) > 16:
            raise EigentimeError(f"A UNet has at most 16 scales, not {len(self.multipliers)}.")
        for channels in (self.width, *(self.width * factor for factor in self.multipliers)):
            if channels < 4 or channels % _groups(channels):
                raise EigentimeError(f"A UNet's width must be 4, 8, 16 or a multiple of 32, not {self.width}.")


class UNet(Denoiser):
    """Tokens and time in, logits over clean values out."""

    config: UNetConfig

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config, self.takes = config, config.takes
        width, time_width = config.width, config.time_width or config.width
        widths = [width * factor for factor in config.multipliers]
        temb = 4 * time_width
        self.temb_modules = nn.ModuleList([nn.Linear(time_width, temb), nn.Linear(temb, temb)])
        channels = config.shape[0]
        self.input_conv = nn.Conv2d(channels * (2 if config.mask_channel else 1), width, 3, padding=1)
        here, skips = width, [width]
        self.downsampling_modules = nn.ModuleList()
        for scale, out in enumerate(widths):
            for _ in range(config.blocks):
                self.downsampling_modules.append(Residual(here, out, temb, config.dropout))
                here = out
                if scale == config.attention_scale:
                    self.downsampling_modules.append(Attention(here))
                skips.append(here)
            if scale + 1 < len(widths):
                self.downsampling_modules.append(Down(here))
                skips.append(here)
        self.middle_modules = nn.ModuleList(
            [Residual(here, here, temb, config.dropout), Attention(here), Residual(here, here, temb, config.dropout)]
        )
        self.upsampling_modules = nn.ModuleList()
        for scale in range(len(widths) - 1, -1, -1):
            for _ in range(config.blocks + 1):
                self.upsampling_modules.append(Residual(here + skips.pop(), widths[scale], temb, config.dropout))
                here = widths[scale]
                if scale == config.attention_scale:
                    self.upsampling_modules.append(Attention(here))
            if scale:
                self.upsampling_modules.append(Up(here))
        self.output_modules = nn.ModuleList([group_norm(here), nn.Conv2d(here, 2 * channels, 3, padding=1)])
        if config.classes:
            self.cond_map = ClassTable(config.classes, temb)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # convolutions are faster so

    def features(
        self, x: Int[Tensor, "b length"], time: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length 2"]:
        """Location and log-scale of every pixel."""
        out = self.network(x, time, cond)
        return torch.stack([part.flatten(1) for part in out.chunk(2, 1)], -1)

    def network(
        self, x: Int[Tensor, "b length"], time: Float[Tensor, " b"], classes: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b channels2 h w"]:
        """tanh(x + …), log-scales: what the head is made of."""
        centred = (2 * x.to(torch.float32) / self.config.highest - 1).reshape(len(x), *self.config.shape)
        embedded = time_sinusoids(self.config.time_scale * time, self.config.time_width or self.config.width)
        temb = self.temb_modules[1](F.silu(self.temb_modules[0](embedded)))
        if classes is not None:
            temb = temb + self.cond_map(classes)
        seen = centred
        if self.config.mask_channel:
            masked = (x == self.config.size - 1).to(centred.dtype).reshape(centred.shape)
            centred = centred * (1 - masked)
            seen = torch.cat([centred, masked], 1)
        hidden = self.input_conv(seen.contiguous(memory_format=torch.channels_last))
        kept = [hidden]
        for module, after in zip(self.downsampling_modules, [*self.downsampling_modules[1:], None], strict=True):
            hidden = module(hidden, temb)
            if not isinstance(after, Attention):
                kept.append(hidden)
        for module in self.middle_modules:
            hidden = module(hidden, temb)
        for module in self.upsampling_modules:
            if isinstance(module, Residual):
                hidden = torch.cat([hidden, kept.pop()], 1)
            hidden = module(hidden, temb)
        hidden = self.output_modules[1](F.silu(self.output_modules[0](hidden)))
        location, log_scale = hidden.chunk(2, 1)
        return torch.cat([torch.tanh(centred + location), log_scale], 1)

    def project(self, features: Float[Tensor, "... 2"]) -> Float[Tensor, "... size"]:
        """ln of the logistic mass in each of `size` bins of [-1, 1]."""
        location, inverse = features[..., :1], torch.exp(-(features[..., 1:] - 2.0))
        bin_width = 2.0 / self.config.size
        centres = torch.linspace(-1 + bin_width / 2, 1 - bin_width / 2, self.config.size, device=features.device)
        left = F.logsigmoid((centres - bin_width / 2 - location) * inverse)
        right = F.logsigmoid((centres + bin_width / 2 - location) * inverse)
        return right + torch.log1p(-torch.exp(left - right) + 1e-6)


class Residual(nn.Module):
    """Two convolutions around a shift by the time, added to the input and divided by √2."""

    def __init__(self, inside: int, outside: int, temb: int, dropout: float) -> None:
        super().__init__()
        self.groupnorm0, self.conv0 = group_norm(inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.dense0 = nn.Linear(temb, outside)
        self.groupnorm1, self.conv1 = group_norm(outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.nin = PixelLinear(inside, outside) if inside != outside else None
        self.dropout = dropout

    def forward(self, x: Float[Tensor, "b c h w"], temb: Float[Tensor, "b t"]) -> Float[Tensor, "b d h w"]:
        """(x + conv(act(norm(conv(act(norm(x))) + time))))/√2."""
        hidden = self.conv0(F.silu(self.groupnorm0(x))) + self.dense0(F.silu(temb))[..., None, None]
        hidden = F.dropout(F.silu(self.groupnorm1(hidden)), self.dropout, self.training)
        added: Tensor = ((x if self.nin is None else self.nin(x)) + self.conv1(hidden)) / math.sqrt(2)
        return added


class Attention(nn.Module):
    """Every pixel attends to every other, with one head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.GroupNorm_0 = group_norm(channels)
        self.NIN_0, self.NIN_1, self.NIN_2, self.NIN_3 = (PixelLinear(channels, channels) for _ in range(4))

    def forward(self, x: Float[Tensor, "b c h w"], temb: Float[Tensor, "b t"]) -> Float[Tensor, "b c h w"]:
        """(x + attention(norm(x)))/√2."""
        normed = self.GroupNorm_0(x)
        q, k, v = (part(normed).flatten(2).transpose(1, 2) for part in (self.NIN_0, self.NIN_1, self.NIN_2))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        added: Tensor = (x + self.NIN_3(mixed)) / math.sqrt(2)
        return added


class PixelLinear(nn.Module):
    """A linear map of the channels of every pixel, stored as (in, out)."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.W = nn.Parameter(nn.init.xavier_uniform_(torch.empty(inside, outside)))
        self.b = nn.Parameter(torch.zeros(outside))

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h w"]:
        """x·W + b at every pixel."""
        return (x.movedim(1, -1) @ self.W + self.b).movedim(-1, 1)  # channels stay innermost


class Down(nn.Module):
    """Half the size by a convolution with stride 2, padded at the far ends."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x: Float[Tensor, "b c h w"], temb: Float[Tensor, "b t"]) -> Float[Tensor, "b c h2 w2"]:
        """The time plays no part here."""
        smaller: Tensor = self.conv(F.pad(x, (0, 1, 0, 1)))
        return smaller


class Up(nn.Module):
    """Twice the size by repeating pixels, then a convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Float[Tensor, "b c h w"], temb: Float[Tensor, "b t"]) -> Float[Tensor, "b c h2 w2"]:
        """The time plays no part here."""
        larger: Tensor = self.conv(F.interpolate(x, scale_factor=2, mode="nearest"))
        return larger


def group_norm(channels: int) -> nn.GroupNorm:
    """With groups of four channels or more."""
    return nn.GroupNorm(_groups(channels), channels, eps=1e-6)


def _groups(channels: int) -> int:
    return min(channels // 4, 32)
