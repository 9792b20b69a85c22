"""Bins, ticks and marks of histograms."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.documents.bins import choose_bins, choose_ticks, collect_pairs, count_in_bins, share_no_scale


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        pytest.param(-1.3, 1.7, [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5], id="around zero"),
        pytest.param(0.1, 0.52, [0.1, 0.2, 0.3, 0.4, 0.5], id="tenths"),
        pytest.param(4201.0, 4999.0, [4400, 4600, 4800], id="far out"),
        pytest.param(5e-324, 1e-323, [5e-324], id="of the smallest steps"),
        pytest.param(3.0, 3.0, [3.0], id="of no width"),
        pytest.param(-1.7e308, 1.7e308, [-1e308, 0.0, 1e308], id="as wide as can be"),
    ],
)
def test_ticks_are_round_and_within(low, high, ticks):
    found = choose_ticks(low, high)
    assert found == ticks


def test_marks_are_those_within_the_bins():
    values = np.array([1.0, 2.0, 3.0, 6.0])
    found = count_in_bins(values, choose_bins([values]))
    assert found.marks == {
        "−σ": pytest.approx(3 - np.sqrt(3.5)),
        "+σ": pytest.approx(3 + np.sqrt(3.5)),
        "mean": 3.0,
    }
    assert "0" in count_in_bins(values, np.array([-1.0, 7.0])).marks
    values = np.array([0.0, 9.0, 9.0])
    assert "+σ" not in count_in_bins(values, choose_bins([values])).marks
    found = count_in_bins(np.array([1.0, 3.0, np.nan]), np.array([0.0, 2.0, 4.0]))
    assert (found.counts.tolist(), found.others, set(found.marks)) == ([1, 1], 1, {"0"})


@pytest.mark.parametrize(("centre", "shares"), [(0.0, True), (1000.0, False)])
def test_before_and_after_have_one_scale_where_it_suits_both(centre, shares):
    x = np.random.default_rng(0).normal(centre, 1.0, (2, 50))
    pairs = collect_pairs(normalize(x, "ln"), [0, 1])
    assert len(pairs) == 2
    assert all(np.array_equal(pair.input.edges, pairs[0].input.edges) for pair in pairs)
    assert all(np.array_equal(pair.input.edges, pair.output.edges) == shares for pair in pairs)
    assert all(counts.counts.sum() == 50 for pair in pairs for counts in pair)


@pytest.mark.parametrize(
    ("size", "options", "edges"),
    [
        pytest.param(100, {}, None, id="as wide as NumPy's automatic ones"),
        pytest.param(5000, {}, 49, id="as many as there is room for"),
        pytest.param(5000, {"bins": 7}, 8, id="as asked for"),
        pytest.param(5000, {"most": 20}, 21, id="at most"),
    ],
)
def test_how_many_bins_there_are(size, options, edges):
    values = np.random.default_rng(1).normal(size=size)
    assert len(choose_bins([values], **options)) == (edges or len(np.histogram_bin_edges(values, "auto")))


@pytest.mark.parametrize(("spread", "apart"), [(5.0, False), (50.0, True)])
def test_groups_have_scales_of_their_own_where_their_spreads_are_far_apart(spread, apart):
    x = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, spread]
    pairs = collect_pairs(normalize(x, "bn"), [0, 1])
    assert share_no_scale(pairs) == apart
    assert np.array_equal(pairs[0].output.edges, pairs[1].output.edges), "y of both has deviation 1"


def test_edges_between_neighbours_rise():
    values = np.array([1.0, np.nextafter(1.0, 2.0), 1.0 + 2.0**-51])
    edges = choose_bins([values], bins=40)
    assert (np.diff(edges) >= 0.0).all()
    assert count_in_bins(values, edges).counts.sum() == 3
    assert (edges[0], edges[-1]) == (values[0], values[-1])
