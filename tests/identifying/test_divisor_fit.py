"""What the bounds of groups' factors say: which eps, ddof and p all groups allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.identifying.models.divisor_fit import choose_eps, fit_models
from normcli.identifying.models.standards import standardize
from normcli.norms.divisors import DEVIATION, RANGE, ROOT_MEAN_SQUARE
from normcli.norms.rules import EpsMode

ROWS = np.random.default_rng(0).normal(0.7, 2.0, (6, 9)) * np.linspace(0.5, 2.0, 6)[:, None]
WIDTH = 2.0**-26
"""How well factors are known."""


def fit(divisor, factor, rows=ROWS, width=WIDTH):
    standard = standardize(rows, divisor)
    factors = np.broadcast_to(factor(standard), standard.size.shape)
    return list(fit_models(standard, factors * (1.0 - width), factors * (1.0 + width)))


def test_without_an_eps_both_places_fit_and_what_is_too_small_to_show():
    inside, outside = fit(DEVIATION, lambda s: 1.0)
    size = standardize(ROWS, DEVIATION).size.min()
    assert (inside.eps_mode, outside.eps_mode) == (EpsMode.INSIDE, EpsMode.OUTSIDE)
    assert inside.low == outside.low == 0.0
    assert inside.high == pytest.approx(2.0 * WIDTH * size**2, rel=1e-6)
    assert outside.high == pytest.approx(WIDTH * size, rel=1e-6)
    assert inside.floor == outside.floor == size


def test_a_range_is_divided_by_as_it_is():
    (model,) = fit(RANGE, lambda s: 1.0)
    assert (model.divisor, model.eps_mode, model.low, model.high) == (RANGE, EpsMode.FLOOR, 0.0, 0.0)
    for factor in (1.0 + 1e-6, 1.0 - 1e-6):
        assert not fit(RANGE, lambda s, factor=factor: factor)


@pytest.mark.parametrize(
    ("low", "high", "preferred", "eps"),
    [
        (9e-6, 1e-3, None, 1e-5),
        (1e-3, 1e-3, None, 1e-3),
        (9e-6, 2e-5, 1.2e-5, 1.2e-5),
        (0.0, 0.0, 1e-12, 0.0),
        (0.0123, 0.0127, None, 0.0125),
        (0.24, 0.36, None, 0.3),
        (0.14, math.inf, None, 0.14),
        (1 / 3, 1 / 3, None, 1 / 3),
    ],
)
def test_the_simplest_eps_between_bounds_is_chosen(low, high, preferred, eps):
    assert choose_eps(low, high, preferred) == eps


def test_a_variance_that_may_cancel_leaves_the_likelier_eps_possible():
    """E[x²] − E[x]² of float32 is off by some 2⁻²³ · E[x]²: a mean of 30 spreads hides an eps below 10⁻⁴ of the variance."""
    standard = standardize(ROWS - ROWS.mean(1, keepdims=True) + 60.0, DEVIATION)
    for eps, likelier in ((2e-4, True), (1e-5, False), (0.02, False)):
        shown = standard.size / np.sqrt(standard.size**2 + eps)
        bounds = shown * (1.0 - WIDTH / 16.0), shown * (1.0 + WIDTH / 16.0)
        (exact, *_), (blurred, *_) = (list(fit_models(standard, *bounds, n)) for n in (0.0, 2.0**-23))
        assert (exact.low, exact.high) == pytest.approx((eps, eps), rel=0.02)
        if likelier:  # between 0 and 2⁻²³ · 60² more: any
            assert (blurred.low, blurred.high) == (0.0, pytest.approx(eps + 2.0**-23 * 3600.0, rel=0.01))
        else:
            assert blurred == exact


def test_a_mean_of_squares_does_not_cancel():
    standard = standardize(ROWS, ROOT_MEAN_SQUARE)
    shown = standard.size / np.sqrt(standard.size**2 + 2e-4)
    bounds = shown * (1.0 - WIDTH), shown * (1.0 + WIDTH)
    assert list(fit_models(standard, *bounds)) == list(fit_models(standard, *bounds, 2.0**-20))
