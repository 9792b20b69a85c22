"""Spectral normalization: values over the largest singular value, each rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.sn.largest_eigenvalue import Enclosure
from normcli.engine.sn.sigma_of_groups import SingularValue, SingularValues, approximate_largest
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.reference.limits import ELEMENT, STATISTIC
from tests.reference.measuring import measure_groups


@pytest.mark.parametrize(
    ("x", "sigma", "normalized"),
    [
        pytest.param([[0.0, 0.0]], 0.0, [[0.0, 0.0]], id="zeros"),
        pytest.param([[1.0, np.nan]], np.nan, [[np.nan, np.nan]], id="NaN"),
        pytest.param([[1.0, -np.inf]], np.inf, [[0.0, np.nan]], id="infinite"),
        pytest.param([-2.0, 0.0], 2.0, [-1.0, 0.0], id="a vector"),
    ],
)
def test_what_has_no_arithmetic(x, sigma, normalized):
    result = normalize(np.array(x), "sn")
    np.testing.assert_array_equal(result.statistics["sigma"], sigma)
    np.testing.assert_array_equal(result.normalized, normalized)


def test_a_matrix_without_values_has_the_value_0():
    assert SingularValue(np.empty((0, 3))).known == 0.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16"])
def test_against_the_reference(dtype, rng):
    x = np.round(rng.normal(size=(2, 4, 3, 2)) * 100).astype(dtype)
    x = x if x.dtype.kind == "i" else x / np.dtype(dtype).type(7)
    result = normalize(x, "sn", axes=(1, 2, 3), rows=2)
    for errors in measure_groups(result):
        assert errors.element <= ELEMENT
        assert max(errors.statistics.values()) <= STATISTIC


@pytest.mark.slow
def test_a_value_is_recalled_to_as_many_bits_as_are_asked_for():
    plan = make_plan(Request("sn", axes=(1, 2)), (3, 2, 2), np.dtype("f8"))
    golden = np.array([[1.0, 1.0], [1.0, 0.0]])
    values = [SingularValue(matrix) for matrix in (2.0**-1000 * golden, 0 * golden, np.diag([3.0, 1.0]))]
    solution = SingularValues(3, values).solve(plan)
    mean, found = solution.recall(0, 310)
    ratio = found * 2**1000
    assert (mean, abs(ratio * ratio - ratio - 1) < Fraction(1, 2**307)) == (0, True)
    assert [solution.recall(group) for group in (1, 2)] == [(0, 1), (0, 3)]
    plan = make_plan(Request("sn", axes=(1, 2), like="torch"), (3, 2, 2), np.dtype("f8"))
    assert SingularValues(3, values).solve(plan).recall(1) == (0, None)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (1, 1)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 2.0**-1040, 2.0**1020], ids=["plain", "tiny", "huge"])
def test_the_largest_singular_value_to_ten_digits(shape, scale, rng):
    x = rng.uniform(-1.0, 1.0, shape)
    found = approximate_largest(x * scale)
    assert found == pytest.approx(np.linalg.norm(x * 2.0**-3, 2) * scale * 8.0, rel=1e-9, abs=0.0)
    assert found == float(f"{found:.10g}")


@pytest.mark.parametrize(("rest", "expected"), [(0, 1.0), (1, 1.0 + 2.0**-52), (-1, 1.0)])
@pytest.mark.parametrize("far", [120, 400])
def test_a_value_that_hardly_differs_from_a_tie(rest, expected, far):
    """1 + 2⁻⁵³ ± 2⁻¹²⁰: an enclosure of 110 bits holds a number of 55."""
    square = (1 + Fraction(1, 2**53) + Fraction(rest, 2**far)) ** 2

    def enclose(_, bits):
        return Enclosure(square - Fraction(1, 2 ** (bits + 2)), square + Fraction(1, 2 ** (bits + 2)))

    plan = make_plan(Request("sn"), (2, 2), np.dtype("f8"))
    solution = SingularValues(4, [SingularValue(np.eye(2), enclose)]).solve(plan)
    assert solution.statistics["sigma"].tolist() == [expected]
