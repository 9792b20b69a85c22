"""Every command and every option says what it is."""

from __future__ import annotations

import click
import pytest

from normcli import NORMS
from normcli.cli.commands import VERBS, commands
from normcli.cli.options import NUMERIC
from normcli.version import __version__
from tests.conftest import ROOT


def build(name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command


NAMES = [*NORMS, *VERBS]
OF_NORMS = [(verb, name) for verb in VERBS for name in NORMS if isinstance(build(verb), click.Group)]


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_help_with_an_example(name, normcli):
    ran = normcli(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"  normcli {name}" in ran.out


@pytest.mark.parametrize("name", NAMES)
def test_each_option_has_help(name):
    for parameter in build(name).params:
        if isinstance(parameter, click.Argument):
            continue  # click has no help for these: the command's own speaks of it, in capitals
        assert isinstance(parameter, click.Option)
        assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize(("verb", "name"), OF_NORMS)
def test_each_command_of_a_verb_has_help_with_an_example(verb, name, normcli):
    ran = normcli(verb, name, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"  normcli {verb} {name}" in ran.out
    command = build(verb).get_command(click.Context(commands), name)
    assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option))


@pytest.mark.parametrize("name", NORMS)
def test_each_norm_has_the_numeric_options_of_its_row_and_no_others(name):
    have = {parameter.name for parameter in build(name).params}
    assert have & {"eps", "eps_mode", *NUMERIC} == NORMS[name].options
    assert have & {"gamma", "beta"} == set(NORMS[name].parameter_names)


def test_a_preset_does_not_offer_what_it_fixes():
    assert "p" not in {parameter.name for parameter in build("l1").params}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_top_lists_every_norm_and_verb(arguments, normcli):
    ran = normcli(*arguments)
    assert ran.code == 0
    for name in NAMES:
        assert f"\n  {name} " in ran.out


def test_version(normcli):
    assert normcli("--version").out == f"normcli {__version__}\n"


def test_the_changelog_speaks_of_this_version():
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
