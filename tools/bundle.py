"""Put finished training runs into the package: half-precision weights, recipe and log.

python tools/bundle.py training/countdown …    writes src/eigentime/zoo/NAME
"""

import argparse
import shutil
from pathlib import Path

import torch
from results import ROOT

from eigentime.models import load_folder, save_folder


def bundle(run: Path) -> None:
    """Copy a finished run into the package."""
    model = load_folder(run)
    target = ROOT / "src" / "eigentime" / "zoo" / model.name
    save_folder(model, target, torch.float16)
    shutil.copy(run / "log.json", target / "log.json")
    size = (target / "model.safetensors").stat().st_size
    print(f"bundled {model.name}: {size / 2**20:.2f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    for run in parser.parse_args().runs:
        bundle(run)
