"""Steps that are left out: nothing is subtracted, or nothing divides, and all else is as of the whole norm."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize

X = np.array([[1.0, 2.0, 5.0], [-4.0, 0.0, 3.0]])
CENTRES = {"zscore": ("std", lambda row: sum(row) / 3), "robust": ("iqr", lambda row: sorted(row)[1])}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.0, 2.0**-1000, 2.0**900], ids=["ordinary", "small", "large"])
@pytest.mark.parametrize("norm", CENTRES)
def test_the_other_step_is_that_of_the_whole_norm(norm, scale, dtype):
    x = X.astype(dtype) if dtype == "float32" else X * scale
    spread, find_centre = CENTRES[norm]
    steps = ({}, {"no_scale": True}, {"no_mean": True}, {"no_mean": True, "no_scale": True})
    whole, centred, divided, nothing = (normalize(x, norm, axes=(1,), **left_out) for left_out in steps)
    exact = [[Fraction(float(value)) for value in row] for row in x]
    expected = [[float(value - find_centre(row)) for value in row] for row in exact]
    np.testing.assert_array_equal(centred.normalized, np.array(expected, dtype))
    of_spread = x / whole.statistics[spread][:, None]
    np.testing.assert_allclose(divided.normalized, of_spread, rtol=3 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(nothing.normalized, x)
    for found in (centred, divided, nothing):
        for name, values in found.statistics.items():
            np.testing.assert_array_equal(values, whole.statistics[name])


def test_what_is_divided_by_stands_among_statistics_only_if_something_is():
    assert "rstd" in normalize(X, "zscore").statistics
    assert "rstd" not in normalize(X, "zscore", no_scale=True).statistics
