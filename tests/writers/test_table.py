"""Tables as a reader sees them, kept as text. To renew them: `NORMCLI_UPDATE_SNAPSHOTS=1 pytest tests/writers`."""

from __future__ import annotations

import re

import numpy as np
import pytest

from normcli import normalize
from normcli.answers.calculating.calculation import Answer
from normcli.answers.calculating.catalogue import Catalogue, ConventionTable
from normcli.answers.judging.check_verdict import Verdict
from normcli.answers.teaching.explanation import Explanation
from normcli.answers.teaching.restoration import RestorationAnswer
from normcli.checking.check import check
from normcli.documents.document import Facts, View
from normcli.identifying.question import Diagnosis
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.calculate import calculate
from normcli.results.promises import Check
from normcli.teach.explain.explain import explain
from normcli.teach.restore import restore
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.tensor import Tensor
from tests.conftest import hold_snapshot, plan_request, pose, render

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def answer(shape, norm="bn", dist="randint", **options) -> Answer:
    tensor = generate(Recipe(shape, dist=dist))
    return Answer(normalize(tensor.values, norm, **options), tensor)


def answer_of_table(shape, norm, columns) -> Answer:
    tensor = generate(Recipe(shape))._replace(columns=columns)
    plan = make_plan(Request(norm), shape, tensor.values.dtype, columns)
    return Answer(calculate(plan, tensor.values), tensor)


def explanation(shape, norm, at=None, dist="randint", **options) -> Explanation:
    tensor = generate(Recipe(shape, dist=dist))
    plan = make_plan(Request(norm, **options), shape, tensor.values.dtype)
    problem = pose(plan, tensor.values)._replace(tensor=tensor)
    return Explanation(explain(problem, at=at), problem)


def verdict(y, norm="bn", diagnosis=None, **actual) -> Verdict:
    tensor = generate(Recipe((2, 3, 4, 4)))
    plan = make_plan(Request(norm), tensor.values.shape, tensor.values.dtype)
    arrays = {"normalized": np.asarray(y, dtype="f4"), **actual}
    checked = check(pose(plan, tensor.values), arrays)
    return Verdict(plan, tensor, {}, {name: f"{name}.npy" for name in arrays}, checked, (), diagnosis)


def spoiled(norm="bn"):
    y = normalize(generate(Recipe((2, 3, 4, 4))).values, norm).normalized.copy()
    y[1, 2, 3, 0], y[0, 0, 0, 1], y[0, 0, 0, 2] = np.nan, 3.0, y[0, 0, 0, 2] + 1e-4
    return y


TOLD = Diagnosis(
    "norm", "bn differs: eps is 1e-12, not 1e-05", ("one", "two"), remedy="normcli bn … --eps 1e-12"
)

CASES = {
    "bn-2x3x4x4-pipe": lambda: (answer((2, 3, 4, 4)), View()),
    "bn-2x3x4x4-80": lambda: (answer((2, 3, 4, 4)), View(width=80)),
    "bn-2x3x4x4-200": lambda: (answer((2, 3, 4, 4)), View(width=200)),
    "ln-1d": lambda: (answer((5,), "ln"), View(width=80)),
    "ln-0d": lambda: (answer((), "ln"), View(width=80)),
    "empty": lambda: (answer((0, 3)), View(width=80)),
    "gn-affine": lambda: (answer((2, 4, 3), "gn", groups=2, gamma=[1, 2, 3, 4], beta=0.5), View(width=80)),
    "lrn": lambda: (answer((1, 4, 2), "lrn", size=4, like="torch"), View(width=80)),
    "zscore-columns": lambda: (answer_of_table((3, 2), "zscore", ("height", "weight")), View(width=80)),
    "ln-6d": lambda: (answer((2, 2, 2, 2, 2, 3), "ln"), View(width=80)),
    "bn-6d-gaps": lambda: (answer((2, 3, 4, 5, 6, 7)), View(width=200, show=frozenset(("input",)))),
    "ln-wide-170": lambda: (answer((3, 20, 200), "ln"), View(width=170, show=frozenset(("y",)))),
    "ln-wide-300": lambda: (answer((3, 20, 200), "ln"), View(width=300, show=frozenset(("y",)))),
    "bn-large": lambda: (answer((8, 64, 32, 32)), View(width=80)),
    "ln-1d-full": lambda: (answer((1200,), "ln", dist="arange"), View(full=True, show=frozenset(("input",)))),
    "zscore-wide-80": lambda: (answer((3, 40), "zscore"), View(width=80, show=frozenset(("y",)))),
    "zscore-wide-full": lambda: (
        answer((3, 40), "zscore"), View(width=80, full=True, show=frozenset(("y",)))
    ),
    "check-80": lambda: (
        verdict(normalize(generate(Recipe((2, 3, 4, 4))).values).normalized, mean=np.float32([4.65625, 5, 4.78125])),
        View(width=80),
    ),
    "check-differs-80": lambda: (verdict(spoiled(), diagnosis=TOLD, mean=np.ones(3)), View(width=80)),
    "check-window-80": lambda: (verdict(spoiled("lrn"), "lrn"), View(width=80, full=True)),
    "check-markdown": lambda: (verdict(spoiled(), diagnosis=TOLD), View(), "markdown"),
    "markdown": lambda: (answer((2, 2)), View(), "markdown"),
    "markdown-3d": lambda: (answer((2, 2, 3), "ln"), View(), "markdown"),
    "norms-80": lambda: (Catalogue(), View(width=80)),
    "norms-pipe": lambda: (Catalogue(), View()),
    "conventions-gn-80": lambda: (ConventionTable("gn"), View(width=80)),
    "conventions-bn-pipe": lambda: (ConventionTable("bn"), View()),
    "gn-interleaved": lambda: (answer((2, 3, 4), "gn", groups=2, like="mlx"), View(width=80)),
    "rms-gemma": lambda: (answer((2, 3), "rms", gamma=0.5, like="gemma"), View(width=80)),
    "explain-80": lambda: (explanation((2, 3, 7), "ln", (0, 1, 2), dist="normal"), View(width=80)),
    "explain-pipe": lambda: (explanation((2, 3, 7), "ln", (0, 1, 2), dist="normal"), View()),
    "explain-group-80": lambda: (explanation((2, 3, 4, 4), "bn"), View(width=80)),
    "explain-window-80": lambda: (explanation((1, 6, 2), "lrn", (0, 2, 1)), View(width=80)),
    "explain-markdown": lambda: (explanation((2, 3, 4), "gn", (0, 1, 2), groups=1), View(), "markdown"),
    "in-keras": lambda: (answer((1, 2, 2, 3), "in", like="keras"), View(width=80)),
}  # fmt: skip


@pytest.mark.all_quick
@pytest.mark.parametrize("name", CASES)
def test_snapshot(name):
    hold_snapshot(f"{name}.txt", render(*CASES[name]()))


@pytest.mark.parametrize("width", [40, 57, 80])
def test_cells_that_grow_where_the_largest_is_left_out_fit(width):
    x = np.random.default_rng(5).uniform(1, 9, (3, 60))
    x[1, 30] = 12345.678  # in the middle, which is cut: without it the others have more decimals
    attempt = restore(pose(plan_request(Request("ln"), x), x))
    view = View(width=width, show=frozenset(("y", "input")))
    for document in (Answer(normalize(x, "ln"), Tensor(x, "x")), RestorationAnswer(attempt, Tensor(x, "x"))):
        lines = render(document, view).splitlines()
        assert any("…" in line for line in lines)
        assert max(map(len, lines)) <= width


def test_no_convention_is_wider_than_the_terminal():
    assert max(len(line) for line in render(ConventionTable(), View(width=80)).splitlines()) <= 80


def test_a_pipe_gets_neither_colours_nor_cut_cells():
    text = render(answer((2, 64)), View())
    assert "\x1b" not in text
    assert "…" not in text.split("check")[0].split("group")[0]


@pytest.mark.usefixtures("truecolor")
def test_cells_of_one_group_share_a_colour_and_neighbours_differ():
    text = render(answer((2, 3)), View(width=80, colour=True, show=frozenset(("y",))))
    first, second = (re.findall(r"48;2;[0-9;]*", line) for line in text.splitlines()[-2:])
    assert first == second
    columns = list(dict.fromkeys(first))
    assert len(columns) == 3


@pytest.mark.usefixtures("truecolor")
def test_the_name_of_a_group_has_its_colour_and_its_numbers_have_none():
    text = render(answer((2, 3)), View(width=80, colour=True, show=frozenset(("stats",))))
    (row,) = (line for line in text.splitlines() if "c=1" in line)
    assert re.search(r"48;2;[0-9;]*m +c=1 +\x1b\[0m {3,}2 ", row)


def test_colours_change_nothing_but_colours():
    plain = render(answer((2, 3, 2, 2), "ln"), View(width=80, show=frozenset(("y", "check"))))
    coloured = render(answer((2, 3, 2, 2), "ln"), View(width=80, colour=True, show=frozenset(("y", "check"))))
    assert "\x1b" in coloured
    assert [line.rstrip() for line in ANSI.sub("", coloured).splitlines()] == plain.splitlines()


def test_the_parts_that_are_asked_for_are_shown():
    text = render(answer((2, 2)), View(show=frozenset(("check",))))
    assert "group  " not in text
    assert "y: mean ≈ 0" in text


def test_a_failed_check_is_marked():
    result = answer((2, 3)).result
    result.__dict__["check"] = (Check("var", 1.0, 0.5, 0.5, 0.5, 0.5, 1e-15),)
    text = render(Answer(result, Tensor(result.input, "x")), View(show=frozenset(("check",))))
    assert "✗ y: var 0.5 rather than 1" in text
    assert "off by 0.5" in text


def test_terminals_of_16_colours_get_eight_that_differ(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    text = render(answer((1, 8), "bn"), View(width=200, colour=True, show=("y",)))
    grounds = re.findall(r"\x1b\[[0-9]+;([0-9]+)m [^\x1b]*0", text)
    assert len(grounds) == len(set(grounds)) == 8


def test_below_a_label_that_leaves_no_room_facts_stand_on_lines_of_their_own():
    document = type("D", (), {"sections": lambda self, view: [Facts("t", (("l" * 40, ("a fact " * 9,)),))]})()
    lines = render(document, View(width=60)).splitlines()
    assert lines[1] == "l" * 40
    assert all(line.startswith(("    a fact", "    fact")) for line in lines[2:])
    assert len(lines) == 4
