"""The legend: a line for each owner that is shown, with its colour, its name and its statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.documents.scene import ASCENT, Drawn, Group, Rectangle, Text, flow, measure

if TYPE_CHECKING:
    from normcli.documents.scene import Shape
    from normcli.pictures.owners import Entry, Owners

_SIZE, _LINE, _SWATCH, _GUTTER = 11.5, 20.0, 14.0, 16.0

_TALL = 16
"""A legend of more lines is set in columns."""


def draw_legend(owners: Owners, most: float) -> Drawn:
    """Return the legend, in columns where it is long, within a width of `most` if it can."""
    entries = owners.entries()
    columns = max(1, math.ceil(len(entries) / _TALL))
    lines = math.ceil(len(entries) / columns)
    parts = [entries[i : i + lines] for i in range(0, len(entries), lines or 1)]
    drawn = flow([_draw_column(part, owners.statistics) for part in parts], 28, most)
    hidden = owners.describe_hidden()
    if hidden is None:
        return drawn
    text = Text(0, drawn.height + 14, hidden, _SIZE, "muted")
    return Drawn(max(drawn.width, text.extent), drawn.height + 20, (*drawn.shapes, text))


def _draw_column(entries: list[Entry], statistics: tuple[str, ...]) -> Drawn:
    widths = [
        max(measure(text, _SIZE, mono=True) for text in (name, *(entry.cells[i] for entry in entries)))
        for i, name in enumerate(statistics)
    ]
    left = _SWATCH + 8
    names = max(measure(entry.name, _SIZE) for entry in entries)
    rights = []
    x = left + names
    for width in widths:
        x += _GUTTER + width
        rights.append(x)
    shapes: list[Shape] = [
        Text(right, _SIZE, name, _SIZE, "muted", "end") for right, name in zip(rights, statistics, strict=True)
    ]
    for number, entry in enumerate(entries):
        y = _LINE * (number + 0.9)
        baseline = y + _LINE / 2 + _SIZE * ASCENT
        swatch = Rectangle(0, y + 3, _SWATCH, _SWATCH, entry.fill, 2.5, data=(("swatch", "yes"), *entry.data))
        texts = [
            Text(right, baseline, cell, _SIZE, "ink", "end", mono=True)
            for right, cell in zip(rights, entry.cells, strict=True)
            if cell
        ]
        shapes.append(Group((swatch, Text(left, baseline, entry.name, _SIZE), *texts), role="entry"))
    return Drawn(x, _LINE * (len(entries) + 0.9), tuple(shapes))
