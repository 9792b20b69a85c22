"""Windows of local response normalization are summed as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.models.window_model import find_sides, find_windows
from normcli.identifying.question import Question


@pytest.mark.parametrize("size", [3, 4])
def test_a_large_channel_does_not_cancel_the_others(size):
    x = np.random.default_rng(0).normal(size=(5, 9, 7))
    x[:, 0] *= 1e9
    y = normalize(x, "lrn", size=size, alpha=1e-2, k=2.0).normalized
    match = identify(Question(x, y), "lrn").matches[0]
    assert (match.window.size, match.window.k, match.equal) == (size, 2.0, 1.0)
    assert 20.0 < match.bits < math.inf


@pytest.mark.slow
@pytest.mark.parametrize("make", [np.sign, lambda x: (x == x.max(1, keepdims=True)).astype("f4")])
def test_a_window_of_one_value_is_not_tried(make):
    x = np.random.default_rng(0).normal(size=(5, 9, 7)).astype("f4")
    found = identify(Question(x, make(x)))
    assert (found.matches, found.doubtful) == ((), ())


@pytest.mark.parametrize(("channels", "tells"), [(3, True), (2, False)])
def test_a_window_that_is_shorter_than_the_axis_tells_frameworks_apart(channels, tells):
    x = np.random.default_rng(0).normal(0.3, 1.7, (9, channels, 9))
    y = normalize(x, "lrn", size=3, alpha=0.5, exponent=0.6, k=2.0).normalized
    assert bool(identify(Question(x, y), "lrn").matches[0].like) is tells


LRN = np.random.default_rng(0).normal(0.3, 1.7, (3, 9, 4))


def find(y, slack=2.0**-50):
    slack = slack * np.abs(y)
    return list(find_windows(LRN, y, slack, find_sides(LRN, y, slack)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"size": 3, "alpha": 0.5, "k": 0.5}, (1, 1, 3, 0.5, 0.75, 0.5)),
        ({"size": 4, "alpha": 0.5, "k": 1.0, "exponent": 0.5}, (1, 2, 4, 0.5, 0.5, 1.0)),
        ({"size": 5, "alpha": 0.3, "k": 1.25, "exponent": 1.0}, (2, 2, 5, 0.3, 1.0, 1.25)),
        ({"size": 11, "alpha": 0.3, "k": 0.0, "exponent": 0.35}, (5, 5, 11, 0.3, 0.35, 0.0)),
    ],
)
def test_the_constants_of_a_window_are_found(options, expected):
    y = normalize(LRN, "lrn", **options).normalized
    best = next(one for one in find(y) if one.plan.spec.window[:6] == expected)
    assert (best.plan.grid.axes, best.plan.spec.window.divisor) == ((1,), options["size"])
    np.testing.assert_array_equal(best.exact, y)


@pytest.mark.parametrize("value", [0.9, -1.0, 0.0, np.nan])
def test_what_no_window_gives(value):
    """All of a window but one value, and a factor that grows with the squares."""
    y = normalize(LRN, "lrn", size=3, alpha=0.5, k=2.0).normalized
    assert not find(np.where(y == y.max(), value * y, y))
    assert not find(LRN / (2.0 - 0.01 * LRN**2))
