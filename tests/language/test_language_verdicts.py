"""The sentence that says what made a tensor is in Chinese as a whole, whatever its parts are."""

import math
import re

import numpy as np
import pytest

from normcli.language import choose_language, translate
from normcli.language.reading import find_foreign_words
from normcli.norms.conventions import CONVENTIONS, list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import GroupOrder
from normcli.norms.spec import Window
from normcli.norms.table import NORMS
from normcli.numerics.solution import Given
from normcli.verify.affine import NO_AFFINE, WAYS, AffineStep
from normcli.verify.estimates import tell_estimate
from normcli.verify.evaluation import Evaluation
from normcli.verify.hypothesis import Furthest, Match
from normcli.verify.identify import Identification, Question
from normcli.verify.known_maps import CONSTANTS, SCALERS
from normcli.verify.matrices import Steps
from normcli.verify.nearest import Nearest
from normcli.verify.other_sentence import format_stored
from normcli.verify.plain import PlainMap
from normcli.verify.sentence import format_sentence
from normcli.verify.slips import _OF_SQUARES

X = np.random.default_rng(0).normal(0.7, 2.0, (3, 4, 5)).astype("f4")
FOUND = Match(
    "ln", (2,), "float32", ("torch",), 0.5, 1e-7, 1.0, 60, Furthest((1, 2, 3), 1.25, 1.5), (0, 1, 2),
    eps=1e-5, eps_range=(9e-6, 1.1e-5), eps_mode="inside",
)  # fmt: skip
FRAMEWORKS = {convention.framework for convention in CONVENTIONS}
OWN = {"StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler", "ImageNet", "False"}
ENGLISH_MARKS = re.compile("[\u4e00-\u9fff）][,;:.](?!\\w)|[,;:] ?[\u4e00-\u9fff（]|[.;]。|上上|  ")


@pytest.fixture(autouse=True)
def _in_chinese():
    choose_language("zh")
    yield
    choose_language("en")


def say(*matches, gamma=None, beta=None, **found):
    return format_sentence(Identification(Question(X, X, gamma, beta, "NLC"), matches, **found))


def assert_is_chinese(sentence):
    said = translate(sentence)
    assert set(find_foreign_words(said)) <= {*FRAMEWORKS, *NORMS, *OWN}, sentence
    assert not ENGLISH_MARKS.search(said), said


def make_map(a, b, axes=()):
    lengths = [len(a) if axis in axes else 1 for axis in range(3)]
    return PlainMap(axes, *(np.array(values, float).reshape(lengths) for values in (a, b)))


PARTS = [
    {}, {"ddof": 1}, {"axes": (1, 2)}, {"eps_mode": "outside", "ddof": 1}, {"eps_range": (0.0, math.inf), "ddof": 1},
    {"eps_range": (0.0, 1.29e-5)}, {"eps_range": (0.0, 0.1), "eps_mode": "outside"}, {"order": (0, 2, 1), "ddof": 1},
    {"eps_range": (0.0, 0.0)}, {"equal": 0.744}, {"cancelled": 0.05}, {"like": ()}, {"like": ("onnx", "openvino"), "norm": "mvn"},
    {"norm": "gn", "groups": 1, "group_order": GroupOrder.CONTIGUOUS}, {"norm": "gn", "groups": 2, "group_order": GroupOrder.INTERLEAVED, "ddof": 1},
    {"norm": "gn", "groups": 2, "group_order": GroupOrder.CONTIGUOUS, "affine": "gamma"}, {"norm": "lp", "p": 2.0, "eps_mode": "outside", "like": ()},
    {"norm": "lp", "p": 1.5, "eps_mode": None, "eps_range": (0.0, 2.5)}, {"norm": "lrn", "window": Window(1, 2, 4, 0.5, 0.75, 2.0, 4)},
    {"norm": "sn", "axes": (0, 1, 2), "rows": (0,), "eps_range": (0.0, 0.0)},
    *({"norm": "sn", "axes": (0, 1, 2), "rows": (1,), "steps": Steps("v", *told), "equal": 0.5} for told in [(1, 1, False), (13, 13, False), (2, 4, False), (9, None, False), (9, None, True)]),
    *({"affine": way} for way in WAYS),
    *({"norm": name, "axes": (0, 1), "like": tuple(list_frameworks(name))} for name in NORMS if name != "lrn"),
]  # fmt: skip
"""What may be otherwise in a match."""


@pytest.mark.parametrize("changed", PARTS, ids=str)
def test_a_norm_however_it_was_done(changed):
    match = FOUND._replace(**changed)
    assert_is_chinese(say(match))
    assert_is_chinese(say(FOUND._replace(axes=(1,)), match, FOUND._replace(axes=(0, 1)), gamma=np.ones(5)))
    assert_is_chinese(say(nearest=Nearest(match, 2, 60, (0, 1, 2), 30.0)))
    assert_is_chinese(say(nearest=Nearest(match, 2, 60, (0, 1, 2), 3.0), gamma=np.ones(5), beta=np.ones(5)))


@pytest.mark.parametrize(
    ("a", "b", "axes"),
    [([0.5], [0.0], ()), ([0.5], [2.0], ()), ([1.0], [-2.0], ()), ([1, 2, 3], [0, 0, 0], (0,)), ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], (2,))],
)  # fmt: skip
def test_a_plain_map(a, b, axes):
    plain = make_map(a, b, axes)
    for step in (NO_AFFINE, AffineStep("gamma", np.ones(1)), AffineStep("beta", None, np.ones(1))):
        evaluation = Evaluation(np.arange(1.0, 6.0), np.arange(3.0, 8.0), step)
        assert_is_chinese(say(plain=plain, evaluation=evaluation))
    ln = FOUND._replace(bits=9.0)
    assert_is_chinese(say(plain=plain, doubtful=(ln, ln._replace(norm="rms"))))


def test_stored_statistics():
    given = Given(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    for mean, square in [([1, 2], [3.1, 4.1]), ([9, 2], [3, 4]), ([1, 2], [3, 9]), ([9, 2], [3, 9])]:
        evaluation = Evaluation(np.array(mean, float), np.array(square, float), NO_AFFINE)
        found = Identification(Question(X, X), (), plain=make_map([1.0], [0.0]), evaluation=evaluation)
        assert_is_chinese(format_stored(found, given))


@pytest.mark.parametrize("factor", [0.1, 0.31, 0.4])
def test_a_matrix_divided_by_an_estimate(factor):
    w = np.array([[3.0, 1.0, 0.5], [4.0, 5.0, 2.0]])
    for chosen in ({}, {"iterations": 3, "u": (1.0, 2.0)}):
        plan = make_plan(Request("sn", **chosen), w.shape, w.dtype)
        found = Identification(Question(w, w * factor), (), plain=PlainMap((), np.array(factor), np.array(0.0)))
        told = tell_estimate(plan, found)
        assert told
        assert_is_chinese(format_sentence(found) + told)


def test_too_little_evidence():
    ln = FOUND._replace(bits=9.0, equal=0.5)
    for changed in (
        {}, {"is_odd": True, "eps": 3.03}, {"has_default_eps": False, "fine": 19.0, "bits": 20.0, "affine": "gamma"},
        {"precision": "float16, rounded before gamma", "equal": 0.12345}, {"cancelled": 0.2},
    ):  # fmt: skip
        assert_is_chinese(say(doubtful=(ln._replace(**changed),)))


def test_slips():
    told = "y is no norm of the table: x minus its mean over axes h, w"
    for axes in (told, f"{told} in 2 interleaved groups"):
        for square in ("variance", "mean square"):
            for eps in ("eps 1e-05", "an eps of up to 1.5e-05", "without eps", "eps 1e-05, ddof 1"):
                for slip in _OF_SQUARES:
                    assert_is_chinese(f"{axes}, {slip.words.format(what=square)} ({eps}), then gamma and beta.")
        padded = "divided by the root of a variance that counts 4 values of padding, 0 less the mean, beside the 25 of each group"
        for words in ("not divided by anything", "divided by one number for all, 2.5", padded):
            assert_is_chinese(f"{axes}, {words}.")


def test_known_maps():
    for known in (*CONSTANTS, *SCALERS):
        assert_is_chinese(
            f"y = 0.5 · x, one factor for all values. It may be {known.words}, a scaler fitted elsewhere, or no norm at all."
        )


@pytest.mark.parametrize("count", [1, 4])
def test_how_many_derivatives_there_are_not(count):
    text = f"dx is NaN for {count} of 8 values: groups of numbers that are not finite, or divided by 0, have no derivative"
    assert_is_chinese(text)
    assert translate(text).startswith(f"8 个值中有 {count} 个的 dx 为 NaN")
