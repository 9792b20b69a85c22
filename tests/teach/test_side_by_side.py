"""What each norm of a comparison shares, needs and gives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.engine.inputs import Inputs
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.teach.side_by_side import compare as compare_norms
from normcli.teach.side_by_side import depends_on_batch, measure_whole, try_batch_of_one
from tests.conftest import pose
from tests.strategies import options_for

SHAPE = (2, 4, 3, 3)


def enter(name, request, shape=SHAPE, dtype="f8", **parameters):
    return name, make_plan(request, shape, np.dtype(dtype)), Inputs(**parameters)


def compare(entries, values):
    return compare_norms([(name, pose(plan, values, inputs)) for name, plan, inputs in entries])


EVERY = [enter(name, Request(name, **options_for(name, SHAPE))) for name in NORMS]


def shares_over_batch(plan):
    """Whether two values of one group, or window, differ in their place along the batch axis: cell by cell."""
    if plan.spec.window is not None:
        return plan.grid.axes[0] == plan.grid.layout.batch and plan.spec.window.length > 1
    groups = plan.grid.locate_groups(np.ix_(*map(np.arange, plan.grid.shape)))
    along = np.moveaxis(groups, plan.grid.layout.batch, 0)
    return any(np.intersect1d(along[0], other).size > 0 for other in along[1:])


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: entry[0])
def test_a_norm_depends_on_the_batch_where_its_groups_hold_several_samples(entry):
    assert depends_on_batch(entry[1]) == shares_over_batch(entry[1])


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("request_", "shape", "works", "reason", "becomes"),
    [
        pytest.param(Request("bn"), (4, 3), False, "a group of one value: its variance is 0; evaluation needs running statistics", None, id="bn of NC"),
        pytest.param(Request("zscore"), (4, 3), False, "a group of one value: its variance is 0", None, id="zscore, which has no running statistics"),
        pytest.param(Request("bn"), (4, 3, 2, 2), True, None, "in", id="bn of NCHW is in"),
        pytest.param(Request("bn", eps=0.0), (4, 3, 2, 2), True, None, "in:eps=0", id="with its eps"),
        pytest.param(Request("in"), (4, 3), False, "a group of one value: its variance is 0", None, id="in of NC, whatever the batch"),
        pytest.param(Request("bn", axes="N", ddof=1), (4, 3, 2), False, "a group of 1 against ddof 1: it has no variance; evaluation needs running statistics", None, id="ddof"),
        pytest.param(Request("minmax"), (4, 3), False, "a group of one value, whose range is 0", None, id="minmax"),
        pytest.param(Request("ln"), (4, 3), True, None, None, id="ln"),
        pytest.param(Request("gn", groups=2, layout="NL", axes="NL"), (3, 4), True, None, None, id="gn over the batch"),
        pytest.param(Request("ln"), (), None, None, None, id="no batch axis"),
    ],
)  # fmt: skip
def test_batch_of_one(request_, shape, works, reason, becomes):
    found = try_batch_of_one(make_plan(request_, shape, np.dtype("f8")))
    assert (found.works, found.reason, found.becomes) == (works, reason, becomes)


@pytest.mark.parametrize("shape", [(), (50,), (7, 1000), (2, 3, 4, 5, 6, 7)], ids=str)
def test_the_mean_and_the_variance_of_a_whole_tensor_are_rounded_once(shape):
    values = np.random.default_rng(4).normal(1e6, 2, shape)
    exact = list(map(Fraction, values.reshape(-1).tolist()))
    mean = sum(exact) / len(exact)
    var = sum((x - mean) ** 2 for x in exact) / len(exact)
    assert measure_whole(values) == (float(mean), float(var))


@pytest.mark.parametrize(
    ("values", "mean", "var"),
    [
        pytest.param(np.zeros((0, 3)), np.nan, np.nan, id="no values"),
        pytest.param(np.array([1e300, -1e300, 1e300]), 1e300 / 3, np.inf, id="squares beyond float64"),
        pytest.param(np.array([1e200, 1.0, -1e200]), 1 / 3, np.inf, id="what cancels"),
        pytest.param(np.array([np.inf, 1.0]), np.inf, np.nan, id="an infinity"),
        pytest.param(np.array([np.inf, -np.inf]), np.nan, np.nan, id="both infinities"),
    ],
)
def test_the_mean_and_the_variance_of_what_is_not_finite(values, mean, var):
    np.testing.assert_array_equal(measure_whole(values), (mean, var))
