"""`normcli compare`: norms side by side, in every format, and every way to ask wrongly."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli import normalize
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from tests.conftest import ROOT, require_refusal
from tests.marks import sampled

SHAPE = (2, 4, 4, 4)
FOUR = ["compare", "bn", "ln", "in", "gn", "--groups", 2, "--shape", "2,4,4,4"]
WORDS = ROOT / "samples" / "003-words.json"


def read_table(lines):
    """The rows of the first table of a document: label → cells."""
    start = next(i for i, line in enumerate(lines) if line.startswith("───"))
    rows = [line.split("   ") for line in lines[start + 1 : lines.index("", start)]]
    return {cells[0]: [cell.strip() for cell in cells[1:] if cell.strip()] for cells in rows}


GIVEN = ["--eval", "--running-mean", "0,1,2", "--running-var", "1,2,3"]


def test_one_norm_in_training_and_in_evaluation(normcli):
    x = generate(Recipe((4, 3))).values
    given = {"running_mean": [0, 1, 2], "running_var": [1, 2, 3], "eps": 1}
    for line, options in (
        (["bn:eval"], {"running_mean": 0.0, "running_var": 1.0}),
        (["bn:eval:eps=1", *GIVEN[1:]], given),
    ):
        trained, evaluated = normcli("compare", "bn", *line, "--shape", "4,3", "-f", "json").json["columns"]
        np.testing.assert_array_equal(trained["normalized"], normalize(x, "bn").normalized)
        np.testing.assert_array_equal(evaluated["normalized"], normalize(x, "bn", **options).normalized)
    assert normcli("compare", "bn", "ln:eval", "--shape", "4,3").code == 2


def test_norms_that_track_are_evaluated_and_the_others_measure(normcli):
    ran = normcli("compare", "bn", "in", "ln", "--shape", "2,3,4", *GIVEN, "-f", "json")
    bn, instance, ln = ran.json["columns"]
    x = generate(Recipe((2, 3, 4))).values
    expected = (x - np.arange(3.0)[:, None]) / np.sqrt(np.arange(1.0, 4.0)[:, None] + 1e-5)
    np.testing.assert_allclose(bn["normalized"], expected, rtol=1e-14)
    assert (instance["normalized"], bn["depends_on_batch"]) == (bn["normalized"], False)
    assert ln["normalized"] == normalize(x, "ln").normalized.tolist()
    first, *others = ran.json["equalities"]
    assert (first["norms"], first["kind"], first["max_abs"]) == (["bn", "in"], "identical", 0.0)
    assert "the same running statistics" in first["reason"]
    assert [other["norms"] for other in others] == [["ln", "gn:groups=3"]]  # not `in`, which is evaluated here
    shown = normcli("compare", "bn", "in", "ln", "--shape", "2,3,4", *GIVEN)
    assert "evaluated  bn, in   with the running statistics that were given" in shown.lines
    assert read_table(shown.lines)["reduces"] == ["nothing", "nothing", "L = 4"]


def test_what_does_not_count_is_left_out_of_every_column(normcli):
    x = generate(Recipe((2, 3, 4))).values
    ran = normcli(
        *["compare", "bn", "ln", "--shape", "2,3,4", "--layout", "NLC", "--lengths", "3,2", "-f", "json"]
    )
    for column in ran.json["columns"]:
        own = normalize(x, column["name"], layout="NLC", lengths=(3, 2))
        assert column["normalized"] == own.normalized.tolist()
        assert column["counting"] == {"mask": True, "omits_nan": False, "fill": "pass"}
    first = ran.json["columns"][0]
    y = normalize(x, "bn", layout="NLC", lengths=(3, 2)).normalized
    assert first["output_var"] == pytest.approx(y[np.array([[1, 1, 1], [1, 1, 0]], bool)].var())
    assert len(first["first_group"]) == 5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["ln", "rms", *GIVEN], "none of ln, rms has running statistics"),
        (["bn", "ln", "--eval"], "bn: --eval needs running statistics"),
        (["bn", "ln", *GIVEN[1:]], "what --eval normalizes with; add it"),
    ],
)
def test_what_cannot_be_evaluated_or_left_out(line, message, normcli):
    ran = normcli("compare", *line, "--shape", "2,3,4")
    assert (ran.code in (2, 3), ran.out) == (True, "")
    assert message in ran.err


def test_a_window_is_drawn_around_one_value(normcli):
    ran = normcli("compare", "lrn:size=3", "ln", "--shape", "1,5", "--show", "groups")
    assert "window of lrn:size=3 at n=0 c=1  rows n, columns c\n 1 1 1 0 0\n" in ran.out


@pytest.mark.usefixtures("truecolor")
def test_a_terminal_gets_the_colours_of_each_norms_groups(normcli):
    ran = normcli("compare", "bn", "ln", "--shape", "2,3", "--show", "normalized", "--color", "always")
    first, second = ran.lines[-2:]
    colours = [line.count("48;2;") for line in (first, second)]
    assert colours == [4, 4], "three columns of bn, one row of ln, none of the input"


def test_own_options_come_before_shared_ones(normcli):
    line = "compare gn gn:groups=4:eps=0 gn:group-order=interleaved --groups 2 --eps 0.5 --shape 2,4,3 -fjson"
    ran = normcli(*line.split())
    told = [(c["groups"], c["eps"], c["group_order"]) for c in ran.json["columns"]]
    assert told == [(2, 0.5, "contiguous"), (4, 0, "contiguous"), (2, 0.5, "interleaved")]


def test_a_layout_that_is_shared_is_not_said_again(normcli):
    ran = normcli("compare", "bn", "in:layout=NCL", "--layout", "NLC", "--shape", "1,3,4")
    names = [line.split("  ")[0] for line in ran.lines if "the same groups" in line]
    assert {"bn = in", "in:layout=NCL = gn:groups=3:layout=NCL"} <= set(names)
    assert not [name for name in names if "layout=NLC" in name]


def test_json_has_all_that_a_norms_own_has(normcli):
    answer = normcli(*FOUR, "-f", "json").json
    assert list(answer) == ["schema", "input", "columns", "equalities"]
    alone = normcli("ln", "--shape", "2,4,4,4", "-f", "json").json
    assert answer["input"] == alone["input"]
    for key in set(alone) - {"schema", "input"}:
        assert answer["columns"][1][key] == alone[key], key
    claim = answer["equalities"][0]
    assert list(claim) == ["norms", "kind", "reason", "differences", "max_abs", "before", "related"]
    assert (claim["norms"], claim["kind"], claim["max_abs"]) == (["in", "gn:groups=4"], "identical", 0)
    assert answer["columns"][0]["batch_of_one"] == {"works": True, "reason": None, "becomes": "in"}


def test_json_lines_hold_a_column_each(normcli):
    lines = [json.loads(line) for line in normcli(*FOUR, "-f", "jsonl").lines]
    assert lines == normcli(*FOUR, "-f", "json").json["columns"]


@pytest.mark.parametrize("suffix", ["txt", "json", "jsonl", "csv", "md"])
def test_a_file_gets_what_its_name_says(suffix, normcli, tmp_path):
    formats = {"txt": "table", "md": "markdown"}
    path = tmp_path / f"c.{suffix}"
    ran = normcli(*FOUR, "-o", path)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert path.read_text() == normcli(*FOUR, "-f", formats.get(suffix, suffix)).out


def test_a_page_says_below_which_norms_are_equal(normcli, tmp_path):
    normcli("compare", "ln:axes=CHW", "gn:groups=1", "--shape", "2,4,3,3", "-o", tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "<h2>equalities on this tensor</h2><table><tr><td>ln:axes=CHW = gn:groups=1</td>" in text
    assert "bit for bit" in text


@sampled
@pytest.mark.parametrize(
    "source",
    [
        *("--shape ()", "--shape 5", "--shape 0,3", "--shape 2,0,3", "--shape 1,1", "--shape 2,1,3,1,2,2"),
        *('--data [["nan",2],[3,"inf"]]', "--data [[1e300,-1e300],[1,2]]", "--shape 2,3 --dtype float16"),
    ],
)
@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "markdown"])
def test_odd_tensors(source, format_, normcli):
    norms = "bn ln rms l1 zscore mvn wn"
    ran = normcli("compare", *norms.split(), *source.split(), "-q", "-f", format_)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out


def test_warnings_name_the_norm(normcli):
    ran = normcli("compare", "bn", "ln", "--data", "[[1,1],[1,2]]")
    told = [line.partition(" is ")[0] for line in ran.err.splitlines()]
    assert told == ["normcli: bn: group c=0", "normcli: ln: group n=0"]
    assert normcli("compare", "bn", "ln", "--data", "[[1,1],[1,2]]", "-q").err == ""
    strict = normcli("compare", "bn", "ln", "--data", "[[1,1],[1,2]]", "--strict")
    assert (strict.code, strict.out) == (4, "")


USAGE, DATA = 2, 3

BAD = [
    pytest.param("", USAGE, "compare takes two norms or more, not none; the norms are bn, ln", id="none"),
    pytest.param("bn", USAGE, "compare takes two norms or more, not bn alone", id="one"),
    pytest.param("bn bn", USAGE, "bn is named twice; give one of them an option", id="twice"),
    pytest.param("l2 lp", USAGE, "l2 and lp are the same here", id="a preset"),
    pytest.param("bn foo", USAGE, "there is no norm 'foo'", id="unknown"),
    pytest.param("bn ln:foo=1", USAGE, "ln:foo=1: ln has no option 'foo'; it has layout, axes, keep, feature-axes, gamma-offset, eps, eps-mode, ddof, over, like", id="unknown option"),
    pytest.param("bn ln:axes", USAGE, "'axes' is no KEY=VALUE, such as ln:axes=0", id="no value"),
    pytest.param("bn ln:eps=1:eps=2", USAGE, "says eps twice", id="said twice"),
    pytest.param("bn gn:groups=two", USAGE, "gn:groups=two: groups takes an integer, not 'two'", id="no integer"),
    pytest.param("bn ln --p 3", USAGE, "none of bn, ln has --p", id="an option of none"),
    pytest.param("bn ln --like caffe2", USAGE, "none of bn, ln has --like caffe2", id="a framework of none"),
    pytest.param("lp zscore --affine-seed 1", USAGE, "none of lp, zscore has --affine-seed", id="a seed of none"),
    pytest.param("bn lrn --axes CHW", USAGE, "lrn has a window along one axis", id="axes of a window"),
    pytest.param("bn ln -o x.foo", USAGE, "--output x.foo has the suffix .foo; .txt", id="suffix"),
    pytest.param("bn ln -o x.svg -f json", USAGE, "--format json and --output x.svg are two formats", id="formats"),
    pytest.param("bn ln --show all", USAGE, "none of facts, equalities, y, groups", id="parts"),
    pytest.param("bn ln -i missing.npy", DATA, "missing.npy", id="no file"),
]  # fmt: skip


@pytest.mark.all_quick
@pytest.mark.parametrize(("line", "code", "message"), BAD)
def test_bad_input(line, code, message, normcli, here):
    source = [] if "-i" in line else ["--shape", "2,4,3,3"]
    require_refusal(normcli("compare", *line.split(), *source), code, message)
    assert not list(here.iterdir())


def test_gamma_and_beta_go_to_the_norms_that_have_them(normcli):
    line = ["compare", "bn", "ln", "zscore", "--shape", "4,3", "--gamma", "2,3,4", "--beta", "1"]
    columns = normcli(*line, "-f", "json").json["columns"]
    assert [column["gamma"] for column in columns] == [[2.0, 3.0, 4.0]] * 2 + [None]
    alone = normcli("ln", *line[4:], "-f", "json").json
    assert columns[1]["normalized"] == alone["normalized"]
    ran = normcli("compare", "bn", "ln", "--shape", "4,3,2", "--gamma", "2,3,4")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "normcli: ln: gamma has the shape (3,); ln of (4, 3, 2) takes (2,)\n"
