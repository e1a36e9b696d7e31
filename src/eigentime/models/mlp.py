"""A small multi-layer perceptron for very short sequences, such as the binomial's single token."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from eigentime.arguments import settle, whole
from eigentime.models.denoiser import WIDTH, Denoiser, Head, NoiseEmbedding


@dataclass(frozen=True)
class MLPConfig:
    """The shape of an MLP over a whole sequence."""

    size: int
    length: int
    width: int
    layers: int
    head: Head = "score"
    time_conditioned: bool = True
    scale_by_sigma: bool = True

    def __post_init__(self) -> None:
        settle(self, size=WIDTH, length=WIDTH, width=WIDTH, layers=whole(0, 1000))


class MLP(Denoiser):
    """One-hot tokens and an embedding of the noise through residual layers."""

    config: MLPConfig

    def __init__(self, config: MLPConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Linear(config.length * config.size, config.width)
        self.noise = NoiseEmbedding(config.width)
        self.layers = nn.ModuleList([nn.Linear(config.width, config.width) for _ in range(config.layers)])
        self.spread = nn.Linear(config.width, config.length * config.width)
        self.linear = nn.Linear(config.width, config.size)

    def features(
        self, x: Int[Tensor, "b length"], sigma: Float[Tensor, " b"], cond: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b length width"]:
        one_hot = F.one_hot(x, self.config.size).to(sigma.dtype).flatten(1)
        # the logarithm, spread out, lets the sinusoids tell small noises apart
        hidden = self.embed(one_hot) + self.noise(10 * torch.log(sigma.clamp(min=1e-6)))
        for layer in self.layers:
            hidden = hidden + F.silu(layer(hidden))
        return F.silu(self.spread(hidden)).view(len(x), self.config.length, -1)

    def project(self, features: Float[Tensor, "... width"]) -> Float[Tensor, "... size"]:
        logits: Tensor = self.linear(features)
        return logits
