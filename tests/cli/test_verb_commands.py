"""Every command refuses what is empty and what is given twice, whatever the option."""

from __future__ import annotations

import itertools
import os

import click
import numpy as np
import pytest

from normcli.cli.commands import VERBS
from normcli.cli.main import commands
from tests.conftest import require_refusal
from tests.marks import slowly

CONTEXT = click.Context(commands)


def list_commands():
    """Yield the arguments that each command begins with, and the command: those of norms, of two of them."""
    for name in ("bn", "lrn", *VERBS):
        command = commands.get_command(CONTEXT, name)
        if not isinstance(command, click.Group):
            yield [name], command
            continue
        for norm in ("bn", "gn"):
            yield [name, norm], command.get_command(CONTEXT, norm)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("bn ln --shape 2,3", "ln is a norm, where a file goes; did you mean normcli compare bn ln?"),
        ("explain bn --shape 2,3 --at 0 0", "--at takes one word with commas: --at 0,0"),
        ("draw --shape 2,3", "draw needs a norm first: normcli draw NORM --shape …; the norms are bn, ln,"),
        ("ln --groups 2 --shape 2,4", "No such option '--groups' of ln; it is an option of gn"),
        ("ln --dim 2 --shape 2,4", "No such option '--dim'; it is --axes here"),
        ("diff bn ln", "there is no norm or command 'diff'; the norms are bn, ln,"),
        (
            "page bn",
            "no norm or command 'page'; -o makes one: normcli compare bn ln --shape 2,3,4 -o page.html",
        ),
        ("diff bn ln", ", the commands explain, compare, draw,"),
    ],
)
def test_a_word_in_the_wrong_place_is_refused_with_what_was_meant(line, told, normcli):
    require_refusal(normcli(*line.split()), 2, told)


COMMANDS = [pytest.param(words, command, id=" ".join(words)) for words, command in list_commands()]
SOME = [case for case in COMMANDS if case.values[0] in (["bn"], ["fit", "bn"])]
EACH_COMMAND = pytest.mark.parametrize(
    ("words", "command"), [*SOME, *slowly(case for case in COMMANDS if case not in SOME)]
)


def list_options(command):
    """Return the options of a command that take a value."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    return [option for option in options if not (option.is_flag or option.hidden)]


@pytest.mark.slow
@EACH_COMMAND
def test_an_empty_option_is_named(words, command, normcli):
    for param in list_options(command):
        texts = (
            ("",) if param.name == "delimiter" else ("", " ")
        )  # a blank may stand between the cells of a table
        for option, text in itertools.product(param.opts, texts):
            ran = normcli(*words, option, text)
            assert (ran.code, ran.raw, len(ran.err.splitlines())) == (2, b"", 1), option
            assert f"{'/'.join(param.opts)} is empty; is a variable not set?" in ran.err


@EACH_COMMAND
def test_an_option_that_takes_one_value_is_not_given_twice(words, command, normcli):
    for param in list_options(command):
        if not param.multiple:
            ran = normcli(*words, param.opts[0], "1", param.opts[-1], "2")
            assert (ran.code, ran.raw, len(ran.err.splitlines())) == (2, b"", 1), param
            assert f"{'/'.join(param.opts)} is given 2 times; it takes one value" in ran.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param(["fit", "zscore", ""], "FILE… is empty", id="a file"),
        pytest.param(["fit", "zscore", "x.npy", ""], "FILE… is empty", id="one of several files"),
        pytest.param(["bn", "-i", "x.npy", "-i", ""], "-i/--input is empty", id="one of several inputs"),
        pytest.param(["help", ""], "TOPIC is empty", id="a word"),
    ],
)
def test_an_empty_argument_is_named(line, told, normcli):
    require_refusal(normcli(*line), 2, told)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("ln -i p.npy -o p.npy", id="input"),
        pytest.param("ln --shape 2,3 --gamma p.npy -o ./p.npy", id="gamma"),
        pytest.param("ln -i p.npy --stats-output p.npz", id="statistics"),
        pytest.param("apply s.npz p.npy -o p.npy", id="apply"),
    ],
)
def test_one_pipe_is_not_read_and_written(line, normcli, here):
    os.mkfifo("p.npy")
    os.symlink("p.npy", "p.npz")
    require_refusal(normcli(*line.split()), 2, "is a pipe that is also named to be read; give another")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("ln -i x.npy --gamma g.npy -o g.npy", id="gamma"),
        pytest.param("ln -i x.npy --stats-output keyed.npz -i keyed.npz:x", id="statistics"),
        pytest.param("ln -i keyed.npz:x -o keyed.npz", id="the other arrays of an archive"),
        pytest.param("fit zscore x.npy keyed.npz:x -o ./keyed.npz", id="fit"),
        pytest.param("fit zscore *.np[yz] -o keyed.npz", id="fit, a pattern"),
        pytest.param("apply keyed.npz x.npy -o keyed.npz", id="apply"),
        pytest.param("invert in:like=revin x.npy --of g.npy -o g.npy", id="invert"),
        pytest.param("backward ln -i x.npy -o x.npy", id="backward"),
        pytest.param("backward ln -i x.npy --dy g.npy -o g.npy", id="dy"),
    ],
)
def test_no_output_replaces_what_is_read(line, normcli, here):
    x = np.arange(12.0).reshape(3, 4)
    np.save("x.npy", x)
    np.save("g.npy", x[0])
    np.savez("keyed.npz", x=x, other=x)
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    require_refusal(normcli(*line.split()), 2, "would replace a file that is read; name another file")
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_result_may_replace_its_own_tensor(normcli, here):
    (here / "x.csv").write_text("a,b\n1,x\n3,y\n")
    np.save("x.npy", np.arange(12.0).reshape(3, 4))
    assert normcli("zscore", "-i", "x.csv:a", "-o", "x.csv", "-q").code == 0
    assert (here / "x.csv").read_text() == "a,b\n-1.0,x\n1.0,y\n"
    assert normcli("ln", "-i", "x.npy", "-o", "x.npy", "-q").code == 0
    assert abs(np.load("x.npy").mean()) < 1e-9


def test_no_axes_are_written_as_such(normcli):
    asked = ("--shape", "2,2", "-q", "--print", "mean")
    assert normcli("ln", "--axes", "()", *asked).lines == ["6.0", "3.0", "7.0", "4.0"]
    assert normcli("ln", "--keep", "()", *asked).lines == ["5.0"]
