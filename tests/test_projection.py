"""The vocabulary projection in blocks is the projection."""

import pytest
import torch

from eigentime.models import projection


@pytest.mark.parametrize("bias", [True, False])
def test_blocks_give_what_one_piece_gives(bias, monkeypatch):
    torch.manual_seed(0)
    linear, rows = torch.nn.Linear(6, 50, bias=bias), torch.randn(2, 3, 6)
    expected = linear(rows)
    assert torch.equal(projection.projected(linear, rows), expected)  # small: in one piece
    monkeypatch.setattr(projection, "BLOCK", 16)
    monkeypatch.setattr(projection, "LARGE", 20)
    assert torch.allclose(projection.projected(linear, rows), expected, atol=1e-6)
