"""Markdown: the tables as GitHub shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from normcli.documents.document import GUTTER, Blocks, Facts, Formulas, Line, Table
from normcli.documents.translation import translate_sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.document import Document, Equation, Matrix, Section, View

_LONG_FORMULA = 72
"""The most characters of LaTeX on one line."""


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the tables of the terminal as Markdown, as GitHub shows it."""
    for number, section in enumerate(translate_sections(document.sections(view))):
        if number:
            stream.write("\n")
        stream.writelines(line + "\n" for line in _format_section(section))


def _format_section(section: Section) -> Iterator[str]:
    """Yield the lines of a section."""
    match section:
        case Facts(title, lines):
            yield from (f"## {_escape(title)}", "")
            yield from (f"- **{label}** {_escape(GUTTER.join(facts))}" for label, facts in lines)
        case Line(details=details):
            yield _escape(GUTTER.join(section.marked))
            yield from ("",) if details else ()
            yield from (f"- {f'**{label}** ' if label else ''}{_escape(text)}" for label, text in details)
        case Table(title, columns, numeric, rows):
            if title:
                yield from (f"### {_escape(title)}", "")
            cells = [("…",) * len(columns) if row is None else row.cells for row in rows]
            yield from _format_table(columns, numeric, cells)
        case Blocks(title, caption, bands):
            yield from (f"### {_escape(title)}", "", _escape(caption))
            for band in bands:
                for matrix in band or [None]:
                    yield ""
                    yield from ("…",) if matrix is None else _format_matrix(matrix)
        case Formulas(title, equations):
            yield f"### {_escape(title)}"
            for equation in equations:
                yield ""
                yield from ("…",) if equation is None else _format_formula(equation)
    if not isinstance(section, Facts | Line) and section.note is not None:
        yield from ("", f"*{_escape(section.note)}*")


def _format_formula(equation: Equation) -> Iterator[str]:
    """Yield the lines of a formula for GitHub; a long one is broken before each sign of equality."""
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
    yield from (_join([cell.strip() for cell in row]) for row in rows)


def _join(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escape(cell) for cell in cells)} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
