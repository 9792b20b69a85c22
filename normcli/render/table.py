"""Tables for the terminal, by rich: coloured on a terminal, plain and never cut on a pipe."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Literal, TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from normcli.render.document import Blocks, Facts, Grid, Line
from normcli.render.palette import choose_colour

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.render.document import Document, Matrix, Section, View

UNBOUNDED = 1_000_000
"""A width that no line reaches."""

_GUTTER = "   "


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write the document's sections for a reader."""
    console = _make_console(stream, view)
    for number, section in enumerate(document.sections(view)):
        if number:
            console.print()
        for renderable in _render(section, view):
            console.print(renderable)


class _PipeConsole(Console):
    """A console that leaves a broken pipe to whoever runs it, where rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _make_console(stream: TextIO, view: View) -> Console:
    def make(color_system: Literal["auto", "256"] | None) -> Console:
        return _PipeConsole(
            file=stream,
            force_terminal=view.colour,
            no_color=not view.colour,
            color_system=color_system,
            width=view.width or UNBOUNDED,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
        )

    if not view.colour:
        return make(None)
    console = make("auto")
    return console if console.color_system else make("256")  # colours asked for where none are announced


@functools.singledispatch
def _render(section: Section, view: View) -> Iterator[RenderableType]:
    raise TypeError(f"no table for {type(section).__name__}")


@_render.register(Facts)
def _(section: Facts, view: View) -> Iterator[RenderableType]:
    yield Text(section.title, style="bold")
    width = max((len(label) for label, _ in section.lines), default=0)
    for label, text in section.lines:
        yield from _fold(label.ljust(width) + "  ", text, view.width)


@_render.register(Line)
def _(section: Line, view: View) -> Iterator[RenderableType]:
    style = {None: "", True: "green", False: "bold red"}[section.mark]
    for line in _fold("", section.marked, view.width):
        line.stylize(style)
        yield line


@_render.register(Grid)
def _(section: Grid, view: View) -> Iterator[RenderableType]:
    widths = [
        max(len(name), *(len(row.cells[i]) for row in section.rows if row), 1)
        for i, name in enumerate(section.columns)
    ]
    if view.width is not None and sum(widths) + len(_GUTTER) * (len(widths) - 1) + 2 > view.width:
        yield from _stack(section, view)
    else:
        yield _tabulate(section, view)
    yield from _note(section.note)


@_render.register(Blocks)
def _(section: Blocks, view: View) -> Iterator[RenderableType]:
    yield Text.assemble((section.title, "bold"), f"  {section.caption}" if section.caption else "")
    if not section.bands:
        yield Text("no values")
    for number, band in enumerate(section.bands):
        if number:
            yield Text()
        yield from _lay_out(band, view.width)
    yield from _note(section.note)


def _tabulate(section: Grid, view: View) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title=section.title)
    for name, numeric in zip(section.columns, section.numeric, strict=True):
        table.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    for row in section.rows:
        cells = ["…"] * len(section.columns) if row is None else row.cells
        group = None if row is None or not view.colour else row.group
        table.add_row(cells[0] if group is None else _paint(f" {cells[0]} ", group), *cells[1:])
    return table


def _stack(section: Grid, view: View) -> Iterator[Text]:
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
            yield from _fold(f"  {name.ljust(margin)}  ", cell, view.width)


def _note(note: str | None) -> Iterator[Text]:
    if note is not None:
        yield Text(note, style="dim")


def _fold(label: str, text: str, width: int | None) -> Iterator[Text]:
    """Break a long line of facts between them (they stand three spaces apart), under its label."""
    line = ""
    for fact in text.split(_GUTTER):
        longer = f"{line}{_GUTTER}{fact}" if line else fact
        if line and width is not None and len(label) + len(longer) > width:
            yield Text.assemble((label, "dim"), line)
            label, line = " " * len(label), fact
        else:
            line = longer
    yield Text.assemble((label, "dim"), line)


def _lay_out(band: Sequence[Matrix | None] | None, width: int | None) -> Iterator[Text]:
    """Set matrices side by side, as many to a line as fit."""
    row: list[list[Text]] = []
    used = 0
    for matrix in band or [None]:
        piece = [Text("…")] if matrix is None else _draw(matrix)
        extent = piece[0].cell_len + len(_GUTTER)
        if row and width is not None and used + extent - len(_GUTTER) > width:
            yield from _join(row)
            row, used = [], 0
        row.append(piece)
        used += extent
    yield from _join(row)


def _join(pieces: Sequence[Sequence[Text]]) -> Iterator[Text]:
    for number in range(max(map(len, pieces), default=0)):
        line = Text()
        for piece in pieces:
            part = piece[number] if number < len(piece) else Text(" " * piece[0].cell_len)
            line.append_text(part)
            line.append(_GUTTER)
        line.rstrip()
        yield line


def _draw(matrix: Matrix) -> list[Text]:
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
