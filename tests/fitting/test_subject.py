"""What statistics are of: which names they keep, and for which tensors they can be merged."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.fitting.subject import choose_subject, is_dtype_name, require_order
from normcli.norms.request import Request
from normcli.tensors.tensor import Tensor


def test_columns_have_names_where_they_are_no_samples():
    tensor = Tensor(np.arange(6.0).reshape(3, 2), "x.npy", columns=("a", "b"))
    assert choose_subject(Request("bn"), tensor).columns == ("a", "b")
    assert choose_subject(Request("bn", layout="CN"), tensor).columns is None


@pytest.mark.parametrize(
    ("first", "other", "is_refused"),
    [
        pytest.param("ncl", "ncl", False, id="the same"),
        pytest.param("ncl", "nlc", True, id="another order"),
        pytest.param("nlc", "ncl", True, id="another order, the other way round"),
        pytest.param(None, "nlc", True, id="not in the usual order"),
        pytest.param("ncl", None, False, id="the other has no names"),
        pytest.param("ncl", "nc", False, id="of another rank"),
        pytest.param("ncl", "nab", False, id="other names"),
        pytest.param("nlc", ("n", "n", "n"), False, id="names that make no layout"),
    ],
)
def test_axes_of_one_name_stand_at_one_place(first, other, is_refused):
    subject = choose_subject(
        Request("zscore", axes=(0,), layout=first and first.upper()), Tensor(np.ones((2, 3, 3)), "x")
    )
    expected = (
        pytest.raises(DataError, match=rf"^y has the axes n, {other[1:2]}, .; ")
        if is_refused
        else nullcontext()
    )
    with expected:
        require_order(subject, other and tuple(other), "y")


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


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("float32", True), ("bool", True), ("uint8", True), (">f4", False), ("f4", False), ("complex64", False), ("x", False)],
)  # fmt: skip
def test_dtypes_have_one_name_in_a_file(name, is_one):
    assert is_dtype_name(name) == is_one


def test_what_has_no_samples_is_refused():
    with pytest.raises(
        UsageError, match="^zscore of a tensor without axes has no samples: there is nothing to fit$"
    ):
        choose_subject(Request("zscore", axes=()), Tensor(np.array(1.0), "x"))
    for start in ({"u": (1.0, 2.0)}, {"v": (1.0,)}, {"iterations": 3}):
        with pytest.raises(UsageError, match="^sn has the largest singular value of a whole matrix"):
            choose_subject(Request("sn", axes=(0, 1), **start), Tensor(np.ones((4, 3)), "x"))
