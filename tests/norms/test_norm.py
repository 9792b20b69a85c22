"""What follows from a row of the table of norms."""

from __future__ import annotations

import pytest

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
