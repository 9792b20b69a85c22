"""Quantiles over many tensors: those of all as one, in any order and split."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.engine.order import RankedValues, find_quantiles
from normcli.errors import DataError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request


def plan_for(x):
    return make_plan(Request("robust", axes=(0, 2)), x.shape, x.dtype)


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
