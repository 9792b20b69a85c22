"""ℓp lengths of large p."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from tests.test_exactness import check, make


@pytest.mark.parametrize("p", [500.0, 511.5, 513.0, 1100.0, 20000.0, 1e9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20])
def test_large_p(p, dtype, scale):
    check(normalize((make("normal", 3, 20) * scale).astype(dtype), "lp", p=p))


def test_large_p_of_zeros_infinities_and_nan():
    result = normalize([[0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0], [2.02, 1.0]], "lp", p=1100.0)
    np.testing.assert_array_equal(result.norm[:3], [0.0, np.inf, np.nan])
    np.testing.assert_array_equal(result.normalized, [[0, 0], [np.nan, 0], [np.nan, np.nan], [1.0, 1.0 / 2.02]])
