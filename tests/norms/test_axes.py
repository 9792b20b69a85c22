"""Which axes are reduced, where nobody says so and where somebody does."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request

F8 = np.dtype("f8")


@pytest.mark.parametrize(
    ("shape", "groups", "message"),
    [
        pytest.param((2, 6), None, r"gn needs groups \(--groups\): .* are 1, 2, 3, 6$", id="none"),
        pytest.param((2, 6), 4, "4 does not divide the length 6 of .* 1; try 1, 2, 3, 6$", id="no divisor"),
        pytest.param((2, 6), 0, "groups 0 does not divide", id="none at all"),
        pytest.param((2, 6), -2, "groups -2 does not divide", id="negative"),
        pytest.param((2, 6), 12, "groups 12 does not divide", id="more than there are"),
        pytest.param((2, 0), None, r"the divisors of 0 \(axis 1\) are none$", id="no channels"),
        pytest.param((2, 2048), None, "512, 1024$", id="more divisors than are listed"),
        pytest.param((2, 2050), None, "205, 410$", id="the next divisor is 1025"),
    ],
)
def test_groups_that_make_no_sense(shape, groups, message):
    with pytest.raises(UsageError, match=message):
        make_plan(Request("gn", groups=groups), shape, F8)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, (0,)),
        ({"rows": (1, 0)}, (0, 1)),
        ({"rows": -1}, (2,)),
        ({"rows": (), "axes": (1, 2)}, ()),
        ({"axes": (1, 2)}, (1,)),
    ],
)
def test_rows_of_a_matrix(options, rows):
    assert make_plan(Request("sn", **options), (3, 4, 2), F8).spec.rows == rows
    assert make_plan(Request("ln"), (3, 4, 2), F8).spec.rows is None


def test_rows_that_are_not_reduced_are_refused():
    with pytest.raises(UsageError, match="rows are of a matrix, which has the axes 1, 2$"):
        make_plan(Request("sn", axes=(1, 2), rows=(0, 1)), (3, 4, 2), F8)


@pytest.mark.parametrize(
    ("request_", "shape", "message"),
    [
        pytest.param(
            Request("lrn"), (4,), "of 1 axis has no channel axis; name it with a layout", id="one axis"
        ),
        pytest.param(Request("gn", groups=1), (), "a tensor of 0 axes has no channel axis", id="none"),
        pytest.param(
            Request("lrn", axes=()), (2, 3), "lrn has a window along one axis, not along 0$", id="no axis"
        ),
        pytest.param(
            Request("gn", groups=1, axes=(0,)), (2, 3), "axes must hold axis 1$", id="not the channel"
        ),
    ],
)
def test_tensors_without_the_axes_that_a_norm_needs(request_, shape, message):
    with pytest.raises(UsageError, match=message):
        make_plan(request_, shape, F8)
