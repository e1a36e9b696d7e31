"""What our own networks share: tokens and total noise in, log-scores or logits out, a row at a time if asked."""

import math
from abc import ABC, abstractmethod
from typing import Literal, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from eigentime.arguments import whole

Head = Literal["score", "posterior", "cavity"]
"""What a network's output means: log-scores (SEDD), logits of P(x0_i | x_t) (MDLM, tauLDR), or logits of the clean
token that the *other* tokens imply, so that q(x0) ∝ softmax(logits)·P(x_t,i | x0) (UDLM)."""


WIDTH, LAYERS = whole(1, 2**20), whole(1, 1000)
"""Of any network: beyond them a configuration is a slip, found before anything is allocated."""


class DenoiserConfig(Protocol):
    """What every network's configuration says."""

    @property
    def size(self) -> int:
        """Vocabulary, a mask included."""

    @property
    def head(self) -> Head:
        """What the output means."""

    @property
    def time_conditioned(self) -> bool:
        """Without it the network is told σ = 0, whatever the noise."""

    @property
    def scale_by_sigma(self) -> bool:
        """Whether a score head subtracts ln(e^σ - 1) + ln(V - 1), as SEDD does on the absorbing kernel."""


class Denoiser(nn.Module, ABC):
    """A network in two parts, `hidden` and `head`, so that the vocabulary projection runs only where it is needed.

    Score and cavity heads need two more numbers for each row, its noise and its own token: they travel as the last two
    columns of the hidden rows.
    """

    config: DenoiserConfig
    takes: Literal["sigma", "t"] = "sigma"
    """What the network is told: the total noise σ, or the time itself."""
    modulated: str | None = None
    """The last name of the linear layers that see silu(sigma_map(σ)), where σ enters through them alone."""

    @abstractmethod
    def features(
        self, x: Int[Tensor, "b length"], sigma: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length width"]:
        """Everything before the vocabulary projection; `cond` are classes, where the network knows some."""

    @abstractmethod
    def project(self, features: Float[Tensor, "... width"]) -> Float[Tensor, "... size"]:
        """The vocabulary projection."""

    def hidden(
        self, x: Int[Tensor, "b length"], sigma: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length d"]:
        """Rows that `head` turns into predictions."""
        seen = sigma if self.config.time_conditioned else torch.zeros_like(sigma)
        features = self.features(x, seen, cond)
        if self.config.head == "posterior":
            return features
        columns = torch.stack([sigma[:, None].expand(x.shape), x.to(sigma.dtype)], -1)
        return torch.cat([features.float(), columns], -1)

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        """Log-scores, 0 at a row's own token, or logits over clean tokens."""
        if self.config.head == "posterior":
            return self.project(rows)
        rows, sigma, token = rows[..., :-2], rows[..., -2:-1], rows[..., -1:].long()
        logits = self.project(rows)
        if self.config.head == "cavity":
            return logits
        if self.config.scale_by_sigma:
            logits = logits - torch.log(torch.expm1(sigma)) - math.log(self.config.size - 1)
        return logits.scatter(-1, token, 0.0)

    def forward(
        self, x: Int[Tensor, "b length"], sigma: Float[Tensor, " b"], where: Bool[Tensor, "b length"] | None = None
    ) -> Float[Tensor, "... size"]:
        """Predictions (B, L, V), or only the rows of `where` (n, V)."""
        hidden = self.hidden(x, sigma)
        return self.head(hidden if where is None else hidden[where])


class NoiseEmbedding(nn.Module):
    """Sinusoids of σ, cosines first, through a two-layer network."""

    frequencies = 256

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(self.frequencies, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, sigma: Float[Tensor, " b"]) -> Float[Tensor, "b cond"]:
        """f_k = 10000^{-k/128}, k = 0 … 127."""
        half = self.frequencies // 2
        rates = torch.exp(-math.log(10_000) * torch.arange(half, dtype=torch.float32, device=sigma.device) / half)
        angles = sigma.float()[:, None] * rates
        embedded: Tensor = self.mlp(torch.cat([angles.cos(), angles.sin()], -1))
        return embedded


class ClassTable(nn.Module):
    """A vector for every class; the last row stands for no class."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.embedding_table = nn.Embedding(classes, width)

    def forward(self, classes: Int[Tensor, " b"]) -> Float[Tensor, "b width"]:
        """The vectors of these classes."""
        embedded: Tensor = self.embedding_table(classes)
        return embedded


def time_sinusoids(time: Float[Tensor, " b"], width: int) -> Float[Tensor, "b width"]:
    """tauLDR's: sines first, then cosines, of f_k = 10000^{-k/(half - 1)}."""
    half = width // 2
    rates = torch.exp(-math.log(10_000.0) / (half - 1) * torch.arange(half, dtype=torch.float32, device=time.device))
    angles = time[:, None].float() * rates
    return torch.cat([angles.sin(), angles.cos()], -1)
