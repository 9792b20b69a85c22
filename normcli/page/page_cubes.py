"""The tensor as blocks of cubes, whose faces the page's script colours: SVG without a style of its own."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.excerpt import Positions
from normcli.language import translate
from normcli.pictures.cubes import Cubes
from normcli.pictures.svg import format_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.documents.scene import Data
    from normcli.norms.plan import Plan


def format_blocks(plan: Plan, stretches: Sequence[range]) -> str:
    """Return the picture; empty for a tensor without values.

    Parameters
    ----------
    plan : Plan
        Its layout decides the direction of each axis.
    stretches : sequence of range
        The positions that the page shows along each axis: cubes of these cells carry their number, in C order.
    """
    sides = tuple(map(len, stretches))
    if 0 in sides:
        return ""
    cubes = Cubes(plan, [Positions(tuple(stretch)) for stretch in stretches])

    def describe(index: tuple[int, ...]) -> tuple[str, Data]:
        if not all(i in stretch for i, stretch in zip(index, stretches, strict=True)):
            return "neutral", ()
        place = tuple(i - stretch.start for i, stretch in zip(index, stretches, strict=True))
        return "face", (("cell", str(int(np.ravel_multi_index(place, sides)) if sides else 0)),)

    panel = cubes.draw(describe)
    width, height = (f"{length:.2f}" for length in (panel.width, panel.height))
    words = html.escape(translate(f"The tensor as cubes: {', '.join(cubes.captions)}"))
    shapes = "".join(format_shapes(panel.shapes))
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{words}">{shapes}</svg>'
