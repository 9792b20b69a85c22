"""Groups that a convention counts as constant, though they are not quite."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.statistics.divisor import Solution, find_flat, replace_flat

EPS, EPS32 = 2.0**-52, 2.0**-23


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", np.longdouble])
@pytest.mark.parametrize(
    ("norm", "like", "statistics", "in_float64"),
    [
        pytest.param("minmax", "sklearn", lambda eps: {"range": 10 * eps}, False, id="a range"),
        pytest.param(
            "robust", "sklearn", lambda eps: {"iqr": eps, "q1": 1.0, "q3": 1.0 + 10 * eps}, True, id="of quartiles"
        ),
        pytest.param(
            "zscore", "sklearn", lambda eps: {"std": eps, "var": 36 * eps**2 / (1 - 3 * eps), "mean": -2.0},
            True, id="of two passes",
        ),
        pytest.param("zscore", "scipy", lambda eps: {"std": 2 * eps, "mean": -2.0}, False, id="beside the mean"),
    ],
)  # fmt: skip
def test_how_small_a_divisor_counts_as_0(norm, like, statistics, in_float64, dtype):
    """At its bound, and a little below and above."""
    plan = make_plan(Request(norm, like=like), (3, 1), np.dtype(dtype))
    eps = EPS32 if dtype == "float32" and not in_float64 else EPS
    spread = plan.norm.divisor.spread
    changed = "var" if "var" in statistics(eps) else "q3" if norm == "robust" else spread
    found = []
    for factor in (0.9, 1.1):
        at = statistics(eps)
        at[changed] = 1.0 + (at[changed] - 1.0) * factor if changed == "q3" else at[changed] * factor
        found.append(bool(find_flat(plan, {name: np.array([value]) for name, value in at.items()}, 3)[0]))
    assert found == [True, False]


def test_a_divisor_of_0_counts_as_it_is_and_no_rule_has_no_flat_groups():
    zero = {"range": np.zeros(1)}
    assert not find_flat(make_plan(Request("minmax", like="sklearn"), (3, 1), np.dtype("f8")), zero, 3).any()
    tiny = {"range": np.full(1, 1e-300)}
    assert not find_flat(make_plan(Request("minmax"), (3, 1), np.dtype("f8")), tiny, 3).any()


@pytest.mark.parametrize(("like", "divisor"), [("sklearn", 1), ("scipy", None)])
def test_a_flat_group_is_recalled_as_it_is_normalized(like, divisor):
    plan = make_plan(Request("zscore", like=like), (3, 2), np.dtype("f8"))
    numbers = {"std": np.array([1e-20, 2.0]), "var": np.array([1e-40, 4.0]), "mean": np.array([3.0, 3.0])}
    zeros = np.zeros(2)
    solution = Solution(
        Triple(zeros, zeros, zeros), Pair(numbers["std"], zeros), centred=True, statistics=numbers
    )
    assert replace_flat(plan, solution, 3).ask is None
    solution.ask = lambda group, bits: (Fraction(group), Fraction(bits))
    found = replace_flat(plan, solution, 3)
    assert [found.recall(group, 7) for group in (0, 1)] == [(0, divisor), (1, 7)]
    np.testing.assert_array_equal(found.divisor.hi, [divisor or np.nan, 2.0])
