"""The table of options walked row by row, and each way that a value of one is written and read back."""

from __future__ import annotations

import math

import pytest

from normcli.errors import UsageError
from normcli.norms.options import NAMES, OPTIONS, Option, OptionKind, list_own_options
from normcli.norms.request import Request
from normcli.norms.table import NORMS

VALUES = {
    OptionKind.INTEGER: (0, 3), OptionKind.NUMBER: (0.1, 1e-5, 2.0, math.inf), OptionKind.TEXT: ("NCL",),
    OptionKind.AXES: ("CL", (0, -1), ("C",), 1), OptionKind.FRAMEWORK: ("torch",),
    OptionKind.PAIR: ((10.0, 97.5),), OptionKind.FLAG: (True,),
}  # fmt: skip
ROWS = [pytest.param(option, id=option.name) for option in OPTIONS]


def list_values(option):
    values = option.choices or VALUES[option.kind]
    return [value for value in values if not isinstance(value, int | float) or option.is_allowed(value)]


def test_a_request_has_a_field_for_each_option_in_their_order():
    assert Request._fields == ("norm", *NAMES)


@pytest.mark.parametrize("option", ROWS)
def test_each_option_has_help_and_belongs_to_a_norm(option):
    assert "." in option.help
    assert any(option.belongs_to(norm) for norm in NORMS.values())


@pytest.mark.parametrize(
    ("norm", "names"),
    [
        pytest.param("rms", ("feature_axes", "eps", "eps_mode"), id="rms"),
        pytest.param("lrn", ("size", "alpha", "exponent", "k"), id="lrn"),
        pytest.param("gn", ("feature_axes", "groups", "group_order", "eps", "eps_mode", "ddof"), id="gn"),
        pytest.param("maxabs", (), id="maxabs"),
        pytest.param("wn", ("feature_axes",), id="wn"),
        pytest.param("minmax", ("feature_axes", "range"), id="minmax"),
        pytest.param("zscore", ("ddof", "no_mean", "no_scale"), id="zscore"),
        pytest.param("robust", ("quantiles", "no_mean", "no_scale"), id="robust"),
    ],
)
def test_a_norm_has_the_options_that_mean_something_to_it(norm, names):
    assert list_own_options(NORMS[norm]) == names


@pytest.mark.parametrize("option", ROWS)
def test_each_value_is_allowed_and_comes_back_from_json(option):
    for value in list_values(option):
        assert option.read(option.describe(value)) == option.convert(value) == value


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.kind is not OptionKind.AXES])
def test_each_value_comes_back_from_a_command_line(option):
    for value in list_values(option):
        assert option.parse(option.format(value)) == value


@pytest.mark.parametrize("option", ROWS)
def test_what_is_of_another_kind_is_refused_by_name(option):
    with pytest.raises(UsageError, match=f"^{option.name} "):
        option.convert(object())


def test_no_axes_have_a_text_too():
    assert Option.format(OPTIONS[NAMES.index("axes")], ()) == "()"


@pytest.mark.parametrize("pair", [(0.0, 0.0), (1.0, -1.0), (-1e308, 1e308), (0.0, math.nan)])
def test_a_range_has_a_width_that_float64_holds(pair):
    option = next(option for option in OPTIONS if option.name == "range")
    assert not option.is_allowed(pair)
    assert option.is_allowed((0.25, 0.75))
