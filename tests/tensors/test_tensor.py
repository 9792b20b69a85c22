"""What a tensor says of itself."""

from __future__ import annotations

import numpy as np


def test_a_long_double_is_told_of_on_standard_error(normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.array([1, 2, 4], "g") / 3)
    path = tmp_path / "x.npy"
    assert normcli("ln", "-i", path, "--print", "mean").err.count("float128 is calculated with as float64") == 1
    assert "float128" not in normcli("ln", "-i", path, "--print", "mean", "-q").err
