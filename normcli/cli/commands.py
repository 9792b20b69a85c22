"""The top of the command line: which commands there are, found without importing them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from normcli.errors import UsageError
from normcli.norms.table import NORMS, find_norm
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

VERBS: Mapping[str, tuple[str, str]] = {
    "explain": ("normcli.cli.explain", "Show the arithmetic of one value, step by step, as on paper."),
    "compare": ("normcli.cli.compare", "Set norms side by side on one tensor; say which are equal, and why."),
    "draw": ("normcli.cli.draw", "Draw a tensor, each value in the colour of its group: SVG, PNG, terminal."),
    "restore": ("normcli.cli.restore", "See whether gamma = std and beta = mean can undo a norm."),
    "check": ("normcli.cli.check", "Check a tensor against the exact result of a norm."),
    "identify": ("normcli.cli.identify", "Find what made a tensor: norm, axes, eps, ddof, gamma and beta."),
    "golden": ("normcli.cli.golden", "Write input, parameters and exact results for another project's tests."),
    "fit": ("normcli.cli.fit", "Fit a norm to files: exact statistics over all of them, mergeable."),
    "merge": ("normcli.cli.merge", "Merge stats files, or print one."),
    "apply": ("normcli.cli.apply", "Normalize files with fitted statistics."),
    "invert": ("normcli.cli.invert", "Undo what apply did."),
    "fold": ("normcli.cli.fold", "Fold batch normalization into the layer before it."),
    "generate": ("normcli.cli.generate", "Write a seeded tensor and nothing else."),
    "norms": ("normcli.cli.norms", "Print the table of norms: axes, formulas, parameters, sources."),
    "conventions": ("normcli.cli.conventions", "Print what each framework does where a norm leaves a choice."),
    "help": ("normcli.cli.help", "Explain file formats, exit codes or layouts; show the help of a command."),
}
"""Verb → the module whose `command` it is, and its line in the list of commands."""

_NAME_WIDTH = 11


class Commands(click.Group):
    """Every norm of the table and every verb, each built when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the tables."""
        return [*NORMS, *VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb's command, or that of the norm of that name, alias or preset."""
        verb = VERBS.get(cmd_name)
        if verb is not None:
            command: click.Command = import_module(verb[0]).command
            return command
        try:
            find_norm(cmd_name)
        except UsageError:
            return None
        built: click.Command = import_module("normcli.cli.calculate").make_command(cmd_name)
        return built

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, but say what would be right."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            hint = import_module("normcli.cli.verbs").suggest_names(name, tuple(VERBS))
            raise click.UsageError(f"there is no norm or command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the norms and the verbs as two lists, from their tables."""
        norms = [(name.ljust(_NAME_WIDTH), f"{norm.title}: {norm.summary}") for name, norm in NORMS.items()]
        verbs = [(name.ljust(_NAME_WIDTH), line) for name, (_, line) in VERBS.items()]
        with formatter.section("Norms"):
            formatter.write_dl(norms)
        with formatter.section("Commands"):
            formatter.write_dl(verbs)


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="normcli", message="%(prog)s %(version)s")
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
