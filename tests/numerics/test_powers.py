"""Powers, roots and logarithms are within their stated errors; what is kept of any number can be calculated."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from normcli.numerics.deciding import LOGARITHM, POWER
from normcli.numerics.pairs import Pair, quick_two_sum
from normcli.numerics.powers import (
    raise_to_power,
    take_log2,
    take_root,
)
from normcli.numerics.rounding import Scaled

COUNT = 300


def make_pairs(kind, random):
    """Return pairs whose logarithms are hard: near 1, near the table's boundaries, or anywhere."""
    hi = {
        "between 1/2 and 2": random.uniform(0.5, 2.0, COUNT),
        "near 1": 1.0 + random.uniform(-1, 1, COUNT) * 2.0 ** random.integers(-52, -6, COUNT),
        "anywhere": random.uniform(1, 2, COUNT) * 2.0 ** random.integers(-900, 900, COUNT),
        "between two steps": (2 * random.integers(90, 180, COUNT) + 1) / 256 * (1 + random.uniform(-1, 1, COUNT) * 1e-15),
        "powers of 2": 2.0 ** random.integers(-900, 900, COUNT),
    }[kind]  # fmt: skip
    return quick_two_sum(hi, hi * random.uniform(-1, 1, COUNT) * 2.0**-54)


KINDS = ["between 1/2 and 2", "near 1", "anywhere", "between two steps", "powers of 2"]


def widen(pair, place, exponent=0):
    return (mpmath.mpf(float(pair.hi[place])) + float(pair.lo[place])) * mpmath.mpf(2) ** int(exponent)


def measure_error(result, exact):
    """Return the largest error of pairs or scaled pairs, as a part of the exact numbers."""
    value, exponents = result if isinstance(result, Scaled) else (result, np.zeros(COUNT, np.int64))
    found = (widen(value, place, exponents[place]) for place in range(COUNT))
    return max(abs(got / true - 1) if true else abs(got) for got, true in zip(found, exact, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@mpmath.workprec(300)
def test_logarithms_of_pairs(kind):
    a = make_pairs(kind, np.random.default_rng(1))
    exact = [mpmath.log(widen(a, place), 2) for place in range(COUNT)]
    assert measure_error(take_log2(a), exact) < LOGARITHM.error


@pytest.mark.parametrize("distance", [2.0**-52, 2.0**-30, 0.01, 0.3, 1e200])
@mpmath.workprec(300)
def test_logarithms_of_quotients_lose_no_digit_near_1(distance):
    random = np.random.default_rng(2)
    unit = random.uniform(0.5, 2.0, COUNT)
    x = unit * (1.0 + random.uniform(1.0, 2.0, COUNT) * distance)
    exact = [mpmath.log(mpmath.mpf(a) / b, 2) for a, b in zip(x.tolist(), unit.tolist(), strict=True)]
    assert measure_error(take_log2(Pair(x, np.zeros(COUNT)), unit), exact) < LOGARITHM.error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "p", [3.0, 0.5, 0.25, -1.75, 16.0, -4.0, 0.0, 1.0, 0.3, math.pi, -7.1, 1e-5, 123.4, 511.0]
)
@mpmath.workprec(300)
def test_powers(kind, p):
    a = make_pairs(kind, np.random.default_rng(3))
    power = raise_to_power(a, p)
    exact = [widen(a, place) ** mpmath.mpf(p) for place in range(COUNT)]
    largest = float(np.abs(power.exponent).max()) + 1.0
    assert measure_error(power, exact) < POWER.error + largest * LOGARITHM.error


@pytest.mark.parametrize("p", [1e16, 2.0**60, 1e300])
@mpmath.workprec(300)
def test_powers_of_quotients_for_large_p(p):
    unit = np.full(COUNT, 1.7)
    x = np.nextafter(unit, 0.0)
    x[::2] = unit[::2]
    power = raise_to_power(Pair(x, np.zeros(COUNT)), p, unit)
    np.testing.assert_array_equal(power.value.hi[::2], 1.0)
    np.testing.assert_array_equal(power.exponent[::2], 0)
    exact = mpmath.mpf(p) * mpmath.log(mpmath.mpf(x[1]) / 1.7, 2)
    assert abs(power.exponent[1] - max(exact, -(2**30))) <= 1


@pytest.mark.parametrize("p", [3.0, 0.5, -2.5, 1e-4, 1e300, 1e-300, 7.0])
@mpmath.workprec(300)
def test_roots(p):
    a = make_pairs("between 1/2 and 2", np.random.default_rng(4))
    root = take_root(a, p)
    exact = [mpmath.log(widen(a, place), 2) / mpmath.mpf(p) for place in range(COUNT)]
    for place in range(COUNT):
        if abs(exact[place]) < 1e5:
            error = abs(widen(root.value, place, root.exponent[place]) / mpmath.mpf(2) ** exact[place] - 1)
            assert error < POWER.error + (abs(exact[place]) + 1) * LOGARITHM.error
        else:
            assert np.sign(root.exponent[place]) == mpmath.sign(exact[place])
            assert abs(root.exponent[place]) > 5e4
