"""Checkpoints of the published sizes with random weights: made, loaded, measured a little, sampled for two steps.

python benchmarks/published.py [NAME …]   writes results/published.json; each runs in a process of its own

Peak memory is that of the whole process, interpreter and libraries included; the weights' own size stands beside it.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from provenance import load, save
from safetensors.torch import save_file

import eigentime as et
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.piano import PianoConfig, PianoTransformer
from eigentime.models.unet import UNet, UNetConfig

WORDS = 50257


def sedd(folder: Path, width: int, blocks: int) -> int:
    """`pytorch_model.bin` without a prefix, and SEDD's configuration."""
    heads = width // 64
    network = DDiT(DDiTConfig(WORDS + 1, width, blocks, heads, head="score", time_conditioned=True))
    _shake(network)
    torch.save(network.state_dict(), folder / "pytorch_model.bin")
    model = {"hidden_size": width, "cond_dim": 128, "length": 1024, "n_blocks": blocks, "n_heads": heads}
    config = {
        "tokens": WORDS,
        "graph": {"type": "absorb"},
        "noise": {"type": "loglinear", "sigma_min": 1e-4, "sigma_max": 20},
        "model": {**model, "type": "ddit", "scale_by_sigma": True, "dropout": 0.1},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return _parameters(network)


def mdlm(folder: Path) -> int:
    """`model.safetensors` with the prefix `backbone.`, and MDLM's configuration."""
    network = DDiT(DDiTConfig(WORDS + 1, 768, 12, 12))
    _shake(network)
    save_file({f"backbone.{name}": value for name, value in network.state_dict().items()}, folder / "model.safetensors")
    config = {"model_type": "mdlm", "vocab_size": WORDS + 1, "model_length": 1024, "hidden_dim": 768, "n_heads": 12}
    (folder / "config.json").write_text(json.dumps({**config, "time_conditioning": False, "cond_dim": 128}))
    return _parameters(network)


def tauldr(folder: Path, network: torch.nn.Module, config: dict[str, Any]) -> int:
    """A `.pt` file with the averaged weights in a list, and the configuration beside it."""
    weights = {f"net.{name}": value for name, value in network.state_dict().items()}
    shadow = [parameter.detach() for parameter in network.parameters()]
    state = {**weights, "ema_decay": 0.9999, "ema_num_updates": 1, "ema_shadow_params": shadow}
    torch.save({"model": state, "n_iter": 1}, folder / "checkpoint.pt")
    (folder / "config.json").write_text(json.dumps(config))
    return _parameters(network)


def piano(folder: Path) -> int:
    """tauLDR's piano transformer."""
    model = {"num_layers": 6, "d_model": 128, "num_heads": 8, "dim_feedforward": 2048, "temb_dim": 128}
    model |= {"num_output_FFresiduals": 2, "time_scale_factor": 1000, "rate_const": 0.03}
    network = PianoTransformer(PianoConfig(129, 256, 128, 6, 8, 2048, 128))
    return tauldr(folder, network, {"data": {"S": 129, "shape": [256]}, "model": model})


def cifar(folder: Path) -> int:
    """tauLDR's CIFAR-10 UNet."""
    model = {"ch": 128, "ch_mult": [1, 2, 2, 2], "num_res_blocks": 2, "scale_count_to_put_attn": 1}
    model |= {"time_embed_dim": 128, "time_scale_factor": 1000, "data_min_max": [0, 255]}
    model |= {"rate_sigma": 6.0, "Q_sigma": 512.0, "time_exponential": 100.0, "time_base": 3.0}
    network = UNet(UNetConfig(256, (3, 32, 32), 128))
    return tauldr(folder, network, {"data": {"S": 256, "shape": [3, 32, 32]}, "model": model})


MAKERS = {
    "sedd-small": (lambda folder: sedd(folder, 768, 12), 169_627_218),
    "mdlm-owt": (mdlm, 169_627_218),
    "tauldr-piano": (piano, 7_008_769),
    "tauldr-cifar": (cifar, 35_749_766),
    "sedd-medium": (lambda folder: sedd(folder, 1024, 24), 424_477_010),
}
"""How each is made, and how many parameters the published one has."""


def one(name: str, folder: Path) -> dict[str, Any]:
    """Load, measure and sample a checkpoint that lies in the folder."""
    began = time.perf_counter()
    model = et.load(str(folder))
    loaded = time.perf_counter()
    data = torch.randint(0, 100, (2, model.length), generator=torch.Generator().manual_seed(0))
    clock = et.measure(model, data, budget=16)
    measured = time.perf_counter()
    tokens = et.sample(model, et.schedule("uniform", steps=2, model=model), 1, batch_size=1, normalise=True)
    model.process.check_tokens(tokens, "samples")
    weights = sum(parameter.numel() * 4 for parameter in model.network.parameters())  # type: ignore[attr-defined]
    return {
        "weights_gib": weights / 2**30,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "evaluations": clock.evaluations,
        "seconds": {
            "load": loaded - began,
            "measure": measured - loaded,
            "sample": time.perf_counter() - measured,
        },
    }


def main(names: list[str]) -> None:
    """Make each checkpoint, then run it in a process of its own."""
    try:
        results = load("published.json")["models"]
    except et.EigentimeError:
        results = {}
    for name in names:
        make, published = MAKERS[name]
        with tempfile.TemporaryDirectory() as folder:
            parameters = make(Path(folder))
            assert parameters == published, f"{name} has {parameters:,} parameters, the published one {published:,}"
            command = [sys.executable, __file__, "--child", folder, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        results[name] = {"parameters": parameters, **json.loads(done.stdout.splitlines()[-1])}
        print(name, json.dumps(results[name]))
        save("published.json", {"models": results})


def _shake(network: torch.nn.Module) -> None:
    """Random numbers in place of the zeros a network starts with."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, 0.02)


def _parameters(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MAKERS))
    parser.add_argument("--child", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(one(arguments.names[0], arguments.child)))
    else:
        main(arguments.names)
