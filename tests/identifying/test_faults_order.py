"""Right values that stand at other places are named by how they were moved."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from tests.identifying.faulty import ask, draw, name, standardize

X = draw((9, 9, 16))
Y = standardize(X)


@pytest.mark.slow
def test_an_order_says_which_axis_and_by_how_much():
    assert name("ln", X, np.roll(Y, -2, 1), layout="NLC")[1] == ["rows along l are rolled by -2"]
    assert name("ln", X, Y[[0, 1, 6, 3, 4, 5, 2, 7, 8]], layout="NLC")[1] == ["n=2 and n=6 are exchanged"]


def test_memory_of_another_layout_is_named():
    x = draw((4, 6, 5, 5))
    read = np.ascontiguousarray(x.reshape(4, 5, 5, 6).transpose(0, 3, 1, 2))
    y = standardize(read, (0, 2, 3)).transpose(0, 2, 3, 1).reshape(x.shape)
    assert name("bn", x, y)[0] == ["order-memory"]


def test_rows_that_are_alike_have_no_order():
    x = np.tile(draw((1, 16)), (9, 1))
    assert ask("ln", x, standardize(x)) == ()


@pytest.mark.parametrize(("norm", "shape", "axes"), [("bn", (20, 4, 60, 60), (0, 2, 3)), ("ln", (300, 300), 1)])
def test_an_order_that_the_first_groups_do_not_show_is_named_without_a_request(norm, shape, axes):
    """Groups of 72,000 values, and rows of which the first is the last of another part."""
    x = draw(shape, mean=0.0)
    y = np.roll(standardize(x, axes), 1, 0).astype("f4")
    told = normcli.identify(y, x).diagnosis
    assert (told.fault, told.cause) == ("order-rolled", f"y is {norm}, but rows along n are rolled by 1")


def test_rows_that_the_first_groups_take_for_exchanged_are_looked_for_in_all():
    x = draw((4, 3, 200, 200), mean=0.0)
    y = np.roll(standardize(x, (2, 3)), 1, 0).astype("f4")
    assert normcli.check(y, x, "in").diagnosis.fault == "order-rolled"
