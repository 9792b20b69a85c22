"""A group that is off as a whole is told from one whose values are rounded, each by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.identifying.models.evidence import Model
from normcli.identifying.models.standards import standardize
from normcli.identifying.nearly.strange_groups import find_moved_group
from normcli.identifying.search.affine_step import ESTIMATED, AffineStep
from normcli.identifying.search.hypothesis import Hypothesis, Sample
from normcli.norms.divisors import ROOT_MEAN_SQUARE
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.norms.rules import EpsMode

ROWS, VALUES = 4, 256
UNIT = 2.0**-10
"""Of float16, from 1 to 2; y is 1 or −1 here."""

BOUND = math.sqrt(2.0 * (math.log(2.0 * ROWS) + 20.0 * math.log(2.0)) / VALUES)
"""Units that the mean of so many values is off by chance once in a million times."""


def make(units, way="none"):
    """Return the hypothesis of values of which a group's are larger by so many units."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (ROWS, VALUES))
    standard = standardize(2.0 * signs, ROOT_MEAN_SQUARE)
    actual = signs * (1.0 + UNIT * units * (np.arange(ROWS) == 2)[:, None])
    grid = Grid((ROWS, VALUES), Layout(2, None), (1,))
    sample = Sample(grid, np.arange(ROWS), standard, actual)
    return Hypothesis(sample, AffineStep(way), Model(ROOT_MEAN_SQUARE, EpsMode.INSIDE))


@pytest.mark.parametrize(
    ("way", "times", "is_told"),
    [("none", 0.95, False), ("none", 1.05, True), (ESTIMATED, 1.5, False), (ESTIMATED, 2.1, True)],
)
def test_a_group_that_is_off_by_more_than_chance_is_told(way, times, is_told):
    moved = find_moved_group(make(times * BOUND, way), 0.0, np.dtype("f2"))
    assert (moved is not None) == is_told
    if moved is not None:
        assert moved.first == (2, 0)
        assert moved.factor == pytest.approx(1.0 + UNIT * times * BOUND, abs=1e-9)


def test_values_that_are_not_finite_or_0_count_for_nothing():
    hypothesis = make(3.0 * BOUND)
    hypothesis.sample.actual[1] = np.nan
    hypothesis.sample.actual[2, :3] = np.inf
    moved = find_moved_group(hypothesis, 0.0, np.dtype("f2"))
    assert (moved.first, moved.factor) == ((2, 0), pytest.approx(1.0 + 3.0 * UNIT * BOUND, abs=1e-9))
    hypothesis.sample.actual[2:] = np.nan
    assert find_moved_group(hypothesis, 0.0, np.dtype("f2")) is None
