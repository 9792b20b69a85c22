"""What follows from a row of the table of norms."""

from __future__ import annotations

import pytest

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


def test_what_is_said_of_a_divisor_of_0():
    assert [NORMS[norm].format_zero(ZeroRule.ONE) for norm in ("bn", "lp")] == ["x − mean", "x"]
