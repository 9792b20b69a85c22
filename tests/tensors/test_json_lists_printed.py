"""Arrays as they are printed, pasted behind --data."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.errors import DataError
from normcli.tensors.formats.json_lists import read_printed

WORDS = """x = [
    # first sample
    [[1, 2],   # a word
     [5, 6]],
]"""


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        pytest.param(str(np.arange(4).reshape(2, 2)), "[[0,1],[2,3]]", id="numpy"),
        pytest.param("[[1,2],[3,4],]", "[[1,2],[3,4]]", id="a comma at the end"),
        pytest.param("array([1. , .5, 1e-3], dtype=float32)", "[1.0,0.5,0.001]", id="repr"),
        pytest.param("tensor([[1., nan], [-inf, +2]], device='cpu')", '[[1.0,"nan"],["-inf",2]]', id="torch"),
        pytest.param("tensor(3.)", "3.0", id="a scalar of torch"),
        pytest.param("[np.float64(1.5), np.float64(2.0)]", "[1.5,2.0]", id="scalars of numpy"),
        pytest.param("np.float64(1.5)", "1.5", id="a scalar of numpy"),
        pytest.param("array([ True, False])", "[true,false]", id="booleans"),
        pytest.param("Parameter containing:\ntensor([2.], requires_grad=True)", "[2.0]", id="a parameter"),
        pytest.param("array([[0, 1]], shape=(1, 2))", "[[0,1]]", id="a shape"),
        pytest.param(WORDS, "[[[1,2],[5,6]]]", id="comments"),
    ],
)
def test_what_is_printed_is_spelled_as_json(text, spelled):
    assert read_printed(text, "--data").json == spelled


@pytest.mark.parametrize("text", ["[1,,2]", "[,1]", "[a b]", "[[1 2]", "1 2", '["1"]', "[1] [2]x", "f([1](2))"])
def test_anything_else_is_none(text):
    assert read_printed(text, "--data") is None


@pytest.mark.parametrize("text", ["[0 1 2 ... 7 8 9]", "array([0, 1, ..., 998], shape=(999,))"])
def test_numbers_that_were_left_out_are_missed(text):
    with pytest.raises(DataError, match="--data leaves out numbers"):
        read_printed(text, "--data")


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("array([1., 2.], dtype=float32)", "float32"),
        ("tensor([1, 2], dtype=torch.uint8)", "uint8"),
        ("tensor([1., 2.], device='cuda:0', dtype=torch.float16, requires_grad=True)", "float16"),
        ("tensor([1.0, 2.0], dtype=torch.bfloat16)", "bfloat16"),
    ],
)
def test_the_dtype_that_is_printed_counts(text, dtype):
    assert read_printed(text, "--data").dtype == find_type(dtype)


@pytest.mark.parametrize("number", ["1.+0.j", "1."])
def test_other_dtypes_are_refused(number, normcli):
    ran = normcli("zscore", "--data", f"tensor([{number}], dtype=torch.complex64)")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
