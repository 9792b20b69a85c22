"""Groups that a convention counts as constant, though they are not quite."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize


@pytest.mark.parametrize(("step", "flat"), [(1e-16, True), (1e-12, False)])
@pytest.mark.parametrize("norm", ["minmax", "maxabs", "robust"])
def test_scales_below_ten_machine_epsilons_count_as_1(norm, step, flat):
    y = normalize(step * np.arange(5.0), norm, axes=0, like="sklearn").normalized
    assert np.ptp(y) == pytest.approx(4 * step if flat else 2.0 if norm == "robust" else 1.0)
