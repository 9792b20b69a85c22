"""NIST's reference data for univariate statistics (StRD), with their certified means and standard deviations.

NumAcc1 to 4 follow from their definitions; the data of the others have, as exact decimals, what is certified of them.
"""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.walk import Effort
from normcli.fitting.fit import Policy, fit
from normcli.fitting.statistics import round_stats
from normcli.norms.request import Request
from normcli.tensors.many import Named
from normcli.tensors.tensor import Tensor
from tests.conftest import DATA
from tests.reference.groups import solve_group
from tests.reference.rounding import round_once

pytestmark = pytest.mark.usefixtures("either_kernel")


class Certified(NamedTuple):
    """Values as digits · 10^exponent, and what is certified of them to 15 digits."""

    digits: list[int]
    exponent: int
    mean: str
    std: str

    @property
    def values(self) -> list[Decimal]:
        """The values."""
        return [Decimal(digits).scaleb(self.exponent) for digits in self.digits]


def alternate(middle: int, *, exponent: int, mean: str, std: str) -> Certified:
    """The middle, then 500 times the one below and the one above."""
    return Certified([middle, *[middle - 1, middle + 1] * 500], exponent, mean, std)


SETS = {
    "NumAcc1": Certified([10000001, 10000003, 10000002], 0, "10000002", "1"),
    "NumAcc2": alternate(12, exponent=-1, mean="1.2", std="0.1"),
    "NumAcc3": alternate(10000002, exponent=-1, mean="1000000.2", std="0.1"),
    "NumAcc4": alternate(100000002, exponent=-1, mean="10000000.2", std="0.1"),
    **{name: Certified(**row) for name, row in json.loads((DATA / "strd.json").read_text()).items()},
}


def solve(values):
    """Return the exact mean and variance of a column, of which the divisor is n − 1."""
    plan = normalize(values[:, None], "zscore", ddof=1).plan
    found = solve_group(plan, values).statistics
    return found["mean"], found["std"]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("name", SETS)
def test_exact_decimals_have_the_certified_statistics(name, dtype):
    """In units of their last digit the values are whole numbers, and nothing but the last step is rounded."""
    found = SETS[name]
    x = np.array(found.digits, dtype)
    result = normalize(x[:, None], "zscore", ddof=1)
    for got, exact, certified in zip((result.mean, result.std), solve(x), (found.mean, found.std), strict=True):
        assert got[0] == round_once(exact, "float64")
        with localcontext() as context:
            context.prec = 15
            assert +Decimal(got[0].item()).scaleb(found.exponent) == Decimal(certified)


@pytest.mark.parametrize("name", SETS)
def test_doubles_nearest_to_the_decimals_have_statistics_rounded_once(name):
    x = np.array([float(value) for value in SETS[name].values])
    expected = [round_once(exact, "float64") for exact in solve(x)]
    result = normalize(x[:, None], "zscore", ddof=1)
    assert [result.mean[0], result.std[0]] == expected
    sources = [
        Named(f"{number}.npy", lambda wanted, part=part: Tensor(part, "x.npy"))
        for number, part in enumerate(np.array_split(x[:, None], 3))
    ]
    fields = round_stats(fit(Request("zscore", ddof=1), sources, Policy(), Effort(threads=1)).stats).fields
    assert [fields["mean"][0], fields["std"][0]] == expected
