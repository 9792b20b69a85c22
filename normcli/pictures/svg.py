"""Pictures as SVG, one file without scripts or fonts that loads nothing; and as PNG, painted from it by resvg.

Both are the same on every machine, except that the fonts of a PNG have no Chinese letters: a text with some is
painted with a font of the machine, if it has one.
"""

from __future__ import annotations

import functools
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from xml.sax.saxutils import escape, quoteattr

from normcli.documents.palette import HATCHES, choose_look
from normcli.documents.scene import Polygon, Polyline, Rectangle, ShapeGroup, Text
from normcli.errors import UsageError
from normcli.language import translate
from normcli.language.fonts import find_chinese_fonts, holds_chinese
from normcli.printable import make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.scene import Data, Fill, Point, Scene, Shape


_SANS = "system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace"

LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "muted": "#59636e", "frame": "#f6f8fa", "frame2": "#eaeef2",
    "rule": "#c4ccd4", "neutral": "#e4e7eb",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "ink": "#f0f6fc", "muted": "#9aa4af", "frame": "#161b22", "frame2": "#21262d",
    "rule": "#3d444d", "neutral": "#30363d",
}  # fmt: skip
"""The colours of all but groups, on light and on dark backgrounds; each picture draws its own background."""

_HATCH_SIZE = 7

_HATCHED = re.compile(r' fill="url\(#normcli-look(\d+)\)"')
"""The fill of a shape in a hatched look, by its number."""

_HATCH_SHAPES = {
    "rising": '<path d="M-1 1L1-1M0 7L7 0M6 8L8 6"/>',
    "level": '<path d="M0 3.5H7"/>',
    "dots": '<circle cx="3.5" cy="3.5" r="1"/>',
    "falling": '<path d="M-1 6L1 8M0 0L7 7M6-1L8 1"/>',
    "upright": '<path d="M3.5 0V7"/>',
    "grid": '<path d="M3.5 0V7M0 3.5H7"/>',
    "rings": '<circle cx="3.5" cy="3.5" r="2" fill="none"/>',
}


def write(scene: Scene, stream: BinaryIO) -> None:
    """Write a picture as SVG: one file without scripts or fonts, which loads nothing."""
    for piece in _format_scene(scene, themed=True):
        stream.write(f"{piece}\n".encode())


def format_shapes(shapes: Sequence[Shape]) -> Iterator[str]:
    """Yield shapes as elements of an SVG, whose style must define the classes of their colours."""
    for shape in shapes:
        yield from _format_shape(shape)


def _format_scene(scene: Scene, *, themed: bool) -> Iterator[str]:
    """Yield the lines of an SVG; if `themed`, with colours for dark backgrounds too."""
    width, height = _format_number(scene.width), _format_number(scene.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="normcli" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="normcli-title normcli-desc">'
    )
    yield f'<title id="normcli-title">{_escape(translate(scene.title))}</title>'
    yield f'<desc id="normcli-desc">{_escape(translate(scene.description))}</desc>'
    yield f"<style>{_format_style(themed=themed)}</style>"
    shapes = list(format_shapes(scene.shapes))
    hatched = {int(number) for shape in shapes for number in _HATCHED.findall(shape)}
    if hatched:
        yield "<defs>"
        yield from map(_format_hatch, sorted(hatched))
        yield "</defs>"
    yield f'<rect class="paper" width="{width}" height="{height}" rx="8"/>'
    yield from shapes
    yield "</svg>"


def _format_style(*, themed: bool) -> str:
    """Return the style of an SVG, with colours for dark backgrounds too if `themed`."""
    rules = [
        f".normcli text{{font-family:{_SANS};stroke:none}}",
        f".normcli .mono{{font-family:{_MONO}}}.normcli .bold{{font-weight:600}}",
        ".normcli .edge{fill:none;stroke:#000;stroke-opacity:.65;stroke-width:1.2;stroke-linejoin:round}",
        ".normcli .gap,.normcli .axis{fill:none;stroke-width:1.2}.normcli .gap{stroke-linejoin:round}",
        ".normcli .cell{stroke:#000;stroke-opacity:.4;stroke-width:.7;stroke-linejoin:round}",
        ".normcli .light{fill:#fff;fill-opacity:.3}.normcli .shade{fill:#000;fill-opacity:.16}",
        _format_theme(LIGHT),
    ]
    if themed:
        rules.append(f"@media (prefers-color-scheme:dark){{{_format_theme(DARK)}}}")
    return "".join(rules)


def _format_theme(colours: dict[str, str]) -> str:
    fills = "".join(f".normcli .{role}{{fill:{colour}}}" for role, colour in colours.items() if role != "rule")
    rule, muted = colours["rule"], colours["muted"]
    frames = f".normcli .frame,.normcli .frame2{{stroke:{rule}}}"
    return f"{fills}{frames}.normcli .axis{{stroke:{rule}}}.normcli .gap{{stroke:{muted}}}"


def _format_hatch(number: int) -> str:
    look = choose_look(number)
    size = _HATCH_SIZE
    return (
        f'<pattern id="normcli-look{number}" width="{size}" height="{size}" patternUnits="userSpaceOnUse">'
        f'<rect width="{size}" height="{size}" fill="{look.ground}"/>'
        f'<g stroke="{look.lines}" stroke-width="1.3" fill="{look.lines}">{_HATCH_SHAPES[look.hatch]}</g>'
        "</pattern>"
    )


def _format_shape(shape: Shape) -> Iterator[str]:
    """Yield the lines of a shape; a cell, with all in it, is one line."""
    match shape:
        case ShapeGroup(children, x, y, role, data):
            moved = f' transform="translate({_format_number(x)} {_format_number(y)})"' if x or y else ""
            named = f' class="{role}"' if role else ""
            attributes = f"{named}{moved}{_format_data(data)}"
            lines = [line for child in children for line in _format_shape(child)]
            if attributes:
                lines = [f"<g{attributes}>", *lines, "</g>"]
            yield from ["".join(lines)] if role == "cell" else lines
        case Polygon(points, fill):
            yield f'<path d="{_format_path(points)}Z"{_format_fill(fill)}/>'
        case Polyline(points, role):
            yield f'<path class="{role}" d="{_format_path(points)}"/>'
        case Rectangle(x, y, width, height, fill, radius, data):
            rounded = f' rx="{_format_number(radius)}"' if radius else ""
            numbers = zip(("x", "y", "width", "height"), (x, y, width, height), strict=True)
            place = " ".join(f'{name}="{_format_number(number)}"' for name, number in numbers)
            yield f"<rect {place}{rounded}{_format_fill(fill)}{_format_data(data)}/>"
        case Text():
            yield _format_text(shape)


def _format_text(text: Text) -> str:
    x, y = _format_number(text.x), _format_number(text.y)
    classes = f"{text.role}{' mono' if text.mono else ''}{' bold' if text.bold else ''}"
    colour = "" if text.look is None else f' fill="{choose_look(text.look).text}"'
    place = f'transform="translate({x} {y}) rotate(-90)"' if text.upward else f'x="{x}" y="{y}"'
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    space = ' xml:space="preserve"' if text.text != " ".join(text.text.split()) else ""
    return (
        f'<text class="{classes}" {place} font-size="{_format_number(text.size)}"{anchor}{colour}{space}>'
        f"{_escape(translate(text.text))}</text>"
    )


def _format_path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{_format_number(x)} {_format_number(y)}" for x, y in points)


def _format_fill(fill: Fill) -> str:
    if isinstance(fill, str):
        return f' class="{fill}"'
    look = choose_look(fill)
    return f' fill="{look.ground}"' if look.hatch == HATCHES[0] else f' fill="url(#normcli-look{fill})"'


def _format_data(data: Data) -> str:
    return "".join(f" data-{name}={quoteattr(make_printable(value))}" for name, value in data)


def _escape(text: str) -> str:
    return escape(make_printable(text))


def _format_number(value: float) -> str:
    """Return a coordinate with at most two decimals, as these are the same on every machine."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


_FONTS = ("FiraGO_Regular", "FiraGO_Bold", "FiraMono_Regular", "NotoSans_Regular")
"""Modules of the package of fonts; the last has the few characters that the others lack, such as ₚ."""

_PNG_SANS, _PNG_MONO = "FiraGO", "Fira Mono"

_TEXT = re.compile(r'(<text class="[^"]*)("[^>]*>([^<]*))')

MOST_PIXELS = 100_000_000
"""The most pixels of a picture: more take over 400 MB before compression, and few programs open them."""


def require_painter() -> None:
    """Raise `UsageError` unless the packages for PNG are installed; called before any work is done."""
    if find_spec("resvg_py") is None or find_spec("pymupdf_fonts") is None:
        raise UsageError("PNG needs more than is installed: pip install 'normcli[png]' (SVG needs nothing)")


def write_png(scene: Scene, stream: BinaryIO) -> None:
    """Write a picture as PNG: the same on every machine, with fonts of its own, but for Chinese letters.

    Raises
    ------
    UsageError
        If the [png] extra is missing, or the picture has too many pixels.
    """
    require_painter()
    pixels = round(scene.width * scene.scale) * round(scene.height * scene.scale)
    if pixels > MOST_PIXELS:
        raise UsageError(
            f"--scale {scene.scale:g} makes {pixels:,} pixels, more than {MOST_PIXELS:,}; give a smaller one"
        )
    import tempfile

    import resvg_py

    svg = "\n".join(_format_scene(scene, themed=False))
    others = find_chinese_fonts() if holds_chinese(svg) else None
    if others is not None:
        svg = _choose_family(svg, others.family)
    with tempfile.TemporaryDirectory(prefix="normcli-") as folder:
        files = [Path(folder, f"{name}.ttf") for name in _FONTS]
        for file, content in zip(files, _load_fonts(), strict=True):
            file.write_bytes(content)
        painted = resvg_py.svg_to_bytes(
            svg_string=svg,
            zoom=scene.scale,
            skip_system_fonts=True,  # whatever is installed here is not installed there
            font_files=list(map(str, (*files, *(others.files if others else ())))),
            font_family=_PNG_SANS,
            sans_serif_family=_PNG_SANS,
            monospace_family=_PNG_MONO,
        )
    stream.write(bytes(painted))


def _choose_family(svg: str, family: str) -> str:
    """Return an SVG in which each text with Chinese letters has the font family `family`."""

    def mark(found: re.Match[str]) -> str:
        return f"{found[1]} han{found[2]}" if holds_chinese(found[3]) else found[0]

    style = f".normcli .han{{font-family:'{family}'}}</style>"
    return _TEXT.sub(mark, svg).replace("</style>", style, 1)


@functools.cache
def _load_fonts() -> list[bytes]:
    from importlib import import_module

    return [bytes(import_module(f"pymupdf_fonts.{name}").fontbuffer) for name in _FONTS]
