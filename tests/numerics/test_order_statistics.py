"""Statistics of order are their exact values, rounded once; centre and divisor are kept as they are specified."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from normcli import normalize
from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.numerics import rational
from normcli.numerics.statistics.order_statistics import measure_extremes
from normcli.numerics.statistics.ranks import find_shares, measure_quantiles
from normcli.numerics.statistics.solution import solve
from normcli.numerics.workspace import Workspace
from tests.marks import costly
from tests.numerics.exact_parts import add_up
from tests.reference.groups import solve_group
from tests.reference.real import Real
from tests.reference.rounding import round_once

BY_ORDER = [name for name, norm in NORMS.items() if norm.divisor.is_by_order]


FEW = [5e-324, -2.5e-323, 1.7976931348623157e308, -1.7e308, 1.0, 1.0 + 2.0**-52, 3.0, -7e-300, 2.0**970, 0.0]


def solve_rows(norm, rows):
    plan = make_plan(Request(norm, axes=(1,)), rows.shape, rows.dtype)
    if plan.norm.divisor.measurement is Measurement.QUANTILES:
        measured = measure_quantiles(rows, find_shares(plan))
    else:
        measured = measure_extremes(rows, Workspace())
    with np.errstate(all="ignore"):
        return plan, solve(plan, measured)


def find_exactly(name, row):
    """Return a statistic of finite values as it is defined."""
    statistic = ORDER_STATISTICS[name]
    if (made_of := statistic.combination) is not None:
        left, right = find_exactly(made_of.left, row), find_exactly(made_of.right, row)
        return (left + right if made_of.sign == "+" else left - right) / (2 if made_of.half else 1)
    ordered = sorted(map(Fraction, row.tolist()))
    whole, part = divmod((len(row) - 1) * statistic.percent, 100)
    above = ordered[min(whole + 1, len(row) - 1)]
    return ordered[whole] + Fraction(part, 100) * (above - ordered[whole])


def check(norm, rows):
    plan, solution = solve_rows(norm, rows)
    for i, row in enumerate(rows):
        for name, values in solution.statistics.items():
            assert values[i] == rational.round_once(find_exactly(name, row)), (name, row.tolist())
        centre = find_exactly(plan.norm.centre.value, row)
        require_near(centre, [part[i] for part in solution.mean], 1, 88)
        divisor = find_exactly(plan.norm.divisor.spread, row) or Fraction(1)
        if 2.0**-950 < divisor < 2**1023:
            require_near(divisor, [part[i] for part in solution.divisor], 0, 77)


def require_near(exact, parts, place, bits):
    """Require doubles whose first is the nearest, and which are off by no more than a part of one of them."""
    assert parts[0] == float(exact) or exact < 2.0**-1074
    off = abs(exact - sum(map(Fraction, parts)))
    assert off <= max(abs(Fraction(parts[place])) / 2**bits, Fraction(2.0**-1074 if parts[1] else 0.0))


@pytest.mark.slow
@costly
@pytest.mark.parametrize("norm", BY_ORDER)
@given(
    hnp.arrays(
        "float64",
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
        elements=st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(FEW),
    )
)
def test_any_values(norm, rows):
    check(norm, rows + 0.0)


@pytest.mark.parametrize("norm", BY_ORDER)
def test_values_of_one_magnitude_are_decided_without_exact_arithmetic(norm, monkeypatch):
    rows = np.random.default_rng(3).standard_normal((40, 18)) * 10.0 ** np.arange(-20, 20)[:, None]
    check(norm, rows)
    monkeypatch.setattr(rational, "split", None)
    monkeypatch.setattr(rational, "round_once", None)
    solve_rows(norm, rows)


@pytest.mark.parametrize(
    ("norm", "row", "statistic", "expected"),
    [
        pytest.param("robust", [5e-324, 1e-323, 5.0, -5.0], "median", 1e-323, id="a subnormal median, a tie"),
        pytest.param(
            "midrange", [1.7e308, 1.6e308], "middle", 0.85e308 + 0.8e308, id="a middle whose sum overflows"
        ),
        pytest.param("minmax", [1.7e308, -1.7e308], "range", math.inf, id="a range that overflows"),
        pytest.param("midrange", [1.7e308, -1.7e308], "half_range", 1.7e308, id="half of it does not"),
    ],
)
def test_statistics_at_the_ends_of_the_range(norm, row, statistic, expected):
    assert solve_rows(norm, np.array([row]))[1].statistics[statistic][0] == expected


def test_infinite_and_missing_values_are_what_doubles_give():
    inf, nan = np.inf, np.nan
    rows = np.array([[1.0, inf, 3.0], [-inf, inf, 0.0], [nan, 1.0, 2.0], [1.7e308, 1.7e308, inf]])
    statistics = solve_rows("robust", rows)[1].statistics
    np.testing.assert_array_equal(statistics["median"], [3.0, 0.0, nan, 1.7e308])
    np.testing.assert_array_equal(statistics["iqr"], [inf, inf, nan, inf])
    np.testing.assert_array_equal(solve_rows("minmax", rows)[1].statistics["range"], [inf, inf, nan, inf])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "row",
    [
        pytest.param([-1, -1, -1, 5e-324, 1e-323, 1, 1, 1], id="the centre alone is subnormal"),
        pytest.param([-1.7e308, -1.7e308, -1.0, 1.7e308, 1.7e308], id="the spread alone is beyond doubles"),
        pytest.param([0, 0, -1.6e308, 1.7e308, 0, 1, 2, 3, 4], id="neither, though ends are large"),
        *(
            pytest.param([0, low, low, low, 4 * (1 + part), 5], id=f"a third double decides: {low}, {part}")
            for low in (0.0, 2.0**-170, -(2.0**-170))
            for part in (2.0**-52, 3 * 2.0**-52)
        ),
        *(
            pytest.param([-third, -third, 0.0, 0.0, 1.0, 1.0 + part], id=f"of a spread: {third}, {part}")
            for third in (2.0**-78, 3 * 2.0**-78, 2.0**-170)
            for part in (0.0, 2.0**-52)
        ),
        pytest.param([-1, -3 * 2.0**-76, -(2.0**-170), 0, 1, 1], id="a third double decides what is kept"),
        pytest.param([-(2.0**900), -(2.0**900), 0, 2.0**970, 2.0**970], id="of a large spread, all bits"),
    ],
)
def test_what_the_centre_or_the_spread_alone_leaves_open(row, sign):
    check("robust", sign * np.array([row], dtype=float))


@pytest.mark.parametrize(
    ("values", "quantiles"),
    [
        pytest.param(
            [1e60, -1.6368169550289078e-35, -5.724254562326273e-304, -1.4050568178672709e-267], (33.3, 60),
            id="values 10¹²⁷ times as large as the range of the quantiles",
        ),
        pytest.param([-1.7e308, 5e-324, 1e-323, 1.7e308], (0, 100), id="a range that is no double"),
    ],
)  # fmt: skip
def test_values_about_a_faint_median_that_is_no_double(values, quantiles):
    x = np.array(values)[:, None]
    plan = make_plan(Request("robust", quantiles=quantiles), x.shape, x.dtype)
    solved = solve_group(plan, x)
    expected = [round_once((Real.of(value) - solved.centre) / solved.divisor, "float64") for value in values]
    assert normalize(x, "robust", quantiles=quantiles).normalized[:, 0].tolist() == expected


@pytest.mark.parametrize("norm", BY_ORDER)
def test_what_is_told_to_be_exact_is(norm):
    rows = np.random.default_rng(3).standard_normal((40, 5)).round(1)
    rows[::2] = np.round(rows[::2] * 4.0)
    _, solution = solve_rows(norm, rows)
    assert not solution.error.all()
    for group in np.flatnonzero(solution.error == 0.0).tolist():
        assert solution.ask(group, 0) == (add_up(solution.mean, group), add_up(solution.divisor, group))
