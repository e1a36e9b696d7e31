import json
from pathlib import Path

import numpy as np
import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def fixture():
    """Arrays and configuration of a stored run of an official implementation."""

    def load(name):
        folder = Path(__file__).parent / "fixtures" / name
        return np.load(folder / "io.npz"), json.loads((folder / "config.json").read_text())

    return load
