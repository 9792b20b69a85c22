"""What `identify` may find, of every kind: for the tests of what is said of it, in English and in Chinese."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.checking.fault import Fault
from normcli.identifying.faults.claim import Claim
from normcli.identifying.models.known_maps import CONSTANTS, SCALERS, Evaluation
from normcli.identifying.models.line_fit import PlainMap
from normcli.identifying.models.matrix_model import Steps
from normcli.identifying.question import Identification, Question
from normcli.identifying.reproduction import Candidate, Reproduction
from normcli.identifying.search.affine_step import NO_AFFINE, WAYS, AffineStep
from normcli.identifying.search.match import Furthest, Match
from normcli.identifying.words.phrasing import diagnose
from normcli.identifying.words.request_phrasing import diagnose_request
from normcli.norms.conventions import list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import GroupOrder
from normcli.norms.spec import Window
from normcli.norms.table import NORMS
from normcli.numerics.statistics.solution import Given

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.identifying.question import Diagnosis

X = np.random.default_rng(0).normal(0.7, 2.0, (3, 4, 5)).astype("f4")
FOUND = Match(
    "ln", (2,), "float32", ("torch",), 0.5, 1e-7, 1.0, 60, Furthest((1, 2, 3), 1.25, 1.5), (0, 1, 2),
    eps=1e-5, eps_range=(9e-6, 1.1e-5), eps_mode="inside",
)  # fmt: skip
"""Layer normalization over the last axis, as torch has it."""

DOUBTFUL = FOUND._replace(bits=9.0, equal=0.5)

PARTS = [
    {}, {"ddof": 1}, {"axes": (1, 2)}, {"eps_mode": "outside", "ddof": 1}, {"eps_range": (0.0, math.inf), "ddof": 1},
    {"eps_range": (0.0, 1.29e-5)}, {"eps_range": (0.0, 0.1), "eps_mode": "outside"}, {"order": (0, 2, 1), "ddof": 1},
    {"eps_range": (0.0, 0.0)}, {"equal": 0.744}, {"like": ()}, {"like": ("onnx", "openvino"), "norm": "mvn"},
    {"norm": "gn", "groups": 1, "group_order": GroupOrder.CONTIGUOUS}, {"norm": "gn", "groups": 2, "group_order": GroupOrder.INTERLEAVED, "ddof": 1},
    {"norm": "gn", "groups": 2, "group_order": GroupOrder.CONTIGUOUS, "affine": "gamma"}, {"norm": "lp", "p": 2.0, "eps_mode": "outside", "like": ()},
    {"norm": "lp", "p": 1.5, "eps_mode": None, "eps_range": (0.0, 2.5)}, {"norm": "lrn", "window": Window(1, 2, 4, 0.5, 0.75, 2.0, 4)},
    {"norm": "sn", "axes": (0, 1, 2), "rows": (0,), "eps_range": (0.0, 0.0)},
    *({"norm": "sn", "axes": (0, 1, 2), "rows": (1,), "steps": Steps("v", *told), "equal": 0.5} for told in [(1, 1, False), (13, 13, False), (2, 4, False), (9, None, False), (9, None, True)]),
    *({"affine": way} for way in WAYS),
    *({"norm": name, "axes": (0, 1), "like": tuple(list_frameworks(name))} for name in NORMS if name != "lrn"),
]  # fmt: skip
"""What may be otherwise in a match."""

PADDED = "divided by a deviation that counts 4 padded zeros"


_FORMULA = RowFormula.of(make_plan(Request("ln"), X.shape, X.dtype))


CLAIM = Claim(
    (Fault("stats-padded-variance", "the variance counts {count} padded zeros", "divide by n", ""),),
    make_plan(Request("ln"), X.shape, X.dtype), ("the variance counts 4 padded zeros",), 0.1, 100.0, rank=1.0,
)  # fmt: skip
"""Of layer normalization."""


def find(*matches: Match, y=X, gamma=None, beta=None, **found) -> Identification:
    return Identification(Question(X, y, gamma, beta, "NLC"), matches, **found)


def make_map(a, b, axes=()):
    lengths = [len(a) if axis in axes else 1 for axis in range(3)]
    values = (np.array(numbers, float).reshape(lengths) for numbers in (a, b))
    return PlainMap(axes, *values)


def reproduce(name, equal=1.0, share=0.3):
    computation, match = parse_computation(name), FOUND._replace(equal=share)
    candidate, words = Candidate(Request("ln"), "none", (0, 1, 2)), computation.describe(_FORMULA)
    return Reproduction(candidate, computation, equal, 60, 30.0, match, words, NO_AFFINE)


def list_found() -> Iterator[Identification]:
    """Yield findings of every kind."""
    g = np.ones(5)
    for changed in PARTS:
        match = FOUND._replace(**changed)
        yield find(match)
        yield find(FOUND._replace(axes=(1,)), match, FOUND._replace(axes=(0, 1)), gamma=g)
    names = ("two-pass:float32", "one-pass:float32", "welford:float32", "two-pass:float64", "one-pass:float64")
    told = tuple(map(reproduce, names))
    for some in (told[:1], told[:2], told, (told[0]._replace(equal=0.995),)):
        yield find(FOUND, reproductions=some)
        yield find(doubtful=(DOUBTFUL,), reproductions=some)
    maps = [([0.5], [0.0], ()), ([0.5], [2.0], ()), ([1.0], [-2.0], ()), ([1, 2, 3], [0, 0, 0], (0,)), ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], (2,))]  # fmt: skip
    for numbers in maps:
        for step in (NO_AFFINE, AffineStep("gamma", np.ones(1)), AffineStep("beta", None, np.ones(1))):
            plain = make_map(*numbers)
            evaluation = Evaluation(np.arange(1.0, 6.0), np.arange(3.0, 8.0), step)
            yield find(plain=plain, evaluation=evaluation, doubtful=(DOUBTFUL, DOUBTFUL._replace(norm="rms")))
            yield find(plain=plain, gamma=g)
    for known in (*CONSTANTS, *SCALERS):
        yield find(plain=make_map([0.5], [1.0]), known=(known.words,))
    for changed in (
        {}, {"is_odd": True, "eps": 3.03}, {"has_default_eps": False, "fine": 19.0, "bits": 20.0, "affine": "gamma"},
        {"precision": "float16, rounded before gamma", "equal": 0.12345},
    ):  # fmt: skip
        yield find(doubtful=(DOUBTFUL._replace(**changed), DOUBTFUL._replace(norm="rms")))
    yield find(reason="the input has fewer than two values")
    yield find(reason="the input is constant: every norm makes the same of it")
    yield find(unchanged=57)
    for pairs, axes in (([0.5], ()), (np.arange(1.0, 6.0), (2,))):
        yield find(plain=make_map(pairs, pairs, axes)._replace(wrong=3, first_wrong=(0, 2)))
    yield find(sampled=1000)
    yield find(gamma=g)


def list_diagnoses() -> Iterator[Diagnosis]:
    """Yield what is said of each, and of each beside a norm that was asked for."""
    requests = Request("ln", eps=1e-3, ddof=2), Request("gn", groups=5), Request("rms", like="gemma")
    plans = [make_plan(request._replace(layout="NLC"), X.shape, X.dtype) for request in requests]
    given = Given(np.arange(1.0, 6.0), np.arange(3.0, 8.0))
    for number, found in enumerate(list_found()):
        yield diagnose(found)
        yield diagnose_request(plans[number % 3], found)
        yield diagnose_request(plans[0], found, given)
