"""What every answer says of a plan, in JSON and in its header."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.documents.document import View
from normcli.documents.plan_header import build_header, list_groups
from normcli.norms.plan import make_plan
from normcli.norms.request import Request


def plan(norm, shape, **options):
    return make_plan(Request(norm, **options), shape, np.dtype("f8"))


@pytest.mark.parametrize("verb", ["norm", "check", "explain", "restore", "fit"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(["bn", "--ddof", "1"], {"ddof": 1, "eps_mode": "inside"}, id="ddof"),
        pytest.param(
            ["gn", "--groups", "2", "--axes", "NCL"], {"groups": 2, "group_order": "contiguous"}, id="groups"
        ),
    ],
)
def test_the_json_of_every_verb_says_what_the_plan_is(verb, options, expected, normcli, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(1).normal(size=(3, 4, 2)))
    rest = {"fit": [path], "check": ["-i", path, "--actual", path]}.get(verb, ["-i", path])
    said = normcli(*([] if verb == "norm" else [verb]), *options, *rest, "-f", "json").json
    assert said["group_count"] * said["group_size"] >= 24
    assert expected.items() <= said.items()


def test_a_header_has_the_formula_the_input_the_groups_and_the_parameters():
    parameters = {"gamma": np.arange(20.0), "beta": None}
    header = build_header("title", plan("ln", (2, 20)), ("x.npy",), View(), parameters, [("more", ("x",))])
    assert [label for label, _ in header.lines] == ["formula", "input", "groups", "gamma", "more"]
    assert header.lines[0][1] == ("(x − mean) / √(var + eps) · gamma", "eps 1e-05 inside the root")
    assert header.lines[3][1][1].endswith(", … 12 more (--full)")


@pytest.mark.parametrize(("full", "shown", "note"), [(False, 16, "84 of 100 groups hidden"), (True, 100, "")])
def test_a_table_of_groups_says_what_it_hides(full, shown, note):
    columns = {"count": np.broadcast_to(3, 100), "mean": np.arange(100.0)}
    table = list_groups(plan("zscore", (3, 100)), columns, View(full=full))
    rows = [row for row in table.rows if row is not None]
    assert (len(rows), len(table.rows)) == (shown, shown + (not full))
    assert rows[-1].cells == ("c=99", "3", "99")
    assert (table.note or "").startswith(note)
    assert bool(note) == (table.note is not None)
