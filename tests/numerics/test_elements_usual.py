"""The bounds of errors by which usual values are decided: every exact value lies within half of them."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from normcli.numerics.elements import kernel
from normcli.numerics.elements.kernel import Parameters, apply
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.rational import split
from normcli.numerics.statistics.divisor import Solution

COUNT = 64
LARGEST = 8


class Case(NamedTuple):
    """Values, what they are normalized with, and the exact results, beyond the largest quotients None."""

    x: np.ndarray
    solution: Solution
    parameters: Parameters
    exact: list[Fraction | None]


def make(rng: np.random.Generator, dtype: str, centred: bool, affine: tuple[bool, bool]) -> Case:
    """Return one group of a random mean, near it or far away, and a random divisor."""
    size = (Fraction(rng.uniform(1.0, 2.0)) + Fraction(rng.uniform(-1.0, 1.0)) / 2**53) * Fraction(2) ** int(
        rng.integers(-60, 60)
    )
    far = float(rng.choice([0.0, 1.0, 10.0, 1e3] + [1e6, 1e9] * (dtype == "float64")))
    mean = sum(
        Fraction(rng.uniform(-1.0, 1.0)) * scale
        for scale in (Fraction(far), *(Fraction(1, 2**b) for b in (50, 104)))
    )
    mean *= Fraction(float(size))
    quotients = rng.uniform(-LARGEST, LARGEST, COUNT) * 10.0 ** rng.choice([0, 0, 0, -1, -3], COUNT)
    x = (float(mean) + quotients * float(size)).astype(dtype)
    gamma = rng.standard_normal((1, COUNT)) * 2.0 ** rng.integers(-30, 30) if affine[0] else None
    beta = rng.standard_normal((1, COUNT)) * 2.0 ** rng.integers(-10, 30) if affine[1] else None
    means, divisors = (
        tuple(np.array([[part]]) for part in split(value, n)) for value, n in ((mean, 3), (size, 2))
    )
    exact: list[Fraction | None] = []
    for i, value in enumerate(x.tolist()):
        quotient = (Fraction(value) - (mean if centred else 0)) / size
        result = quotient * Fraction(1.0 if gamma is None else gamma[0, i]) + Fraction(
            0.0 if beta is None else beta[0, i]
        )
        exact.append(result if not centred or abs(quotient) <= LARGEST else None)
    return Case(x[None], Solution(Triple(*means), Pair(*divisors), centred), Parameters(gamma, beta), exact)


@pytest.mark.parametrize("name", ["_divide_pairs", "_divide_doubles"])
@pytest.mark.parametrize("affine", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
def test_results_lie_within_half_of_their_bound(centred, affine, name, rng, monkeypatch):
    found = []

    def record(elements):
        value, error = before(elements)
        found.append(np.broadcast_arrays(*value, error, elements.x))
        return value, error

    before = getattr(kernel, name)
    monkeypatch.setattr(kernel, name, record)
    dtype = "float64" if name == "_divide_pairs" else "float32"
    for _ in range(12):
        case = make(rng, "float64", centred, affine)
        apply(case.x, np.empty(case.x.shape, dtype), case.solution, case.parameters)
        for exact, hi, lo, error, _ in zip(case.exact, *(part[0] for part in found.pop()), strict=True):
            if exact is not None:
                assert abs(Fraction(hi) + Fraction(lo) - exact) <= Fraction(error) / 2
