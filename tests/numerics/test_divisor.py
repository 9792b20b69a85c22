"""How eps enters a divisor, in doubles and as a pair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.norms.rules import EpsMode, ZeroRule
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.rational import add_eps as add_eps_exactly
from normcli.numerics.rational import find_root, round_once
from normcli.numerics.statistics.divisor import Solution, add_eps, find_divisor, replace_zero, replace_zeros
from tests.numerics.exact_parts import add_up


@pytest.mark.parametrize(
    ("sizes", "eps"),
    [
        pytest.param([0.1, 3.0, 1e-300, 1e300], 1e-5, id="of any scale"),
        pytest.param([2.0**-537, 2.0**-545, 3 * 2.0**-560], 5e-324, id="squares that underflow"),
    ],
)
def test_divisors_of_sizes_are_the_nearest_doubles(sizes, eps):
    expected = [round_once(find_root(Fraction(size) ** 2 + Fraction(eps))) for size in sizes]
    np.testing.assert_array_equal(find_divisor(np.array(sizes), eps, EpsMode.INSIDE), expected)


def settle(mean, divisor):
    """Settle the second of two groups; return the solution."""
    solution = Solution(Triple(*np.zeros((3, 2))), Pair(np.ones(2), np.zeros(2)), centred=True)
    solution.settle(1, mean, divisor)
    return solution


THIRD = Fraction(1, 3)


@pytest.mark.parametrize("divisor", [THIRD, *(Fraction(2) ** e / 3 for e in (-1090, -1074, -1030, 1024, 1100))])
@pytest.mark.parametrize("mean", [THIRD, Fraction(2) ** 1023, THIRD / 2**800, -THIRD / 2**1070])
def test_a_group_is_known_within_its_error(mean, divisor):
    solution = settle(mean, divisor)
    kept = add_up(solution.divisor, 1)
    error = Fraction(float(np.broadcast_to(solution.error, 2)[1]))
    assert abs(kept - divisor) <= error * min(kept, divisor) or (kept == 0 and error > 2**1000)
    assert solution.is_plain == (abs(mean) > Fraction(1, 2**800))
    assert solution.mean.hi[1] == float(mean)
    assert [part[0] for part in (*solution.mean, *solution.divisor)] == [0.0, 0.0, 0.0, 1.0, 0.0]


def test_values_about_a_faint_mean_beside_a_large_eps_are_exact():
    x = np.array([1.0, 2.0, 5.0]) * 2.0**-900
    found = normalize(x, "ln", eps=2.0**140).normalized
    assert found.tolist() == [float((Fraction(value) - Fraction(8, 3) / 2**900) / 2**70) for value in x]


@pytest.mark.all_tried
@pytest.mark.parametrize("eps", [1e-200, 1e-5, 1e20])
@pytest.mark.parametrize("mode", list(EpsMode))
def test_eps_of_any_size_enters_groups_of_any_scale(mode, eps):
    sizes = np.array([0.5, 1e-100, 1e100, 0.0])
    square = Pair(sizes**2, np.array([float(Fraction(a) ** 2 - Fraction(a * a)) for a in sizes]))
    found = add_eps(square, Pair(sizes, np.zeros(4)), eps, mode)
    for i, size in enumerate(sizes):
        exact = add_eps_exactly(Fraction(size) ** 2, eps, mode)
        assert abs(add_up(found, i) - exact) <= exact / 2**98


@pytest.mark.parametrize(("rule", "one"), [(ZeroRule.ONE, 1.0), (ZeroRule.ZERO, 1.0), (ZeroRule.NAN, np.nan)])
def test_a_divisor_of_0_is_replaced_by_its_rule(rule, one):
    pair = replace_zeros(Pair(np.array([0.0, 3.0]), np.zeros(2)), rule)
    np.testing.assert_array_equal(pair.hi, [one, 3.0])
    assert replace_zero(Fraction(0), rule) == (None if np.isnan(one) else 1)
    assert replace_zero(THIRD, rule) == THIRD
