"""What one gradient reaches: every column of the derivative of y by x, of every norm."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS, backward
from normcli.errors import UsageError
from normcli.norms.rules import AxesRule
from normcli.results.arguments import read_arguments
from normcli.results.gradient_reach import find_reach
from tests.marks import sampled

SHAPE = (2, 4, 3)
EVERY = np.ix_(*map(range, SHAPE))


def require_dx(x, norm, at, options):
    """Require that what is reached from a place is dx of a dy that is 1 there; return both."""
    reach = find_reach(read_arguments(x, norm, options), at)
    dy = np.zeros(SHAPE)
    dy[at] = 1.0
    expected = backward(x, dy, norm, **options).dx
    np.testing.assert_array_equal(reach.pick(EVERY), expected)
    return reach, expected


@sampled
@pytest.mark.parametrize("norm", [name for name, norm in NORMS.items() if norm.gradient_names])
@pytest.mark.parametrize("at", [(0, 0, 0), (1, 2, 1)])
def test_it_is_dx_of_a_dy_that_is_1_there(norm, at):
    options = {"groups": 2} if NORMS[norm].axes is AxesRule.CHANNEL_GROUPS else {}
    options |= {"gamma": 2.0} if NORMS[norm].parameter_names else {}
    options |= {"size": 3} if norm == "lrn" else {}
    reach, expected = require_dx(np.random.default_rng(0).normal(1.0, 2.0, SHAPE), norm, at, options)
    np.testing.assert_array_equal(reach.select(EVERY), expected != 0)
    np.testing.assert_array_equal(reach.pick(np.ix_([1], [2, 3], [0])), expected[1:, 2:, :1])


@pytest.mark.parametrize("norm", ["bn", "ln", "gn", "rms"])
@pytest.mark.parametrize("fill", ["pass", "normalize", "zero"])
@pytest.mark.parametrize("at", [(0, 0, 0), (1, 2, 1)])
def test_values_that_do_not_count_are_reached_only_where_they_are_normalized(norm, fill, at):
    x = np.random.default_rng(0).normal(1.0, 2.0, SHAPE)
    x[0, 1, 2] = np.nan
    options = {"mask": np.array([True, True, False]), "nan": "omit", "fill": fill}
    require_dx(x, norm, at, options | ({"groups": 2} if norm == "gn" else {}))


def test_a_norm_without_a_derivative_is_refused():
    asked = read_arguments(np.ones((2, 3)), "maxabs", {})
    with pytest.raises(UsageError, match="maxabs has no backward pass"):
        find_reach(asked, (0, 0))
