"""Rows in another order, and parts left out, of tensors of which the first groups alone would show nothing of it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, normalize
from normcli.identifying.faults import case_sampling
from tests.marks import sampled
from tests.plants.faults.order import exchange


@pytest.fixture(params=["every value", "some places of each group"], autouse=True)
def _looked_at(request, monkeypatch):
    """Take few values for many."""
    monkeypatch.setattr(case_sampling, "MOST_VALUES", 1 << 10)
    if request.param != "every value":
        monkeypatch.setattr(case_sampling, "_MOST_WIDE", 1 << 12)


def blank(where):
    def leave_out(y):
        y[where] = 0.0
        return y

    return leave_out


X = np.random.default_rng(7).standard_normal((256, 64)) * 3.0 + 20.0


@pytest.mark.slow
@sampled
@pytest.mark.parametrize(
    ("make", "cause"),
    [
        pytest.param(lambda y: np.roll(y, 1, 0), "rows along n are rolled by 1", id="rolled"),
        pytest.param(lambda y: exchange(y, 0, 3, 250), "n=3 and n=250 are exchanged", id="exchanged"),
        pytest.param(lambda y: y[np.random.default_rng(1).permutation(256)], "253 of 256 rows along n stand elsewhere", id="permuted"),
        pytest.param(blank(slice(200, 220)), "y is 0 for n=200 … 219", id="a part is 0"),
        pytest.param(lambda y: np.where(np.arange(256)[:, None] == 99, y + 5.0, y), "y is right, except for n=99", id="a row is wrong"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_they_are_named(dtype, make, cause):
    x = X.astype(dtype)
    made = make(normalize(x, "ln").normalized.copy()).astype(dtype)
    assert check(made, x, "ln").diagnosis.cause == f"ln differs: {cause}"


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["rms", "minmax", "lp"])
def test_so_they_are_of_norms_without_a_mean_or_a_variance(norm):
    options = {"axes": -1} if norm == "minmax" else {}
    made = np.roll(normalize(X, norm, **options).normalized, 2, 0)
    assert check(made, X, norm, **options).diagnosis.cause == f"{norm} differs: rows along n are rolled by 2"


@pytest.mark.slow
def test_a_part_within_groups_is_told_by_true_indices_or_not_at_all():
    made = blank((slice(None), slice(50, None)))(normalize(X, "ln").normalized.copy())
    assert check(made, X, "ln").diagnosis.cause == "ln differs: y is 0 for c ≥ 50"


@pytest.mark.slow
def test_noise_is_none_of_it(rng):
    made = normalize(X, "ln").normalized + 0.1 * rng.standard_normal(X.shape)
    assert check(made, X, "ln").diagnosis.fault is None
