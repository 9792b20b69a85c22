"""What statistics are of: which names they keep, and for which tensors they can be merged."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.fitting.subject import choose_subject, require_order
from normcli.norms.request import Request
from normcli.tensors.tensor import Tensor


def test_columns_have_names_where_they_are_no_samples():
    tensor = Tensor(np.arange(6.0).reshape(3, 2), "x.npy", columns=("a", "b"))
    assert choose_subject(Request("bn"), tensor).columns == ("a", "b")
    assert choose_subject(Request("bn", layout="CN"), tensor).columns is None


def choose_along(names):
    """Return the subject of a tensor whose axes have names, or None."""
    return choose_subject(
        Request("zscore", axes=(0,), layout=names and names.upper()), Tensor(np.ones((2, 3, 3)), "x")
    )


@pytest.mark.parametrize(
    ("first", "other"),
    [
        pytest.param("ncl", "ncl", id="the same"),
        pytest.param("ncl", None, id="the other has no names"),
        pytest.param("ncl", "nc", id="of another rank"),
        pytest.param("ncl", "nab", id="other names"),
        pytest.param("nlc", ("n", "n", "n"), id="names that make no layout"),
    ],
)
def test_axes_that_may_be_the_same_are_taken(first, other):
    require_order(choose_along(first), other and tuple(other), "y")


@pytest.mark.parametrize(("first", "other"), [("ncl", "nlc"), ("nlc", "ncl"), (None, "nlc")])
def test_axes_of_one_name_stand_at_one_place(first, other):
    with pytest.raises(DataError, match=rf"^y has the axes n, {other[1]}, {other[2]}; "):
        require_order(choose_along(first), tuple(other), "y")


@pytest.mark.parametrize(
    ("norm", "asked", "told"),
    [
        pytest.param("ln", {}, r"^ln has statistics of each sample \(along n\): there is nothing to fit; --axes", id="samples"),
        pytest.param("lrn", {"axes": (1,)}, r"^lrn has statistics of each sample \(along n\): there is nothing to fit$", id="windows"),
        pytest.param("lp", {"axes": (0,), "p": 3.0}, "^fit has lengths of p = 2 and inf, not of p = 3$", id="lengths"),
    ],
)  # fmt: skip
def test_what_cannot_be_gathered_is_refused(norm, asked, told):
    with pytest.raises(UsageError, match=told):
        choose_subject(Request(norm, **asked), Tensor(np.ones((2, 3, 3, 4)), "x"))


def test_what_has_no_samples_is_refused():
    with pytest.raises(
        UsageError, match="^zscore of a tensor without axes has no samples: there is nothing to fit$"
    ):
        choose_subject(Request("zscore", axes=()), Tensor(np.array(1.0), "x"))
