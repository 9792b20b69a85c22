"""Quantiles over many tensors: those of all as one, in any order and split."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.inputs import Selection
from normcli.engine.order import RankedValues, find_quantiles
from normcli.engine.walk import Effort
from normcli.errors import DataError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import solve

OMIT = Selection(omits_nan=True)


def plan_for(x):
    return make_plan(Request("robust", axes=(0, 2)), x.shape, x.dtype)


def hold(plan, measured, x, **options):
    expected = normalize(x, plan.norm.name, axes=(0, 2), **options).statistics
    told = solve(plan, measured).statistics
    assert told.keys() == expected.keys()
    for name, values in expected.items():
        assert told[name].tobytes() == values.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16"])
@pytest.mark.parametrize("cuts", [[1], [5, 6, 30], [30, 6, 5]])
def test_quantiles_of_parts_are_those_of_all(dtype, cuts, rng):
    x = (rng.normal(3, 20, (40, 3, 7)) * 10).astype(dtype)
    parts = np.split(x, sorted(cuts))
    if cuts != sorted(cuts):
        parts.reverse()
    found = find_quantiles(lambda: (RankedValues(plan_for(part), part) for part in parts), Effort(block=50))
    hold(plan_for(x), found, x)


def test_nan_is_left_out_where_it_does_not_count(rng):
    x = rng.normal(size=(40, 3, 7))
    x[::3, 1] = np.nan
    x[:20, 2] = np.nan
    halves = x[:20], x[20:]
    found = find_quantiles(lambda: (RankedValues(plan_for(part), part) for part in halves), selection=OMIT)
    hold(plan_for(x), found, x, nan="omit")


def test_tensors_that_do_not_go_together_are_refused():
    def find(*shapes, dtypes=("float32", "float32")):
        tensors = [np.zeros(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]
        return find_quantiles(lambda: (RankedValues(plan_for(x), x) for x in tensors))

    with pytest.raises(DataError, match=r"\(2, 4, 7\) has 4 groups; there are 3"):
        find((2, 3, 7), (2, 4, 7))
    with pytest.raises(DataError, match="float64 is not of the width"):
        find((2, 3, 7), (2, 3, 7), dtypes=("float32", "float64"))
    with pytest.raises(DataError, match="no tensor"):
        find()
