"""How eps enters a divisor, in doubles and as a pair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.norms.rules import EpsMode
from normcli.numerics.divisor import Solution, add_eps, find_divisor
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.rational import find_root, round_once

ROOTS = np.array([0.0, 0.25, 3.0, 1e-3])
EPS = 0.25


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(EpsMode.INSIDE, np.sqrt(ROOTS**2 + EPS), id="under the root"),
        pytest.param(EpsMode.OUTSIDE, ROOTS + EPS, id="beside the root"),
        pytest.param(EpsMode.FLOOR, np.maximum(ROOTS, EPS), id="the least root"),
        pytest.param(EpsMode.SQUARE_FLOOR, np.maximum(ROOTS, EPS**0.5), id="the least square"),
    ],
)
def test_eps_enters_by_its_mode(mode, expected, exact):
    for k in (None, np.array([0, 4, -3, 0])):
        unit = 1.0 if k is None else 2.0**k
        square, root = (Pair(unit**n * ROOTS**n, np.zeros(4)) for n in (2, 1))
        found = add_eps(square, root, EPS, mode, k, exact=exact)
        np.testing.assert_allclose((found.hi + found.lo) / unit, expected, rtol=4e-16)


def test_divisors_of_sizes_are_the_nearest_doubles():
    sizes = np.array([0.1, 3.0, 1e-300, 1e300])
    expected = [round_once(find_root(Fraction(size) ** 2 + Fraction(1e-5))) for size in sizes]
    np.testing.assert_array_equal(find_divisor(sizes, 1e-5, EpsMode.INSIDE), expected)


def test_a_group_is_recalled_in_the_unit_of_its_values():
    ones, zeros = np.ones(2), np.zeros(2)
    mean, divisor = Triple(3.0 * ones, zeros, zeros), Pair(5.0 * ones, zeros)
    assert Solution(mean, divisor, None, centred=True).recall(1) == (3, 5)
    assert Solution(mean, divisor, np.array([0, 2]), centred=True).recall(1) == (Fraction(3, 4), Fraction(5, 4))
