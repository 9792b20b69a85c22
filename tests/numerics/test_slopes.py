"""Derivatives against exact rational ones: each way in which they are decided, once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import backward
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.exact_slopes import solve_exactly, sum_powers
from normcli.numerics.pairs import Pair
from normcli.numerics.slope_sums import Rows, Sums, find_deviations, needs_decimals
from normcli.numerics.slopes import (
    _invert,
    differentiate,
    find_p,
    find_shares,
    round_known,
    solve_slopes,
)
from tests.results.test_backward import require_exact

RNG = np.random.default_rng(29)
X, DY = RNG.normal(1.0, 2.0, (4, 6)), RNG.normal(size=(4, 6))
GAMMA = RNG.normal(1.0, 0.5, 6)
FAR = X * 10.0 ** RNG.integers(-60, 60, X.shape)
ALIKE = 1e9 + np.rint(X)  # sums cancel, and fractions decide
SOME_ZEROS = np.where(RNG.random(X.shape) < 0.3, 0.0, X)


@pytest.mark.parametrize(
    ("x", "norm", "options"),
    [
        pytest.param(X, "ln", {"gamma": GAMMA}, id="about the mean"),
        pytest.param(X, "bn", {"gamma": GAMMA, "eps": 0.5, "eps_mode": "outside"}, id="eps outside of the root"),
        pytest.param(ALIKE, "ln", {"gamma": GAMMA}, id="sums that cancel"),
        pytest.param(FAR, "ln", {}, id="far apart"),
        pytest.param(SOME_ZEROS, "rms", {"eps": 0.0}, id="about zero"),
        pytest.param(SOME_ZEROS, "lp", {"p": 1}, id="absolute values"),
        pytest.param(SOME_ZEROS, "lp", {"p": 3}, id="cubes"),
        pytest.param(X, "lp", {"p": 0.5}, id="square roots"),
        pytest.param(1e200 * X, "lp", {"p": 1.25}, id="decimals"),
        pytest.param(np.rint(X), "lp", {"p": np.inf}, id="the largest, of which there are several"),
        pytest.param(np.ones((4, 6)), "ln", {"eps": 0.0}, id="without a derivative"),
        pytest.param(X.reshape(2, 6, 2), "lrn", {"size": 3}, id="windows"),
        pytest.param(1e200 * X.reshape(2, 6, 2), "lrn", {"size": 3, "alpha": 1.0}, id="windows in fractions"),
    ],
)  # fmt: skip
def test_every_way_is_exact(x, norm, options):
    require_exact(backward(x, DY.reshape(x.shape), norm, **options))
    if norm != "lrn":
        mask = np.arange(x.shape[-1]) != 2
        require_exact(backward(x, DY, norm, **options, mask=mask))


EPS_MODES = {
    "inside": ("ln", {"eps_mode": "inside"}),
    "outside": ("ln", {"eps_mode": "outside"}),
    "floor": ("lp", {"like": "torch"}),
    "square-floor": ("lp", {"like": "tensorflow", "axes": (1,)}),
}


@pytest.mark.parametrize("eps_mode", EPS_MODES)
@pytest.mark.parametrize("eps", [1e-5, 4.0, 1e9], ids=["small", "as large", "large"])
@pytest.mark.parametrize("x", [X, ALIKE, FAR], ids=["ordinary", "that cancel", "far apart"])
def test_every_eps_is_exact(x, eps, eps_mode):
    norm, options = EPS_MODES[eps_mode]
    found = backward(x, DY, norm, eps=eps, **options)
    assert found.plan.spec.eps_mode == eps_mode
    require_exact(found)


@pytest.mark.parametrize("eps", [1e-5, 0.0])
@pytest.mark.parametrize("var", [2.0, 1e-200, 1e-290, 1e290, 5e-324])
def test_given_variances_of_any_size_are_divided_by(var, eps):
    require_exact(backward(X, DY, "bn", running_mean=0.5, running_var=var, eps=eps, gamma=GAMMA))


@pytest.mark.parametrize(("var", "dx"), [(0.0, np.inf), (np.inf, 0.0), (np.nan, np.nan)])
def test_given_variances_that_no_group_has(var, dx):
    found = backward(X, np.ones(X.shape), "bn", running_mean=0.5, running_var=var, eps=0.0).dx
    np.testing.assert_array_equal(found, np.full(X.shape, dx))


NORMS = [
    ("ln", {}),
    ("ln", {"eps": 0.0, "ddof": 1}),
    ("rms", {}),
    *(("lp", {"p": p}) for p in (0, 0.5, 1, 3, np.inf, -np.inf, -1.5)),
]


def solve_groups(norm, options):
    """Return the rows of X and DY, less a shift where values are centred, and the sums and slopes of both."""
    plan = make_plan(Request(norm, axes=(1,), **options), X.shape, X.dtype)
    shift = np.full((4, 1), 1.25) if norm == "ln" else None
    rows = Rows(find_deviations(X, None, shift), DY, None, None)
    sums = Sums(4, find_p(plan))
    sums.add(np.arange(4), rows)
    slopes = solve_slopes(plan, sums)
    powers = [
        sum_powers(list(map(abs, map(Fraction, x))), sums.p) if needs_decimals(sums.p) else None for x in X
    ]
    exact = [solve_exactly(plan, sums, i, powers[i]) for i in range(4)]
    return plan, rows, slopes, exact


@pytest.mark.parametrize(("norm", "options"), NORMS)
def test_pairs_decide_ordinary_values_within_their_bounds(norm, options):
    plan, rows, slopes, exact = solve_groups(norm, options)
    wide = slopes.map(lambda a: a[:, None])
    found = [
        (
            differentiate(rows, wide, None, find_p(plan)),
            lambda slope, row: slope.differentiate(row, Fraction(1)),
        )
    ]
    if find_p(plan) == 2.0:
        found.append((find_shares(rows, wide), lambda slope, row: slope.find_shares(row)))
    for derivatives, calculate in found:
        _, undecided = round_known(derivatives, X.dtype)
        assert not undecided.any()
        for i, slope in enumerate(exact):
            expected = calculate(slope, rows.map(lambda a, i=i: np.broadcast_to(a, X.shape)[i : i + 1]))
            for j, value in enumerate(expected):
                pair = sum(Fraction(part[i, j]) for part in derivatives.value)
                assert abs(pair - value) <= Fraction(derivatives.error[i, j]) + abs(value) / 2**95
                assert derivatives.error[i, j] <= 2.0**-70


def test_the_inverse_of_0_and_of_infinity_has_no_low_part():
    with np.errstate(all="ignore"):
        inverse = _invert(Pair(np.array([np.inf, 0.0, 4.0]), np.zeros(3)))
    np.testing.assert_array_equal(inverse, ([0.0, np.inf, 0.25], [0.0, 0.0, 0.0]))
