"""Windows of local response normalization are summed as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
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
