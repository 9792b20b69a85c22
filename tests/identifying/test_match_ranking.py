"""Which of several matches is named first, and when one is more than chance."""

from __future__ import annotations

import itertools

import pytest

from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.search.match import Furthest, Match, rank_matches

LIKELY = Match(
    "ln", (1,), "float32", ("torch",), 0.5, 1e-7, 0.9, 1000, Furthest((0, 0), 1.0, 1.0), (0, 1),
    eps=1e-5, users=2,
)  # fmt: skip
"""What is named before each of those below."""


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"eps": 0.123}, id="an eps that nobody uses"),
        pytest.param({"equal": 0.79}, id="fewer values to the bit"),
        pytest.param({"has_default_eps": False}, id="no default eps"),
        pytest.param({"max_abs": 1e-5}, id="further off"),
        pytest.param({"by_default": False}, id="axes that were chosen"),
        pytest.param({"norm": "zscore", "affine": "gamma"}, id="a gamma of a norm that has none"),
        pytest.param({"users": 0}, id="of no framework"),
        pytest.param({"users": 1}, id="of fewer frameworks"),
        pytest.param({"groups": 1, "users": 5}, id="one group of all channels"),
        pytest.param({"affine": "swapped"}, id="an unlikely way"),
        pytest.param({"ddof": 1}, id="ddof"),
        pytest.param({"norm": "in"}, id="a later norm of the table"),
        pytest.param({"equal": 0.89}, id="a few values fewer to the bit"),
    ],
)
def test_the_likelier_is_named_first(changed):
    other = LIKELY._replace(**changed)
    for both in itertools.permutations([LIKELY, other]):
        assert rank_matches(both) == [LIKELY, other]


@pytest.mark.parametrize(("others", "is_first"), [(4, True), (5, False)])
def test_where_one_gives_every_bit_few_others_may_be_an_accident(others, is_first):
    every, most = (LIKELY._replace(equal=equal, compared=1024) for equal in (1.0, 1.0 - others / 1024))
    every = every._replace(users=0)
    assert (rank_matches([every, most])[0] == most) == is_first


@pytest.mark.parametrize(
    ("changed", "is_certain"),
    [
        pytest.param({}, True, id="as it is"),
        pytest.param({"bits": 20.0}, True, id="evidence enough"),
        pytest.param({"bits": 19.9}, False, id="too little"),
        pytest.param({"is_odd": True}, False, id="an odd eps"),
        pytest.param({"has_default_eps": False}, True, id="another eps"),
        pytest.param({"has_default_eps": False, "fine": 20.0}, True, id="another eps that shows"),
        pytest.param({"has_default_eps": False, "fine": 19.9}, True, id="another eps that need not be there"),
        pytest.param(
            {"has_default_eps": False, "fine": 19.9, "eps_range": (1e-6, 1.0)}, False, id="another eps that may be rounding"
        ),
        pytest.param({"fine": 0.0}, True, id="a default eps"),
        pytest.param({"precision": "float16"}, False, id="sums of half precision"),
        pytest.param({"precision": "bfloat16, rounded before gamma"}, False, id="and x̂ rounded"),
        pytest.param({"equal": 0.0, "max_ulp": 65.0}, True, id="none to the bit"),
        pytest.param({"equal": 0.0, "lost": 1.0}, False, id="none to the bit, and blurred"),
        pytest.param({"equal": 0.99, "lost": 1.0}, True, id="most to the bit"),
        pytest.param({"equal": 0.0, "lost": 1.0, "affine": ESTIMATED}, True, id="with a gamma that was fitted"),
    ],
)  # fmt: skip
def test_when_a_match_is_more_than_chance(changed, is_certain):
    assert LIKELY._replace(**changed).is_certain == is_certain
