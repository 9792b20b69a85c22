"""Values of which beta cancels nearly everything, against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.numerics.deciding import PRECISIONS, round_to
from normcli.numerics.elements.in_fractions import normalize as normalize_in_memory
from normcli.numerics.elements.kernel import Parameters
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.rational import find_root, round_once
from normcli.numerics.statistics.divisor import Solution
from tests.marks import costly


def _choose_sizes(rng, count):
    """Return doubles of either sign, most of them near an end of what float64 has."""
    ends = np.array([[-1060, -960], [-960, 960], [960, 1023]])[rng.integers(3, size=count)]
    return np.ldexp(rng.uniform(-1, 1, count), rng.integers(*ends.T))


@costly
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.slow
def test_values_of_any_size_are_normalized_with_statistics_of_any_size(centred, rng):
    for _ in range(120):
        x, gamma, beta = (_choose_sizes(rng, 3)[None] for _ in range(3))
        beta *= rng.integers(2)
        mean, divisor = (abs(Fraction(value)) for value in _choose_sizes(rng, 2))
        mean = mean / 2**200 if centred else Fraction(0)
        parts = np.zeros((5, 1, 1))
        known = mean, divisor
        solution = Solution(Triple(*parts[:3]), Pair(*parts[3:]), centred, ask=lambda *_, known=known: known)
        solution.settle((0, 0), mean, divisor)
        found = normalize_in_memory(x, np.dtype("f8"), solution, Parameters(gamma, beta))
        exact = (Fraction(a) * (Fraction(b) - mean) / divisor + Fraction(c)
                 for a, b, c in zip(gamma[0], x[0], beta[0], strict=True))  # fmt: skip
        assert found[0].tolist() == [round_once(value) for value in exact], (x, mean, divisor, gamma, beta)


@pytest.mark.usefixtures("either_kernel")
def test_a_mean_whose_second_double_is_subnormal_is_asked_of_its_group():
    x = np.array([[-5.304665845e-315, -1.0742015220160585e-11, -5.371007610080293e-12]])
    mean = sum(map(Fraction, x[0])) / 3
    divisor = find_root(sum((Fraction(value) - mean) ** 2 for value in x[0]))
    y = normalize(x, "ln", axes=(1,), ddof=2, eps=0.0).normalized
    assert np.asarray(y)[0].tolist() == [round_once((Fraction(value) - mean) / divisor) for value in x[0]]


@pytest.mark.parametrize("values", [[[1e308, 1e308]], [[4.49423283715579e307]]])
def test_a_huge_mean_beside_a_divisor_of_nearly_nothing(values):
    y = normalize(np.array(values), "ln", axes=(1,), eps=5e-324, eps_mode="outside").normalized
    assert not np.asarray(y).any()


def test_constant_groups_need_no_exact_arithmetic(monkeypatch):
    monkeypatch.setattr("normcli.numerics.statistics.solution._find_statistics", None)
    for value in (0.0, 1.0):
        for name in ("ln", "rms", "zscore"):
            normalize(np.full((8, 5), value), name, eps=None if name == "zscore" else 0.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("x", [[2**62 + 1, 5, -7], [0.3, 5.0, -7.0]], ids=["long integers", "doubles"])
def test_values_in_memory_are_settled_where_beta_cancels(x, dtype):
    x, zero, one = np.array([x]), np.zeros((1, 1)), np.ones((1, 1))
    solution = Solution(Triple(zero + 0.5, zero, zero), Pair(3.0 * one, zero), centred=True)
    gamma = np.array([[1.0, 2.0, 0.1]])
    exact = [
        Fraction(a) * (Fraction(b) - Fraction(1, 2)) / 3 for a, b in zip(gamma[0], x[0].tolist(), strict=True)
    ]
    for beta in (np.array([[-float(value) for value in exact]]), np.array([[1.0, -3.0, 0.0]])):
        found = normalize_in_memory(x, np.dtype(dtype), solution, Parameters(gamma, beta))
        sums = [value + Fraction(number) for value, number in zip(exact, beta[0], strict=True)]
        assert found.tolist() == [[round_to(value, PRECISIONS[dtype]) for value in sums]]
