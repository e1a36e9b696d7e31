import json
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import install_import_hook

import shapes

torch.set_num_threads(1)
install_import_hook("eigentime", "shapes.checked")  # the shapes that annotations promise are checked in every test


@pytest.fixture(autouse=True)
def _check_shapes_again():
    """Each test checks anew."""
    shapes.forget()


@pytest.fixture
def fixture():
    """Arrays and configuration of a stored run of an official implementation."""

    def load(name):
        folder = Path(__file__).parent / "fixtures" / name
        return np.load(folder / "io.npz"), json.loads((folder / "config.json").read_text())

    return load
