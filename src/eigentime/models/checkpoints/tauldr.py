"""tauLDR's piano transformer and CIFAR-10 UNet: `.pt` files with averaged weights in a list, and a YAML beside them."""

from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from eigentime.arguments import whole
from eigentime.errors import EigentimeError
from eigentime.models.checkpoints.files import Checkpoint, check_values, make_fitting, with_shadow
from eigentime.models.denoiser import Denoiser
from eigentime.models.piano import PianoConfig, PianoTransformer
from eigentime.models.trained import Trained
from eigentime.models.unet import UNet, UNetConfig
from eigentime.process import Exponential, Linear, Process, RateMatrix, Uniform

MOST_VALUES = 4096
"""Rates between all of them are a matrix."""
PIANO, UNET = "encoder_layers.0.norm1.weight", "input_conv.weight"


def fits(checkpoint: Checkpoint) -> bool:
    """Whether the weights are one of tauLDR's networks."""
    weights = _stripped(checkpoint)
    return (PIANO in weights or UNET in weights) and any(name.startswith("net.") for name in checkpoint.weights)


def build(checkpoint: Checkpoint) -> Trained:
    """The model that weights and configuration describe; the averaged weights, as the reference evaluates them."""
    weights, config = _stripped(checkpoint), checkpoint.config
    if "model" not in config or "data" not in config:
        raise EigentimeError(f"{checkpoint.path} needs its config.yaml beside it, with the sections data and model.")
    data, model = config["data"], config["model"]
    network: Denoiser
    try:
        if PIANO in weights:
            network = make_fitting(lambda: _piano(data, model), weights, checkpoint.path)
            process = uniform_process(data["S"], model["rate_const"])
        else:
            network = make_fitting(lambda: _unet(data, model), weights, checkpoint.path)
            process = gaussian_process(data["S"], model)
    except KeyError as missing:
        raise EigentimeError(f"The configuration beside {checkpoint.path} does not say {missing}.") from None
    shadow = checkpoint.extra.get("ema_shadow_params")
    if shadow is not None:
        weights = with_shadow(network, weights, shadow, checkpoint.path)
    check_values(network, weights, checkpoint.path)
    network.load_state_dict(weights)
    length = int(np.prod(data["shape"]))
    return Trained(network, process, length, checkpoint.source, {"checkpoint": checkpoint.path.name})


def _piano(data: dict[str, Any], model: dict[str, Any]) -> PianoTransformer:
    return PianoTransformer(
        PianoConfig(
            size=data["S"],
            length=int(np.prod(data["shape"])),
            width=model["d_model"],
            layers=model["num_layers"],
            heads=model["num_heads"],
            feed_forward=model["dim_feedforward"],
            time_width=model["temb_dim"],
            output_layers=model["num_output_FFresiduals"],
            time_scale=model["time_scale_factor"],
        )
    )


def _unet(data: dict[str, Any], model: dict[str, Any]) -> UNet:
    return UNet(
        UNetConfig(
            size=data["S"],
            shape=tuple(data["shape"]),
            width=model["ch"],
            multipliers=tuple(model["ch_mult"]),
            blocks=model["num_res_blocks"],
            attention_scale=model["scale_count_to_put_attn"],
            time_width=model["time_embed_dim"],
            highest=model["data_min_max"][1],
            time_scale=model["time_scale_factor"],
        )
    )


def uniform_process(size: int, rate: float) -> Process:
    """Every other value at the same constant rate, not divided by their number: σ = size·rate·t."""
    return Process(Uniform(size), Linear(0.0, size * rate))


def gaussian_process(size: int, model: dict[str, Any]) -> Process:
    """Towards the middle value by neighbours' distance, back by detailed balance with a Gaussian.

    The rates are divided by the slowest one they mix with and the noise is multiplied by it, so that α spans (0, 1).
    """
    whole(2, MOST_VALUES)(size, "The number of values S")
    rates = gaussian_rates(size, model["rate_sigma"], model["Q_sigma"])
    slowest = RateMatrix(rates).gap
    noise = Exponential(model["time_base"] * slowest, model["time_exponential"])
    return Process(RateMatrix(rates / slowest), noise)


def gaussian_rates(size: int, rate_sigma: float, law_sigma: float) -> Float[np.ndarray, "n n"]:
    """tauLDR's generator, rows = from: exp(-(|i-j|-1)²/rate_sigma²) towards the middle; the way back balances with
    p(k) ∝ exp(-(k+1-n/2)²/(2·law_sigma²))."""
    index = np.arange(size)
    i, j = np.meshgrid(index, index, indexing="ij")
    inward = np.where(i < size // 2, (j > i) & (j < size - i), (j < i) & (j > size - 1 - i))
    forward = np.where(inward, np.exp(-((np.abs(i - j) - 1.0) ** 2) / rate_sigma**2), 0.0)
    # balance: p(i)·R(i→j) = p(j)·R(j→i)
    balance = np.exp(-((j + 1.0) ** 2 - (i + 1.0) ** 2 + size * (i - j)) / (2 * law_sigma**2))
    rates = forward + np.where(forward.T > 0, forward.T * balance, 0.0) * (forward == 0)
    np.fill_diagonal(rates, 0.0)
    return np.asarray(rates - np.diag(rates.sum(1)))


def _stripped(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Weights without `net.`, and without the `module.` of training on several devices."""
    return {
        name.replace(".module.", ".").removeprefix("net."): value
        for name, value in checkpoint.weights.items()
        if name.startswith("net.")
    }
