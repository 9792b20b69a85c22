"""Tables for the terminal, by rich: coloured on a terminal, plain and never cut on a pipe."""

from __future__ import annotations

import functools
import io
import itertools
import re
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Span, Text

from normcli.documents.document import GUTTER, Blocks, Facts, Formulas, Line, Row, Table
from normcli.documents.palette import choose_colour

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.document import Document, Matrix, Section, View

_NARROWEST = 20
"""Columns whose texts are broken over lines have this many characters at least."""

_EQUALITY, _OPERATION = re.compile(" (?=[=≈] )"), re.compile(" [+−/·] ")
"""Before what a line of arithmetic may be broken."""

_DEEPEST = 4
"""Operations are cut within so many nested brackets at most."""

UNBOUNDED = 1_000_000
"""A width that no line reaches."""


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write tables for a reader: coloured on a terminal, plain and never cut on a pipe."""
    text = io.StringIO()  # whole before any of it is written: an error leaves stdout empty
    console = _make_console(text, view)
    for number, section in enumerate(document.sections(view)):
        if number:
            console.print()
        for renderable in _render(section, view):
            console.print(renderable)
    stream.write(text.getvalue())


def _make_console(stream: TextIO, view: View) -> Console:
    make = functools.partial(
        Console,
        file=stream,
        force_terminal=view.colour,
        no_color=not view.colour,
        width=view.width or UNBOUNDED,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
    if not view.colour:
        return make(color_system=None)
    console = make(color_system="auto")
    return console if console.color_system else make(color_system="256")  # colours asked for, none announced


@functools.singledispatch
def _render(section: Section, view: View) -> Iterator[Text]:
    raise TypeError(f"no table for {type(section).__name__}")


@_render.register(Facts)
def _(section: Facts, view: View) -> Iterator[Text]:
    yield Text(section.title, style="bold")
    width = max((len(label) for label, _ in section.lines), default=0)
    for label, text in section.lines:
        yield from _fold(label.ljust(width) + "  ", text, view.width)


@_render.register(Line)
def _(section: Line, view: View) -> Iterator[Text]:
    style = {None: "", True: "green", False: "bold red"}[section.mark]
    for line in _fold("", section.marked, view.width):
        line.stylize(style)
        yield line


@_render.register(Table)
def _(section: Table, view: View) -> Iterator[Text]:
    widths = [
        max(len(name), *(len(row.cells[i]) for row in section.rows if row), 1)
        for i, name in enumerate(section.columns)
    ]
    if view.width is not None and sum(widths) + len(GUTTER) * (len(widths) - 1) + 2 > view.width:
        parts = _part_columns(widths, view.width) if section.wraps else []
        for number, (columns, narrowed) in enumerate(parts):
            if number:
                yield Text()
            yield from _tabulate(_wrap(section, columns, narrowed), narrowed, view)
        if not parts:
            yield from _stack(section, view)
    else:
        yield from _tabulate(section, widths, view)
    yield from _render_note(section.note, view)


@_render.register(Blocks)
def _(section: Blocks, view: View) -> Iterator[Text]:
    yield Text.assemble((section.title, "bold"), f"  {section.caption}" if section.caption else "")
    if not section.bands:
        yield Text("no values")
    for number, band in enumerate(section.bands):
        if number:
            yield Text()
        yield from _lay_out(band, view)
    yield from _render_note(section.note, view)


@_render.register(Formulas)
def _(section: Formulas, view: View) -> Iterator[Text]:
    yield from _fold("", (section.title,), view.width)
    for equation in section.equations:
        yield from (Text(line) for line in _fold_equation(equation.text if equation else "…", view.width))
    yield from _render_note(section.note, view)


def _fold_equation(text: str, width: int | None) -> Iterator[str]:
    """Break arithmetic that is longer than a line: each equality under the first, its terms behind it."""
    margin = " " * 3
    if width is None or len(margin) + len(text) <= width:
        yield margin + text
        return
    symbol, *links = _EQUALITY.split(text)
    head = f"{margin}{symbol} "
    indent = " " * Text(head).cell_len
    if len(indent) > width // 3:
        yield head.rstrip()
        head = indent = margin * 2
    for link in links:
        line, *pieces = _break_operations(link, width - len(indent) - 2)
        line = head + line
        for piece in pieces:
            if len(line) + 1 + len(piece) > width:
                yield line
                line = f"{indent}  {piece}"
            else:
                line = f"{line} {piece}"
        yield line
        head = indent


def _break_operations(text: str, room: int) -> list[str]:
    """Cut arithmetic before its operations: the outer ones, and those in brackets where it takes them."""
    pieces = [text]
    for depth in range(_DEEPEST):
        pieces = _cut_at_depth(text, depth)
        if max(map(len, pieces)) <= room:
            break
    return pieces


def _cut_at_depth(text: str, deepest: int) -> list[str]:
    starts, depth = [0], 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth <= deepest and _OPERATION.match(text, place):
            starts.append(place + 1)
    return [text[start:stop].rstrip() for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def _tabulate(section: Table, widths: Sequence[int], view: View) -> Iterator[Text]:
    """Set a table in columns. By hand: rich's own takes a third of a millisecond a row."""
    if section.title:
        yield Text(section.title)
    pad = " " if view.colour and any(row is not None and row.group is not None for row in section.rows) else ""
    sides = [str.rjust if numeric else str.ljust for numeric in section.numeric]

    def align(cells: Sequence[str]) -> str:
        return GUTTER.join(side(c, w) for side, c, w in zip(sides[1:], cells[1:], widths[1:], strict=True))

    head = f"{pad}{section.columns[0].ljust(widths[0])}{pad}"
    rest = f"{GUTTER}{align(section.columns)}"
    yield Text(f"{head}{rest}".rstrip(), style="bold")
    yield Text("─" * (len(head) + len(rest)))
    for row in section.rows:
        cells = ["…"] * len(section.columns) if row is None else row.cells
        first = f"{pad}{sides[0](cells[0], widths[0])}{pad}"
        group = row.group if row is not None and view.colour else None
        line = Text()
        line.append_text(Text(first) if group is None else _paint(first, group))
        line.append(f"{GUTTER}{align(cells)}")
        line.rstrip()
        yield line


def _narrow(widths: Sequence[int], room: int) -> list[int] | None:
    """Return widths that fit, the widest columns cut to one width; None if that is too narrow to read."""
    left = room - len(GUTTER) * (len(widths) - 1) - 2
    for most in range(max(widths), _NARROWEST - 1, -1):
        narrowed = [widths[0], *(min(width, most) for width in widths[1:])]
        if sum(narrowed) <= left:
            return narrowed
    return None


def _part_columns(widths: Sequence[int], room: int) -> list[tuple[list[int], list[int]]]:
    """Return the columns of as few tables as fit, and their widths; each has the first. Empty if none fits."""
    others = range(1, len(widths))
    for count in range(len(others), 0, -1):
        parts = [[0, *others[start : start + count]] for start in range(0, len(others), count)]
        narrowed = (_narrow([widths[column] for column in columns], room) for columns in parts)
        fitting = [(columns, fit) for columns, fit in zip(parts, narrowed, strict=True) if fit is not None]
        if len(fitting) == len(parts):
            return fitting
    return []


def _wrap(section: Table, columns: Sequence[int], widths: Sequence[int]) -> Table:
    """Return some columns of a table, whose cells are broken over rows that follow each other."""
    from textwrap import wrap

    rows: list[Row | None] = []
    for row in section.rows:
        if row is None:
            rows.append(None)
            continue
        parts = [wrap(row.cells[i], width) or [""] for i, width in zip(columns, widths, strict=True)]
        rows += [Row(cells, row.group) for cells in itertools.zip_longest(*parts, fillvalue="")]
    names, numeric = zip(*((section.columns[i], section.numeric[i]) for i in columns), strict=True)
    return section._replace(columns=names, numeric=numeric, rows=rows)


def _stack(section: Table, view: View) -> Iterator[Text]:
    """Set a table that is wider than the terminal as one paragraph a row."""
    if section.title:
        yield Text(section.title)
    margin = max(len(name) for name in section.columns)
    for number, row in enumerate(section.rows):
        if number:
            yield Text()
        if row is None:
            yield Text("…")
            continue
        yield Text(row.cells[0], style="bold")
        for name, cell in zip(section.columns[1:], row.cells[1:], strict=True):
            yield from _fold(f"  {name.ljust(margin)}  ", (cell,), view.width)


def _render_note(note: str | None, view: View) -> Iterator[Text]:
    for line in () if note is None else _fold("", (note,), view.width):
        line.stylize("dim")
        yield line


def _fold(label: str, facts: Sequence[str], width: int | None) -> Iterator[Text]:
    """Break a long line of facts between them, or within one that is longer than a line, under its label."""
    line = ""
    for fact in _break_facts(facts, None if width is None else max(1, width - len(label))):
        longer = f"{line}{GUTTER}{fact}" if line else fact
        if line and width is not None and len(label) + len(longer) > width:
            yield Text.assemble((label, "dim"), line)
            label, line = " " * len(label), fact
        else:
            line = longer
    yield Text.assemble((label, "dim"), line)


def _break_facts(facts: Sequence[str], room: int | None) -> Iterator[str]:
    for fact in facts:
        if room is None or len(fact) <= room:
            yield fact
        else:
            from textwrap import wrap  # seldom needed

            yield from wrap(fact, room, break_long_words=False, break_on_hyphens=False)


def _lay_out(band: Sequence[Matrix | None] | None, view: View) -> Iterator[Text]:
    """Set matrices side by side, as many to a line as fit."""
    row: list[list[Text]] = []
    used = 0
    for matrix in band or [None]:
        piece = [Text("…")] if matrix is None else _render_matrix(matrix)
        extent = piece[0].cell_len + len(GUTTER)
        if row and view.width is not None and used + extent - len(GUTTER) > view.width:
            yield from _join(row, view)
            row, used = [], 0
        row.append(piece)
        used += extent
    yield from _join(row, view)


def _join(pieces: Sequence[Sequence[Text]], view: View) -> Iterator[Text]:
    for number in range(max(map(len, pieces), default=0)):
        line = Text()
        for piece in pieces:
            part = piece[number] if number < len(piece) else Text(" " * piece[0].cell_len)
            line.append_text(part)
            line.append(GUTTER)
        painted = max((span.end for span in line.spans if _is_painted(span)), default=0) if view.colour else 0
        line.right_crop(len(line) - max(painted, len(line.plain.rstrip())))
        yield line


def _is_painted(span: Span) -> bool:
    """Whether a stretch of text has a background, so that its blanks are seen."""
    return isinstance(span.style, Style) and span.style.bgcolor is not None


def _render_matrix(matrix: Matrix) -> list[Text]:
    """Return a matrix as lines of one length: its name, then its rows, each cell on its group's colour."""
    widths = [max(map(len, column)) for column in zip(*matrix.cells, strict=True)]
    lines = [Text()]
    for cells, groups in zip(matrix.cells, matrix.groups, strict=True):
        line = Text()
        texts = [f" {cell.rjust(width)}" for cell, width in zip(cells, widths, strict=True)]
        texts[-1:] = [f"{text} " for text in texts[-1:]]
        for group, run in itertools.groupby(zip(groups, texts, strict=True), key=lambda pair: pair[0]):
            text = "".join(cell for _, cell in run)
            line.append_text(Text(text) if group is None else _paint(text, group))
        lines.append(line)
    extent = max(len(matrix.name), *(line.cell_len for line in lines))
    lines[0] = Text(matrix.name.ljust(extent), style="dim")
    for line in lines:
        line.append(" " * (extent - line.cell_len))
    return lines if matrix.name else lines[1:]


def _paint(text: str, group: int) -> Text:
    background, foreground = choose_colour(group)
    return Text(text, style=Style(color=foreground, bgcolor=background))
