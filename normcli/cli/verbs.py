"""Verbs that are asked of a norm: `normcli VERB NORM`, with a command for each row of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.errors import UsageError
from normcli.norms.table import NORMS, find_norm

if TYPE_CHECKING:
    from collections.abc import Callable


class NormVerb(click.Group):
    """A verb with a command for every norm, built by `make_command` when it is called."""

    def __init__(
        self,
        *arguments: Any,
        make_command: Callable[[str], click.Command],
        subject: str = "norm",
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **{"subcommand_metavar": "NORM …", "no_args_is_help": False, **settings})
        self._make_command, self._subject = make_command, subject

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but where nothing is said, say in a line what belongs there."""
        if not args:
            raise click.UsageError(
                f"{ctx.info_name} needs a {self._subject}; the norms are {', '.join(NORMS)}", ctx
            )
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the norms in the order of the table."""
        return list(NORMS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of the norm of that name, alias or preset."""
        try:
            find_norm(cmd_name)
        except UsageError:
            return None
        return self._make_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a norm as click does, but say what would be right."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(f"there is no {self._subject} {name!r}; {suggest_names(name)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the norms on one line: `normcli norms` says what they are."""
        with formatter.section("Norms"):
            formatter.write_text(", ".join(NORMS))


def suggest_names(name: str, others: tuple[str, ...] = ()) -> str:
    """Return what to say of a word that is the name of nothing."""
    from difflib import get_close_matches

    known = [*(alias for norm in NORMS.values() for alias in norm.names), *others]
    near = get_close_matches(name.lower(), known, n=2)
    return f"did you mean {' or '.join(near)}?" if near else f"the norms are {', '.join(NORMS)}"
