"""What is kept of a statistic follows from its exact value, or is said to be undecided."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.numerics.deciding import is_double_decided
from normcli.numerics.kept import KEPT_BITS, keep
from normcli.numerics.pairs import Pair, quick_two_sum


def keep_exactly(value):
    """Return what is kept of a fraction: the nearest double, and the nearest multiple of its unit to the rest."""
    hi = float(value)
    unit = Fraction(np.spacing(2.0 ** np.floor(np.log2(hi)))) / 2**KEPT_BITS
    return hi, float(round((value - Fraction(hi)) / unit) * unit)


@pytest.mark.parametrize("seed", range(3))
def test_values_that_are_nearly_known_are_kept_as_exact_ones(seed):
    random = np.random.default_rng(seed)
    hi = random.uniform(1, 2, 400) * 2.0 ** random.integers(-200, 200, 400)
    exact = [
        Fraction(a) + Fraction(b) * Fraction(np.spacing(a))
        for a, b in zip(hi, random.uniform(-0.49, 0.49, 400), strict=True)
    ]
    rest = np.array([float(x - Fraction(a)) for x, a in zip(exact, hi, strict=True)])
    kept = keep(quick_two_sum(hi, rest * (1 + 2.0**-50)), 2.0**-100)
    assert kept.undecided.mean() < 0.01
    found = list(zip(kept.value.hi, kept.value.lo, strict=True))
    assert [f for f, u in zip(found, kept.undecided, strict=True) if not u] == [
        keep_exactly(x) for x, u in zip(exact, kept.undecided, strict=True) if not u
    ]


@pytest.mark.parametrize(
    "lo",
    [
        pytest.param(2.0**-53, id="between two doubles"),
        pytest.param(2.0**-53 - 2.0**-78, id="nearly between two doubles"),
        pytest.param(3.5 * 2.0**-76, id="between two units"),
    ],
)
def test_a_value_at_a_boundary_is_undecided(lo):
    assert keep(Pair(np.array([1.25]), np.array([lo])), 2.0**-100).undecided.all()


def test_a_double_is_kept_as_it_is():
    kept = keep(Pair(np.array([9.5, -4.0, 0.0]), np.zeros(3)), 2.0**-100)
    assert not kept.undecided.any()
    assert kept.value.hi.tolist() == [9.5, -4.0, 0.0]
    assert not kept.value.lo.any()


def test_an_error_below_the_last_bit_of_the_second_part_breaks_a_tie():
    value = Pair(np.array([1.0, 1.0, 1.0]), np.array([2.0**-53, 2.0**-53, 0.0]))
    for largest in (2.0**-124, 2.0**-60):  # what other groups have does not matter
        assert is_double_decided(value, np.array([2.0**-124, 0.0, largest])).tolist() == [False, True, True]
