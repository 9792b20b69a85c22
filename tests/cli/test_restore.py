"""`normcli restore`: the answer, its formats, and every way to ask wrongly."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from normcli import NORMS
from tests.conftest import require_refusal
from tests.marks import sampled, slowly

TORCH = ["--shape", "3,4", "--rng", "torch", "--dist", "normal", "--seed", 0]


SHAPES = [(3, 4), (2, 4, 3), (1, 4, 2, 2), (4,), (2, 1, 4, 1, 2, 2)]


def choose_groups(name, shape):
    """The number of channel groups, for a norm that has them; a vector has no channels."""
    if not NORMS[name].needs_groups:
        return ()
    return ("--groups", 2 if shape[1] % 2 == 0 else 1)


@sampled
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param(name, shape, id=f"{name} {shape}")
        for name, row in NORMS.items()
        for shape in SHAPES
        if row.parameter_names and (not row.needs_groups or len(shape) > 1)
    ],
)
@pytest.mark.parametrize("format_", ["json", *slowly(["table", "jsonl", "csv", "markdown"])])
def test_every_norm_in_every_format(name, shape, format_, normcli):
    options = choose_groups(name, shape)
    ran = normcli("restore", name, *options, "--shape", ",".join(map(str, shape)), "-q", "-f", format_)
    assert ran.err == ""
    if format_ == "json":
        answer = ran.json
        x = np.array(normcli("generate", "--shape", ",".join(map(str, shape))).json)
        close = np.isclose(answer["restored"], x, rtol=answer["rtol"], atol=answer["atol"])
        assert answer["recovered"] == close.all()
        assert (answer["different"], answer["compared"]) == ((~close).sum(), x.size)
        assert answer["max_abs"] == np.abs(np.array(answer["restored"]) - x).max()
        assert answer["why"]


def test_json(normcli):
    answer = normcli("restore", "ln", *TORCH, "-f", "json").json
    assert (answer["norm"], answer["recovered"], answer["aligned"]) == ("ln", False, False)
    assert (answer["rtol"], answer["atol"], answer["parameter_axes"]) == (1e-4, 1e-4, [1])
    assert answer["max_abs_at"] == [2, 2]
    plain = normcli("ln", *TORCH, "-f", "json").json
    assert answer["normalized_without_affine"] == plain["normalized"]
    given = [f"--gamma={answer['gamma']}", f"--beta={answer['beta']}"]
    assert normcli("ln", *TORCH, *given, "-f", "json").json["normalized"] == answer["restored"]


def test_csv_and_json_lines_hold_a_line_for_each_value(normcli):
    rows = list(csv.DictReader(io.StringIO(normcli("restore", "bn", "--shape", "2,3", "-f", "csv").out)))
    assert list(rows[0]) == ["n", "c", "input", "normalized_without_affine", "restored"]
    records = [json.loads(line) for line in normcli("restore", "bn", "--shape", "2,3", "-f", "jsonl").lines]
    assert [float(row["restored"]) for row in rows] == [record["restored"] for record in records]
    assert [(record["n"], record["c"]) for record in records] == [(n, c) for n in range(2) for c in range(3)]


def test_tolerances(normcli):
    assert "not recovered" in normcli("restore", "bn", *TORCH, "--rtol", 0, "--atol", 1e-6).out
    assert "✓ recovered" in normcli("restore", "ln", *TORCH, "--atol", 1).out


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("[[4]]", "✓ recovered: the one value ("),
        ("[[nan]]", "✗ not recovered: the one value differs ("),
        ("[[nan,1],[1,1]]", "✗ not recovered: 2 of 4 values differ ("),
    ],
)
def test_one_value_is_no_plural(values, told, normcli):
    assert told in normcli("restore", "bn", "--data", values.replace("nan", '"nan"'), "-q").out


def test_warnings_and_strict(normcli):
    ran = normcli("restore", "bn", "--data", "[[1,2],[1,3]]")
    assert "✓ recovered" in ran.out
    assert ran.err == "normcli: bn: group c=0 is constant: its variance is 0 and its normalized values 0\n"
    ran = normcli("restore", "bn", "--data", "[[1,2],[1,3]]", "--strict")
    assert (ran.code, ran.out) == (4, "")


@pytest.mark.parametrize(
    "source",
    [("--shape", "()"), ("--shape", "0,3"), ("--data", '[["nan",2],[3,"inf"]]'), ("--data", "[[7,7],[7,7]]")],
)
@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "markdown"])
def test_odd_tensors(source, format_, normcli):
    for name in ("bn", "ln", "rms", "wn"):
        ran = normcli("restore", name, *source, "-q", "-f", format_)
        recovered = '"nan"' not in source[1]
        assert (ran.code, ran.err) == (0 if recovered else 1, ""), name


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        *(
            pytest.param(f"{name} --shape 2,3", 2, f"{name} has no gamma and no beta that could undo it; restore takes bn, ln", id=name)
            for name, row in NORMS.items()
            if not row.parameter_names
        ),
        pytest.param("", 2, "restore needs a norm; the norms are bn, ln", id="nothing"),
        pytest.param("bn --shape 2,3 --gamma 1", 2, "--gamma is refused: ", id="gamma is measured"),
        pytest.param("bn --shape 2,3 --rtol -1", 2, "rtol -1.0 is not a number ≥ 0", id="rtol"),
        pytest.param("bn --shape 2,3 -o r.svg", 2, "has the suffix .svg; .txt, .json", id="no picture"),
    ],
)  # fmt: skip
def test_bad_input(line, code, message, normcli):
    require_refusal(normcli("restore", *line.split()), code, message)
