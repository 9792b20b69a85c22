"""Tables for the terminal, by rich: coloured on a terminal, plain and never cut on a pipe."""

from __future__ import annotations

import functools
import io
import itertools
import re
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from normcli.documents.document import GUTTER, Blocks, Facts, Formulas, Line, Table, TableRow
from normcli.documents.palette import PALETTE, PALETTE_OF_16
from normcli.documents.translation import change_texts, translate_sections
from normcli.language import translate
from normcli.printable import WideWrapper, spread_wide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from normcli.documents.document import Document, Matrix, Section, View

_NARROWEST = 20
"""The least width, in characters, of a column whose texts are broken over lines."""

_OPERATION = re.compile(" [+−/·] ")
"""The places in arithmetic where a line may be broken, if need be: before an operation."""

_FIXED = str.maketrans(" \v", "\0\1")
"""Stand-ins for blanks, and for the fillers of wide characters, where no line may be broken."""

_LOOSE = str.maketrans("\0\1", " \v")

_DEEPEST = 4
"""The number of depths of brackets, 0 to 3, at which a line may be broken before an operation."""

_INDENT = " " * 4
"""The indent of facts below a label that leaves too little room beside it."""

_NOTEBOOK = '<pre style="white-space: pre; overflow-x: auto; line-height: 1.2">{code}</pre>'

UNBOUNDED = 1_000_000
"""A width that no line reaches."""


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write tables for a reader: coloured on a terminal, plain and never cut on a pipe."""
    text = io.StringIO()  # whole before any of it is written: an error leaves stdout empty
    _print(document, _make_console(text, view), view)
    stream.write(text.getvalue())


def format_text(document: Document, view: View) -> str:
    """Return a document as the text of its tables, without blank lines at its end."""
    text = io.StringIO()
    write(document, text, view)
    return text.getvalue().rstrip("\n")


def write_html(document: Document, view: View) -> str:
    """Return a document's tables as HTML for a notebook, with the colours of the groups."""
    make = functools.partial(Console, file=io.StringIO(), width=UNBOUNDED, soft_wrap=True, record=True)
    console = make(color_system="truecolor", force_terminal=True)
    console.push_theme(_make_theme(PALETTE))
    _print(document, console, view)
    html: str = console.export_html(inline_styles=True, code_format=_NOTEBOOK)
    return html


def _print(document: Document, console: Console, view: View) -> None:
    sections = (
        change_texts(section, spread_wide, spread_wide)
        for section in translate_sections(document.sections(view))
    )
    for line in _separate(_render(section, view) for section in sections):
        console.print(line)


def _make_console(stream: TextIO, view: View) -> Console:
    make = functools.partial(Console, file=stream, width=view.width or UNBOUNDED, soft_wrap=True)
    if not view.colour:
        return make(color_system=None)
    make = functools.partial(make, force_terminal=True, no_color=False)
    console = make()
    if not console.color_system:  # colours asked for, none announced
        console = make(color_system="256")
    palette = PALETTE_OF_16 if console.color_system == "standard" else PALETTE
    console.push_theme(_make_theme(palette))
    return console


def _make_theme(palette: Sequence[tuple[str, str]]) -> Theme:
    """Return the styles of the groups' cells."""
    return Theme({_name_look(i): Style(color=text, bgcolor=ground) for i, (ground, text) in enumerate(palette)})


def _name_look(group: int) -> str:
    """Return the name of the style of a group's cells."""
    return f"group{group % len(PALETTE)}"


def _render(section: Section, view: View) -> Iterator[Text]:
    """Yield the lines of a section, with their styles."""
    match section:
        case Facts(title, lines):
            yield Text(title, style="bold")
            width = max((len(label) for label, _ in lines), default=0)
            for label, facts in lines:
                yield from _fold(label.ljust(width) + "  ", facts, view)
        case Line(mark=mark, details=details):
            style = {None: "", True: "green", False: "bold red"}[mark]
            yield from _fold("", section.marked, view, style)
            width = max((len(label) for label, _ in details), default=0)
            for label, text in details:
                yield from _fold(f"  {label.ljust(width)}{GUTTER}", (text,), view)
        case Table():
            yield from _render_table(section, view)
        case Blocks(title, caption, bands):
            yield Text.assemble((title, "bold"), f"  {caption}" if caption else "")
            if not bands:
                yield Text(translate("no values"))
            yield from _separate(_lay_out(band, view) for band in bands)
        case Formulas(title, equations):
            yield from _fold("", (title,), view)
            for equation in equations:
                text = equation.text if equation else "…"
                yield from map(Text, _fold_equation(text, view.width or UNBOUNDED))
    if not isinstance(section, Facts | Line) and section.note is not None:
        yield from _fold("", (section.note,), view, "dim")


def _render_table(section: Table, view: View) -> Iterator[Text]:
    """Yield the lines of a table: in columns if these fit, else as several tables or paragraphs."""
    if section.title:
        yield Text(section.title)
    widths = [
        max(len(name), *(len(row.cells[i]) for row in section.rows if row), 1)
        for i, name in enumerate(section.columns)
    ]
    if view.width is None or sum(widths) + len(GUTTER) * (len(widths) - 1) + 2 <= view.width:
        yield from _tabulate(section, widths, view)
        return
    parts = _part_columns(widths, view.width) if section.wraps else []
    if not parts:
        yield from _stack(section, view)
    yield from _separate(
        _tabulate(_wrap(section, columns, narrowed), narrowed, view) for columns, narrowed in parts
    )


def _separate(parts: Iterable[Iterable[Text]]) -> Iterator[Text]:
    """Yield the lines of several parts, with an empty line between two parts."""
    for number, lines in enumerate(parts):
        if number:
            yield Text()
        yield from lines


def _fold_equation(text: str, width: int) -> Iterator[str]:
    """Yield the lines of arithmetic: one if it fits, else one for each `=`, and more where that is too long."""
    margin = " " * 3
    if len(margin) + len(text) <= width:
        yield margin + text
        return
    symbol, *links = re.split(" (?=[=≈] )", text)
    head = f"{margin}{symbol} "
    indent = " " * Text(head).cell_len
    if len(indent) > width // 3:
        yield head.rstrip()
        head = indent = margin * 2
    for link in links:
        pieces = _break_operations(link, width - len(indent) - 2)
        yield from _fill(" ", pieces, width, head, f"{indent}  ")
        head = indent


def _fill(gap: str, pieces: Sequence[str], width: int, first: str, other: str) -> list[str]:
    """Return the lines of a text joined from pieces, with `gap` between them: as few lines as fit `width`.

    `first` is the margin of the first line, `other` of the others. A piece is broken only if it is longer than
    a line.
    """
    text = gap.join(piece.translate(_FIXED) for piece in pieces)
    wrapper = WideWrapper(width, first, other)
    return [line.translate(_LOOSE) for line in wrapper.wrap(text) or [first]]


def _break_operations(text: str, room: int) -> list[str]:
    """Cut arithmetic before operations; before operations in brackets too, if a piece is longer than `room`."""
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
    """Yield the lines of a table in columns; rich's own tables take a third of a millisecond a row."""
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
        line = Text.assemble(_paint(first, group), f"{GUTTER}{align(cells)}")
        line.rstrip()
        yield line


def _narrow(widths: Sequence[int], room: int) -> list[int]:
    """Return column widths that fit `room` together: the first unchanged, the others at most a common bound.

    The bound is the largest that fits; if it would be below 20, the list is empty.
    """
    left = room - len(GUTTER) * (len(widths) - 1) - 2
    for most in range(max(*widths, _NARROWEST), _NARROWEST - 1, -1):
        narrowed = [widths[0], *(min(width, most) for width in widths[1:])]
        if sum(narrowed) <= left:
            return narrowed
    return []


def _part_columns(widths: Sequence[int], room: int) -> list[tuple[list[int], list[int]]]:
    """Return how a wide table is split into as few tables as fit `room`, each with column 0; or an empty list.

    An item holds the indices of a table's columns, and their widths. The list is empty if no split fits.
    """
    others = range(1, len(widths))
    for count in range(len(others), 0, -1):
        parts = [[0, *others[start : start + count]] for start in range(0, len(others), count)]
        narrowed = [_narrow([widths[column] for column in columns], room) for columns in parts]
        if all(narrowed):
            return list(zip(parts, narrowed, strict=True))
    return []


def _wrap(section: Table, columns: Sequence[int], widths: Sequence[int]) -> Table:
    """Return some columns of a table (indices `columns`); cells wider than `widths` go on in further rows."""
    rows: list[TableRow | None] = []
    for row in section.rows:
        if row is None:
            rows.append(None)
            continue
        parts = [
            WideWrapper(width, breaks_words=True).wrap(row.cells[i]) or [""]
            for i, width in zip(columns, widths, strict=True)
        ]
        rows += [TableRow(cells, row.group) for cells in itertools.zip_longest(*parts, fillvalue="")]
    names, numeric = zip(*((section.columns[i], section.numeric[i]) for i in columns), strict=True)
    return section._replace(columns=names, numeric=numeric, rows=rows)


def _stack(section: Table, view: View) -> Iterator[Text]:
    """Yield the lines of a table that is wider than the terminal: a paragraph for each row."""
    margin = max(len(name) for name in section.columns)

    def stack(row: TableRow | None) -> Iterator[Text]:
        if row is None:
            yield Text("…")
            return
        yield Text(row.cells[0], style="bold")
        for name, cell in zip(section.columns[1:], row.cells[1:], strict=True):
            yield from _fold(f"  {name.ljust(margin)}  ", (cell,), view)

    yield from _separate(map(stack, section.rows))


def _fold(label: str, facts: Sequence[str], view: View, style: str = "") -> Iterator[Text]:
    """Yield the lines of a label with its facts, broken between facts, or within one that is too long."""
    width, margin = view.width or UNBOUNDED, len(label)
    if margin > width // 3 and margin + sum(map(len, facts)) > width:
        yield Text(label.rstrip(), style="dim")
        label, margin = _INDENT, len(_INDENT)
    room = max(1, width - margin)
    parts = map(WideWrapper(room).wrap, facts)
    pieces = list(itertools.chain.from_iterable(parts))
    for line in _fill(GUTTER, pieces, width, label, " " * margin):
        yield Text.assemble((line[:margin], "dim"), line[margin:], style=style)


def _lay_out(band: Sequence[Matrix | None] | None, view: View) -> Iterator[Text]:
    """Yield the lines of matrices side by side, as many as fit, the others below; None is shown as `…`."""
    row: list[tuple[int, list[Text]]] = []
    used = 0
    for matrix in band or [None]:
        extent, lines = (1, [Text("…")]) if matrix is None else _render_matrix(matrix, view)
        if row and view.width is not None and used + extent > view.width:
            yield from (*_join(row), Text())
            row, used = [], 0
        row.append((used, lines))
        used += extent + len(GUTTER)
    yield from _join(row)


def _join(pieces: Sequence[tuple[int, list[Text]]]) -> Iterator[Text]:
    """Yield the lines of several blocks of text side by side; a block is a pair: its column, and its lines."""
    columns, parts = zip(*pieces, strict=True)
    for texts in itertools.zip_longest(*parts):
        line = Text()
        for column, text in zip(columns, texts, strict=True):
            if text:
                line.pad_right(column - line.cell_len)
                line.append_text(text)
        yield line


def _render_matrix(matrix: Matrix, view: View) -> tuple[int, list[Text]]:
    """Return a matrix's width and its lines: its name, then its rows, each cell on its group's colour."""
    widths = [max(map(len, column)) for column in zip(*matrix.cells, strict=True)]
    lines = [Text(matrix.name, style="dim")] if matrix.name else []
    for cells, groups in zip(matrix.cells, matrix.groups, strict=True):
        texts = [f" {cell.rjust(width)}" for cell, width in zip(cells, widths, strict=True)]
        texts[-1:] = [f"{text} " for text in texts[-1:]]
        runs = itertools.groupby(zip(groups, texts, strict=True), key=lambda pair: pair[0])
        lines.append(Text.assemble(*(_paint("".join(text for _, text in run), group) for group, run in runs)))
    extent = max(line.cell_len for line in lines)
    for line, groups in zip(reversed(lines), reversed(matrix.groups), strict=False):
        if not view.colour or not groups or groups[-1] is None:
            line.rstrip()
    return extent, lines


def _paint(text: str, group: int | None) -> Text:
    return Text(text) if group is None else Text(text, style=_name_look(group))
