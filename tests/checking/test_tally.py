"""The running totals of a comparison: what is counted, which element is the worst, and which group."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from normcli.checking.tally import Comparison, GroupTally
from normcli.checking.ulp import choose_tolerance

SINGLE = np.dtype("f4")
UNIT = 2.0**-23


def compare(actual, expected, start=0, allowed=None, **limits):
    found = Comparison(choose_tolerance(SINGLE, **limits))
    with np.errstate(all="ignore"):
        wrong = found.compare(*(np.array(values, float) for values in (actual, expected)), start, allowed)
    return found, wrong.tolist()


def test_what_is_further_than_both_tolerances_is_counted():
    found, wrong = compare([1.0, 1.5, 2.5, -4.0], [1.0, 1.0, 2.0, -3.0], 10, rtol=0.25, atol=0.25)
    assert (found.compared, found.mismatches, found.ok) == (4, 0, True)
    assert (found.max_abs, found.largest_expected, found.worst.place) == (1.0, 3.0, 11)
    found, wrong = compare([1.0, 1.5, 2.5, -4.0], [1.0, 1.0, 2.0, -3.0], 10, rtol=0.125, atol=0.25)
    assert (found.mismatches, wrong) == (2, [0.0, 0.5 / UNIT, 0.0, 0.5 / UNIT])
    worst = found.worst
    assert (worst.excess, worst.place, worst.expected, worst.actual, found.ok) == (1.6, 13, -3.0, -4.0, False)


@pytest.mark.parametrize("limits", [{}, {"max_ulp": 4.0}])
def test_of_what_is_not_finite_nothing_is_tolerated(limits):
    found, wrong = compare([np.inf, np.nan, np.inf, np.nan, 1.0], [np.inf, np.nan, 1.0, 1.0, -np.inf], **limits)
    assert (found.mismatches, wrong) == (3, [0.0, 0.0, math.inf, math.inf, math.inf])
    assert (found.worst.excess, found.worst.place, found.max_ulp) == (math.inf, 2, math.inf)
    assert found.largest_expected == 1.0
    assert found.histogram[-1] == (math.inf, math.inf, 3)


@pytest.mark.parametrize(
    "given", [{}, {"rtol": 0.0, "atol": 0.0}, {"rtol": 1e-4, "atol": 3e-3}, {"max_ulp": 2.0}]
)
@pytest.mark.parametrize("noise", [1e-9, 1e-5, 1e-2])
def test_the_smallest_tolerances_pass_and_smaller_ones_do_not(given, noise):
    rng = np.random.default_rng(1)
    expected = rng.normal(size=500) * 10.0 ** rng.integers(-6, 3, 500)
    actual = expected + rng.normal(size=500) * noise
    found, _ = compare(actual, expected, **given)
    beside = {"rtol": found.tolerance.rtol, "atol": found.tolerance.atol}
    for name, limit in found.smallest._asdict().items():
        rest = {} if name == "max_ulp" else beside
        assert compare(actual, expected, **rest | {name: limit})[0].ok
        if limit > 0.0:
            assert not compare(actual, expected, **rest | {name: math.nextafter(limit, 0.0)})[0].ok


def test_the_smallest_tolerance_counts_the_roundings_of_the_comparison():
    found, _ = compare([1.0 + 2.0**-40], [1.0], rtol=0.0, atol=2.0**-40 - 2.0**-93)
    assert 0.0 < found.smallest.rtol < 2.0**-53
    assert compare([1.0 + 2.0**-40], [1.0], rtol=found.smallest.rtol, atol=found.tolerance.atol)[0].ok


@pytest.mark.parametrize(
    ("actual", "expected", "smallest"),
    [
        pytest.param([1.5, 0.0], [1.0, 0.0], (0.25, 0.25, 0.5 / UNIT), id="of both"),
        pytest.param([1.0, 0.5], [1.0, 0.0], (math.inf, 0.5, 2.0**148), id="no rtol where 0 is expected"),
        pytest.param([np.nan, 1.0], [1.0, 1.0], (math.inf,) * 3, id="none of NaN"),
        pytest.param([1.0, 1.0], [np.inf, 1.0], (math.inf,) * 3, id="none of infinity"),
        pytest.param([np.inf, np.nan], [np.inf, np.nan], (0.0, 0.0, 0.0), id="what agrees needs none"),
    ],
)
def test_the_smallest_tolerances(actual, expected, smallest):
    assert compare(actual, expected, rtol=0.25, atol=0.25)[0].smallest == pytest.approx(smallest, rel=1e-15)


def test_bounds_of_each_value_have_no_smallest_tolerance():
    found = Comparison(choose_tolerance(SINGLE)._replace(derived="a plan"))
    found.compare(np.array([1.5]), np.array([1.0]), 0, np.array([1.0]))
    assert found.smallest is None


def fill(shape, *parts):
    groups = GroupTally(shape)
    for index, ulp in parts:
        groups.add(tuple(slice(start, start + length) for start, length in index), np.array(ulp), (1,))
    return groups


def test_groups_have_their_mismatches_and_their_furthest():
    groups = fill((5,), (((0, 2),), [[0.0, 2.0, 9.0], [0.0, 0.0, 0.0]]), (((0, 3),), [[3.0], [0.0], [1.0]]))
    assert list(groups) == [(0, 3, 9.0), (2, 1, 1.0)]
    assert groups.count() == 2
    other = fill((2,), (((0, 2),), [[4.0, 4.0], [0.0, 7.0]]))
    groups.merge(other, (slice(2, 4),))
    groups.merge(GroupTally((2,)), (slice(0, 2),))
    assert list(groups) == [(0, 3, 9.0), (2, 3, 4.0), (3, 1, 7.0)]
    assert groups.find_worst(2) == [(0, 3, 9.0), (2, 3, 4.0)]
    for tally in (groups, GroupTally((3,))):
        assert list(pickle.loads(pickle.dumps(tally))) == list(tally)
