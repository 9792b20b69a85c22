"""What is said of a tensor that was judged is in Chinese as a whole, whatever its parts are."""

import re

import numpy as np
import pytest

from normcli.answers.judging.identification import build_verdict
from normcli.checking.gradient_faults import list_faults
from normcli.checking.ulp import choose_counting_dtype
from normcli.identifying.faults.claim import FAULTS
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.identifying.models.line_fit import PlainMap
from normcli.identifying.question import VERDICTS, Diagnosis, Identification, Question
from normcli.identifying.words.map_words import tell_sigma
from normcli.identifying.words.phrasing import diagnose
from normcli.identifying.words.request_phrasing import diagnose_request
from normcli.language import choose_language, translate
from normcli.language.reading import find_foreign_words
from normcli.norms.conventions import CONVENTIONS
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from tests.identifying.diagnoses import list_diagnoses
from tests.marks import costly
from tests.plants.faults import TABLE, make_wrong
from tests.plants.wrong_kernels import ask

FRAMEWORKS = {convention.framework for convention in CONVENTIONS}
SCALERS = {"StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler"}
OWN = {*SCALERS, "ImageNet", "False", "identify", "generate"}
ENGLISH_MARKS = re.compile("[\u4e00-\u9fff）][,;:.](?!\\w)|[,;:] ?[\u4e00-\u9fff（]|[.;]。|上上|  ")


@pytest.fixture(autouse=True)
def _in_chinese():
    choose_language("zh")
    yield
    choose_language("en")


def assert_is_chinese(sentence):
    said = translate(sentence)
    assert set(find_foreign_words(said)) <= {*FRAMEWORKS, *NORMS, *OWN}, sentence
    assert not ENGLISH_MARKS.search(said), said


def assert_all_is_chinese(told: Diagnosis):
    line = build_verdict(told, None)
    for text in (*line.marked, *(text for detail in line.details for text in detail)):
        if not text.startswith("normcli ") or "without" in text:
            assert_is_chinese(text)


@pytest.mark.slow
def test_every_diagnosis():
    for told in list_diagnoses():
        assert_all_is_chinese(told)


def test_verdicts_are_explained():
    for line in VERDICTS.values():
        assert_is_chinese(line)


@pytest.mark.parametrize("factor", [0.1, 0.1483, 0.31, 0.4])
def test_a_matrix_divided_by_an_estimate(factor):
    w = np.array([[3.0, 1.0, 0.5], [4.0, 5.0, 2.0]])
    for chosen in ({}, {"iterations": 3, "u": (1.0, 2.0)}):
        plan = make_plan(Request("sn", **chosen), w.shape, w.dtype)
        found = Identification(Question(w, w * factor), (), plain=PlainMap((), np.array(factor), np.array(0.0)))
        assert_all_is_chinese(tell_sigma(plan, found))


@pytest.mark.parametrize("count", [1, 4])
def test_how_many_derivatives_there_are_not(count):
    text = f"dx is NaN for {count} of 8 values: groups of numbers that are not finite, or divided by 0, have no derivative"
    assert_is_chinese(text)
    assert translate(text).startswith(f"8 个值中有 {count} 个的 dx 为 NaN")


# -- faults


def test_what_is_listed_of_faults():
    for fault in (*(row.fault for row in FAULTS), *list_faults()):
        assert_is_chinese(fault.generalize().words)
        assert_is_chinese(f"fix: {fault.generalize().remedy}")
    for name in ("divisor", "mean", "gamma", "beta"):
        assert_is_chinese(f"the first {name} that differs: the kernel's is 2.5, the exact one 1.25")


FIRST = {row.ids[0]: row for row in reversed(TABLE)}
"""The first wrong kernel of each fault."""


@pytest.mark.slow
@costly
@pytest.mark.parametrize("name", FIRST)
def test_what_is_said_of_a_wrong_kernel(name):
    asked = ask(make_wrong(FIRST[name], 0), is_checked=True)
    claims = open_joints([*open_cases((asked.subject,), asked.y, choose_counting_dtype(asked.y.dtype))])
    for claim in claims:
        found = Identification(asked, (), claims=(claim,))
        assert_all_is_chinese(diagnose(found))
        assert_all_is_chinese(diagnose_request(claim.plan, found))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("gamma is not applied, and eps is 1e-06, not 1e-05", "没有乘 gamma，且 eps 是 1e-06，而不是 1e-05"),
        ("|gamma| multiplies for n=5 … 7, l ≥ 10", "乘的是 |gamma|，在 n=5 … 7, l ≥ 10 处"),
        ("this is so for l=0, 2 … 6, c ≥ 4", "仅有一部分如此，在 l=0、2 … 6, c ≥ 4 处"),
        (
            "y is right, except for 3 values, the first at (0, 3)",
            "y 只有一部分不对，共 3 个值，首个在 (0, 3) 处",
        ),
        ("y is 0 from an index of l on that differs by n", "y 是 0，从 l 的某个下标起，该下标随 n 而异"),
        ("statistics are over n×c of a group×h", "统计量取自组内的 n×c×h"),
        ("statistics are taken from group − 1", "统计量取自组 − 1"),
        ("statistics are of the first 3 of 9 along a group", "统计量只取自每组 9 个值中的前 3 个"),
    ],
)
def test_what_is_wrong_and_where(cause, said):
    assert translate(f"ln differs: {cause}") == f"ln 不同：{said}"
    assert translate(f"y is ln, but {cause}") == f"y 是 ln，但 {said}".replace(
        "但 ", "但" if said[0] > "\u4e00" or said[0] == "|" else "但 "
    )
