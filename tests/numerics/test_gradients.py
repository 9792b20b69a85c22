"""KnownGradients against exact rational ones: each way in which they are decided, once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import backward
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.gradients.coefficients import Coefficients, find_p, flatten, solve_coefficients
from normcli.numerics.gradients.in_doubles import (
    SECOND_ORDER,
    U,
    add_rows,
    count_roundings,
    find_shares_in_doubles,
    solve_in_doubles,
)
from normcli.numerics.gradients.in_fractions import solve_exactly, sum_powers
from normcli.numerics.gradients.rows import GradientRows, find_deviations
from normcli.numerics.gradients.sums import GradientSums, needs_decimals
from normcli.numerics.gradients.values import differentiate, find_shares, round_known
from normcli.numerics.pairs import Pair
from tests.numerics.exact_parts import add_up

RNG = np.random.default_rng(29)
X, DY = RNG.normal(1.0, 2.0, (4, 6)), RNG.normal(size=(4, 6))


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
    """Return the rows of X and DY, less a shift where values are centred, and the sums and coefficients of both."""
    plan = make_plan(Request(norm, axes=(1,), **options), X.shape, X.dtype)
    shift = np.full((4, 1), 1.25) if norm == "ln" else None
    rows = GradientRows(find_deviations(X, None, shift), DY, None, None)
    sums = GradientSums(4, find_p(plan))
    sums.add(np.arange(4), rows)
    coefficients = solve_coefficients(plan, sums)
    powers = [
        sum_powers(list(map(abs, map(Fraction, x))), sums.p) if needs_decimals(sums.p) else None for x in X
    ]
    exact = [solve_exactly(plan, sums, i, powers[i]) for i in range(4)]
    return plan, rows, coefficients, exact


@pytest.mark.parametrize(("norm", "options"), NORMS)
def test_pairs_decide_ordinary_values_within_their_bounds(norm, options):
    plan, rows, coefficients, exact = solve_groups(norm, options)
    wide = coefficients.map(lambda a: a[:, None])
    found = [
        (
            differentiate(rows, wide, None, find_p(plan)),
            lambda exact, row: exact.differentiate(row, Fraction(1)),
        )
    ]
    if find_p(plan) == 2.0:
        found.append((find_shares(rows, wide), lambda exact, row: exact.find_shares(row)))
    for derivatives, calculate in found:
        _, undecided = round_known(derivatives, X.dtype)
        assert not undecided.any()
        for i, coefficients in enumerate(exact):
            expected = calculate(coefficients, rows.map(lambda a, i=i: np.broadcast_to(a, X.shape)[i : i + 1]))
            for j, (value, unknown) in enumerate(expected):
                assert unknown <= Fraction(1, 2**250)
                assert (
                    abs(add_up(derivatives.value, (i, j)) - value)
                    <= Fraction(derivatives.error[i, j]) + abs(value) / 2**95
                )
                assert derivatives.error[i, j] <= 2.0**-70


def lay_slopes(steepness, inverse=1.0):
    zero = np.zeros((1, 1))
    nothing = Pair(zero, zero)
    slope, by = Pair(zero + steepness, zero), Pair(zero + inverse, zero)
    return Coefficients(nothing, zero, nothing, zero, slope, by, nothing, None, zero != 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("d", "dy", "gamma", "steepness", "inverse", "unclear"),
    [
        pytest.param(2.0**249, 1.0, 1.0, 1.0, 1.0, False, id="within"),
        pytest.param(2.0**251, 1.0, 1.0, 1.0, 1.0, True, id="a large value"),
        pytest.param(2.0**-251, 1.0, 1.0, 1.0, 1.0, True, id="a small value"),
        pytest.param(1.0, 2.0**251, 1.0, 1.0, 1.0, True, id="a large gradient"),
        pytest.param(1.0, 2.0**-251, 1.0, 1.0, 1.0, True, id="a small gradient"),
        pytest.param(1.0, 2.0, 2.0**251, 1.0, 1.0, True, id="a large gamma"),
        pytest.param(1.0, 2.0, 2.0**-251, 1.0, 1.0, True, id="a small gamma"),
        pytest.param(2.0**-240, 2.0, 1.0, 2.0**-1000, 1.0, True, id="what steepness loses"),
        pytest.param(2.0**-240, 2.0, 1.0, 2.0**-500, 1.0, False, id="what it does not lose"),
        pytest.param(1.0, 4.0, 1.0, 1.0, 2.0**-900, True, id="a small result"),
        pytest.param(1.0, 4.0, 1.0, 1.0, 2.0**1010, True, id="a large result"),
        pytest.param(0.0, 0.0, 1.0, 1.0, 1.0, False, id="zeros"),
    ],
)  # fmt: skip
def test_what_leaves_the_range_of_doubles_is_not_decided(d, dy, gamma, steepness, inverse, unclear, sign):
    one = np.ones((1, 1))
    for signs in ((sign, 1.0, 1.0), (1.0, sign, 1.0), (1.0, 1.0, sign)):
        rows = GradientRows(Pair(signs[0] * d * one, 0.0 * one), signs[1] * dy * one, None, None)
        coefficients = lay_slopes(signs[2] * steepness, inverse)
        with np.errstate(over="ignore", invalid="ignore"):
            found = differentiate(rows, coefficients, None if gamma == 1.0 else gamma * one, 2.0)
        assert found.unclear.tolist() == [[unclear]]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_shares_that_are_lost_are_not_decided(sign):
    one, small = np.ones((1, 1)), 2.0**-240
    for d, dy, inverse, unclear in (
        (small, small, 2.0**-900, True),
        (small, 1.0, 1.0, False),
        (0.0, sign, 1.0, False),
        (1.0, 0.0, 1.0, False),
    ):
        rows = GradientRows(Pair(d * one, 0.0 * one), sign * dy * one, None, None)
        found = find_shares(rows, lay_slopes(1.0, inverse))
        assert found.unclear.tolist() == [[unclear]]


@pytest.mark.parametrize("p", [2.0, 1.0, 0.0, np.inf, -np.inf, 3.0])
def test_sums_of_parts_are_merged_exactly(p):
    x, dy = np.rint(X), np.where(X > 1.0, DY, 1e300)
    dy[3, 5], x[2, 1], x[1, 4] = np.inf, 2.0**-600, 0.0
    whole, first, second = (GradientSums(4, p) for _ in range(3))
    for sums, part in ((whole, slice(None)), (first, slice(2)), (second, slice(2, None))):
        sums.add(np.arange(4), GradientRows(find_deviations(x[:, part], None, None), dy[:, part], None, None))
    first.merge(second)
    for name in ("totals", "powers", "gradients", "products"):
        mine, other = (getattr(sums, name).take(np.arange(3)).settle() for sums in (first, whole))
        assert (mine.low, mine.digits.tolist()) == (other.low, other.digits.tolist())
    for name in ("count", "ties", "peak", "rough", "unknown", "endless"):
        mine, other = (np.array(getattr(sums, name))[..., :3] for sums in (first, whole))
        np.testing.assert_array_equal(mine, other)
    assert (first.unknown[3], first.endless[3]) == (False, True)
    np.testing.assert_allclose(np.add(*first.lengths), np.add(*whole.lengths), rtol=2.0**-52)


@pytest.mark.parametrize(("like", "inverse"), [("sklearn", 1.0), ("scipy", np.nan)])
def test_flat_groups_are_divided_by_what_replaces_0(like, inverse):
    plan = make_plan(Request("zscore", axes=(1,), like=like), X.shape, X.dtype)
    _, _, coefficients, _ = solve_groups("ln", {})
    flat = np.array([True, False, True, False])
    found = flatten(plan, coefficients, flat)
    for part, expected in zip((*found.steepness, *found.inverse), (0.0, 0.0, inverse, 0.0), strict=True):
        np.testing.assert_array_equal(part[flat], [expected] * 2)
    for name in ("steepness", "inverse"):
        for part, left in zip(getattr(coefficients, name), getattr(found, name), strict=True):
            np.testing.assert_array_equal(left[~flat], part[~flat])
    np.testing.assert_array_equal(found.mean, coefficients.mean)


@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("n", [1, 2, 7, 63, 300])
@pytest.mark.parametrize(("offset", "gradient_offset"), [(0.0, 0.0), (1e5, 0.0), (-3.0, 1e4)])
def test_gradients_in_doubles_are_within_their_bounds(norm, n, offset, gradient_offset):
    x, dy = RNG.normal(offset, 1.0, (3, n)), RNG.normal(gradient_offset, 1.0, (3, n))
    plan = make_plan(Request(norm, eps=1e-3), x.shape, x.dtype)
    with np.errstate(all="ignore"):
        groups = solve_in_doubles(plan, x, dy)
    sums = GradientSums(3, 2.0)
    rows = GradientRows(find_deviations(x, None, None), dy, None, None)
    sums.add(np.arange(3), rows)
    shares = find_shares_in_doubles(groups, dy, 0)
    for row in np.flatnonzero(groups.usual).tolist():
        exact = solve_exactly(plan, sums, row)
        known = [
            (groups.steepness.value[row, 0], groups.steepness.error[row, 0], exact.steepness),
            (groups.share.value[row, 0], groups.share.error[row, 0], exact.product * exact.inverse),
            (groups.total.value[row, 0], groups.total.error[row, 0], sum(map(Fraction, dy[row].tolist()))),
        ]
        inverse, part = groups.inverse.value[row, 0], groups.inverse.error[row, 0]
        known.append((inverse, part * inverse, exact.inverse))
        g_error = groups.g.error[row, 0] + U * groups.g_size[row, 0]
        for column, (value, gradient) in enumerate(
            zip(map(Fraction, x[row]), map(Fraction, dy[row]), strict=True)
        ):
            known.append((groups.w.value[row, column], groups.w.error[row, 0], exact.weigh(value)))
            known.append((groups.g.value[row, column], g_error, gradient - exact.mean))
            share = exact.inverse * exact.weigh(value) * gradient
            known.append((shares.value[row, column], shares.error[row, column], share))
        for value, error, true in known:
            assert abs(Fraction(float(value)) - true) <= Fraction(float(SECOND_ORDER * error))


@pytest.mark.parametrize("n", [1, 4, 5, 11, 64, 1023])
def test_values_go_through_no_more_roundings_than_are_counted(n):
    steps = np.zeros((1, n))

    def add(a, b):
        return np.maximum(a, b) + 1.0

    while (left := steps.shape[-1]) > 4:
        half = left // 2
        halved = add(steps[:, :half], steps[:, half : 2 * half])
        if left % 2:
            halved[:, :1] = add(halved[:, :1], steps[:, -1:])
        steps = halved
    assert steps.max() + steps.shape[-1] - 1 <= count_roundings(n)
    assert add_rows(np.arange(1.0, n + 1)[None])[0, 0] == n * (n + 1) / 2
