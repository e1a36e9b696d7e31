"""What is done to posteriors before values are drawn: normalising, temperature, top-k and top-p."""

from dataclasses import dataclass

import torch

from eigentime.arguments import flag, number, optional, settle, whole
from eigentime.process.kernel import Rows


@dataclass(frozen=True)
class Shaping:
    """Sharpen posteriors before they become token laws: q^(1/T), then the k likeliest, then the nucleus of mass p."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    normalise: bool = False
    """Divide out a score network's mass, so that its head runs only where tokens are revealed; sharpening does, too."""

    def __post_init__(self) -> None:
        settle(
            self,
            temperature=number(0),
            top_p=number(above=0, most=1),
            top_k=optional(whole(1)),
            normalise=flag,
        )

    def __str__(self) -> str:
        """What is sharpened, in words; nothing where nothing is."""
        words = [
            (f"temperature {self.temperature:g}", self.temperature != 1.0),
            (f"top-p {self.top_p:g}", self.top_p < 1.0),
            (f"top-k {self.top_k}", self.top_k is not None),
        ]
        return ", ".join(word for word, changed in words if changed)

    @property
    def neutral(self) -> bool:
        """Whether nothing is sharpened."""
        return self.temperature == 1.0 and self.top_p >= 1.0 and self.top_k is None

    def __call__(self, posterior: Rows) -> Rows:
        if self.neutral:
            return posterior
        if self.temperature == 0:
            return torch.zeros_like(posterior).scatter_(-1, posterior.argmax(-1, keepdim=True), 1.0)
        sharp = (posterior / posterior.amax(-1, keepdim=True)) ** (1 / self.temperature)
        if self.top_k is not None and self.top_k < sharp.shape[-1]:
            threshold = sharp.topk(self.top_k, dim=-1).values[..., -1:]
            sharp = torch.where(sharp >= threshold, sharp, 0.0)
        sharp = sharp / sharp.sum(-1, keepdim=True)
        if self.top_p < 1:
            ordered, index = sharp.sort(-1, descending=True)
            inside = ordered.cumsum(-1) - ordered < self.top_p
            sharp = torch.zeros_like(sharp).scatter_(-1, index, torch.where(inside, ordered, 0.0))
        return sharp / sharp.sum(-1, keepdim=True)
