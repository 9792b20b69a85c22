"""The bounds of errors: each is measured here, or by the test that it names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.numerics import deciding as bounds
from normcli.numerics import pairs
from normcli.numerics.deciding import Bound
from normcli.numerics.pairs import Pair
from normcli.numerics.rational import find_root
from tests.conftest import ROOT
from tests.numerics.exact_parts import add_up

COUNT = 400
ROWS = {name: row for name, row in vars(bounds).items() if isinstance(row, Bound)}


def draw(rng):
    """Return pairs whose second doubles are up to an ulp of the first: they overlap by a bit."""
    hi = rng.uniform(1.0, 2.0, COUNT) * 2.0 ** rng.integers(-40, 40, COUNT) * rng.choice([-1.0, 1.0], COUNT)
    return Pair(hi, np.spacing(hi) * rng.uniform(-1.0, 1.0, COUNT))


def measure(found, expected):
    """Return the bits below which the largest error is, as a part of the exact number."""
    errors = [abs(add_up(found, i) / value - 1) for i, value in enumerate(expected) if value]
    return -math.log2(max(errors)) if any(errors) else math.inf


def cancel(a, b):
    """Return b, and nearly −b."""
    return b, Pair(-b.hi * (1.0 + 2.0**-30 * np.sign(a.hi)), a.lo * b.hi / a.hi)


def add(a, b):
    return a + b


OPERATIONS = {
    "add": (pairs.pair_add, add),
    "multiply": (pairs.pair_multiply, lambda a, b: a * b),
    "divide": (pairs.pair_divide, lambda a, b: a / b),
}


@pytest.mark.parametrize("cancels", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_one_operation_on_pairs(name, cancels, rng):
    operation, exactly = OPERATIONS[name]
    a, b = draw(rng), draw(rng)
    if cancels:
        a, b = cancel(a, b)
    found = operation(a, b)
    expected = [exactly(add_up(a, i), add_up(b, i)) for i in range(COUNT)]
    assert measure(found, expected) >= bounds.PAIR.bits


def test_a_root_of_a_pair(rng):
    a = draw(rng)
    a = Pair(np.abs(a.hi), a.lo)
    expected = [find_root(add_up(a, i)) for i in range(COUNT)]
    assert measure(pairs.pair_root(a), expected) >= bounds.PAIR.bits


@pytest.mark.slow
def test_sixteen_operations_on_pairs(rng):
    found = draw(rng)
    expected = [add_up(found, i) for i in range(COUNT)]
    for step in range(16):
        other = draw(rng)
        operation, exactly = OPERATIONS["multiply" if step % 2 else "divide"]
        found = operation(found, other)
        expected = [exactly(value, add_up(other, i)) for i, value in enumerate(expected)]
    assert measure(found, expected) >= bounds.PAIRS.bits


@pytest.mark.parametrize("name", ROWS)
def test_each_bound_names_a_test_that_measures_it(name):
    *_, test = ROWS[name].source.split("; ")
    assert (ROOT / "tests/numerics" / f"{test}.py").exists()
