"""Tensors that tell apart what fits."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from normcli import normalize
from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.identifying.identify import identify
from normcli.identifying.question import Identification, Question
from normcli.identifying.search.match import Furthest, Match
from normcli.identifying.words.suggestion import suggest
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.tensors.random.generate import generate
from tests.conftest import save


@pytest.mark.slow
def test_algorithms_that_give_the_same_bits_are_told_apart():
    x = np.random.default_rng(0).normal(0.5, 1.5, (24, 40)).astype(np.float16)
    formula = RowFormula.of(make_plan(Request("ln"), x.shape, x.dtype))
    computation = parse_computation("one-pass:float16")
    found = identify(Question(x, computation.run(x, formula, x.dtype)))
    low, high = found.matches[0].eps_range
    assert low < high
    suggestion = suggest(found)
    assert 0 < suggestion.told <= suggestion.pairs
    other = generate(suggestion.recipe).values
    again = identify(Question(other, computation.run(other, formula, x.dtype)))
    assert again.matches[0].eps_range[1] - again.matches[0].eps_range[0] < high - low


ONE = np.random.default_rng(0).normal(0.0, 1.0, (1, 4, 16)).astype("f4")


def test_the_command_that_is_printed_runs(here, normcli):
    """A second sample tells batch normalization from instance normalization."""
    save(x=ONE, y=normalize(ONE, "bn").normalized)
    ran = normcli("identify", "-i", "x.npy", "--actual", "y.npy", "--suggest")
    assert (ran.code, len(ran.lines)) == (0, 1)
    assert "tells apart" in ran.err
    program, *arguments = shlex.split(ran.out)
    assert (program, normcli(*arguments).code) == ("normcli", 0)
    assert np.load("try.npy").shape == (2, 4, 16)


def test_nothing_to_tell_apart_is_said(here, normcli):
    save(x=ONE, y=ONE[:, ::-1])
    ran = normcli("identify", "-i", "x.npy", "--actual", "y.npy", "--suggest")
    assert (ran.code, ran.out) == (1, "")
    assert "nothing to tell apart" in ran.err


X = np.random.default_rng(0).normal(size=(3, 4, 16)).astype("f4")
FOUND = Match(
    "ln", (2,), "float32", (), 0.5, 0.1, 0.5, 60, Furthest((0, 0, 0), 1.0, 1.0), (0, 1, 2),
    eps=1e-5, eps_range=(1e-8, 2e-5), eps_mode="inside",
)  # fmt: skip


def tell(*matches, x=X):
    return suggest(Identification(Question(x, x), matches))


def test_a_norm_is_a_candidate_with_the_least_and_the_largest_usual_eps():
    suggestion = tell(FOUND)
    assert suggestion.names == tuple(f"ln eps={eps} eps_mode=inside" for eps in ("1e-05", "1e-08"))
    assert (suggestion.told, suggestion.pairs) == (1, 1)
    assert suggestion.share > 0.5
    assert tell(FOUND._replace(eps_range=(9e-6, 2e-5))) is None


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"axes": (1, 2)}, "ln axes=(1, 2) eps=1e-05 eps_mode=inside"),
        ({"ddof": 1}, "ln eps=1e-05 eps_mode=inside ddof=1"),
        ({"norm": "gn", "axes": (1, 2), "groups": 2, "group_order": "contiguous"}, "gn groups=2 group_order=contiguous eps=1e-05 eps_mode=inside"),
        ({"norm": "lp", "axes": (1,), "p": 1.0, "eps_mode": None, "eps_range": (0.0, 1e-5)}, "lp axes=(1,) eps=1e-05 p=1.0"),
        ({"norm": "minmax", "axes": (0,), "eps_mode": None, "eps_range": (0.0, 0.0)}, "minmax"),
    ],
)  # fmt: skip
def test_a_candidate_is_named_by_what_is_not_its_norms_own(changed, name):
    other = FOUND._replace(norm="rms", eps_range=(1e-5, 1e-5))
    suggestion = tell(FOUND._replace(**{"eps_range": (1e-5, 1e-5)} | changed), other)
    assert suggestion.names[0].startswith(name)
    assert suggestion.names[-1] == "rms eps=1e-05 eps_mode=inside"


def test_windows_and_matrices_are_no_candidates():
    assert tell(FOUND._replace(eps_range=(1e-5, 1e-5)), FOUND._replace(norm="sn", rows=(0,))) is None


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((1, 4), (2, 4)), ((3, 1), (3, 2)), ((5000, 64), (1024, 64)), ((3, 300, 300), (2, 300, 300))],
)
def test_a_suggested_tensor_has_several_places_along_every_axis(shape, expected):
    assert tell(FOUND._replace(axes=(len(shape) - 1,)), x=np.ones(shape, "f4")).recipe.shape == expected


@pytest.mark.parametrize(
    ("low", "drawn"),
    [(1e-6, "--dist normal"), (1e-10, "--dist uniform --low -0.001 --high 0.001")],
    ids=["an eps that shows", "a small one"],
)
def test_the_command_writes_the_tensor_that_tells(low, drawn):
    command = tell(FOUND._replace(eps=10.0 * low, eps_range=(low, 10.0 * low))).command
    assert command == f"normcli generate --shape 3,4,16 {drawn} --seed 0 --rng numpy --dtype float32 -o try.npy"


def test_a_norm_that_the_tensor_does_not_allow_is_no_candidate():
    other = FOUND._replace(norm="rms", eps_range=(1e-5, 1e-5))
    assert tell(FOUND._replace(norm="gn", groups=3, group_order="contiguous", axes=(1, 2)), other) is None
