"""torch's Box–Muller transform; `test_torch_stream.py` holds its values against torch's."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.tensors.random import torch_stream


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_length_0_are_0_and_not_minus_0(dtype):
    values = np.linspace(0, 15 / 16, 16, dtype=dtype)
    values[:8] = 0
    torch_stream.fill_blocks(values)
    np.testing.assert_array_equal(values, 0)
    assert not np.signbit(values).any()
