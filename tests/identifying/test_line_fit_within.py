"""Lines that pass every value within its slack."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from normcli.identifying.models.line_fit import fit_within


def test_there_is_a_line_for_each_index_of_an_axis():
    x, scale = np.random.default_rng(1).normal(size=(5, 3, 4)), np.array([1.0, -2.0, 3.0])[:, None]
    fitted = fit_within(x, x * scale + 1.0, np.full(x.shape, 1e-6), (1,), through_zero=False)
    np.testing.assert_allclose(fitted.scale, scale[None], atol=1e-5)
    assert fitted.shift.shape == (1, 3, 1)


def test_values_of_one_x_have_a_shift_and_no_slope():
    y, slack = np.array([1.0, 1.5]), np.full(2, 0.3)
    fitted = fit_within(np.ones(2), y, slack, (), through_zero=False)
    assert np.all(np.abs(y - (fitted.scale + fitted.shift)) <= slack)
    assert fit_within(np.ones(2), y, slack / 2.0, (), through_zero=False) is None
    assert fit_within(np.zeros(2), y, slack, (), through_zero=True) is None


def find_room(x, y, slack):
    """Return the most that a line leaves below the highest and above the lowest that it may be, in rationals."""
    low, high = [[Fraction(b) + sign * slack for b in y] for sign in (-1, 1)]
    pairs = list(zip(low, high, x, strict=True))
    ends = sorted({(a - b) / (p - q) for a, _, p in pairs for _, b, q in pairs if p != q})
    slopes = [(one + other) / 2 for one, other in itertools.pairwise(ends)]
    return max(
        min(b - slope * p for _, b, p in pairs) - max(a - slope * p for a, _, p in pairs) for slope in slopes
    )


@pytest.mark.parametrize(("count", "most"), [(3, 2), (4, 1), (5, 1)])
def test_a_line_is_found_exactly_where_there_is_one(count, most):
    rng, slack, found = np.random.default_rng(count), Fraction(7, 10), []
    for _ in range(30):
        x, y = rng.permutation(9)[:count], rng.integers(-most, most + 1, count)
        room = find_room(x.tolist(), y.tolist(), slack)
        if room != 0:
            fitted = fit_within(x * 1.0, y * 1.0, np.full(count, float(slack)), (), through_zero=False)
            found.append(fitted is not None)
            assert found[-1] == (room > 0)
    assert 5 < sum(found) < len(found) - 5
