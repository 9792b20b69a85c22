"""A test of a whole model: every norm of it gives the exact result, whichever kernels run.

pip install 'normcli[safetensors]' torch pytest; pytest
"""

import pytest
import torch
from torch import nn

from normcli import record
from normcli.testing import assert_model_matches, assert_runs_match


class Block(nn.Module):
    """A block of a language model, with a norm before each of its two halves."""

    def __init__(self, width):
        super().__init__()
        self.before_attention, self.before_mlp = nn.RMSNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        """Return what the next block takes."""
        h = self.before_attention(x)
        x = x + self.attention(h, h, h)[0]
        return x + self.mlp(self.before_mlp(x))


def make_model(dtype):
    """Return a model of two blocks, and a batch for it."""
    torch.manual_seed(0)
    return nn.Sequential(Block(32), Block(32)).to(dtype), torch.randn(2, 10, 32, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_norm_is_right(dtype):
    """Each norm is within the tolerance of its dtype; the report names the first that is not, and why."""
    assert_model_matches(*make_model(dtype))


def test_both_runs_agree(tmp_path):
    """A port and its model: the report names the norm at which they part."""
    for name in ("model", "port"):
        model, batch = make_model(torch.float32)
        with record(model, tmp_path / f"{name}.safetensors"):
            model(batch)
    assert_runs_match(tmp_path / "model.safetensors", tmp_path / "port.safetensors")
