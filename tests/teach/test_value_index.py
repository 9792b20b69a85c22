"""A value named on the command line is the one that is meant; a bad name is answered in a line."""

from __future__ import annotations

import pytest

from normcli.errors import UsageError
from normcli.norms.layout import make_layout
from normcli.teach.value_index import format_index, parse_index

SHAPE = (2, 3, 4, 5)
NCHW = make_layout("NCHW", 4)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("0,1,2,3", (0, 1, 2, 3)),
        (" (0, 1, 2, 3) ", (0, 1, 2, 3)),
        ("-1,-3,-4,-1", (1, 0, 0, 4)),
        ("−1,0,0,0", (1, 0, 0, 0)),
        ("w=3,c=1,n=0,h=2", (0, 1, 2, 3)),
        ("n = 0, c = 1, h = 2, w = 3", (0, 1, 2, 3)),
    ],
)
def test_names(text, index):
    assert parse_index(text, SHAPE, NCHW) == index


def test_axes_without_letters_are_named_by_number():
    layout = make_layout(None, 1)
    assert parse_index("axis0=2", (3,), layout) == (2,)
    assert format_index((2,), layout) == "axis0=2"


@pytest.mark.parametrize("text", ["", "()", " "])
def test_a_tensor_without_axes_has_one_value(text):
    assert parse_index(text, (), make_layout(None, 0)) == ()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0,1,2", r"has 3 numbers; a tensor of shape \(2, 3, 4, 5\) takes 4, one for each of n, c, h, w"),
        ("2,0,0,0", r"2 is outside axis n, whose length is 2: it may be 0 to 1 \(or -2 to -1\)"),
        ("0,0,0,-6", "-6 is outside axis w, whose length is 5"),
        ("0,a,0,0", "'a' is no whole number along axis c"),
        ("n=0,c=1", "leaves h, w open"),
        ("n=0,c=1,h=0,w=0,n=1", "names axis n twice"),
        ("n=0,c=1,h=0,x=0", "there is no axis 'x'; the axes are n, c, h, w"),
        ("n=0,c=1,h=0,3", "'3' names no axis, as the others do"),
    ],
)
def test_what_is_no_value_is_answered_in_a_line(text, told):
    with pytest.raises(UsageError, match=told):
        parse_index(text, SHAPE, NCHW)


def test_an_empty_axis_has_nothing():
    with pytest.raises(UsageError, match="whose length is 0: it may be nothing"):
        parse_index("0,0", (0, 3), make_layout("NC", 2))
