"""Every command refuses what is empty and what is given twice, whatever the option."""

from __future__ import annotations

import itertools

import click
import pytest

from normcli.cli.commands import VERBS, commands
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


def list_options():
    for words, command in list_commands():
        for param in command.params:
            if isinstance(param, click.Option) and not param.is_flag and not param.hidden:
                yield pytest.param(words, param, id=f"{' '.join(words)} {param.opts[-1]}")


OPTIONS = list(list_options())
SOME = [case for case in OPTIONS if case.values[0] in (["bn"], ["fit", "bn"])]
REST = [case for case in OPTIONS if case not in SOME]


@pytest.mark.parametrize(("words", "param"), [*SOME, *slowly(REST)])
def test_an_empty_option_is_named(words, param, normcli):
    texts = ("",) if param.name == "delimiter" else ("", " ")  # a blank may stand between the cells of a table
    for option, text in itertools.product(param.opts, texts):
        ran = normcli(*words, option, text)
        assert (ran.code, ran.raw, len(ran.err.splitlines())) == (2, b"", 1)
        assert f"{'/'.join(param.opts)} is empty; is a variable not set?" in ran.err


@pytest.mark.parametrize(
    ("words", "param"), [case for case in [*SOME, *slowly(REST)] if not case.values[1].multiple]
)
def test_an_option_that_takes_one_value_is_not_given_twice(words, param, normcli):
    ran = normcli(*words, param.opts[0], "1", param.opts[-1], "2")
    assert (ran.code, ran.raw, len(ran.err.splitlines())) == (2, b"", 1)
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
    ran = normcli(*line)
    assert (ran.code, ran.raw, len(ran.err.splitlines())) == (2, b"", 1)
    assert told in ran.err


def test_flags_may_stand_twice(normcli):
    assert normcli("ln", "--shape", "2,3", "-q", "--quiet", "--print", "mean").code == 0


def test_no_axes_are_written_as_such(normcli):
    asked = ("--shape", "2,2", "-q", "--print", "mean")
    assert normcli("ln", "--axes", "()", *asked).lines == ["6.0", "3.0", "7.0", "4.0"]
    assert normcli("ln", "--keep", "()", *asked).lines == ["5.0"]
