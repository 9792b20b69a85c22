"""`normcli doctor` as it is typed."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from tests.conftest import require_refusal


@pytest.fixture
def path(tmp_path):
    """Rows of which the third is far from zero."""
    x = np.random.default_rng(0).normal(0.0, 1.0, (6, 40)).astype(np.float32)
    x[2] += 3000.0
    np.save(tmp_path / "x.npy", x)
    return tmp_path / "x.npy"


def test_the_answer_names_the_cheapest_and_the_group_that_breaks_the_others(path, normcli):
    ran = normcli("doctor", "ln", "-i", path, "--dtype", "float16")
    assert (ran.code, ran.err) == (0, "")
    assert "The cheapest that is safe in float16 is shifted:float32; group n=2 is the worst under" in ran.out
    assert "beyond 65504" in ran.out
    *report, _ = ran.out.strip().split("\n\n")
    assert max(len(line) for part in report[1:] for line in part.splitlines()) <= 80


@pytest.mark.slow
@pytest.mark.parametrize(
    ("required", "code", "words"),
    [
        ("two-pass:float32", 0, "✓ two-pass:float32 is safe"),
        ("one-pass:float32", 1, "✗ one-pass:float32 is not safe: 40 values"),
        ("two-pass:float32:statistics", 1, "✗ two-pass:float32:statistics"),
    ],
)
def test_what_is_required_decides_the_exit_code(required, code, words, path, normcli):
    asked = ("doctor", "ln", "-i", path, "--dtype", "float16", "--require", required)
    ran = normcli(*asked)
    assert (ran.code, words in ran.out, normcli(*asked, "-f", "json").json["ok"]) == (code, True, code == 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('[["nan", 1]]', "No group is finite in float16: there is nothing to judge."),
        ("[[1e30, 1, 2], [1, 2, 4]]", "1 value of the input is beyond float16."),
    ],
)
def test_what_cannot_be_judged_is_said(data, said, normcli):
    ran = normcli("doctor", "ln", "--data", data, "--dtype", "float16")
    assert ran.code == 0
    assert said in ran.out


def test_formats_hold_the_same_findings(path, normcli):
    common = ("doctor", "rms", "-i", path, "--dtype", "float16")
    data = normcli(*common, "-f", "json").json
    lines = normcli(*common, "-f", "jsonl").out.splitlines()
    rows = list(csv.DictReader(io.StringIO(normcli(*common, "-f", "csv").out)))
    names = [row["name"] for row in data["algorithms"]]
    assert [row["name"] for row in rows] == names
    assert len(lines) == len(names) == len(set(names))
    assert data["conditioning"]["Σx²"]["group"] == {"n": 2}
    assert {"sums", "cast", "safe", "max_ulp", "overflow", "first_negative"} <= set(data["algorithms"][0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ln", "--require", "onepass:float32"), "did you mean one-pass"),
        (("ln", "--require", "two-pass:float12"), "did you mean"),
        (("ln", "--max-ulp", "-1"), "max-ulp"),
        (("minmax",), "adds nothing"),
    ],
)
def test_what_is_asked_wrongly_is_one_line(arguments, words, path, normcli):
    norm, *rest = arguments
    require_refusal(normcli("doctor", norm, "-i", path, *rest), 2, words)
