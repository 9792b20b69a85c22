"""Groups that a convention counts as constant, though they are not quite."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize


@pytest.mark.parametrize(
    ("x", "flat"),
    [
        pytest.param([[1.0, 1.0 + 1e-15, 1.0]], True, id="of no more than rounding"),
        pytest.param([[1.0, 1.0 + 1e-14, 1.0]], False, id="of more"),
    ],
)
@pytest.mark.parametrize("norm", ["minmax", "maxabs"])
def test_groups_that_are_constant_by_a_convention(norm, x, flat):
    x = np.array(x) * (1e-15 if norm == "maxabs" and flat else 1.0)
    y = normalize(x, norm, axes=1, like="sklearn").normalized
    spread = y.max() - y.min() if norm == "minmax" else np.abs(y).max()
    assert (spread < 1e-10) == flat
