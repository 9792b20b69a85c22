"""torch's Box–Muller transform; `test_torch_stream.py` holds its values against torch's."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.tensors.random import torch_stream


def _make_blocks(numbers):
    """Blocks whose lengths and angles both come of these multiples of 2⁻²⁴."""
    uniform = (numbers * 2.0**-24).astype(np.float32).reshape(-1, 8)
    return np.stack([uniform, uniform], axis=1).reshape(-1)


def _fuse_exactly(factor, multiplier, summand):
    """Round to odd before rounding to float32: the same as rounding once."""
    product = np.multiply(factor, multiplier, dtype=np.float64)
    total = product + summand
    rest = total - product
    error = (product - (total - rest)) + (summand - rest)
    is_rounded, bits = error != 0, total.view(np.int64)
    bits -= is_rounded & ((error < 0) != (total < 0))  # of what was rounded away from 0 the bits before
    bits |= is_rounded
    return total.astype(np.float32)


def test_products_and_sums_are_rounded_once(monkeypatch):
    numbers = np.arange(0, 2**24, 2**8)
    drawn, expected = _make_blocks(numbers), _make_blocks(numbers)
    torch_stream.fill_blocks(drawn)
    monkeypatch.setattr(torch_stream, "_fuse", _fuse_exactly)
    torch_stream.fill_blocks(expected)
    np.testing.assert_array_equal(drawn, expected)


def test_rounding_to_odd_is_rounding_once():
    # 1 + 3·2⁻²⁴ − 2⁻⁶⁴ lies just below the middle of two values of float32, and float64 takes it for the middle.
    numbers = np.float32([[2**-12 + 2**-32], [2**-12 - 2**-32], [1 + 2**-23]])
    assert _fuse_exactly(*numbers) == np.float32(1 + 2**-23)
    assert torch_stream._fuse(*numbers) == np.float32(1 + 2**-22)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_length_0_are_0_and_not_minus_0(dtype):
    values = np.linspace(0, 15 / 16, 16, dtype=dtype)
    values[:8] = 0
    torch_stream.fill_blocks(values)
    np.testing.assert_array_equal(values, 0)
    assert not np.signbit(values).any()
