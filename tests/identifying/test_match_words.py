"""A match in words: each part of it has its place, and only where there is one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.identifying.question import Question
from normcli.identifying.search.affine_step import AffineStep
from normcli.identifying.search.groups import Hypothesis
from normcli.identifying.search.match import Furthest
from normcli.identifying.words.match_words import (
    choose_others,
    format_axes,
    format_fitted,
    format_match,
    list_exactness,
    list_fitted,
    name_frameworks,
)
from normcli.norms.layout import make_layout
from normcli.norms.rules import GroupOrder
from normcli.norms.spec import Window
from tests.identifying.diagnoses import FOUND, X, reproduce

LAYOUT = make_layout("NLC", 3)
LN = "layer normalization over c, eps 1e-05"
EXACT = "the exact ones, rounded"


def say(match, gamma=None, beta=None):
    return format_match(match, Question(X, X, gamma, beta, "NLC"), LAYOUT)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({}, f"{LN} (torch)", id="as it is"),
        pytest.param({"like": ("torch", "jax", "keras", "mlx")}, f"{LN} (torch, jax, keras, …)", id="names"),
        pytest.param({"eps_mode": "outside"}, f"{LN} outside the root (torch)", id="outside"),
        pytest.param({"eps_range": (0.0, 1.29e-5)}, "layer normalization over c, any eps up to 1.2e-05 (torch)", id="rounded down"),
        pytest.param({"eps_range": (0.0, math.inf)}, "layer normalization over c, any eps (torch)", id="any"),
        pytest.param({"order": (0, 2, 1)}, f"{LN}, its axes in the order (0, 2, 1) (torch)", id="order"),
        pytest.param({"norm": "gn", "groups": 2, "group_order": GroupOrder.INTERLEAVED}, "group normalization over c, 2 interleaved groups, eps 1e-05", id="groups"),
        pytest.param({"norm": "lp", "p": 1.5, "eps_mode": None, "eps_range": (0.0, 2.5)}, "ℓp normalization over c, p 1.5, any eps up to 2.5", id="a length"),
        pytest.param({"norm": "lp", "p": 2.0, "eps_mode": "outside"}, "ℓp normalization over c, p 2, eps 1e-05 added to the length", id="added"),
        pytest.param({"norm": "lrn", "window": Window(1, 2, 4, 0.5, 0.75, 2.0, 4), "eps_range": (0.0, 0.0)}, "local response normalization over c, windows of 4", id="a window"),
        pytest.param({"norm": "minmax", "eps_range": (0.0, 0.0)}, "min-max scaling over c", id="no eps"),
        pytest.param({"affine": "swapped"}, f"{LN}, with gamma and beta exchanged (torch)", id="exchanged"),
        pytest.param({"affine": "estimated"}, f"{LN}, a fitted gamma and beta (torch)", id="fitted"),
    ],
)  # fmt: skip
def test_each_part_of_a_match_is_said(changed, said):
    match = FOUND._replace(**changed)
    assert say(match if match.norm == "ln" else match._replace(like=())) == said


def test_a_framework_whose_eps_is_given_says_so():
    match = FOUND._replace(norm="mvn", like=("onnx", "openvino"))
    assert name_frameworks(match, 2) == "onnx, openvino with this eps"
    assert name_frameworks(match, 1) == "onnx, …"


def test_what_was_given_and_did_not_enter_is_said():
    g = np.ones(5)
    assert say(FOUND, g, g) == f"{LN}, without the given gamma and beta (torch)"
    assert say(FOUND._replace(affine="gamma"), g, g) == f"{LN}, then gamma, without the given beta (torch)"
    assert say(FOUND._replace(affine="gamma, beta"), g, g) == f"{LN}, then gamma and beta (torch)"


@pytest.mark.parametrize(
    ("scale", "shift", "factor"),
    [
        pytest.param([1.28, 1.28, 1.2801], None, "1.28", id="one number"),
        pytest.param([1.28, 1.28, 1.2801], [1e-8, 0.0, 0.0], "1.28", id="no beta"),
        pytest.param([-2.0, -2.0], None, "-2", id="negative"),
        pytest.param([12**-0.5], None, "1/√12", id="a root of a length"),
        pytest.param([60**0.5], None, "√60", id="of a count"),
        pytest.param([5**-0.5], None, "0.44721", id="of neither"),
        pytest.param([1.28, 1.29], None, None, id="two"),
        pytest.param([1.28, 1.28], [0.0, 0.1], None, id="a beta"),
        pytest.param(None, [1.0], None, id="no gamma"),
    ],
)
def test_a_fitted_gamma_that_is_one_number_is_said(scale, shift, factor):
    step = AffineStep("estimated", *(None if values is None else np.array(values) for values in (scale, shift)))
    match = FOUND._replace(affine="estimated", axes=(1, 2), hypothesis=Hypothesis(None, step, None))
    said = "a fitted gamma and beta" if factor is None else f"a gamma of {factor} everywhere"
    assert format_fitted(match, Question(*np.ones((2, 3, 5, 12)))) == said


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({}, ["every value is the exact one, rounded"]),
        ({"affine": "estimated"}, []),
        (
            {"equal": 0.744, "precision": "float64", "furthest": Furthest((1, 2, 3), 1 / 3, 0.5)},
            [f"74.4 % of the values are {EXACT}", "y is 0.5 at (1, 2, 3), where exact is 0.333333333333333315", "a kernel that rounds in float64 can give that"],
        ),
    ],
)  # fmt: skip
def test_how_exact_it_is(changed, lines):
    assert [*list_exactness(FOUND._replace(**changed))] == lines


def test_the_algorithm_that_gives_the_bits_is_named_and_others_that_do():
    names = ["two-pass:float32", "one-pass:float32", "welford:float32", "two-pass:float64", "one-pass:float64"]
    told = [reproduce(name) for name in names]
    first, rest = f"{names[0]} gives every bit: {told[0].words}", f"30 % of the values are {EXACT}"
    assert [*list_exactness(FOUND, told[:1])] == [*list_exactness(FOUND, told[:1] * 2)] == [first, rest]
    assert [*list_exactness(FOUND, told[:4])] == [first, f"as many bits are of {', '.join(names[1:4])}", rest]
    assert [*list_exactness(FOUND, told)][1] == f"as many bits are of {', '.join(names[1:4])}, …"
    part = [told[0]._replace(equal=0.995)]
    assert next(list_exactness(FOUND, part)).startswith("two-pass:float32 gives 99.5 % of the bits: ")


def test_matches_that_read_otherwise_are_others():
    one, two = (FOUND._replace(axes=axes) for axes in [(1,), (0, 1)])
    assert choose_others(FOUND, [one, two, one, FOUND._replace(users=3)]) == [one, two]
    assert choose_others(FOUND, [one._replace(by_default=False), two._replace(eps=0.123)]) == []
    assert choose_others(FOUND._replace(by_default=False), [one]) == [one]
    hidden = FOUND._replace(eps_range=(0.0, 1e-5))
    assert choose_others(hidden, [hidden._replace(eps_mode="outside")]) == []
    assert choose_others(FOUND, [FOUND._replace(eps_mode="outside")]) != []


@pytest.mark.parametrize(
    ("norm", "affine", "modes", "said"),
    [
        ("ln", "estimated", ["inside"], ["the fitted gamma hides ddof"]),
        ("ln", "estimated", ["inside", "outside"], ["the fitted gamma hides ddof", "eps outside the root fits as well"]),
        ("rms", "estimated", ["inside", "outside"], ["eps outside the root fits as well"]),
        ("rms", "estimated", ["inside"], []),
        ("ln", "gamma, beta", ["inside", "outside"], []),
    ],
)  # fmt: skip
def test_what_a_fitted_gamma_hides_is_said(norm, affine, modes, said):
    matches = [FOUND._replace(norm=norm, affine=affine, eps_mode=mode) for mode in modes]
    other = FOUND._replace(norm="gn", affine=affine, eps_mode="floor")
    assert list(list_fitted(matches[0], [*matches, other])) == said


def test_axes_are_named():
    assert format_axes((0, 2), LAYOUT) == "n c"
    assert format_axes((0, 3), make_layout(None, 7)) == "axis0 axis3"
    assert format_axes((), LAYOUT) == "no axis"
