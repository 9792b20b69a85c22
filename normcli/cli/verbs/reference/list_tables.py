"""`normcli norms` and `normcli conventions`: the tables of norms and frameworks; and the table of symptoms."""

from __future__ import annotations

import pkgutil
import tomllib
from typing import TYPE_CHECKING

import click

from normcli.cli.files.destination import Destination, print_document
from normcli.cli.parameters import answer_options
from normcli.cli.parameters.types import NormName
from normcli.cli.verb_commands import Verb
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings


_WIDTH = 100
"""The width in columns of the conventions on a pipe: their table is 370 wide, and its notes are prose."""


class Symptom(NamedTuple):
    """A symptom that people report of a norm, and the command that finds its cause."""

    symptom: str
    thread: str
    """The address of a public thread that reports the symptom."""
    make: str
    """Python code that writes small tensors with the symptom, with NumPy as np."""
    command: str
    answer: str
    """The line of the command's answer that says what is wrong."""
    fix: str


def read_symptoms() -> list[Symptom]:
    """Return the recipes of `symptoms.toml`, in the order of the file."""
    text = (pkgutil.get_data("normcli.cli.verbs.reference", "symptoms.toml") or b"").decode()
    return [Symptom(**row) for row in tomllib.loads(text)["recipes"]]


def _list_norms(settings: Settings) -> None:
    """Print the table of norms: axes, formulas, parameters, sources.

    \b
      normcli norms
      normcli norms --format json
    """
    from normcli.answers.calculating.catalogue import Catalogue

    print_document(Catalogue(), settings.answer)


def _list_conventions(settings: Settings, name: str | None) -> None:
    """Print what each framework does where a norm leaves a choice.

    Of one NORM, of one FRAMEWORK, or of all.

    \b
      normcli conventions gn
      normcli conventions keras
      normcli conventions --format json
      normcli gn --groups 2 --shape 2,4,4,4 --like mlx   follow one

    Each row was read in the source that it names. "as given" stands for what the framework has no default for.
    """
    from normcli.answers.calculating.catalogue import ConventionTable
    from normcli.norms.conventions import CONVENTIONS
    from normcli.norms.table import find_norm

    if name is not None and name.lower() not in {row.framework for row in CONVENTIONS}:
        name = find_norm(name)[0].name
    view = settings.answer.view()
    document = ConventionTable(name and name.lower())
    Destination(None, settings.answer.format_name or "table").write(
        document, view._replace(width=view.width or _WIDTH)
    )


NORMS = Verb(
    "norms",
    _list_norms,
    options=(answer_options.FORMAT, answer_options.COLOUR),
)

CONVENTIONS = Verb(
    "conventions",
    _list_conventions,
    options=(
        click.argument("name", required=False, metavar="[NORM|FRAMEWORK]", type=NormName()),
        answer_options.FORMAT,
        answer_options.COLOUR,
    ),
)
