"""What a tensor says of itself."""

from __future__ import annotations

import numpy as np
import pytest


def test_a_long_double_is_told_of_on_standard_error(normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.array([1, 2, 4], "g") / 3)
    path = tmp_path / "x.npy"
    assert normcli("ln", "-i", path, "--print", "mean").err.count("float128 is calculated with as float64") == 1
    assert "float128" not in normcli("ln", "-i", path, "--print", "mean", "-q").err


@pytest.mark.parametrize("verb", ["identify", "check ln --eps 1"])
@pytest.mark.parametrize("dtypes", ["fg", "gf", "gg"])
def test_long_doubles_are_judged_as_float64(normcli, tmp_path, verb, dtypes):
    x = np.random.default_rng(0).normal(size=(6, 8)).astype("f")
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    for name, values, dtype in zip("xy", (x, y), dtypes, strict=True):
        np.save(tmp_path / f"{name}.npy", values.astype(dtype))
    ran = normcli(*verb.split(), "-i", tmp_path / "x.npy", "--actual", tmp_path / "y.npy")
    assert ran.code in (0, 1)
    assert "layer normalization" in ran.out
