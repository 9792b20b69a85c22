"""A picture before it is written to a file: a tree of shapes, whose roles stand for colours."""

from __future__ import annotations

from normcli.language import translate
from normcli.printable import split_words, spread_wide
from normcli.tuples import NamedTuple

Point = tuple[float, float]
Data = tuple[tuple[str, str], ...]
"""Attributes that tell a program what a shape shows: names and values."""

Fill = int | str
"""The number of a group's look, or a role: `paper`, `frame`, `neutral`, `light`, `shade`."""

ASCENT = 0.36
"""From the middle of a line of text down to its baseline, as a part of the size."""

_MONOSPACED, _REGULAR, _BOLD = 0.61, 0.6, 0.68
"""The width of a character, relative to the font size: exact if monospaced, else a generous mean."""

_WIDE = frozenset("MWmw@%—…√ΣN→")


class Polygon(NamedTuple):
    """A closed shape."""

    points: tuple[Point, ...]
    fill: Fill


class Rectangle(NamedTuple):
    """A rectangle, its corners rounded by `radius`."""

    x: float
    y: float
    width: float
    height: float
    fill: Fill
    radius: float = 0
    data: Data = ()


class Polyline(NamedTuple):
    """A line; its role is `edge`, `axis` or `gap` (the mark for parts that are left out)."""

    points: tuple[Point, ...]
    role: str


class Text(NamedTuple):
    """A line of text.

    Parameters
    ----------
    x, y : float
        The baseline's start, middle or end, as `anchor` (`start`, `middle`, `end`) says.
    size : float
        The font size.
    role : str
        `ink`, `muted`, or for text on a group's colour `on`, with the number of its look in `look`.
    mono : bool
        Whether the font is monospaced.
    upward : bool
        Whether the text reads from the bottom to the top.
    """

    x: float
    y: float
    text: str
    size: float
    role: str = "ink"
    anchor: str = "start"
    mono: bool = False
    bold: bool = False
    upward: bool = False
    look: int | None = None

    @property
    def extent(self) -> float:
        """An upper estimate of the length of the text, in the unit of the picture."""
        return measure_text(self.text, self.size, mono=self.mono, bold=self.bold)


class ShapeGroup(NamedTuple):
    """Shapes that belong together, moved by (x, y)."""

    children: tuple[Shape, ...]
    x: float = 0
    y: float = 0
    role: str = ""
    data: Data = ()


Shape = Polygon | Rectangle | Polyline | Text | ShapeGroup


class Panel(NamedTuple):
    """A part of a picture: shapes in a rectangle from (0, 0) to (width, height)."""

    width: float
    height: float
    shapes: tuple[Shape, ...]

    def at(self, x: float, y: float) -> ShapeGroup:
        """Return the shapes as one group that begins at (x, y)."""
        return ShapeGroup(self.shapes, x, y)


class Scene(NamedTuple):
    """A picture.

    Parameters
    ----------
    width, height : float
        The size in units of SVG, 1/96 inch.
    title, description : str
        The picture in words, for readers who cannot see it.
    shapes : tuple of Shape
    scale : float
        Pixels for each unit, in formats made of pixels.
    """

    width: float
    height: float
    title: str
    description: str
    shapes: tuple[Shape, ...] = ()
    scale: float = 2.0


def measure_text(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """Return an upper estimate of the length of a text, translated to the chosen language, in common fonts."""
    text = spread_wide(translate(text))
    if mono:
        return len(text) * _MONOSPACED * size
    wide = sum(character in _WIDE for character in text)
    return (len(text) * (_BOLD if bold else _REGULAR) + wide * 0.3) * size


def stack(parts: list[Panel], gap: float) -> Panel:
    """Return drawings one below the other."""
    return flow(parts, gap, most=0.0)


def flow(parts: list[Panel], gap: float, most: float) -> Panel:
    """Return drawings side by side, in lines at most `most` wide; `gap` is between drawings and lines."""
    x = y = width = tallest = 0.0
    shapes = []
    for part in parts:
        if x and x + part.width > most:
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        shapes.append(part.at(x, y))
        width, tallest = max(width, x + part.width), max(tallest, part.height)
        x += part.width + gap
    return Panel(width, y + tallest, tuple(shapes))


def draw_lines(lines: list[str], size: float, role: str = "ink", *, bold: bool = False) -> Panel:
    """Return lines of text, one below the other."""
    texts = tuple(
        Text(0, (i + 0.85) * size * 1.35, line, size, role, bold=bold) for i, line in enumerate(lines)
    )
    return Panel(max((text.extent for text in texts), default=0), len(lines) * size * 1.35, texts)


def wrap(facts: list[str], size: float, most: float) -> list[str]:
    """Return translated facts on as few lines as possible, each at most `most` wide in a font of `size`.

    Lines are broken between facts, and within a fact that is longer than a line.
    """
    lines: list[str] = []
    for fact in map(translate, facts):
        words = [fact] if measure_text(fact, size) <= most else split_words(fact)
        for number, word in enumerate(words):
            text = word if number else f"   {word}"
            if lines and measure_text(lines[-1] + text, size) <= most:
                lines[-1] += text
            else:
                lines.append(word.lstrip())
    return lines
