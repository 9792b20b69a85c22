"""What a newcomer tries first: spellings, words, habits of the shell; each is answered, or told what would be right."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

from normcli.norms.table import NORMS
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()

X = "--data '[[1,2],[3,5]]'"

SAID = [
    pytest.param("bn --shape 4,3,8", "layout NCL; --layout NLC for tokens", id="1 a guess is said"),
    pytest.param("ln --shape 2,3,4,4", "W alone is reduced; --axes CHW for images", id="1 of layer norm too"),
    pytest.param(f"bn {X} --gamma 2", "y, after gamma", id="2 y and x̂ are two"),
    pytest.param(f"bn {X} --gamma 2 --show xhat", "x̂", id="2 x̂ is shown"),
    pytest.param(f"bn {X} --print xhat --print y", "\t", id="3 two fields are two columns"),
    pytest.param(f"ln {X} --digits 3 --show y", " -1.00  1.00", id="4 digits are significant ones"),
    pytest.param(f"bn {X} --eval --running-mean 0 --running-var 1", "reduces nothing", id="6 evaluation reduces nothing"),
    pytest.param("bn --shape 1,1,1 --show stats", "1 group × 1", id="6 words agree with numbers"),
    pytest.param("bn --data 1,2,3", "(3,)", id="7 a list needs no brackets"),
    *(
        pytest.param(f"{name} --shape 4,4,2 {'--groups 2' if name == 'GroupNorm' else ''} --show stats", "group", id=f"7 {name}")
        for name in ("BatchNorm2d", "LayerNorm", "GroupNorm", "RMSNorm", "InstanceNorm1d", "StandardScaler", "MinMaxScaler")
    ),
    pytest.param("completion bash", "complete", id="8 the script of a shell"),
    pytest.param("generate --shape 2,3 -o -", "[[6, 3, 7], [4, 6, 9]]", id="9 one rule of formats"),
    pytest.param(f"compare bn ln {X} --gamma 2 --mask '[[1,1],[1,1]]'", "before gamma", id="9 compare takes gamma and masks"),
    pytest.param(f"draw bn {X} --eval --running-mean 0 --running-var 4", "running var", id="9 draw evaluates"),
    pytest.param(f"minmax {X} --range -1,1 --print y", "-1.0", id="10 a range"),
    pytest.param(f"robust {X} --quantiles 10,90", "q_high − q_low", id="10 quantiles"),
    pytest.param(f"zscore {X} --no-mean", "x / √var", id="10 no mean"),
    pytest.param(f"robust {X} --no-scale", "x − median", id="10 no scale"),
    pytest.param(f"draw bn {X} --plot histogram", "m: mean", id="12 histograms have marks"),
    pytest.param(f"draw bn {X}", "(x − mean) / √(var + eps)", id="13 a drawing has its formula"),
    pytest.param("help words", "rstd", id="14 words are explained"),
    pytest.param("help words", "numpy-legacy", id="14 and names"),
    pytest.param(f"compare in ln {X}", "equal", id="14 equalities"),
]  # fmt: skip

REFUSED = [
    pytest.param(f"restore ln {X} --eps 9", 1, "", id="6 a verdict has one exit code"),
    pytest.param("help banana", 2, "no topic, norm or command 'banana'", id="7 no guess at a topic"),
    pytest.param("apply x.npy stats.npz -o y.npy", 2, "it comes first", id="7 exchanged"),
    pytest.param("bn -i x.pt", 2, "safetensors", id="10 of torch"),
    pytest.param("bn -i x.pkl", 2, "safetensors", id="10 of pickle"),
    pytest.param("fit robust x.npy --quantiles 90,10", 2, "no two quantiles", id="10 turned quantiles"),
    pytest.param(f"bn {X} --quantiles 10,90", 2, "No such option", id="10 of another norm"),
]


@pytest.mark.parametrize(("line", "word"), SAID)
def test_a_newcomer_is_answered(line, word, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = normcli(*shlex.split(line))
    assert (ran.code, word in ran.out) == (0, True), ran.err + ran.out


@pytest.mark.parametrize(("line", "code", "word"), REFUSED)
def test_a_newcomer_is_told_what_is_wrong(line, code, word, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(6.0).reshape(3, 2))
    for name in ("x.pt", "x.pkl"):
        (tmp_path / name).write_bytes(b"\x80\x04K\x01.")
    assert normcli("fit", "zscore", "x.npy", "-o", "stats.npz", "-q").code == 0
    ran = normcli(*shlex.split(line))
    assert (ran.code, word in ran.err) == (code, True), ran.err
    assert len(ran.err.splitlines()) <= 1


def list_commands():
    """Return every call of the program that README has, without what follows in a pipe or goes to a file."""
    fences = re.findall(r"```(?:sh|console)\n(.*?)\n```", README, flags=re.S)
    spans = re.findall(r"`(normcli [^`]+)`", README)
    lines = [line.removeprefix("$ ") for fence in fences for line in fence.splitlines()]
    calls = re.findall(
        r"(?:^|&& |bin/)normcli ([^|>&#\n]+)",
        "\n".join([*lines, *(" ".join(span.split()) for span in spans)]),
        flags=re.M,
    )
    return sorted({" ".join(call.split()) for call in calls})


@pytest.mark.parametrize("call", list_commands())
def test_commands_of_the_readme_are_taken(call, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "DIR").mkdir()
    words = [word for word in shlex.split(call) if word != "…"]
    words = ["bn" if word == "NORM" else word for word in words]
    ran = normcli(*words, "--help")
    assert (ran.code, ran.out.startswith("Usage: normcli")) == (0, True), ran.err


def test_the_readme_names_every_norm_and_the_commands_are_many():
    assert len(list_commands()) >= 20
    assert all(f"| {name}" in README for name in NORMS)
