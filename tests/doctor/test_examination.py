"""The median and the largest of many numbers, and what is counted of every computation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.algorithms.row_computation import parse_computation
from normcli.checking.ulp import choose_tolerance
from normcli.doctor.examination import Distances, Distribution, Examination, Finding, Lost
from normcli.norms.plan import make_plan
from normcli.norms.request import Request


def count(numbers, places=None):
    found = Distribution()
    found.add(np.array(numbers, float), np.arange(len(numbers)) if places is None else np.array(places))
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e38])
def test_the_median_is_known_to_three_percent(size, scale):
    numbers = scale * np.random.default_rng(size).lognormal(size=size)
    middle = np.sort(numbers)[(size + 1) // 2 - 1]
    assert middle / 1.04 <= count(numbers).median <= middle


@pytest.mark.parametrize(
    ("numbers", "median"),
    [([0.0], 0.0), ([1e-30, 1.0, 0.0], 0.0), ([1e39, np.inf, np.nan], math.inf), ([2.0, 0.0, np.nan], 2.0), ([0.0, 8.0], 0.0)],
)  # fmt: skip
def test_what_is_very_small_or_large_has_a_bin_of_its_own(numbers, median):
    assert count(numbers).median == median


def test_the_largest_is_kept_with_the_first_of_its_places():
    found = count([1.0, 5.0, 5.0, 2.0], [9, 7, 8, 1])
    assert (found.largest, found.place) == (5.0, 7)
    for number, place, kept in ((5.0, 3, (5.0, 3)), (5.0, 4, (5.0, 3)), (4.0, 0, (5.0, 3)), (6.0, 0, (6.0, 0))):
        found.merge(count([number], [place]))
        assert (found.largest, found.place) == kept
    assert count([1.0, np.nan, np.inf]).place == 1


def test_parts_are_counted_as_the_whole():
    numbers = np.random.default_rng(0).lognormal(size=40)
    whole, first = count(numbers), count(numbers[:13])
    first.merge(count([]))
    first.merge(count(numbers[13:], range(13, 40)))
    assert (first.largest, first.place, first.median) == (whole.largest, whole.place, whole.median)
    assert math.isnan(count([]).median)
    assert count([0.0]).place == 0


def test_lost_groups_are_counted_and_the_first_is_kept():
    lost = Lost()
    for groups in ([4, 6], [], [2], [3]):
        lost.add(np.array(groups, int))
    assert (lost.count, lost.first) == (4, 2)


NAMES = (
    "one-pass:float16",
    "two-pass:float16",
    "two-pass:float32",
    "two-pass:float32:before-gamma",
    "two-pass:float64",
)


def make(mismatches, places=(0,) * 5, **given):
    """Return what came of computations with so many mismatches, each the furthest off in a group."""
    findings = []
    for name, wrong, place in zip(NAMES, mismatches, places, strict=True):
        distances = Distances(excess=count([9.0], [place]), mismatches=wrong)
        findings.append(Finding(parse_computation(name), distances))
    plan = make_plan(Request("ln"), (4, 5), np.dtype("f2"))
    return Examination(plan, choose_tolerance(np.dtype("f2")), findings, {}, **given)


def test_the_cheapest_that_is_safe_is_named():
    assert make((1, 1, 1, 0, 0)).cheapest.computation.name == NAMES[4]
    assert make((1, 0, 0, 0, 0)).cheapest.computation.name == NAMES[1]
    assert make((1, 1, 1, 0, 1)).cheapest is None
    assert make((0, 0, 0, 0, 0), beyond=1).cheapest is None


def test_the_worst_group_is_that_of_most_computations():
    assert make((1, 1, 1, 1, 1), (3, 1, 1, 2, 3)).worst_group == (1, 2)
    assert make((1, 0, 1, 1, 1), (3, 1, 1, 1, 3)).worst_group == (3, 2)
    assert make((0, 0, 0, 1, 0)).worst_group is None


def test_a_computation_is_found_by_its_name():
    found = make((0,) * 5)
    own = found.find(parse_computation("two-pass:float16:before-gamma"))
    assert own.computation.name == "two-pass:float16"  # whose every cast order is the usual one
    assert found.find(parse_computation("two-pass:float64:before-gamma")) is None


@pytest.mark.parametrize(
    ("values", "room"),
    [
        pytest.param("[[3,4,0,0]]", 65504 / 25, id="within"),
        pytest.param("[[300,400,0,0]]", 65504 / 250_000, id="beyond"),
    ],
)
def test_the_headroom_of_half_precision_sums_is_told(values, room, normcli):
    line = ("doctor", "rms", "--data", values, "--dtype", "float16")
    assert f"float16 sums hold {room:.3g} × the largest Σx²" in normcli(*line).out
    assert normcli(*line, "-f", "json").json["float16_headroom"] == room
