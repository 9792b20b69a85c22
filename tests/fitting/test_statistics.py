"""What is said of groups whose statistics are of no use."""

from __future__ import annotations

import numpy as np

from normcli.fitting.fit import Policy
from normcli.fitting.statistics import round_stats, warn
from tests.fitting.test_fit import fit_arrays

COLUMNS = np.array([[1.0, 7.0, np.nan, np.inf], [2.0, 7.0, 3.0, 4.0], [2.0, 7.0, 5.0, 4.0]])


def find_warnings(x, nan="propagate"):
    stats = fit_arrays([x], policy=Policy(nan))
    return warn(stats, round_stats(stats))


def test_constant_groups_and_those_that_are_not_finite_are_named():
    assert find_warnings(COLUMNS) == (
        "c=2: NaN spreads; --nan omit leaves such values out", "c=3: infinite values", "c=1: constant"
    )  # fmt: skip
    assert find_warnings(COLUMNS[:, :1]) == ()
