"""The largest singular value: against matrices whose values are known, and against exact tests of what is enclosed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.engine.sn.largest_eigenvalue import (
    enclose_square,
)
from normcli.engine.sn.leading_vectors import find_leading

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


@pytest.mark.parametrize("turned", [False, True])
def test_the_vectors_of_one_column_are_exact(turned):
    matrix = np.array([[3.0], [-4.0]])
    square, left, right = find_leading(matrix.T if turned else matrix, 100)
    assert square == (25, 25)
    long, short = (right, left) if turned else (left, right)
    assert (short.scale(0).tolist(), long.scale(0).tolist()) == ([[1.0]], [[3.0], [-4.0]])
