"""`normcli conventions`: the table of what the frameworks do."""

from __future__ import annotations

import sys

import click

from normcli.cli import options


@click.command(name="conventions")
@click.argument("norm", required=False)
@options.apply([options.FORMAT, options.COLOUR])
def command(norm: str | None, format_: str | None, colour: str) -> None:
    """Print what each framework does where a norm leaves a choice, of one NORM or of all.

    \b
      normcli conventions gn
      normcli conventions --format json
      normcli gn --groups 2 --shape 2,4,4,4 --like mlx   follow one

    Each row was read in the source that it names. "as given" stands for what the framework has no default for.
    """
    from normcli.answers.catalogue import ConventionTable
    from normcli.cli.view import make_view
    from normcli.norms.table import find_norm
    from normcli.writers import write

    table = ConventionTable(None if norm is None else find_norm(norm)[0].name)
    write(table, format_ or "table", sys.stdout, make_view(colour))
