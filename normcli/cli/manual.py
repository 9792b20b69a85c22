"""The man page, made from the help texts; `python -m normcli.cli.manual FILE` writes it."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from normcli.cli.commands import VERBS
from normcli.cli.main import commands
from normcli.cli.verbs.reference.help import TOPICS
from normcli.norms.table import NORMS
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHOWN = "bn"
"""The norm whose options the page lists, as an example for all norms."""


def format_manual() -> str:
    """Return the page as troff: the name, norms, commands, the options of a norm, and the topics of help."""
    return "\n".join(_list_lines()) + "\n"


def _list_lines() -> Iterator[str]:
    """Yield the lines of the man page as troff, section by section."""
    summary, examples = inspect.cleandoc(commands.help or "").split("\n\n")[:2]
    yield f'.TH NORMCLI 1 "" "normcli {__version__}"'
    yield from (".SH NAME", f"normcli \\- {_escape(summary.rstrip('.').lower())}")
    yield from (".SH SYNOPSIS", ".B normcli", "NORM [OPTIONS] [FILE]", ".br", ".B normcli", "COMMAND …")
    yield from (".SH EXAMPLES", ".nf", *map(_escape, examples.replace("\b", "").strip("\n").split("\n")), ".fi")
    yield ".SH NORMS"
    yield from _list_terms({name: f"{norm.title}: {norm.summary}" for name, norm in NORMS.items()})
    yield ".SH COMMANDS"
    yield from _list_terms(dict(VERBS))
    yield f".SH OPTIONS OF {_SHOWN}"
    yield from _list_terms(_find_options())
    for listings in TOPICS.values():
        for list_rows in listings:
            title, rows = list_rows()
            yield f".SH {_escape(title)}"
            yield from _list_terms(rows)
            _, _, text = inspect.cleandoc(list_rows.__doc__ or "").partition("\n\n")
            for paragraph in text.split("\n\n") if text else ():
                yield from (".PP", *map(_escape, paragraph.split("\n")))


def _find_options() -> Mapping[str, str]:
    """Return option → help for the command of one norm (`_SHOWN`), an example for all norms."""
    context = click.Context(commands, info_name="normcli")
    command = commands.get_command(context, _SHOWN)
    assert command is not None
    records = (param.get_help_record(context) for param in command.params)
    return dict(record for record in records if record is not None)


def _list_terms(terms: Mapping[str, str]) -> Iterator[str]:
    for term, text in terms.items():
        first, *others = map(_escape, text.split("\n"))
        yield from (".TP", f'.B "{_escape(term).strip()}"', first)
        for line in others:
            yield from (".br", line)


def _escape(text: str) -> str:
    """Return a text with troff's control characters escaped."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(format_manual(), encoding="utf-8")
