"""Markdown: the tables as GitHub shows them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TextIO

from normcli.documents.document import GUTTER, Blocks, Facts, Formulas, Line, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.document import Document, Equation, Matrix, Section, View

_LONG_FORMULA = 72
"""Characters of LaTeX on one line: digits and signs for the most part."""


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the tables of the terminal as Markdown, as GitHub shows it."""
    for number, section in enumerate(document.sections(view)):
        if number:
            stream.write("\n")
        stream.writelines(line + "\n" for line in _format_section(section))


@functools.singledispatch
def _format_section(section: Section) -> Iterator[str]:
    raise TypeError(f"no Markdown for {type(section).__name__}")


@_format_section.register(Facts)
def _(section: Facts) -> Iterator[str]:
    yield f"## {_escape(section.title)}"
    yield ""
    for label, text in section.lines:
        yield f"- **{label}** {_escape(GUTTER.join(text))}"


@_format_section.register(Line)
def _(section: Line) -> Iterator[str]:
    yield _escape(GUTTER.join(section.marked))


@_format_section.register(Table)
def _(section: Table) -> Iterator[str]:
    if section.title:
        yield f"### {_escape(section.title)}"
        yield ""
    rows = [row.cells if isinstance(row, Row) else ("…",) * len(section.columns) for row in section.rows]
    yield from _format_table(section.columns, section.numeric, rows)
    yield from _format_note(section.note)


@_format_section.register(Blocks)
def _(section: Blocks) -> Iterator[str]:
    yield f"### {_escape(section.title)}"
    yield ""
    yield _escape(section.caption)
    for band in section.bands:
        for matrix in band or [None]:
            yield ""
            yield from ("…",) if matrix is None else _format_matrix(matrix)
    yield from _format_note(section.note)


@_format_section.register(Formulas)
def _(section: Formulas) -> Iterator[str]:
    yield f"### {_escape(section.title)}"
    for equation in section.equations:
        yield ""
        yield from ("…",) if equation is None else _format_formula(equation)
    yield from _format_note(section.note)


def _format_formula(equation: Equation) -> Iterator[str]:
    """Write a formula as GitHub takes it, broken before its signs of equality where it is long."""
    symbol, *links = equation.latex
    yield "```math"
    if sum(map(len, equation.latex)) <= _LONG_FORMULA:
        yield " ".join(equation.latex)
    else:
        ending = r" \\"
        yield r"\begin{aligned}"
        for number, link in enumerate(links):
            yield f"{'' if number else symbol + ' '}&{link}{ending if number + 1 < len(links) else ''}"
        yield r"\end{aligned}"
    yield "```"


def _format_matrix(matrix: Matrix) -> Iterator[str]:
    columns = (matrix.name, *matrix.column_labels)
    rows = [(label, *cells) for label, cells in zip(matrix.row_labels, matrix.cells, strict=True)]
    yield from _format_table(columns, (False, *(True for _ in matrix.column_labels)), rows)


def _format_table(
    columns: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]]
) -> Iterator[str]:
    yield _join(columns)
    yield _join(["---:" if right else ":---" for right in numeric])
    for row in rows:
        yield _join([cell.strip() for cell in row])


def _format_note(note: str | None) -> Iterator[str]:
    if note is not None:
        yield ""
        yield f"*{_escape(note)}*"


def _join(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escape(cell) for cell in cells)} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
