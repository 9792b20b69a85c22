"""The top of the command line: which commands there are; none is imported until it is called."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import click

from normcli.cli.languages import LANGUAGE, TranslatedContext
from normcli.compiled import describe_kernel
from normcli.norms.table import BY_ANY_NAME, NORMS
from normcli.printable import make_printable
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from click.shell_completion import CompletionItem


VERBS: Mapping[str, tuple[str, str]] = {
    "explain": ("explain", "Show the arithmetic of one value, step by step, as on paper."),
    "compare": ("compare", "Set norms side by side on one tensor; say which are equal, and why."),
    "draw": ("draw", "Draw a tensor, each value in the colour of its group: SVG, PNG, terminal."),
    "backward": ("backward", "Differentiate a loss by the tensor, gamma and beta: dx, dgamma, dbeta, exact."),
    "restore": ("restore", "See whether gamma = std and beta = mean can undo a norm."),
    "check": ("check", "Check a tensor against the exact result of a norm."),
    "identify": ("identify", "Find what made a tensor: norm, axes, eps, ddof, gamma and beta."),
    "doctor": ("doctor", "Find which algorithms are safe on a tensor in low precision."),
    "golden": ("golden", "Write input, parameters and exact results for another project's tests."),
    "simulate": ("simulate", "Draw batches around one sample; see how far it moves with them."),
    "fit": ("fit", "Fit a norm to files: exact statistics over all of them, mergeable."),
    "merge": ("fit", "Merge stats files, or print one."),
    "apply": ("apply", "Normalize files with fitted statistics."),
    "invert": ("apply", "Undo what apply did."),
    "fold": ("fold", "Fold batch or spectral normalization into a layer."),
    "generate": ("generate", "Write a seeded tensor and nothing else."),
    "norms": ("tables", "Print the table of norms: axes, formulas, parameters, sources."),
    "conventions": ("tables", "Print what each framework does where a norm leaves a choice."),
    "completion": ("completion", "Print what makes bash, zsh or fish complete commands and values."),
    "help": ("help", "Explain file formats, exit codes, layouts, words or faults; show a command's help."),
}
"""Verb → the module of this folder that has its record, under its name in capitals, and what it does."""

_NAME_WIDTH = 11

_ALIKE = 0.7
"""How alike a word must be to what is suggested for it, from 0 to 1: `help` is not like `lp`."""


def complete_names(
    incomplete: str, others: Mapping[str, str] = MappingProxyType({})
) -> list[CompletionItem[str]]:
    """Return the norms and other words that begin so, with what they are; aliases if none of these does."""
    from click.shell_completion import CompletionItem

    known = {**{name: norm.title for name, norm in NORMS.items()}, **others}
    names = known if any(name.startswith(incomplete) for name in known) else BY_ANY_NAME
    return [
        CompletionItem(name, help=known.get(name) or BY_ANY_NAME[name].title)
        for name in names
        if name.startswith(incomplete.lower())
    ]


class CommandGroup(click.Group):
    """Commands by name, with an error for unknown names that suggests similar ones."""

    context_class = TranslatedContext
    subject = "norm or command"
    others: Sequence[str] = tuple(VERBS)
    """What a word may be beside a norm."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the tables."""
        return [*NORMS, *self.others]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the names that begin so; long names and those of frameworks' classes only if no other does."""
        return [
            *complete_names(incomplete, {name: VERBS[name][1] for name in self.others}),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; the error names what is similar."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            known = [*BY_ANY_NAME, *self.others]
            near = get_close_matches(name.lower(), known, n=2, cutoff=_ALIKE)
            hint = f"did you mean {' or '.join(near)}?" if near else f"the norms are {', '.join(NORMS)}"
            raise click.UsageError(f"there is no {self.subject} {name!r}; {hint}")
        shown, command, rest = super().resolve_command(ctx, args)
        return make_printable(shown or ""), command, rest  # a folder's name, in its help


class _Commands(CommandGroup):
    """Every norm of the table and every verb, each imported and built when it is called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb's command, or that of the norm of that name, alias or preset."""
        if cmd_name in VERBS:
            return _build_command(VERBS[cmd_name][0], cmd_name)
        return _build_command("calculate", "calculate", cmd_name) if cmd_name.lower() in BY_ANY_NAME else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the norms and the verbs as two lists, from their tables."""
        norms = [(name.ljust(_NAME_WIDTH), f"{norm.title}: {norm.summary}") for name, norm in NORMS.items()]
        verbs = [(name.ljust(_NAME_WIDTH), line) for name, (_, line) in VERBS.items()]
        with formatter.section("Norms"):
            formatter.write_dl(norms)
        with formatter.section("Commands"):
            formatter.write_dl(verbs)


@cache
def _build_command(module: str, verb: str, norm: str | None = None) -> click.Command:
    """Import the module of a verb, and return the verb's command; with a norm's name, that of the norm."""
    record = getattr(import_module(f"normcli.cli.{module}"), verb.upper())
    return cast("click.Command", record.make_command() if norm is None else record.make_norm_command(norm))


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Show the version and the kernel."""
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
