"""What is said of groups whose statistics are of no use."""

from __future__ import annotations

import numpy as np

from normcli.fitting.fit import Policy
from normcli.fitting.statistics import warn, warn_of_nan
from normcli.norms.request import Request
from tests.fitting.test_fit import fit_arrays

COLUMNS = np.array([[1.0, 7.0, np.nan, np.inf], [2.0, 7.0, 3.0, 4.0], [2.0, 7.0, 5.0, 4.0]])


def find_warnings(x, nan="propagate"):
    stats = fit_arrays([x], policy=Policy(nan))
    return warn(stats)


def test_constant_groups_and_those_that_are_not_finite_are_named():
    assert find_warnings(COLUMNS) == (
        "c=2: NaN spreads; --nan omit leaves such values out", "c=3: infinite values", "c=1: constant"
    )  # fmt: skip
    assert find_warnings(COLUMNS[:, :1]) == ()
    assert find_warnings(np.full((3, 1), np.inf)) == ("c=0: infinite values",)
    assert find_warnings(2**53 + np.array([[0], [1]])) == ()  # whose doubles are the same
    assert find_warnings(2**53 + np.array([[1], [1]])) == ("c=0: constant",)


def test_groups_without_values_and_those_that_nan_spreads_to_are_named():
    assert find_warnings(COLUMNS[:0]) == ("c=0, c=1, c=2, … (4 groups): no values",)
    missing = np.where(np.arange(4) < 1, np.nan, COLUMNS)
    assert find_warnings(missing, "omit") == ("c=0: no values", "c=3: infinite values", "c=1: constant")
    spreads = "c=0, c=2: NaN spreads; --nan omit leaves such values out"
    assert find_warnings(missing) == (spreads, "c=3: infinite values", "c=1: constant")
    spread = warn_of_nan(fit_arrays([missing]))
    assert len(spread) == 1
    assert spread[0].startswith("c=0, c=2: the statistics are NaN")
    assert warn_of_nan(fit_arrays([missing], policy=Policy("omit"))) == ()
    assert warn_of_nan(fit_arrays([COLUMNS[:, :2]])) == ()
    few = warn_of_nan(fit_arrays([COLUMNS[:2, :2]], Request("zscore", ddof=2)))
    assert few == ("c=0, c=1: at most 2 values against ddof 2, so all that they are used on is NaN",)
