"""A gamma and a beta that nobody gave: which axes they may run along, and what a fit of them shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying import inquiry
from normcli.identifying.identify import identify
from normcli.identifying.question import Kind, Question
from normcli.identifying.search import norm_search, samples
from normcli.identifying.search.affine_estimate import (
    estimate,
)
from normcli.identifying.search.groups import enumerate_grids

X = np.random.default_rng(0).normal(0.7, 2.0, (12, 5, 4))
GRIDS = list(enumerate_grids(X.shape))


def choose_grid(axes):
    return next(grid for grid in GRIDS if grid.axes == axes and grid.split is None)


def fit(y, axes, most=math.inf, dtype="f8"):
    found = estimate(X, y, np.dtype(dtype), [choose_grid(axes)], most)
    return [(one.affine, one.model, precision) for one, precision in found]


def test_what_no_gamma_and_beta_make_is_not_fitted():
    y = normalize(X, "ln", eps=1e-3).normalized
    for wrong in (y**2, np.where(X.max() == X, y + 1e-6, y), np.random.default_rng(2).normal(size=X.shape)):
        assert not fit(wrong, (2,))
    assert not fit(np.where(X.max() == X, np.nan, y), (2,))


def test_an_eps_that_was_rounded_to_float32_is_fitted_in_float64_alone():
    gamma, eps = np.linspace(0.5, 2.0, 4), float(np.float32(1e-3))
    y = normalize(X, "ln", eps=eps).normalized * gamma
    (_, model, _), *_ = [one for one in fit(y, (2,)) if one[0].scale.shape == (1, 1, 4)]
    assert (model.low, model.high) == (eps, eps)
    short = (normalize(X, "ln", eps=1e-3).normalized * gamma).astype("f4").astype("f8")
    (_, model, _), *_ = [one for one in fit(short, (2,), dtype="f4") if one[0].scale.shape == (1, 1, 4)]
    assert (model.low, model.high) == (1e-3, 1e-3)


@pytest.mark.parametrize("size", [1e-3, 0.01, 1.0])
@pytest.mark.parametrize("eps", [1e-3, 1e-5])
def test_an_eps_far_above_the_variances_is_fitted(size, eps):
    """Where groups are not alike, no gamma does without it."""
    x = size * X * np.linspace(0.1, 1.0, 12)[:, None, None]
    y = normalize(x, "ln", eps=eps).normalized * np.linspace(0.5, 2.0, 4)
    found = list(estimate(x, y, np.dtype("f8"), [choose_grid((2,))]))
    assert next(one.model.low for one, _ in found if one.affine.scale.shape == (1, 1, 4)) == eps


@pytest.mark.slow
def test_gamma_is_found_of_samples_larger_than_what_is_compared(monkeypatch):
    for module in (inquiry, samples, norm_search):
        monkeypatch.setattr(module, "MOST_SAMPLED", 1 << 11)
    rng = np.random.default_rng(9)
    x = rng.normal(size=(2, 40, 60)).astype("f4")
    y = normalize(x, "ln").normalized * rng.normal(1.0, 0.3, 60).astype("f4")
    found = identify(Question(x, y))
    assert (found.kind, found.matches[0].norm, found.matches[0].axes) == (Kind.NORM, "ln", (2,))
