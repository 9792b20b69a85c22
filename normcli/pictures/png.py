"""Pictures as PNG, painted by resvg with fonts of its own: the same on every machine.

These have no Chinese letters: for what has some, a font of the machine is taken where there is one.
"""

from __future__ import annotations

import functools
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from normcli.errors import UsageError
from normcli.language.fonts import find_chinese_fonts, holds_chinese
from normcli.pictures.svg import format_light

if TYPE_CHECKING:
    from normcli.documents.scene import Scene

_FONTS = ("FiraGO_Regular", "FiraGO_Bold", "FiraMono_Regular", "NotoSans_Regular")
"""Modules of the package of fonts; the last has the few characters that the others lack, such as ₚ."""

_SANS, _MONO = "FiraGO", "Fira Mono"

_TEXT = re.compile(r'(<text class="[^"]*)("[^>]*>([^<]*))')

MOST_PIXELS = 100_000_000
"""A picture of more is 400 MB before it is compressed; few programs open it."""


def require_painter() -> None:
    """Raise `UsageError` unless what paints pixels is installed: a check before any work is done."""
    if find_spec("resvg_py") is None or find_spec("pymupdf_fonts") is None:
        raise UsageError("PNG needs more than is installed: pip install 'normcli[png]' (SVG needs nothing)")


def write(scene: Scene, stream: BinaryIO) -> None:
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
    import resvg_py

    svg = format_light(scene)
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
            font_family=_SANS,
            sans_serif_family=_SANS,
            monospace_family=_MONO,
        )
    stream.write(bytes(painted))


def _choose_family(svg: str, family: str) -> str:
    """Return a picture whose texts with Chinese letters are of a family: one by one, fonts mix their kinds."""

    def mark(found: re.Match[str]) -> str:
        return f"{found[1]} han{found[2]}" if holds_chinese(found[3]) else found[0]

    style = f".normcli .han{{font-family:'{family}'}}</style>"
    return _TEXT.sub(mark, svg).replace("</style>", style, 1)


@functools.cache
def _load_fonts() -> list[bytes]:
    from importlib import import_module

    return [bytes(import_module(f"pymupdf_fonts.{name}").fontbuffer) for name in _FONTS]
