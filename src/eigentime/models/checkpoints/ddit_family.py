"""SEDD, MDLM, UDLM, Duo and the countdown network of Jump Your Steps: one transformer, five conventions."""

from dataclasses import replace
from typing import Any

from eigentime.errors import EigentimeError
from eigentime.models.checkpoints.files import Checkpoint, check_names, check_values, with_shadow
from eigentime.models.checkpoints.noises import described_noise
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.trained import Trained
from eigentime.process import Absorbing, Process, Uniform

PREFIXES = ("backbone.backbone.", "backbone.", "module.", "model.")
EMBEDDING, QKV = "vocab_embed.embedding", "blocks.0.attn_qkv.weight"
DUO = ("duo", "duo_base", "distillation", "ot-finetune")
"""Duo's own algorithms, all on the uniform kernel; its repository also trains SEDD and MDLM."""
MOST_SETTINGS = 10_000
HEAD_WIDTH = 64
"""Of every published network; a configuration may say otherwise."""


def fits(checkpoint: Checkpoint) -> bool:
    """Whether the weights are a DDiT's."""
    return EMBEDDING in _stripped(checkpoint) and QKV in _stripped(checkpoint)


def build(checkpoint: Checkpoint) -> Trained:
    """The model that weights and configuration describe."""
    weights, settings = _stripped(checkpoint), _settings(checkpoint)
    size, width = weights[EMBEDDING].shape
    shape = DDiTConfig(
        size=size,
        width=width,
        blocks=len({name.split(".")[1] for name in weights if name.startswith("blocks.")}),
        heads=settings.get("n_heads", width // HEAD_WIDTH),
        cond_width=weights["sigma_map.mlp.2.bias"].shape[0],
        classes=len(weights["cond_map.embedding_table.weight"]) if "cond_map.embedding_table.weight" in weights else 0,
    )
    config, process, length = _conventions(checkpoint, settings, shape)
    network = DDiT(config)
    check_names(network, weights, checkpoint.path)
    shadow = checkpoint.extra.get("ema")
    if isinstance(shadow, dict) and "shadow_params" in shadow:
        weights = with_shadow(network, weights, shadow["shadow_params"], checkpoint.path)
    check_values(network, weights, checkpoint.path)
    network.load_state_dict(weights, assign=True)
    return Trained(network.float(), process, length, checkpoint.source, {"checkpoint": str(checkpoint.path.name)})


def _conventions(
    checkpoint: Checkpoint, settings: dict[str, Any], shape: DDiTConfig
) -> tuple[DDiTConfig, Process, int]:
    """What the network predicts, of which process, for how many tokens."""
    config = checkpoint.config or _lightning(checkpoint)
    algorithm = _section(config, "algo")  # Duo's repository keeps its kind there, and in `parameterization` only how
    kind = str(algorithm.get("name") or config.get("model_type") or config.get("parameterization")).lower()
    length = settings.get("length") or settings.get("model_length")
    if length is None:
        raise EigentimeError(f"{checkpoint.path} has no configuration beside it that says how long sequences are.")
    noise = described_noise(config.get("noise") or {}, duo=bool(algorithm) or kind in DUO)
    if "graph" in config or kind == "sedd":  # SEDD
        uniform = _section(config, "graph").get("type") == "uniform"
        scaled = bool(settings.get("scale_by_sigma", not uniform))
        described = replace(shape, head="score", time_conditioned=True, scale_by_sigma=scaled)
        return described, Process(Uniform(shape.size) if uniform else Absorbing(shape.size), noise), length
    if "num_vocabs" in config:  # Jump Your Steps
        described = replace(shape, head="score", time_conditioned=True)
        noise = described_noise({"type": config.get("noise_schedule"), "eps": config.get("eps")})
        return described, Process(Absorbing(shape.size), noise), length
    if kind in ("udlm", *DUO) or config.get("diffusion") == "uniform":
        described = replace(shape, head="cavity", time_conditioned=bool(settings.get("time_conditioning", True)))
        return described, Process(Uniform(shape.size), noise), length
    if kind in ("mdlm", "subs"):
        described = replace(shape, head="posterior", time_conditioned=bool(settings.get("time_conditioning", False)))
        return described, Process(Absorbing(shape.size), noise), length
    raise EigentimeError(
        f"{checkpoint.path} is a DDiT, but its configuration does not say of which kind (SEDD, MDLM, UDLM, Duo or JYS)."
    )


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """All settings in one dictionary, those of the model first."""
    config = checkpoint.config or _lightning(checkpoint)
    return {**config, **_section(config, "algo"), **_section(config, "model")}


def _section(config: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of the configuration; empty where there is none."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def _lightning(checkpoint: Checkpoint) -> dict[str, Any]:
    """The configuration inside a Lightning checkpoint, read from the inert remains of its OmegaConf object."""
    parameters = checkpoint.extra.get("hyper_parameters")
    found = _plain(parameters.get("config"), [MOST_SETTINGS]) if isinstance(parameters, dict) else None
    return found if isinstance(found, dict) else {}


def _plain(value: Any, left: list[int]) -> Any:
    """Settings as plain values, so many at most: those of a pickle may refer to each other without end."""
    left[0] -= 1
    if isinstance(value, dict) and left[0] > 0:
        if "_content" in value:
            return _plain(value["_content"], left)
        if "_val" in value:
            return _plain(value["_val"], left)
        return {key: _plain(entry, left) for key, entry in value.items()}
    return value if isinstance(value, str | int | float) else None


def _stripped(checkpoint: Checkpoint) -> dict[str, Any]:
    """Weights without the prefix under which a wrapper stored them."""
    for prefix in PREFIXES:
        if prefix + EMBEDDING in checkpoint.weights:
            return {name.removeprefix(prefix): v for name, v in checkpoint.weights.items() if name.startswith(prefix)}
    return checkpoint.weights
