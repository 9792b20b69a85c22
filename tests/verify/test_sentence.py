"""What was found, in words: each part of a match has its place in the sentence, and only where there is one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.algorithms.computation import parse_computation
from normcli.norms.request import Request
from normcli.norms.spec import Window
from normcli.verify.affine import NO_AFFINE
from normcli.verify.hypothesis import Furthest, Match
from normcli.verify.identify import Identification, Kind, Question
from normcli.verify.nearest import Nearest
from normcli.verify.plain import PlainMap
from normcli.verify.reproduction import Candidate, Reproduction
from normcli.verify.sentence import format_sentence

X = np.random.default_rng(0).normal(0.7, 2.0, (3, 4, 5)).astype("f4")
FOUND = Match(
    "ln", (2,), "float32", ("torch",), 0.5, 1e-7, 1.0, 60, Furthest((1, 2, 3), 1.25, 1.5), (0, 1, 2),
    eps=1e-5, eps_range=(9e-6, 1.1e-5), eps_mode="inside",
)  # fmt: skip
LN = "y is layer normalization (ln) over axis c with eps 1e-05 inside the root"
EXACT = "; every value is the exact one, rounded."


def say(*matches, y=None, layout="NLC", **found):
    question = Question(X, normalize(X, "ln").normalized if y is None else y, layout=layout)
    return format_sentence(Identification(question, matches, **found))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param({}, f"{LN}, as in torch{EXACT}", id="as it is"),
        pytest.param({"like": ("torch", "jax")}, f"{LN}, as in torch, jax{EXACT}", id="names"),
        pytest.param({"like": ()}, f"{LN}; ", id="no name"),
        pytest.param({"eps_mode": "outside"}, LN.replace("inside", "outside"), id="outside"),
        pytest.param({"eps_range": (0.0, 1.29e-5)}, LN.replace("eps 1e-05", "any eps up to 1.2e-05"), id="rounded down"),
        pytest.param({"eps_range": (0.0, 0.1234)}, LN.replace("eps 1e-05", "any eps up to 0.12"), id="of tenths"),
        pytest.param({"eps_range": (0.0, math.inf)}, LN.replace("eps 1e-05 inside the root", "any eps"), id="any"),
        pytest.param({"ddof": 1}, f"{LN} and ddof 1", id="ddof"),
        pytest.param({"order": (0, 2, 1)}, f"{LN} (its axes in the order (0, 2, 1))", id="order"),
        pytest.param({"order": (1, 0, 2)}, f"{LN} (its axes in the order (1, 0, 2))", id="another order"),
        pytest.param({"axes": (1, 2)}, LN.replace("axis c", "axes l, c"), id="axes"),
        pytest.param(
            {"norm": "gn", "groups": 2, "group_order": "interleaved"},
            LN.replace("layer normalization (ln)", "group normalization (gn) with 2 interleaved groups"), id="groups",
        ),
        pytest.param(
            {"norm": "gn", "groups": 1, "group_order": "contiguous"},
            LN.replace("layer normalization (ln)", "group normalization (gn) with 1 contiguous group"), id="one group",
        ),
        pytest.param(
            {"norm": "lp", "p": 1.5, "eps_mode": None, "eps_range": (0.0, 2.5)},
            "y is ℓp normalization (lp) over axis c with p 1.5 with any eps up to 2.5", id="a length",
        ),
        pytest.param(
            {"norm": "lp", "p": 2.0, "eps_mode": "outside"},
            "y is ℓp normalization (lp) over axis c with p 2 with eps 1e-05 added to the length", id="added",
        ),
        pytest.param(
            {"norm": "lrn", "window": Window(1, 2, 4, 0.5, 0.75, 2.0, 4)},
            "y is local response normalization (lrn) over axis c in windows of 4 (1 before, 2 after), "
            "alpha 0.5, exponent 0.75, k 2", id="a window",
        ),
        pytest.param({"norm": "minmax", "eps_range": (0.0, 0.0)}, "y is min-max scaling (minmax) over axis c, as in", id="no eps"),
        pytest.param({"affine": "swapped"}, f"{LN}, with gamma and beta exchanged", id="exchanged"),
        pytest.param({"affine": "estimated"}, f"{LN}, then a gamma and a beta that were fitted to the values, as in torch.", id="fitted"),
        pytest.param(
            {"norm": "mvn", "like": ("onnx", "openvino")},
            LN.replace("layer normalization (ln)", "mean-variance normalization (mvn)")
            + ", as in onnx, openvino (where eps is given);", id="eps that is given",
        ),
    ],
)  # fmt: skip
def test_each_part_of_a_match_is_said(changed, sentence):
    match = FOUND._replace(**changed)
    if match.norm != "ln":
        match = match._replace(like=changed.get("like", ("sklearn",) if match.norm == "minmax" else ()))
    assert say(match, y=X).startswith(sentence)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"cancelled": 0.0567}, "; its variance is E[x²] − E[x]², which cancels: it is off by up to 5.7 %", id="one pass"),
        pytest.param(
            {"equal": 0.744},
            "; 74.4 % of the values are the exact ones, rounded. At (1, 2, 3) exact is 1.25; "
            "a kernel that rounds in float32 can give y's 1.5", id="others",
        ),
        pytest.param(
            {"equal": 0.5, "precision": "float32, rounded before gamma", "furthest": Furthest((0, 0, 0), 1 / 3, 0.5)},
            "; 50 % of the values are the exact ones, rounded. At (0, 0, 0) exact is 0.3333333333; "
            "a kernel that rounds in float32 can give y's 0.5", id="rounded before gamma",
        ),
        pytest.param(
            {"equal": 0.5, "precision": "float64", "furthest": Furthest((0, 0, 0), 1 / 3, 0.5)},
            "exact is 0.333333333333333315; a kernel that rounds in float64 can give y's 0.5", id="long",
        ),
    ],
)  # fmt: skip
def test_how_exact_it_is(changed, words):
    assert f"{words}." in say(FOUND._replace(**changed))


def test_what_another_framework_gives_is_shown_where_it_differs_most():
    exact = normalize(X, "ln", like="torch").normalized.astype("f8")
    place = tuple(map(int, np.unravel_index(np.abs(exact - X).argmax(), X.shape)))
    told = f"; by torch's convention exact is {exact[place]:.9g} at {place}, where y has {X[place]:.9g}."
    other = FOUND._replace(like=("jax",))
    assert told in say(other, y=X)
    largest = float(np.abs(exact - X).max())
    assert told in say(other._replace(max_abs=largest / 4.1), y=X)
    for changed in ({"max_abs": largest / 3.9}, {"like": ("torch",)}, {"affine": "estimated"}):
        assert "convention" not in say(other._replace(**changed), y=X)
    turned = say(other._replace(order=(0, 2, 1)), y=X.transpose(0, 2, 1))
    assert told.rstrip(".") in turned


def test_matches_that_read_otherwise_are_named_up_to_three():
    one, two, three, four = (FOUND._replace(axes=axes) for axes in [(1,), (0, 1), (0, 2), (1, 2)])
    named = [
        "layer normalization (ln) over axis l with eps 1e-05 inside the root, as in torch",
        "layer normalization (ln) over axes n, l with eps 1e-05 inside the root, as in torch",
        "layer normalization (ln) over axes n, c with eps 1e-05 inside the root, as in torch",
    ]
    for count in (1, 2, 3):
        sentence = say(FOUND, *(one, two, three)[:count])
        assert sentence.endswith(f"{EXACT} These values fit as well: {'; or '.join(named[:count])}.")
    assert say(FOUND, one, two, three, four).endswith(f"{named[2]}; and 1 more.")
    assert say(FOUND, FOUND._replace(users=3), one, one) == say(FOUND, one)
    assert "fit as well" not in say(FOUND, one._replace(by_default=False), two._replace(eps=0.123))
    assert "fit as well" in say(FOUND._replace(by_default=False), one)
    assert f"{named[0][:-13]}, then gamma, as in torch." in say(FOUND, one._replace(affine="gamma"))


def test_what_is_nearest_and_which_values_it_does_not_explain():
    match = FOUND._replace(max_abs=0.1234)
    near = Nearest(match, 2, 60, (0, 1, 2), 30.0)
    assert say(nearest=near, sampled=1000) == (
        f"{LN}, except for 2 of 60 values, the first at (0, 1, 2). (Compared were whole groups of about 1,000 values.)"
    )
    assert say(nearest=near._replace(bits=20.0)).startswith("y is")
    sentence = say(nearest=near._replace(bits=19.9))
    assert sentence == f"No norm reproduces y; {LN[5:]} comes nearest, with differences of up to 0.123."
    assert (
        say(nearest=near, unchanged=57) == "No norm reproduces y; it is the input, except for 3 of 60 values."
    )
    assert say() == "No norm reproduces y."
    assert say(reason="so it is") == "No norm can be identified: so it is."


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"matches": (FOUND,), "doubtful": (FOUND,)}, Kind.NORM),
        ({"matches": (), "plain": PlainMap((), np.ones((1, 1, 1)), np.ones((1, 1, 1)))}, Kind.AFFINE),
        ({"matches": (), "doubtful": (FOUND,)}, Kind.UNDECIDED),
        ({"matches": ()}, Kind.NONE),
    ],
)
def test_the_kind_is_of_the_first_that_was_found(found, kind):
    assert Identification(Question(X, X), **found).kind is kind


def reproduce(name, equal=1.0, share=0.3):
    match, computation = FOUND._replace(equal=share), parse_computation(name)
    return Reproduction(
        Candidate(Request("ln"), "none", (0, 1, 2)),
        computation,
        equal,
        60,
        30.0,
        match,
        f"the sums of {name}",
        NO_AFFINE,
    )


def test_the_algorithm_that_gives_the_bits_is_named_and_others_that_do():
    one = reproduce("two-pass:float32")
    words = "; computed with the sums of two-pass:float32 (two-pass:float32), which gives every bit"
    exact = "; 30 % are the exact ones, rounded."
    assert f"{words}{exact}" in say(FOUND, reproductions=(one,))
    assert f"{words}{exact}" in say(FOUND, reproductions=(one, one))
    names = ["one-pass:float32", "welford:float32", "two-pass:float64", "one-pass:float64"]
    others = [reproduce(name) for name in names]
    assert f"{words}, as {names[0]} does{exact}" in say(FOUND, reproductions=(one, *others[:1]))
    assert f"{words}, as {names[0]} and {names[1]} do{exact}" in say(FOUND, reproductions=(one, *others[:2]))
    assert f"{words}, as {' and '.join(names[:3])} do{exact}" in say(FOUND, reproductions=(one, *others))
    assert f"{words[:-9]}99.5 % of the bits{exact}" in say(FOUND, reproductions=(one._replace(equal=0.995),))
    assert f" Nearly, it is {LN[5:]}{words}{exact}" in say(doubtful=(FOUND,), reproductions=(one,))
