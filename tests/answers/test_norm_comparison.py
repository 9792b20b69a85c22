"""Comparisons and restorations as a reader sees them, kept as text; see `test_table` for how to renew them."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.answers.teaching.norm_comparison import ComparisonAnswer
from normcli.answers.teaching.restoration import RestorationAnswer
from normcli.documents.document import Table, TableRow, View
from normcli.documents.matrix_blocks import build_map
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.result import Result
from normcli.teach.restore import restore
from normcli.teach.side_by_side import compare
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.tensor import Tensor
from tests.conftest import hold_snapshot, plan_request, pose, render

FOUR = {"bn": Request("bn"), "ln": Request("ln"), "in": Request("in"), "gn:groups=2": Request("gn", groups=2)}
EQUAL = {
    "ln:axes=CHW": Request("ln", axes="CHW"),
    "gn:groups=1": Request("gn", groups=1),
    "mvn": Request("mvn"),
    "bn": Request("bn"),
    "lrn": Request("lrn"),
}
WORDS = np.array([[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]] * 2) * np.array([[[1]], [[-1]]])


def compared(requests, shape=None, values=None):
    tensor = generate(Recipe(shape)) if values is None else Tensor(values, "words.json")
    entries = [
        (name, pose(plan_request(request, tensor.values), tensor.values)) for name, request in requests.items()
    ]
    return ComparisonAnswer(compare(entries), tensor)


def words():
    requests = {"bn:axes=N": Request("bn", axes="N", layout="NLC"), "ln": Request("ln", layout="NLC")}
    return compared(requests, values=WORDS)


def restored(norm, shape, **options):
    tensor = generate(Recipe(shape, dist="normal", seed=3))
    return RestorationAnswer(
        restore(pose(plan_request(Request(norm, **options), tensor.values), tensor.values)), tensor
    )


CASES = {
    "compare-words-80": lambda: (words(), View(width=80)),
    "compare-words-pipe": lambda: (words(), View()),
    "compare-words-markdown": lambda: (words(), View(), "markdown"),
    "compare-four-80": lambda: (compared(FOUR, (2, 4, 4, 4)), View(width=80)),
    "compare-four-200": lambda: (compared(FOUR, (2, 4, 4, 4)), View(width=200)),
    "compare-equal-80": lambda: (compared(EQUAL, (1, 4, 2, 3)), View(width=80)),
    "compare-large-80": lambda: (compared(FOUR, (8, 64, 32, 32)), View(width=80)),
    "compare-wide-80": lambda: (compared({"bn": Request("bn"), "ln": Request("ln")}, (2, 900)), View(width=80)),
    "restore-bn-80": lambda: (restored("bn", (3, 4)), View(width=80)),
    "restore-ln-80": lambda: (restored("ln", (2, 3, 4), layout="NLC"), View(width=80)),
    "restore-ln-markdown": lambda: (restored("ln", (3, 4)), View(), "markdown"),
}


@pytest.mark.all_quick
@pytest.mark.parametrize("name", CASES)
def test_snapshot(name):
    hold_snapshot(f"{name}.txt", render(*CASES[name]()))


@pytest.mark.parametrize("width", [30, 44, 60, 100])
def test_other_terminals_are_not_overrun_by_the_facts(width):
    view = View(width=width, show=frozenset(("facts",)))
    text = render(compared({"bn": Request("bn"), "ln": Request("ln")}, (2, 3)), view)
    assert max(map(len, text.splitlines()[2:])) <= width
    assert "Transformers" in text


class OfOneTable:
    """A document of one table."""

    def __init__(self, names, cells):
        self._table = Table(None, names, (False,) * len(names), [TableRow(cells)], wraps=True)

    def sections(self, view):
        yield self._table


def test_a_pipe_gets_whole_cells():
    document = OfOneTable(("", "a", "b"), ("label", "long " * 40, "x"))
    assert len(render(document).splitlines()) == 3
    narrow = render(document, View(width=60)).splitlines()
    assert max(map(len, narrow)) <= 60
    assert " ".join(" ".join(narrow).split()).count("long") == 40


def test_columns_that_are_all_narrow_are_set_over_several_tables():
    document = OfOneTable(tuple(f"column {number}" for number in range(12)), tuple("abcdefghijkl"))
    lines = render(document, View(width=80)).splitlines()
    heads = [line.split("   ")[0].strip() for line in lines if line.startswith(("a", "column"))]
    assert heads == ["column 0", "a"] * 2


def test_a_map_of_groups_is_made_where_it_is_looked_at():
    plan = make_plan(Request("bn"), (10**6, 10**6), np.dtype("f8"))
    result = Result(plan, np.broadcast_to(1.0, plan.grid.shape), {})
    blocks = build_map("groups", plan.grid.locate_groups, result, View())
    ((matrix,),) = blocks.bands
    assert matrix.cells[-1][-1] == str(10**6 - 1)
    assert matrix.groups[0] == matrix.groups[-1]


@pytest.mark.parametrize(("eps", "sign"), [(1e-3, "≈"), (100.0, "≠")])
def test_values_that_are_far_apart_are_not_said_to_be_alike(eps, sign, normcli):
    ran = normcli("compare", "bn", f"bn:eps={eps:g}", "--shape", "2,3,4,4")
    assert f"bn {sign} bn:eps={eps:g}" in ran.out
