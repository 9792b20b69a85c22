"""Arrays as they are printed, pasted behind --data."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.formats.printed_lists import spell_as_json

WORDS = """x = [
    # first sample
    [[1, 2],   # a word
     [5, 6]],
]"""


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        pytest.param("[[6 3]\n [7 4]]", "[[6,3],[7,4]]", id="numpy"),
        pytest.param("[[1,2],[3,4],]", "[[1,2],[3,4]]", id="a comma at the end"),
        pytest.param("array([1. , .5, 1e-3], dtype=float32)", "[1.0,0.5,0.001]", id="repr"),
        pytest.param(
            "tensor([[1., nan], [-inf, +2]], device='cuda:0')", '[[1.0,"nan"],["-inf",2]]', id="torch"
        ),
        pytest.param(WORDS, "[[[1,2],[5,6]]]", id="comments"),
    ],
)
def test_what_is_printed_is_spelled_as_json(text, spelled):
    assert spell_as_json(text, "--data") == spelled


@pytest.mark.parametrize("text", ["[1,,2]", "[,1]", "[a b]", "[[1 2]", "1 2", '["1"]', "[1] [2]x", "f([1](2))"])
def test_anything_else_is_none(text):
    assert spell_as_json(text, "--data") is None


def test_numbers_that_were_left_out_are_missed():
    with pytest.raises(DataError, match="--data leaves out numbers"):
        spell_as_json("[0 1 2 ... 7 8 9]", "--data")


def test_numpys_own_print_is_read_as_its_array(normcli):
    means = normcli("zscore", "--data", str(np.arange(12).reshape(6, 2)), "--print", "mean").lines
    assert means == ["5.0", "6.0"]
    assert normcli("bn", "--data", "[[1 2] [3 4", "--print", "mean").err.count("is not valid JSON") == 1
