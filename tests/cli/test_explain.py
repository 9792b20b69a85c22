"""`normcli explain`: the story of a value in every format, and what it says of what cannot be told."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

from normcli import NORMS, normalize
from tests.conftest import require_refusal
from tests.marks import sampled, slowly
from tests.teach.printed import check_true

WORD = ["--data", "[[1,2,3,4]]", "--eps", "0"]
GROUPS = {name: ["--groups", "2"] if row.needs_groups else [] for name, row in NORMS.items()}


def list_equations(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("   ")]


@pytest.mark.parametrize("name", NORMS)
def test_json_has_the_steps_of_the_result(name, normcli):
    arguments = [name, *GROUPS[name], "--shape", "2,4,3"]
    told = normcli("explain", *arguments, "--at", "1,2,-1", "-f", "json").json
    whole = normcli(*arguments, "-f", "json").json
    assert told["at"] == [1, 2, 2]
    assert told["steps"][-1]["value"] == whole["normalized"][1][2][2]
    assert told["group"]["count"] == len(told["group"]["values"]) == len(told["group"]["positions"])
    assert [1, 2, 2] in told["group"]["positions"]
    x = np.array(normcli("generate", "--shape", "2,4,3").json)
    assert told["group"]["values"] == [x[tuple(index)] for index in told["group"]["positions"]]
    result = normalize(x, name, **({"groups": 2} if GROUPS[name] else {}))
    number = result.plan.grid.locate_groups([np.array(i) for i in (1, 2, 2)])
    assert told["group"]["stats"] == {n: a.reshape(-1)[number] for n, a in result.statistics.items()}
    for step in told["steps"]:
        assert step["sentence"].endswith(".")
        assert (step["value"] is None) == (step["text"] is None) == (step["expression"] is None)


def test_json_lines_and_csv_have_a_step_each(normcli):
    steps = normcli("explain", "ln", *WORD, "-f", "json").json["steps"]
    assert [json.loads(line) for line in normcli("explain", "ln", *WORD, "-f", "jsonl").lines] == steps
    header, *rows = csv.reader(io.StringIO(normcli("explain", "ln", *WORD, "-f", "csv").out))
    assert header == ["step", "at", "symbol", "sentence", "text", "expression", "value"]
    assert [row[0] for row in rows] == [step["step"] for step in steps]
    assert rows[2] == ["mean", "", "μ", steps[2]["sentence"], steps[2]["text"], "(1 + 2 + 3 + 4) / 4", "2.5"]


def test_markdown_has_formulas(normcli):
    text = normcli("explain", "ln", *WORD, "--at", "0,0", "-f", "markdown").out
    blocks = re.findall(r"```math\n(.*?)\n```\n", text, flags=re.S)
    assert blocks[:2] == [r"\sum x = 1 + 2 + 3 + 4 = 10", r"\mu = \frac{1 + 2 + 3 + 4}{4} = 2.5"]
    assert blocks[2].startswith("\\begin{aligned}\n\\sum (x - \\mu)^2 &= ")
    assert text.count("```") == 2 * len(blocks)
    assert "### 3. The mean: the sum, divided by the number of values, 4." in text


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("bn --shape 2,3 --at 0,3", 2, "3 is outside axis c, whose length is 3"),
        ("bn --shape 2,3 -o story.svg", 2, "story.svg"),
        ("bn", 2, "there is no tensor"),
        ("xn --shape 2,4", 2, "there is no norm 'xn'"),
        ("bn --data [[1,5],[2,5]] --at 0,1 --strict", 4, "group c=1 is constant"),
        ("ln --shape 3,0 --strict", 4, "holds no values"),
        ("minmax --data 1,2,3 --backward", 2, "minmax has no backward pass"),
        ("ln --data 1,2,3 --dy dy.npy", 3, "dy has the shape (1, 4)"),
        ("ln -i - --dy -", 2, "standard input holds one of the tensors"),
        ("ln --data 1,2,3 --dy dy.npy --dy-seed 1", 2, "leave out --dy or --dy-seed"),
    ],
)
def test_what_cannot_be_told_is_said_in_a_line(line, code, told, dy, normcli):
    require_refusal(normcli("explain", *line.split()), code, told)


def test_only_the_group_in_question_is_warned_of(normcli):
    data = ["--data", "[[1,5],[2,5]]"]
    assert normcli("explain", "bn", *data, "--at", "0,0", "--strict").err == ""
    ran = normcli("explain", "bn", *data, "--at", "0,1")
    assert "bn: group c=1 is constant" in ran.err
    assert normcli("explain", "bn", *data, "--at", "0,1", "--quiet").err == ""


@sampled
@pytest.mark.parametrize(
    "data",
    ["7", '[["nan",1]]', *slowly(["[]", "[[],[]]", '[["inf",1]]', "[[[[[[1,2]]]]]]", "[[1e308,1e308]]"])],
)
@pytest.mark.parametrize("name", [name for name in NORMS if not GROUPS[name]])
@pytest.mark.parametrize("format_name", ["table", "markdown", "json", "jsonl", "csv"])
def test_odd_tensors_are_told_of_in_every_format(format_name, name, data, normcli):
    if normcli(name, "--data", data, "-q").code:
        pytest.skip("the norm does not take it either")
    ran = normcli("explain", name, "--data", data, "-f", format_name, "-q")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out
    for line in list_equations(normcli("explain", name, "--data", data, "-q").out):
        check_true(line, 8)


def test_a_file_larger_than_memory_is_explained(normcli, tmp_path):
    path = tmp_path / "x.npy"
    made = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(1 << 16, 1 << 16))  # 16 GiB of holes
    made[7, :4] = 1, 2, 3, 4
    del made
    assert os.stat(path).st_size > 1 << 34
    ran = normcli("explain", "ln", "-i", path, "--at", "7,1", "-f", "json")
    row = np.zeros(1 << 16, "f4")
    row[:4] = 1, 2, 3, 4
    assert ran.json["steps"][-1]["value"] == normalize(row, "ln").normalized[1]
    assert ran.json["group"]["values"] == row.tolist()


def test_an_evaluation_is_explained_with_the_running_statistics(normcli):
    given = ["bn", "--shape", "2,3,4,4", "--eval", "--running-mean", "1,2,3", "--running-var", "4,5,6", "-f"]
    ran = normcli("explain", *given, "table", "--at", "0,1,0,1")
    assert (ran.code, ran.err) == (0, "")
    assert ("running mean" in ran.out, "μ = 2" in ran.out, "Σ" in ran.out) == (True, True, False)
    story = normcli("explain", *given, "json", "--at", "0,1,0,1").json
    answer = normcli(*given, "json").json
    assert story["steps"][-1]["value"] == answer["normalized"][0][1][0][1]
    assert normcli("explain", "bn", "--shape", "2,3,4,4", "--eval").code == 2
    for mean, told in (("NaN", "The mean that was given is NaN"), ("Infinity", "given is infinite")):
        assert told in normcli("explain", *given[:4], "--running-mean", mean, "--running-var", "1").out


BACKWARD = ("explain", "ln", "--data", "[[1,2,3,6]]", "--eps", "0.5", "--dy", "dy.npy")


@pytest.fixture
def dy(here):
    np.save("dy.npy", np.array([[1.0, 0.0, 0.0, 2.0]]))


def test_the_backward_pass_of_a_group_and_its_formats(dy, normcli):
    ran = normcli(*BACKWARD)
    assert [line.split() for line in ran.lines if line.startswith("value")] == [
        ["value", "x", "dy"], ["value", "x", "dy", "dx"]
    ]  # fmt: skip
    found = normcli(*BACKWARD, "--gamma", "[1,2,3,4]", "-f", "json").json
    assert found["dy"]["shape"] == [1, 4]
    assert found["group"]["dy"] == [1.0, 0.0, 0.0, 2.0]
    steps = {step["step"] for step in found["steps"]}
    assert {"x̂", "slope", "dx", "dgamma", "result"} <= steps
    for step in found["steps"]:
        if step["expression"]:
            assert eval(step["expression"], dict(vars(math))) == pytest.approx(step["value"], abs=1e-12)
    formulas = normcli(*BACKWARD, "-f", "markdown").out
    assert r"\frac{\partial L}{\partial \sigma^2}" in formulas


def test_the_page_of_a_backward_pass_has_its_steps_and_what_dy_reaches(dy, normcli):
    assert normcli(*BACKWARD, "--at", "0,1", "-o", "page.html").code == 0
    text = html.unescape(Path("page.html").read_text())
    assert "<pre>∂L/∂σ² = ∂L/∂d / (2 · d) = (-1) / (2 · 2) = -0.25</pre>" in text
    assert "<tr><th>value</th><th>x</th><th>dy</th><th></th></tr>" in text
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)"', text)
    assert "Coloured are the values whose dx a dy at n=0 c=1 changes." in picture[1]
    assert b'data-part="reached"' in base64.b64decode(picture[0])


@pytest.mark.parametrize("at", [[], ["--at", "1,3,2"]], ids=["group", "value"])
@pytest.mark.parametrize("name", [name for name, norm in NORMS.items() if norm.gradient_names])
def test_every_line_of_a_backward_pass_is_true(name, at, normcli):
    drawn = ["--affine-seed", "1"] if NORMS[name].parameter_names else []
    ran = normcli("explain", name, *GROUPS[name], "--shape", "2,4,3", *drawn, "--backward", *at)
    assert (ran.code, ran.err) == (0, "")
    lines = list_equations(ran.out)
    assert any(line.startswith("dx") for line in lines)
    least = 5 if NORMS[name].rows is None else 2  # no arithmetic leads to u, v and σ
    assert sum(check_true(line, 8) for line in lines) >= least


def test_the_code_of_long_sums_goes_over_the_values_and_dy(normcli):
    drawn = ("--shape", "1,1500", "--dist", "normal", "--affine-seed", "1")
    told = normcli("explain", "ln", *drawn, "--backward", "--at", "0,3", "-f", "json").json
    plain = normcli("ln", *drawn, "-f", "json").json
    names = {
        "values": told["group"]["values"],
        "dy_values": told["group"]["dy"],
        "gamma_values": plain["gamma"],
    }
    found = [step for step in told["steps"] if "fsum" in (step["expression"] or "")]
    assert any("zip(" in step["expression"] for step in found)
    for step in found:
        assert eval(step["expression"], {**vars(math), **names}) == pytest.approx(step["value"], rel=1e-9)
