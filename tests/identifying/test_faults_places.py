"""Regions are told by the indices of axes, where wrong values fill them."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.index_region import find_region
from normcli.identifying.faults.joint_search import open_joints
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.conftest import pose
from tests.identifying.faulty import draw, open_

X = draw((6, 8, 20))


def find(mask, norm="ln", x=X, layout="NLC", **options):
    wrong = np.zeros(x.shape, np.bool_)
    wrong[mask] = True
    case = open_(norm, x, x, layout=layout, **options)
    return find_region(case, wrong.reshape(case.x.shape))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("mask", "words", "kind"),
    [
        (np.s_[5], "for n=5", "index"),
        (np.s_[:, 3:], "for l ≥ 3", "region"),
        (np.s_[:, :3], "for l < 3", "region"),
        (np.s_[..., 4:8], "for c=4 … 7", "region"),
        (np.s_[..., ::4], "for c=0, 4 … 16", "region"),
        (np.s_[:, [0, 5]], "for l=0, 5", "region"),
        (np.s_[..., [1, 2, 5, 11]], "for c=1, 2, 5 and 1 more", "region"),
        (np.s_[1, 2:], "for n=1, l ≥ 2", "region"),
        (np.s_[1, 2, 3], "for n=1, l=2, c=3", "values"),
    ],
)
def test_a_region_is_told_by_its_indices(mask, words, kind):
    region = find(mask)
    assert (region.words, region.kind) == (words, kind)


def test_a_region_that_begins_at_another_index_of_each_sample_is_a_masks():
    wrong = np.arange(8)[None, :] >= np.array([3, 8, 5, 7, 2, 6])[:, None]
    region = find(wrong)
    assert region.words == "from an index of l on that differs by n"
    assert np.array_equal(region.mask, np.broadcast_to(wrong[..., None], X.shape))


def test_few_right_values_by_chance_leave_a_region_whole():
    wrong = np.zeros(X.shape, np.bool_)
    wrong[:, 4:] = True
    wrong[2, 5, 7] = False
    assert find(wrong).words == "for l ≥ 4"


def test_values_here_and_there_and_all_values_are_no_region():
    assert find(np.random.default_rng(0).random(X.shape) < 0.3) is None
    assert find(np.s_[:]) is None
    assert find(np.s_[:0]) is None


def test_channels_of_groups_are_told_by_the_tensors_axis():
    x = draw((3, 12, 10))
    assert find(np.s_[:, 7], "gn", x, None, groups=4).words == "for c=7"
    region = find(np.s_[:, 6:], "gn", x, None, groups=4)
    assert (region.words, region.mask.shape) == ("for c ≥ 6", (3, 4, 3, 10))


@pytest.mark.slow
def test_a_row_that_is_barely_off_is_no_exception():
    """It is a sign of other arithmetic, and not of a row that was left out."""
    rng = np.random.default_rng(5)
    x = (rng.normal(2.0, 1.0, (64, 96)) * rng.uniform(0.5, 2.0, (64, 1))).astype("f4")
    plan = make_plan(Request("ln"), x.shape, x.dtype)
    y = (
        (x - x.mean(1, keepdims=True, dtype="f8")) / np.sqrt(x.var(1, keepdims=True, dtype="f8") + 1e-5)
    ).astype("f4")
    y[3] *= np.float32(1.0003)
    assert not open_joints([*open_cases([pose(plan, x)], y, y.dtype)])
    y[3] *= np.float32(1.3)
    (claim, *_) = open_joints([*open_cases([pose(plan, x)], y, y.dtype)])
    assert claim.fault.id == "where-index"
