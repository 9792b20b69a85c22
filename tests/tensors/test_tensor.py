"""What a tensor says of itself."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.tensors.tensor import Tensor


@pytest.mark.parametrize(
    ("dtype", "told"),
    [
        pytest.param("g", "float128 is calculated with as float64, to which its values are rounded", id="long double"),
        pytest.param("f8", None, id="double"),
    ],
)  # fmt: skip
def test_that_a_long_double_is_rounded_is_remarked(dtype, told):
    remarks = Tensor(np.ones(3, dtype), "x.npy", note="spooled").remarks
    assert remarks == tuple(text for text in ("spooled", told) if text)


def test_a_long_double_is_told_of_on_standard_error(normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.array([1, 2, 4], "g") / 3)
    path = tmp_path / "x.npy"
    assert normcli("ln", "-i", path, "--print", "mean").err.count("float128 is calculated with as float64") == 1
    assert "float128" not in normcli("ln", "-i", path, "--print", "mean", "-q").err
