"""One step of the uniform kernel once a clean token has been drawn, for samplers that draw it themselves."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.placement import widest


def step_given_clean(
    x: Int[Tensor, "b length"],
    clean: Int[Tensor, "b length"],
    alpha_t: float,
    alpha_s: float,
    size: int,
    u: Float[Tensor, "2 b length"],
) -> Int[Tensor, "b length"]:
    """x_s ~ q(x_s | x_t, x0) with two uniforms a token.

    With a = α_t/α_s, b = α_s and V values, x_s is x0 with weight b(1-a) + V·ab·1[x_t = x0], x_t with a(1-b), and any
    token at all with (1-a)(1-b): the product of P(x_t | x_s) and P(x_s | x0), multiplied out. Averaged over x0 from the
    posterior this is the exact token law P(x_s,i | x_t).
    """
    if alpha_s == 1:
        return clean
    kept, precise = alpha_t / alpha_s, widest(x.device)
    to_clean = alpha_s * (1 - kept) + size * kept * alpha_s * (x == clean).to(precise)
    stay, noise = kept * (1 - alpha_s), (1 - kept) * (1 - alpha_s)
    route = u[0].to(x.device, precise) * (to_clean + stay + noise)
    anything = (u[1] * size).long().clamp(max=size - 1).to(x.device)
    return torch.where(route < to_clean, clean, torch.where(route < to_clean + stay, x, anything))


def refuse_others(own: int, asked: int) -> None:
    """A grid of its own number of steps serves no other."""
    if asked != own:
        raise EigentimeError(
            f"This was made for {own} steps, not {asked}: ask for {own} (a corrector's come on top), or make it from a "
            "clock, which serves any number."
        )
