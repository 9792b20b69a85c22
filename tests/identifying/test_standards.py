"""Groups that are standardized in plain arithmetic, unless they are constant, not finite or overflow."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.models.standards import STANDARDS, standardize, standardize_roughly


@pytest.mark.parametrize("divisor", STANDARDS, ids=lambda divisor: divisor.spread)
@pytest.mark.parametrize("last", [[3.0, 3, 3, 3], [1e200, 2e200, 0, -1e200], [1, np.inf, 2, 3], [9.0, 1, 2, 3]])
def test_rough_standards_are_exact_ones_up_to_a_factor(divisor, last):
    rows = np.array([[0.0, 1, 2, 3], last])
    with np.errstate(all="ignore"):
        rough, exact = (way(rows, divisor) for way in (standardize_roughly, standardize))
        rough, exact = (one.values * one.size[:, None] for one in (rough, exact))
    np.testing.assert_allclose(rough, exact, rtol=1e-12)
