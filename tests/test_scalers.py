"""Scaling by range, largest value and quartiles: zeros of either sign, and steps that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward, normalize
from normcli.errors import UsageError
from tests.strategies import SCALERS


@pytest.mark.parametrize("norm", SCALERS)
def test_zeros_of_either_sign_have_one_order(norm):
    for x in ([0.0, -0.0, 1.0], [-0.0, 0.0, 1.0]):
        for values in normalize(x, norm).statistics.values():
            assert not np.signbit(values).any()


def test_a_column_of_one_value_is_divided_by_1_and_nothing_else():
    x = np.array([[7.0], [7.0]])
    found = normalize(x, "zscore", no_mean=True)
    assert found.normalized.tolist() == x.tolist()
    assert found.warnings == ("group c=0 has the variance 0: its normalized values are x",)
    assert normalize(x, "zscore", no_scale=True).warnings == ()
    assert normalize(x[:1], "zscore", no_mean=True).warnings == (
        "group c=0 holds a single value: its variance is 0 and its normalized value x",
    )


def test_steps_that_are_left_out_have_no_slope():
    x = np.ones((2, 2))
    with pytest.raises(UsageError, match="no backward pass without one of its steps"):
        backward(x, x, "zscore", no_mean=True)


def test_code_to_paste_has_both_steps(normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
    normcli("fit", "zscore", tmp_path / "x.npy", "--no-mean", "-o", tmp_path / "s.npz", "-q")
    for framework in ("torchvision", "keras"):
        refused = normcli("merge", tmp_path / "s.npz", "--emit", framework)
        assert (refused.code, refused.out) == (2, "")
        assert f"--emit {framework} has both steps; these statistics were fitted for one" in refused.err


@pytest.mark.parametrize(
    ("norm", "options", "message"),
    [
        ("robust", {"quantiles": (90, 10)}, "no two quantiles from 0 to 100"),
        ("robust", {"quantiles": (10, 101)}, "no two quantiles"),
        ("robust", {"quantiles": (10.0001, 90)}, "with up to 3 decimals"),
        ("robust", {"quantiles": "10,90"}, "is not two numbers"),
        ("zscore", {"quantiles": (10, 90)}, "zscore has no option quantiles"),
        ("zscore", {"no_mean": "yes"}, "is not yes or no"),
        ("minmax", {"range": (0, 2), "gamma": 1.0}, "range says what gamma and beta are"),
    ],
)
def test_options_that_make_no_sense(norm, options, message):
    with pytest.raises(UsageError, match=message):
        normalize(np.ones((3, 2)), norm, **options)
