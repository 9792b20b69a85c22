"""The derivative of a matrix over its largest singular value, against mpmath and torch."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from normcli import backward, normalize
from normcli.engine.sn.gradients import differentiate_matrix
from normcli.errors import UsageError
from normcli.norms.spec import Iteration


def differentiate(matrix, dy, digits=60):
    """Return dx by singular vectors of so many digits, as doubles."""
    with mpmath.workdps(digits):
        left, sigmas, right = mpmath.svd_r(mpmath.matrix(matrix.tolist()))
        u, v, sigma = left[:, 0], right[0, :], sigmas[0]
        pairs = zip(matrix.ravel().tolist(), dy.ravel().tolist(), strict=True)
        share = mpmath.fsum(mpmath.mpf(a) * b for a, b in pairs) / sigma
        rows, columns = matrix.shape
        return [
            [float((dy[i, j].item() - share * u[i] * v[j]) / sigma) for j in range(columns)]
            for i in range(rows)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 4), (5, 3), (4, 1), (1, 4), (3, 3)])
def test_every_value_is_the_exact_one_rounded(shape, rng):
    x, dy = rng.normal(size=shape), rng.normal(size=shape)
    assert backward(x, dy, "sn").dx.tolist() == differentiate(x, dy)
    single = x.astype("float32")
    expected = np.array(differentiate(single.astype(float), dy)).astype("float32")
    np.testing.assert_array_equal(backward(single, dy, "sn").dx, expected, strict=True)


@pytest.mark.parametrize("gap", [1e-9, 2.0**-18, 2.0**-41, 2.0**-52])
def test_values_that_doubles_do_not_tell_apart_are_told_apart(gap, rng):
    x, dy = np.diag([1.0, 1.0 - gap, 0.25]), rng.normal(size=(3, 3))
    assert backward(x, dy, "sn").dx.tolist() == differentiate(x, dy)
    x = np.kron(np.eye(2), rng.normal(size=(3, 2)))
    x[5, 3] *= 1.0 + gap
    dy = rng.normal(size=x.shape)
    assert backward(x, dy, "sn").dx.tolist() == differentiate(x, dy)


@pytest.mark.parametrize("size", [2.0**-52, 2.0**-60, 1e-100, 5e-324])
def test_values_nearer_than_doubles_hold_are_told_apart(size):
    """Of [[1, e], [e, 1]] σ is 1 + e, and both vectors are (1, 1)."""
    found = backward([[1.0, size], [size, 1.0]], [[1.0, 2.0], [3.0, 4.0]], "sn").dx
    e = Fraction(size)
    share = (1 + 2 * e + 3 * e + 4) / (1 + e) / 2
    assert found.tolist() == [[float((g - share) / (1 + e)) for g in row] for row in ((1, 2), (3, 4))]


def test_a_basis_of_more_bits_tells_vectors_apart(rng):
    """Blocks that are alike but for 1e-60 beside them have singular values that far apart."""
    x = np.kron(np.eye(2), rng.normal(size=(3, 2)))
    x[0, 3] = 1e-60
    dy = rng.normal(size=x.shape)
    assert backward(x, dy, "sn").dx.tolist() == differentiate(x, dy, digits=300)


@pytest.mark.slow
def test_equal_values_of_vectors_that_are_not_exact_have_no_derivative(rng):
    x = np.kron(np.eye(2), rng.normal(size=(3, 2)))
    assert np.isnan(backward(x, np.ones_like(x), "sn").dx).all()


@pytest.mark.parametrize("x", [np.eye(3), np.zeros((2, 2)), np.array([[1.0, np.inf]])])
def test_where_there_is_no_derivative_it_is_nan(x):
    assert np.isnan(backward(x, np.ones_like(x), "sn").dx).all()


def test_what_cancels_is_0():
    """Of a single value y is its sign."""
    assert backward([[3.7]], [[0.3]], "sn").dx.tolist() == [[0.0]]
    x = np.array([[0.3, 0.7]])
    assert backward(x, 4 * x, "sn").dx.tolist() == [[0.0, 0.0]]


def test_what_does_not_count_is_passed(rng):
    x, dy = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    mask = rng.random((3, 4)) < 0.7
    dx = backward(x, dy, "sn", mask=mask).dx
    counted = np.array(differentiate(np.where(mask, x, 0), np.where(mask, dy, 0)))
    np.testing.assert_array_equal(dx, np.where(mask, counted, dy))
    with pytest.raises(UsageError, match="leaves out fill normalize"):
        backward(x, dy, "sn", mask=mask, fill="normalize")


@pytest.mark.parametrize("given", [{"u": 5, "iterations": 2}, {"v": 4}, {"u": 5, "v": 4}])
def test_vectors_of_iterations_are_constants(given, rng):
    """In doubles, by ∂σ/∂W = u vᵀ."""
    x, dy = abs(rng.normal(size=(5, 4))), rng.normal(size=(5, 4))
    options = {key: abs(rng.normal(size=n)) if key != "iterations" else n for key, n in given.items()}
    vectors = {name: options[name] for name in "uv" if name in options}
    for _ in range(0 if len(vectors) == 2 else options.get("iterations", 1)):
        for name in "vu" if "u" in given else "uv":
            product = x.T @ vectors["u"] if name == "v" else x @ vectors["v"]
            vectors[name] = product / np.linalg.norm(product)
    u, v = vectors["u"], vectors["v"]
    sigma = u @ x @ v
    expected = (dy - (dy * x).sum() / sigma * np.outer(u, v)) / sigma
    np.testing.assert_allclose(backward(x, dy, "sn", **options).dx, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.peers
def test_torch(rng):
    torch = pytest.importorskip("torch")
    x, dy = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    w = torch.tensor(x, requires_grad=True)
    (w / torch.linalg.matrix_norm(w, 2)).backward(torch.tensor(dy))
    np.testing.assert_allclose(backward(x, dy, "sn").dx, w.grad, rtol=1e-11, atol=1e-13)
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(torch.tensor(x))
    torch.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=2)
    start = rng.normal(size=4)
    layer.parametrizations.weight[0]._v.copy_(torch.tensor(start))
    layer.weight.backward(torch.tensor(dy))
    expected = layer.parametrizations.weight.original.grad
    dx = backward(x, dy, "sn", v=start, iterations=2).dx
    np.testing.assert_allclose(dx, expected, rtol=1e-11, atol=1e-13)


def test_the_verb_and_what_it_warns_of(normcli):
    ran = normcli("backward", "sn", "--data", "[[3,0],[0,1]]", "--dy", "[[1,0],[0,6]]", "--print", "dx")
    assert [float(value) for value in ran.out.split()] == [-2 / 3, 0.0, 0.0, 2.0]
    ran = normcli("backward", "sn", "--data", "[[2,0],[0,2]]", "--dy", "[[1,0],[0,6]]", "--print", "dx")
    assert "with two largest singular values have none" in ran.err


def differentiate_rank_1(w, g):
    """Return dx in rationals, but for a root to 120 digits."""
    w, g = ([[Fraction(value) for value in row] for row in each.tolist()] for each in (w, g))
    square = sum(value * value for row in w for value in row)
    product = sum(a * b for rows in zip(w, g, strict=True) for a, b in zip(*rows, strict=True))
    root = Fraction(math.isqrt(int(square * 10**240)), 10**120)
    return [
        [float((b - product * a / square) / root) for a, b in zip(*rows, strict=True)]
        for rows in zip(w, g, strict=True)
    ]


@pytest.mark.parametrize("start", [{}, {"u": [1.0, 2.0, -1.0], "iterations": 2}])
@pytest.mark.parametrize("row", [[1.0], [3.0, -5.0, 2.0**40]])
def test_values_of_rank_1_are_exact_however_far_apart(start, row):
    w = np.outer([1.0, 2.0**80, -7.0], row)
    g = np.zeros(w.shape)
    g[1, 0] = 1.0
    dx = backward(w, g, "sn", **start).dx
    np.testing.assert_array_equal(dx, differentiate_rank_1(w, g))
    assert dx[0, 0] != 0.0


def test_gradients_at_a_right_angle_are_divided_alone():
    x, dy = np.diag([2.0, 1.0]), np.array([[0.0, 3.0], [5.0, 0.0]])
    np.testing.assert_array_equal(differentiate_matrix(x, dy, np.dtype("f8"), None), dy / 2.0)


def test_a_sum_that_is_far_smaller_than_its_terms_is_no_0():
    x, dy = np.diag([3.0, 1.0]), np.diag([1.0, 2.0**-200])
    assert backward(x, dy, "sn").dx[0, 0] == float(-(Fraction(2) ** -200) / 9)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_value_in_the_middle_is_rounded_to_even(dtype):
    """Of vectors that are exact, and of a σ of 1, off the diagonal dx is dy."""
    x, unit = np.diag([1.0, 0.5]).astype(dtype), float(np.finfo(dtype).eps)
    dy = np.array([[0.0, 1 + unit / 2], [1 + 3 * unit / 2, 0.0]])
    dx = backward(x, dy, "sn").dx
    assert (dx[0, 1], dx[1, 0]) == (1.0, 1 + 2 * unit)


def test_blocks_without_dy_take_no_further_bits(rng, monkeypatch):
    """The vectors of the largest singular value are 0 in all blocks but its own."""
    x, dy = np.zeros((6, 6)), np.zeros((6, 6))
    x[:3, :3], x[3:, 3:] = rng.normal(size=(3, 3)), 0.125 * rng.normal(size=(3, 3))
    dy[:3, :3] = rng.normal(size=(3, 3))
    order = rng.permutation(6)
    monkeypatch.setattr("normcli.engine.sn.gradients.round_exactly", None)
    dx = differentiate_matrix(x[order][:, order], dy[order][:, order], np.dtype("f8"), None)
    back = np.argsort(order)
    assert dx[back][:, back][:3, :3].tolist() == differentiate(x[:3, :3], dy[:3, :3])
    assert np.count_nonzero(dx) == 9
    found = normalize(x, "sn")
    assert found.u[3:].tolist() == found.v[3:].tolist() == [0.0] * 3


@pytest.mark.parametrize("iteration", [None, Iteration(2, u=(1.0, 2.0, 0.0, 0.0), v=None)])
def test_a_value_that_no_bits_tell_from_0_is_0(iteration):
    """The matrix of two blocks has vectors that are not exact, but 0 in the other block."""
    x = np.kron(np.diag([1.0, 0.25]), [[2.0, 1.0], [0.0, 3.0]])[:, [2, 0, 3, 1]]
    dy = np.where(x == 0.0, 0.0, 0.1 * x + 1.0)
    dx = differentiate_matrix(x, dy, np.dtype("f8"), iteration)
    assert (dx[2:][:, [1, 3]] == 0.0).all()
    assert (dx[:2][:, [1, 3]] != 0.0).all()
