"""The largest singular value: against matrices whose values are known, and against exact tests of what is enclosed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.engine.sn.largest_eigenvalue import (
    Basis,
    GramOperator,
    enclose_square,
)
from normcli.engine.sn.leading_vectors import _isolate_first, find_leading

HADAMARD = np.kron([[1, 1], [1, -1]], np.kron([[1, 1], [1, -1]], [[1, 1], [1, -1]])).astype(float)
NEAR = 1.0 + 2.0**-52


def has_positive_pivots(matrix, square):
    """Whether square · 1 − WᵀW is positive definite, by LDLᵀ in fractions: the square is above all eigenvalues."""
    rows = [[Fraction(value) for value in row] for row in np.asarray(matrix).tolist()]
    size = len(rows[0])
    left = [
        [(square if i == j else 0) - sum(row[i] * row[j] for row in rows) for j in range(size)]
        for i in range(size)
    ]
    for k in range(size):
        if left[k][k] <= 0:
            return False
        for i in range(k + 1, size):
            factor = left[i][k] / left[k][k]
            left[i] = [a - factor * b for a, b in zip(left[i], left[k], strict=True)]
    return True


@pytest.mark.parametrize(
    ("matrix", "square"),
    [
        pytest.param([[3, 0], [4, 5]], 45, id="of two columns"),
        pytest.param([[3, 4]], 25, id="one row"),
        pytest.param([[3], [4]], 25, id="one column"),
        pytest.param([[-7]], 49, id="one value"),
        pytest.param(np.outer([1, 2, 3], [4, 5, 6, 7]), 14 * 126, id="rank 1"),
        pytest.param(np.eye(5), 1, id="all equal"),
        pytest.param(HADAMARD, 8, id="all equal, no diagonal"),
        pytest.param(np.diag([3.0, 3.0, 1.0, 3.0]), 9, id="three equal"),
        pytest.param(np.diag([1.0, NEAR, 1.0]), Fraction(NEAR) ** 2, id="nearly equal"),
        pytest.param(np.diag([5e-324, 1e-323]), Fraction(1e-323) ** 2, id="subnormal"),
        pytest.param(np.diag([1e300, 1e-300]), Fraction(1e300) ** 2, id="graded"),
        pytest.param(np.array([[2**63 - 1, 0]]), (2**63 - 1) ** 2, id="integers of 64 bits"),
    ],
)
@pytest.mark.parametrize("bits", [100, 500])
def test_known_values(matrix, square, bits):
    low, high = enclose_square(np.asarray(matrix), bits)
    assert low <= square <= high
    assert (high - low) * 2**bits <= square


@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (2, 9)])
@pytest.mark.parametrize("spread", [0, 40], ids=["alike", "graded"])
def test_enclosure_of_any_matrix(shape, spread, rng):
    matrix = rng.normal(size=shape) * 2.0 ** rng.integers(-spread, spread + 1, size=shape)
    low, high = enclose_square(matrix, 200)
    assert (high - low) * 2**200 <= high
    matrix = matrix if shape[1] < shape[0] else matrix.T
    assert has_positive_pivots(matrix, high + high / 2**300)
    assert not has_positive_pivots(matrix, low)


def test_a_cluster_beside_smaller_values(rng):
    """The largest two differ in their last bits alone, in a basis that no axis is of."""
    basis = HADAMARD / 8.0  # of vectors of length √8/8: their squares' sum is exact
    matrix = (basis * [NEAR, 1.0, NEAR, 0.5, 0.25, 0.25, 0.0, 1.0]) @ HADAMARD.T
    low, high = enclose_square(matrix, 150)
    assert low <= Fraction(np.linalg.norm(matrix, 2) ** 2) * (1 + Fraction(1, 2**48))
    assert (high - low) * 2**150 <= high
    assert has_positive_pivots(matrix, high + high / 2**300)
    assert not has_positive_pivots(matrix, low)


def to_fractions(values, exponent=0):
    return np.array(
        [[Fraction(value) * Fraction(2) ** exponent for value in row] for row in values.tolist()], dtype=object
    )


def measure_square(matrix):
    """Return the sum of squares of a matrix of fractions."""
    return sum(value * value for value in np.ravel(matrix))


MATRICES = {
    "alike": np.random.default_rng(8).normal(size=(7, 5)),
    "small": np.random.default_rng(9).normal(size=(4, 4)) * 2.0**-700,
    "integers": np.random.default_rng(10).integers(-(2**62), 2**62, (5, 3)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_bounds_of_what_doubles_leave_hold_and_are_narrow(name):
    matrix = MATRICES[name]
    gram = GramOperator(matrix)
    exact = to_fractions(matrix)
    product = exact.T @ exact
    written = gram.write()
    assert (to_fractions(written.values, written.exponent) == product).all()
    approximation = gram.approximate()
    off = to_fractions(approximation.values) - product / Fraction(2) ** approximation.exponent
    assert measure_square(off) <= Fraction(approximation.error) ** 2
    assert approximation.error <= 2.0**-40
    basis = Basis(gram)
    vectors, values = to_fractions(basis._vectors), np.diag([Fraction(value) for value in basis._values])
    off = product / Fraction(2) ** approximation.exponent - vectors @ values @ vectors.T
    assert measure_square(off) <= Fraction(basis._error) ** 2
    assert basis._error <= 2.0**-40
    skew = vectors.T @ vectors - np.eye(len(vectors), dtype=int)
    assert measure_square(skew) <= Fraction(basis._skew) ** 2
    assert basis._skew <= 2.0**-40
    assert basis.count == 1


def count_above(matrix, square):
    """Return how many eigenvalues of WᵀW are above a number, by the signs of its pivots (Sylvester)."""
    left = [list(row) for row in matrix.T @ matrix - square * np.eye(matrix.shape[1], dtype=int)]
    positive = 0
    for k in range(len(left)):
        positive += left[k][k] > 0
        for i in range(k + 1, len(left)):
            factor = left[i][k] / left[k][k]
            left[i] = [a - factor * b for a, b in zip(left[i], left[k], strict=True)]
    return positive


@pytest.mark.parametrize("gap", [2.0**-60, 2.0**-44, 0.0])
def test_bounds_of_an_eigenvector_that_doubles_do_not_tell_apart(gap, rng):
    matrix = np.kron(np.eye(2), rng.normal(size=(3, 2)))
    matrix[0, 3] = gap
    found = _isolate_first(GramOperator(matrix), 100)
    if not gap:
        assert found is None
        return
    assert count_above(to_fractions(matrix), found.most) == 1
    assert count_above(to_fractions(matrix), found.square.low) == 1
    assert count_above(to_fractions(matrix), found.square.high) == 0
    assert found.square.high - found.square.low < Fraction(1, 2**200)


@pytest.mark.parametrize("turned", [False, True])
def test_the_vectors_of_one_column_are_exact(turned):
    matrix = np.array([[3.0], [-4.0]])
    square, left, right = find_leading(matrix.T if turned else matrix, 100)
    assert square == (25, 25)
    long, short = (right, left) if turned else (left, right)
    assert (short.scale(0).tolist(), long.scale(0).tolist()) == ([[1.0]], [[3.0], [-4.0]])
