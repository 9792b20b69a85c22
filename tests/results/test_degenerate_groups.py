from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.errors import DegenerateError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("x", "norm", "options", "kinds", "message"),
    [
        pytest.param([[1.0], [2.0]], "ln", {}, ["single"],
                     "group n=0 (and 1 more group) holds a single value", id="single"),
        pytest.param([[5.0, 5.0], [1.0, 2.0], [3.0, 3.0]], "ln", {}, ["constant"],
                     "group n=0 (and 1 more group) is constant", id="constant"),
        pytest.param([[0.0, 0.0], [1.0, 2.0]], "lp", {}, ["zero"], "group n=0 is all zeros", id="zero"),
        pytest.param([[1.0, 2.0], [NAN, 2.0]], "ln", {}, ["nan"], "group n=1 holds NaN", id="nan"),
        pytest.param([[1.0, 2.0], [INF, 2.0]], "ln", {}, ["infinite"], "group n=1 holds an infinity", id="inf"),
        pytest.param([[NAN, 2.0], [INF, 3.0]], "bn", {}, ["nan", "infinite"], "group c=0 holds NaN", id="both"),
        pytest.param([[1.0, 2.0]], "ln", {"ddof": 2}, ["single"], "group n=0 has 2 values against ddof 2", id="ddof"),
        pytest.param(np.zeros((0, 2)), "bn", {}, ["empty"], "group c=0 (and 1 more group) holds no values", id="empty"),
        pytest.param(np.zeros((2, 0)), "bn", {}, ["empty"], "the tensor (2, 0) has no groups", id="no groups"),
        pytest.param([7.0], "bn", {}, ["single"], "the only group holds a single value", id="only"),
        pytest.param([[1.0, 2.0]], "ln", {"gamma": NAN}, ["output"],
                     "group n=0 has normalized values that are not finite in float64", id="gamma is nan"),
        pytest.param([[1.0, 2.0]], "ln", {"gamma": 1e9, "dtype": "float16"}, ["output"],
                     "group n=0 has normalized values that are not finite in float16", id="beyond the dtype"),
        pytest.param([[1.0, 2.0]], "lrn", {"alpha": -1e6}, ["output"], "group n=0 c=0 (and 1 more group) has", id="negative alpha"),
        pytest.param([[1.0, 2.0], [1.0, 3.0]], "minmax", {}, ["constant"],
                     "group c=0 is constant: its range is 0 and its normalized values 0", id="constant, minmax"),
        pytest.param([[0.0, 2.0], [0.0, 3.0]], "maxabs", {}, ["zero"], "group c=0 is all zeros", id="zero, maxabs"),
        pytest.param([1.0, 1.0, 1.0, 1.0, 9.0], "robust", {}, ["constant"],
                     "the only group has the interquartile range 0: its normalized values are x − median", id="robust"),
        pytest.param([1.0, 2.0, NAN, 4.0, 5.0], "robust", {}, ["nan"], "the only group holds NaN", id="nan, robust"),
        pytest.param([1.0, 2.0, 3.0, 4.0, 1e9], "robust", {"dtype": "float16"}, ["output"],
                     "the only group has normalized values that are not finite in float16", id="outlier, robust"),
        pytest.param([[1.0, 2.0]], "lp", {"p": -1e-300}, ["zero"], "group n=0 has a length too small for float64: its values are divided by eps", id="p near 0"),
        pytest.param([[0.0, 2.0]], "lp", {"p": -1.0}, ["zero"], "group n=0 holds a 0: its length is 0 and its values are divided by eps", id="negative p"),
        pytest.param([[1.0, NAN]], "lrn", {}, ["nan"], "group n=0 c=1 holds NaN", id="window"),
    ],
)  # fmt: skip
def test_degenerate_groups_are_named_and_counted(x, norm, options, kinds, message):
    result = normalize(x, norm, **options)
    assert [found.kind for found in result.degeneracies] == kinds
    assert result.warnings[0].startswith(message)
    with pytest.raises(DegenerateError):
        result.require_sound()


def test_a_column_whose_interquartile_range_is_0_is_only_centred():
    result = normalize([1.0, 5.0, 5.0, 5.0, 9.0], "robust")
    np.testing.assert_array_equal(result.normalized, [-4.0, 0.0, 0.0, 0.0, 4.0])
    np.testing.assert_array_equal(result.iqr, 0.0)
    large = normalize(np.array([1.0, 5.0, 5.0, 5.0, 9.0]) * 2.0**1000, "robust").normalized
    np.testing.assert_array_equal(large, np.array([-4.0, 0.0, 0.0, 0.0, 4.0]) * 2.0**1000)
