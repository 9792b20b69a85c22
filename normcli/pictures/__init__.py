"""Pictures of results, as SVG and PNG; here, the options of a picture.

* `draw`: `draw`: the whole picture: headings, cubes, matrices, histograms, their arrangement
* `cubes`: the tensor as blocks of unit cubes
* `matrix_drawing`: the tensor as matrices in frames, or in drawers
* `plots`: histograms of input and result; curves with error bands
* `legend`: colours of groups, windows and gradients, and the legend that lists them
* `svg`: writing SVG and PNG
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.results.gradient_reach import GradientReach

VIEWS = ("both", "cubes", "flat", "drawers")
VALUES = ("input", "xhat", "y", "none")
PLOTS = ("groups", "histogram")
"""The views of a tensor, the numbers in its cells, the kinds of picture; the first of each is the default."""


class Options(NamedTuple):
    """The options of a picture.

    Parameters
    ----------
    view : str
        One of `VIEWS`.
    values : str
        The numbers that are written into the cells: one of `VALUES`.
    plot : str
        One of `PLOTS`.
    digits : int or None
        The number of significant digits; None: 8 for statistics, and 5 for the largest value in cells.
    scale : float
        The number of pixels for a unit, in PNG.
    bins : int or None
        The number of bars of a histogram; None: it is chosen for the values.
    log : bool
        Whether bars are as high as the logarithms of 1 + their counts.
    reach : GradientReach or None
        The values whose dx one dy changes. If given, these are coloured and not groups, and cells have dx
        unless `values` is `none`. None: groups are coloured.
    """

    view: str = VIEWS[0]
    values: str = VALUES[0]
    plot: str = PLOTS[0]
    digits: int | None = None
    scale: float = 2.0
    bins: int | None = None
    log: bool = False
    reach: GradientReach | None = None
