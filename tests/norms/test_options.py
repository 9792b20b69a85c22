"""The table of options walked row by row, and each way that a value of one is written and read back."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from normcli.errors import UsageError
from normcli.norms.option_kinds import OptionKind
from normcli.norms.options import NAMES, OPTIONS, find_option, list_own_options
from normcli.norms.request import Request
from normcli.norms.table import NORMS

VALUES = {
    OptionKind.INTEGER: (0, 3), OptionKind.NUMBER: (0.1, 1e-5, 2.0, math.inf), OptionKind.TEXT: ("NCL",),
    OptionKind.AXES: ("CL", (0, -1), ("C",), 1), OptionKind.FRAMEWORK: ("torch",),
    OptionKind.PAIR: ((10.0, 97.5),), OptionKind.FLAG: (True,), OptionKind.VECTOR: ((0.5, -1.0, 0.0),),
    OptionKind.SLICE: ((0, 4),),
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


OF_GAMMA, OF_EPS = ("feature_axes", "gamma_offset"), ("eps", "eps_mode")


@pytest.mark.parametrize(
    ("norm", "names"),
    [
        ("rms", (*OF_GAMMA, "groups", "group_order", *OF_EPS, "over")),
        ("lrn", ("size", "alpha", "exponent", "k")),
        ("gn", (*OF_GAMMA, "groups", "group_order", *OF_EPS, "ddof")),
        ("maxabs", ()),
        ("minmax", (*OF_GAMMA, "range")),
        ("zscore", (*OF_EPS, "ddof", "no_mean", "no_scale")),
        ("robust", ("quantiles", "no_mean", "no_scale")),
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


IN_RANGE = {
    "eps": ((0.0, 1e-12, 1e300), (-1e-300, math.inf, math.nan)),
    "ddof": ((0, 1, 7), (-1,)),
    "p": ((0.0, -2.0, 0.5, math.inf, -math.inf), (math.nan,)),
    "size": ((1, 2, 100), (0, -1)),
    "iterations": ((0, 1, 1000), (-1, 1001)),
    **dict.fromkeys(("u", "v"), (((1.0,), (0.0, -2.0)), ((), (0.0, 0.0), (1.0, math.inf), (math.nan, 1.0)))),
    **dict.fromkeys(("alpha", "exponent", "k"), ((0.0, -1.0, 1e300), (math.inf, -math.inf, math.nan))),
    "range": (
        ((0.25, 0.75), (-1.0, 1.0), (0.0, 5e-324), (-8e307, 8e307)),
        ((0.0, 0.0), (1.0, -1.0), (-1e308, 1e308), (0.0, math.nan)),
    ),
    "quantiles": (
        ((0.0, 100.0), (25.0, 75.0), (0.0, 0.001), (99.999, 100.0), (2.125, 97.5)),
        ((50.0, 50.0), (75.0, 25.0), (-0.5, 50.0), (50.0, 100.5), (10.0, 97.0625), (2.0625, 90.0), (0.0, math.nan)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_RANGE)
def test_which_values_are_in_range(name):
    option, (allowed, refused) = find_option(name), IN_RANGE[name]
    for value in allowed:
        option.check(value)
    for value in refused:
        with pytest.raises(UsageError, match=f"^{name} (.* )?is {re.escape(option.requirement)}$"):
            option.check(value)


DEFAULTS = {
    "gn": {"group_order": "contiguous", "eps": 1e-5, "eps_mode": "inside", "ddof": 0, "groups": None},
    "mvn": {"eps": 1e-9, "eps_mode": "outside"},
    "lp": {"eps": 1e-12, "p": 2.0},
    "lrn": {"size": 5, "alpha": 1e-4, "exponent": 0.75, "k": 1.0},
    "robust": {"quantiles": (25.0, 75.0), "no_mean": None},
    "minmax": {"range": None, "layout": None, "dtype": None},
}


@pytest.mark.parametrize("norm", DEFAULTS)
def test_what_is_taken_where_nobody_chooses(norm):
    assert {name: find_option(name).find_default(NORMS[norm]) for name in DEFAULTS[norm]} == DEFAULTS[norm]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("eps_mode", "above", "eps_mode 'above' is neither 'inside' nor 'outside'"),
        ("dtype", "int8", "dtype 'int8' is none of float16, bfloat16, float32, float64"),
        ("range", (1.0, 0.5), "range 1,0.5 is not a lower and a higher bound"),
        ("size", 10**20, "size 100000000000000000000 is not a window of 1 to 2⁵³ channels"),
    ],
)
def test_a_value_out_of_range_is_named_as_it_was_written(name, value, message):
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        find_option(name).check(value)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("size", "1.5", "an integer"),
        ("eps", "small", "a number"),
        ("range", "1", "two numbers"),
        ("range", "1,2,3", "two numbers"),
        ("no_mean", "true", "yes or no"),
    ],
)
def test_a_word_of_another_kind_is_named(name, text, expected):
    with pytest.raises(UsageError, match=f"^{name} takes {expected}, not '{text}'$"):
        find_option(name).parse(text)


@pytest.mark.parametrize("name", ["eps", "size", "range", "quantiles", "no_mean"])
def test_texts_are_no_numbers_in_python(name):
    with pytest.raises(UsageError, match=f"^{name} '1' is not "):
        find_option(name).convert("1")


@pytest.mark.parametrize(
    ("name", "value", "converted"),
    [
        pytest.param("axes", np.int64(2), 2, id="an integer of NumPy"),
        pytest.param("axes", [np.int64(0), "C"], (0, "C"), id="letters among numbers"),
        pytest.param("eps", np.float32(0.5), 0.5, id="a float of NumPy"),
        pytest.param("range", [0, 1], (0.0, 1.0), id="a list of integers"),
        pytest.param("no_mean", False, None, id="a flag that is down"),
        pytest.param("no_mean", np.True_, True, id="a boolean of NumPy"),
        pytest.param("no_scale", np.ones((), bool), True, id="an array of one boolean"),
    ],
)
def test_arguments_are_converted(name, value, converted):
    found = find_option(name).convert(value)
    assert found == converted
    assert type(found) is type(converted)


def test_infinities_are_words_of_json_for_numbers_alone():
    assert find_option("p").describe(-math.inf) == "-inf"
    assert find_option("p").read("-inf") == -math.inf
    assert find_option("layout").read("inf") == "inf"
