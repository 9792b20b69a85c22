"""`normcli norms`: the table of norms."""

from __future__ import annotations

import sys

import click

from normcli.cli import options


@click.command(name="norms")
@options.apply([options.FORMAT, options.COLOUR])
def command(format_: str | None, colour: str) -> None:
    """Print the table of norms: axes, formulas, parameters, sources.

    \b
      normcli norms
      normcli norms --format json
    """
    from normcli.answers.catalogue import Catalogue
    from normcli.cli.view import make_view
    from normcli.writers import write

    write(Catalogue(), format_ or "table", sys.stdout, make_view(colour))
