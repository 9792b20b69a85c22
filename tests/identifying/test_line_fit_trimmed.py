"""Lines through most of the values, where a few are wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.maps.line_fit import drop_wrong, leave_out_extremes
from normcli.identifying.question import Question

if TYPE_CHECKING:
    from normcli.dtypes import Floats


def _fit(y: Floats) -> SimpleNamespace:
    """Fit a mean to each column; a tenth is allowed."""
    rest = np.abs(y - np.nanmean(y, axis=0, keepdims=True))
    return SimpleNamespace(rest=rest, allowed=np.full_like(y, 0.1))


@pytest.mark.parametrize(("wrong", "is_found"), [(0, True), (1, True), (20, True), (21, False)])
def test_a_fifth_of_the_values_may_be_wrong(wrong: int, is_found: bool) -> None:
    y = np.zeros((50, 2))
    y[np.arange(wrong) // 2, np.arange(wrong) % 2] = 5.0 + np.arange(wrong)
    found = drop_wrong(_fit, y, (1,))
    assert (found is not None) is is_found
    if found is not None:
        assert np.isnan(found[0]).sum() == wrong
        assert np.nanmax(found[1].rest) == 0.0


def test_what_is_hopeless_at_first_is_left() -> None:
    y = np.zeros((50, 2))
    y[:10] = 100.0  # the mean is 20, 200 times what is allowed
    assert drop_wrong(_fit, y, (1,), 200.5) is not None
    assert drop_wrong(_fit, y, (1,), 199.5) is None


def test_extremes_and_what_is_not_finite_are_left_out() -> None:
    y = np.array([1.0, -1.0, 2.0, -2.0, np.inf, np.nan])
    np.testing.assert_array_equal(leave_out_extremes(y), [1.0, -1.0, 2.0, -2.0, np.nan, np.nan])
    assert np.isnan(leave_out_extremes(np.array([0.0, 1.0, 2.0, 66.0, 1.0, 1.9, 0.1])))[3]
    assert np.isnan(leave_out_extremes(np.full(3, np.nan))).all()


@pytest.mark.filterwarnings("error")
def test_hardly_any_value_says_nothing_and_warns_of_nothing() -> None:
    rng = np.random.default_rng(0)
    x, gamma, beta = (rng.normal(size=size).astype(np.float32) for size in ((40, 8), 8, 8))
    y = np.array(normalize(x, "ln", gamma=gamma, beta=beta).normalized)
    y[:39] = np.nan
    assert not identify(Question(x, y)).matches
