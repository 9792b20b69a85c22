"""The top of the command line: every norm and every verb; a verb's module is imported when it is called."""

from __future__ import annotations

from functools import cache
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


def import_verb(name: str) -> Verb:
    """Import the module of a verb and return the verb's record; raise `ValueError` for an unknown verb."""
    match name:
        case "explain":
            from normcli.cli.verbs.teaching.explain import EXPLAIN

            return EXPLAIN
        case "compare":
            from normcli.cli.verbs.teaching.compare import COMPARE

            return COMPARE
        case "draw":
            from normcli.cli.verbs.calculating.draw import DRAW

            return DRAW
        case "backward":
            from normcli.cli.verbs.calculating.backward import BACKWARD

            return BACKWARD
        case "restore":
            from normcli.cli.verbs.teaching.restore import RESTORE

            return RESTORE
        case "check":
            from normcli.cli.verbs.judging.check import CHECK

            return CHECK
        case "identify":
            from normcli.cli.verbs.judging.identify import IDENTIFY

            return IDENTIFY
        case "audit":
            from normcli.cli.verbs.judging.audit import AUDIT

            return AUDIT
        case "doctor":
            from normcli.cli.verbs.judging.doctor import DOCTOR

            return DOCTOR
        case "golden":
            from normcli.cli.verbs.judging.golden import GOLDEN

            return GOLDEN
        case "simulate":
            from normcli.cli.verbs.batches.simulate import SIMULATE

            return SIMULATE
        case "fit":
            from normcli.cli.verbs.batches.fit import FIT

            return FIT
        case "merge":
            from normcli.cli.verbs.batches.fit import MERGE

            return MERGE
        case "apply":
            from normcli.cli.verbs.batches.apply import APPLY

            return APPLY
        case "invert":
            from normcli.cli.verbs.batches.apply import INVERT

            return INVERT
        case "fold":
            from normcli.cli.verbs.batches.fold import FOLD

            return FOLD
        case "generate":
            from normcli.cli.verbs.calculating.generate import GENERATE

            return GENERATE
        case "norms":
            from normcli.cli.verbs.reference.list_tables import NORMS

            return NORMS
        case "conventions":
            from normcli.cli.verbs.reference.list_tables import CONVENTIONS

            return CONVENTIONS
        case "completion":
            from normcli.cli.verbs.reference.completion import COMPLETION

            return COMPLETION
        case "help":
            from normcli.cli.verbs.reference.help import HELP

            return HELP
        case _:
            raise ValueError(name)


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
