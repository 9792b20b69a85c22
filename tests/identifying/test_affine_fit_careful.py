"""Whether some gamma and beta give a tensor of half precision, each value with its own last roundings alone."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.models.divisor_fit import Model
from normcli.identifying.models.standards import standardize
from normcli.identifying.sampling import take_groups
from normcli.identifying.search.affine_fit import Target, fit_carefully
from normcli.identifying.search.affine_step import ESTIMATED, AffineStep
from normcli.identifying.search.groups import Hypothesis, Sample, enumerate_grids
from normcli.norms.divisors import DEVIATION
from normcli.norms.rules import EpsMode

HALF = np.dtype("f2")
X = np.random.default_rng(0).normal(0.7, 2.0, (16, 6)).astype(HALF).astype("f8")
XHAT = normalize(X, "ln", eps=1e-5).normalized
GAMMA, BETA = np.linspace(0.5, 2.0, 6), np.linspace(-1.0, 1.0, 6)


def fit(y, *, shifts=True, eps=1e-5):
    grid = next(grid for grid in enumerate_grids(X.shape) if grid.axes == (1,))
    sample = Sample(grid, np.arange(16), standardize(take_groups(grid, X), DEVIATION), take_groups(grid, y))
    near = AffineStep(ESTIMATED, GAMMA[None], BETA[None] if shifts else None)
    target = Target(X, y, (1,), HALF, shifts)
    return fit_carefully(Hypothesis(sample, near, Model(DEVIATION, EpsMode.INSIDE)), eps, target)


@pytest.mark.parametrize("shifts", [True, False])
@pytest.mark.parametrize("rounds_to", [None, HALF])
def test_a_gamma_and_beta_are_found_whether_x_was_rounded_first_or_not(shifts, rounds_to):
    before = XHAT if rounds_to is None else XHAT.astype(HALF).astype("f8")
    y = (before * GAMMA + (BETA if shifts else 0.0)).astype(HALF).astype("f8")
    found = fit(y, shifts=shifts)
    np.testing.assert_allclose(found.scale.ravel(), GAMMA, rtol=2e-3)
    assert (found.shift is None) == (not shifts)
    if shifts:
        np.testing.assert_allclose(found.shift.ravel(), BETA, atol=2e-3)
    assert (found.way, found.rounds_to) == (ESTIMATED, rounds_to)


@pytest.mark.parametrize("factor", [1.01, 0.99])
def test_a_group_that_is_moved_as_a_whole_has_none(factor):
    moved = XHAT.copy()
    moved[3] *= factor
    assert fit((moved * GAMMA + BETA).astype(HALF).astype("f8")) is None


def test_values_that_are_not_finite_have_none():
    y = (XHAT * GAMMA + BETA).astype(HALF).astype("f8")
    assert fit(y) is not None
    y[2, 3] = np.nan
    assert fit(y) is None
