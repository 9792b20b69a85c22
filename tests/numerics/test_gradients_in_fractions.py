"""KnownGradients in rational arithmetic: where there is none, of groups that count as constant, at corners of powers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.gradients.coefficients import find_p
from normcli.numerics.gradients.in_fractions import (
    round_fractions,
    solve_exactly,
    sum_powers,
)
from normcli.numerics.gradients.rows import GradientRows
from normcli.numerics.gradients.sums import GradientSums
from normcli.numerics.pairs import Pair

X, DY = np.array([[1.0, -2.0, 0.0, 4.0]]), np.array([[0.5, 1.0, -1.0, 2.0]])


def make_rows(x=X, counted=None):
    return GradientRows(Pair(x, np.zeros_like(x)), DY, None, None if counted is None else np.array([counted]))


def solve(norm, x=X, counted=None, bits=300, **options):
    plan = make_plan(Request(norm, axes=(1,), **options), x.shape, x.dtype)
    rows, sums = make_rows(x, counted), GradientSums(1, find_p(plan))
    sums.add(np.zeros(1, int), rows)
    among = [abs(Fraction(value)) for value in x[0]]
    powers = (
        None
        if plan.spec.p in (None, 0.0, 1.0, 2.0) or np.isinf(plan.spec.p)
        else sum_powers(among, plan.spec.p, bits)
    )
    return plan, rows, solve_exactly(plan, sums, 0, powers, bits)


@pytest.mark.parametrize(
    ("norm", "options"),
    [
        pytest.param("ln", {"x": np.ones((1, 4)), "eps": 0.0, "like": "torch"}, id="constant"),
        pytest.param("ln", {"counted": [False] * 4}, id="no values"),
        pytest.param("ln", {"counted": [True, False, False, False], "ddof": 1}, id="one value of ddof 1"),
        pytest.param("lp", {"x": np.zeros((1, 4)), "p": 3.0, "eps": 0.0, "like": "torch"}, id="no length"),
    ],
)
def test_a_group_of_which_nan_is_made_has_no_derivative(norm, options):
    _, rows, coefficients = solve(norm, **options)
    assert coefficients.inverse is None
    assert coefficients.share is None
    assert coefficients.differentiate(rows, Fraction(1)) == [None] * 4
    assert coefficients.find_shares(rows) == [None] * 4
    assert np.isnan(round_fractions([None, Fraction(1, 3)], np.dtype("f4"))).tolist() == [True, False]


@pytest.mark.parametrize(
    ("norm", "x", "options"),
    [("ln", np.ones((1, 4)), {}), ("rms", np.zeros((1, 4)), {}), ("lp", np.zeros((1, 4)), {"p": 3.0})],
)
def test_a_group_of_which_zeros_are_made_has_none_but_by_its_parameters(norm, x, options):
    _, rows, coefficients = solve(norm, x=x, eps=0.0, **options)
    assert coefficients.differentiate(rows, Fraction(1)) == [None] * 4
    assert coefficients.share == (0, 0)
    assert coefficients.find_shares(rows) == [(0, 0)] * 4


def test_a_constant_group_that_is_divided_by_1_has_one():
    plan, rows, coefficients = solve("zscore", x=np.ones((1, 4)))
    assert coefficients.inverse == 1
    mean = Fraction(5, 8)
    assert coefficients.differentiate(rows, Fraction(2)) == [(2 * (Fraction(dy) - mean), 0) for dy in DY[0]]
    assert coefficients.flatten(plan) == coefficients


@pytest.mark.parametrize(("like", "least"), [("torch", 2.0), ("tensorflow", 4.0)])
@pytest.mark.parametrize(("more", "follows"), [(-1.0, True), (0.0, True), (2.0**-50, False), (1.0, False)])
def test_below_a_floor_of_the_length_or_of_its_square_the_divisor_is_a_constant(like, least, more, follows):
    _, _, coefficients = solve("lp", x=np.array([[1.0, -1.0, 1.0, 1.0]]), eps=least + more, like=like)
    assert (coefficients.steepness != 0) == follows


def test_a_group_that_counts_as_constant_is_divided_by_what_constant_ones_are():
    plan, _, coefficients = solve("zscore")
    flat = coefficients.flatten(plan)
    assert (flat.inverse, flat.steepness, flat.mean) == (1, 0, coefficients.mean)
    assert coefficients.steepness != 0
    none, *_ = solve("zscore", like="scipy")
    assert coefficients.flatten(none).inverse is None


@pytest.mark.parametrize(
    ("p", "w"), [(0.0, [1, -1, 0, 1]), (np.inf, [0, 0, 0, 1]), (-np.inf, [0] * 4), (3.0, [1, -4, 0, 16])]
)
def test_weights_of_powers(p, w):
    _, _, coefficients = solve("lp", p=p, eps=0.0)
    assert [coefficients.weigh(Fraction(value)) for value in X[0]] == pytest.approx(w, rel=1e-15)


@pytest.mark.parametrize(
    ("sizes", "p", "total"),
    [([1, 2, 0], 3.0, 9), ([1, 2, 4], -1.0, Fraction(7, 4)), ([1, 0], -1.0, None), ([], 2.5, 0)],
)
def test_sums_of_powers(sizes, p, total):
    found = sum_powers([Fraction(size) for size in sizes], p)
    assert found is None if total is None else abs(found - total) < Fraction(1, 10**100)


@pytest.mark.parametrize(
    ("norm", "options"),
    [
        ("ln", {}), ("ln", {"eps": 3.0, "eps_mode": "outside"}), ("rms", {"eps": 0.0}), ("lp", {"p": 3.0}),
        ("lp", {"p": -0.7, "x": np.array([[1.0, -2.0, 0.5, 4.0]])}), ("lp", {"p": 40.5}), ("lp", {"p": 1e-3}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bits", [60, 300])
def test_errors_are_within_their_bounds(norm, options, bits):
    _, rows, coefficients = solve(norm, bits=bits, **options)
    _, _, finer = solve(norm, bits=3 * bits, **options)
    for found, better in (
        (coefficients.differentiate(rows, Fraction(3)), finer.differentiate(rows, Fraction(3))),
        (coefficients.find_shares(rows), finer.find_shares(rows)),
        ([coefficients.share], [finer.share]),
    ):
        for (value, error), (exact, rest) in zip(found, better, strict=True):
            assert abs(value - exact) + rest <= error or value == exact
            assert error < Fraction(1, 2 ** (bits - 20))
