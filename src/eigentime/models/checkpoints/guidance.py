"""The CIFAR-10 UNet of the guidance repository: masked pixels, three ids beyond the 256 values, a table of classes."""

from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.checkpoints.files import Checkpoint, check_values, make_fitting, with_shadow
from eigentime.models.checkpoints.noises import described_noise
from eigentime.models.trained import Trained
from eigentime.models.unet import UNet, UNetConfig
from eigentime.process import Absorbing, Process, Uniform

PREFIX, CONV = "backbone.", "input_conv.weight"
VALUES = 256


def fits(checkpoint: Checkpoint) -> bool:
    """Whether the weights are that UNet's."""
    return PREFIX + CONV in checkpoint.weights


def build(checkpoint: Checkpoint) -> Trained:
    """The model that weights and configuration describe."""
    weights: dict[str, Tensor] = {
        name.removeprefix(PREFIX): value for name, value in checkpoint.weights.items() if name.startswith(PREFIX)
    }
    config, model = checkpoint.config, checkpoint.config.get("model", {})
    length = model.get("length") or config.get("data", {}).get("length")
    if not model or length is None:
        raise EigentimeError(f"{checkpoint.path} needs its configuration beside it, with the section model.")
    if "algo" in config:
        raise EigentimeError(f"{checkpoint.path} is a UNet of Duo's repository, which is not known; its DDiT is.")
    absorbing = config.get("diffusion", "absorbing_state") == "absorbing_state"
    size = VALUES + 3 if absorbing else VALUES
    channels = model["input_channels"]
    side = round((length / channels) ** 0.5)

    def make() -> UNet:
        return UNet(
            UNetConfig(
                size=size,
                shape=(channels, side, side),
                width=model["ch"],
                multipliers=tuple(model["ch_mult"]),
                blocks=model["num_res_blocks"],
                attention_scale=model["scale_count_to_put_attn"],
                time_width=model["time_embed_dim"],
                highest=float(size),
                classes=len(weights.get("cond_map.embedding_table.weight", ())),
                takes="sigma",
                head="posterior" if absorbing else "cavity",
                time_scale=model["time_scale_factor"],
                time_conditioned=bool(config.get("time_conditioning", False)),
            )
        )

    network = make_fitting(make, weights, checkpoint.path)
    shadow = checkpoint.extra.get("ema")
    if isinstance(shadow, dict) and "shadow_params" in shadow:
        weights = with_shadow(network, weights, shadow["shadow_params"], checkpoint.path)
    check_values(network, weights, checkpoint.path)
    network.load_state_dict(weights)
    # ids above the mask are tokenizer symbols that no image holds
    kernel = Absorbing(size, mask=VALUES, never=tuple(range(VALUES + 1, size))) if absorbing else Uniform(size)
    about = {"checkpoint": checkpoint.path.name}
    return Trained(
        network, Process(kernel, described_noise(config.get("noise") or {})), length, checkpoint.source, about
    )
