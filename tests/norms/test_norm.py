"""What follows from a row of the table of norms."""

from __future__ import annotations

import math

import pytest

from normcli.norms.norm import format_subscript
from normcli.norms.rules import ZeroRule
from normcli.norms.table import NORMS

BOTH = ("gamma", "beta")


@pytest.mark.parametrize(
    ("norm", "parameters", "drawn", "gradients"),
    [
        ("bn", BOTH, BOTH, ("dx", "dgamma", "dbeta")),
        ("rms", BOTH, ("gamma",), ("dx", "dgamma", "dbeta")),
        ("wn", ("gamma",), ("gamma",), ("dx", "dgamma")),
        ("lp", (), (), ("dx",)),
        ("minmax", BOTH, BOTH, ()),
        ("maxabs", (), (), ()),
        ("robust", (), (), ()),
        ("sn", (), (), ("dx",)),
    ],
)
def test_parameters_and_gradients(norm, parameters, drawn, gradients):
    row = NORMS[norm]
    assert (row.parameter_names, row.drawn_names, row.gradient_names) == (parameters, drawn, gradients)
    assert row.leave_out(centring=True, division=False).gradient_names == ()


def test_which_norms_go_by_order_and_which_span_a_range():
    def find(holds):
        return {name for name, row in NORMS.items() if holds(row)}

    assert find(lambda row: row.is_by_order) == {"minmax", "midrange", "maxabs", "robust"}
    assert find(lambda row: row.spans_range) == {"minmax"}
    assert find(lambda row: row.tracks) == {"bn", "in"}
    assert find(lambda row: row.has_optional_steps) == {"zscore", "robust"}
    assert find(lambda row: row.zero_rule is ZeroRule.ONE) == {"zscore", "midrange", "robust"}


def test_statistics_are_those_of_any_quantiles():
    assert NORMS["robust"].all_statistics == ("median", "q1", "q3", "iqr", "q_low", "q_high", "q_range")
    assert NORMS["bn"].all_statistics == NORMS["bn"].statistics


@pytest.mark.parametrize("quantiles", [None, (25.0, 75.0)])
def test_own_quantiles_change_nothing(quantiles):
    assert NORMS["robust"].choose_quantiles(quantiles) is NORMS["robust"]
    assert NORMS["robust"].choose_quantiles((10.0, 75.0)).divisor.spread == "q_range"


@pytest.mark.parametrize(
    ("centring", "division", "formula"),
    [
        (False, False, "(x − mean) / √var"),
        (True, False, "x / √var"),
        (False, True, "x − mean"),
        (True, True, "x"),
    ],
)
def test_the_formula_of_the_steps_that_are_left(centring, division, formula):
    row = NORMS["zscore"].leave_out(centring=centring, division=division)
    assert row.formula() == formula
    assert row.is_partial == (centring or division)


def test_a_formula_without_the_division_of_alpha():
    assert NORMS["lrn"].formula(divides_alpha=False) == "x / (k + alpha · Σx²)^exponent"


@pytest.mark.parametrize(
    ("norm", "rule", "word"),
    [
        ("bn", ZeroRule.ONE, "x − mean"),
        ("lp", ZeroRule.ONE, "x"),
        ("bn", ZeroRule.ZERO, "0"),
        ("bn", ZeroRule.NAN, "nan"),
    ],
)
def test_what_is_said_of_a_divisor_of_0(norm, rule, word):
    assert NORMS[norm].format_zero(rule) == word


@pytest.mark.parametrize(
    ("p", "text"), [(None, "ₚ"), (2.0, "₂"), (-math.inf, "₋∞"), (10.0, "₁₀"), (1e20, "₁e₊₂₀")]
)
def test_subscripts(p, text):
    assert format_subscript(p) == text
