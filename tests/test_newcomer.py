"""What a newcomer tries first: spellings, words, habits of the shell; each is answered, or told what would be right."""

from __future__ import annotations

import re
import shlex

import pytest

from normcli.norms.table import NORMS
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()

X = "--data '[[1,2],[3,5]]'"

SAID = [
    ("bn --shape 4,3,8", "layout NCL; --layout NLC for tokens"),
    ("ln --shape 2,3,4,4", "W alone is reduced; --axes CHW for images"),
    (f"bn {X} --gamma 2 --show xhat", "x̂"),
    (f"ln {X} --digits 3 --show y", " -1.00  1.00"),
    (f"bn {X} --eval --running-mean 0 --running-var 1", "reduces nothing"),
    ("bn --shape 1,1,1 --show stats", "1 group × 1"),
    ("bn --data 1,2,3", "(3,)"),
    (f"compare bn ln {X} --gamma 2 --mask '[[1,1],[1,1]]'", "before gamma"),
    (f"draw bn {X} --eval --running-mean 0 --running-var 4", "running var"),
    (f"robust {X} --quantiles 10,90", "q_high − q_low"),
    (f"robust {X} --no-scale", "x − median"),
    (f"draw bn {X}", "(x − mean) / √(var + eps)"),
]


@pytest.mark.parametrize(("line", "word"), SAID)
def test_a_newcomer_is_answered(line, word, normcli, here):
    ran = normcli(*shlex.split(line))
    assert (ran.code, word in ran.out) == (0, True), ran.err + ran.out


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
def test_commands_of_the_readme_are_taken(call, normcli, here):
    (here / "DIR").mkdir()
    words = [word for word in shlex.split(call) if word != "…"]
    words = ["bn" if word == "NORM" else word for word in words]
    ran = normcli(*words, "--help")
    assert (ran.code, ran.out.startswith("Usage: normcli")) == (0, True), ran.err


def test_the_readme_names_every_norm_and_the_commands_are_many():
    assert len(list_commands()) >= 20
    assert all(f"| {name}" in README for name in NORMS)
