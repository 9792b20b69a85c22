"""The top of the command line: every norm and every verb; a verb's module is imported when it is called."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import click

from normcli.cli.commands import VERBS, CommandGroup
from normcli.cli.languages import LANGUAGE
from normcli.compiled import describe_kernel
from normcli.norms.table import BY_ANY_NAME, NORMS
from normcli.version import __version__

if TYPE_CHECKING:
    from normcli.cli.verb_commands import Verb

_NAME_WIDTH = 11


class _Commands(CommandGroup):
    """The commands of all norms and verbs, each imported and built when it is called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb or of a norm, by name, alias or preset; None if there is none."""
        if cmd_name in VERBS:
            return _make_command(cmd_name)
        return _make_norm_command(cmd_name) if cmd_name.lower() in BY_ANY_NAME else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the norms and the verbs as two lists, from their tables."""
        norms = [(name.ljust(_NAME_WIDTH), f"{norm.title}: {norm.summary}") for name, norm in NORMS.items()]
        verbs = [(name.ljust(_NAME_WIDTH), line) for name, line in VERBS.items()]
        with formatter.section("Norms"):
            formatter.write_dl(norms)
        with formatter.section("Commands"):
            formatter.write_dl(verbs)


_FILES = {
    "batches": ("apply", "fit", "fold", "simulate"),
    "calculating": ("backward", "draw", "generate"),
    "judging": ("audit", "check", "doctor", "golden", "identify"),
    "reference": ("completion", "help", "list_tables"),
    "teaching": ("compare", "explain", "restore"),
}
"""Folder of `normcli.cli.verbs` → its files with verbs."""

_SHARED = {"invert": "apply", "merge": "fit", "norms": "list_tables", "conventions": "list_tables"}
"""Verb → its file, where that has another name."""


def import_verb(name: str) -> Verb:
    """Import a verb's module and return its record, such as `CHECK`; `StopIteration` for an unknown verb."""
    file = _SHARED.get(name, name)
    folder = next(folder for folder, files in _FILES.items() if file in files)
    verb: Verb = getattr(import_module(f"normcli.cli.verbs.{folder}.{file}"), name.upper())
    return verb


@cache
def _make_command(verb: str) -> click.Command:
    return import_verb(verb).make_command()


@cache
def _make_norm_command(norm: str) -> click.Command:
    from normcli.cli.verbs.calculating.normalize import NORMALIZE

    return NORMALIZE.make_norm_command(norm)


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and the kernel, and exit."""
    if asked and not ctx.resilient_parsing:
        click.echo(f"normcli {__version__} ({describe_kernel()})")
        ctx.exit()


@click.command(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and which kernel runs, and exit.",
)
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Calculate exactly what a normalization does to these numbers.

    \b
      normcli bn --shape 2,3,4,4               a seeded tensor, batch-normalized
      normcli ln -i x.npy -o y.npy             from file to file
      normcli zscore -i iris.csv --print mean  one number a line, for scripts

    Long names work too: normcli layernorm. Each command has its own --help.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


commands.params.append(LANGUAGE)
