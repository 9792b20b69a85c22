"""The owners of cells (groups, or places in a window), their colours, and the legend that lists them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.matrix_blocks import NOBODY, locate_owners
from normcli.documents.number_format import format_statistic
from normcli.documents.scene import ASCENT, Panel, Rectangle, ShapeGroup, Text, flow, measure_text
from normcli.language import translate
from normcli.teach.value_index import format_index
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from normcli.documents.excerpt import Positions
    from normcli.documents.scene import Data, Fill, Shape
    from normcli.norms.plan import Plan
    from normcli.results.gradient_reach import GradientReach
    from normcli.results.result import Result

    Indices = Sequence[NDArray[np.intp]]

    Describe = Callable[[tuple[int, ...]], tuple[Fill, Data]]
    """A function from a cell's index to its colour, and the attributes by which a program finds the cell."""

LISTED = 2
"""The most statistics of a group that the legend lists; others follow from these."""

VALUE, WINDOW, OTHER = range(3)
"""Owners for a sliding window: the value whose window is shown, the rest of the window, all other values."""


_SIZE, _LINE, _SWATCH, _GUTTER = 11.5, 20.0, 14.0, 16.0

_TALL = 16
"""The most lines in one column of a legend."""


class LegendEntry(NamedTuple):
    """A line of the legend.

    Parameters
    ----------
    fill : Fill
        The colour.
    name : str
    cells : tuple of str
        The statistics as text.
    data : tuple of (str, str)
        Names and values of attributes by which programs find this colour's cells in an SVG: `data-group="3"`.
    """

    fill: Fill
    name: str
    cells: tuple[str, ...] = ()
    data: Data = ()


class Owners:
    """The owners of the cells of a picture: the groups by which cells are coloured, and the legend of these.

    An owner is a group's number, or `NOBODY` for values that do not count. `digits` is the number of
    significant digits of statistics in the legend; None for the default.

    Attributes
    ----------
    statistics : tuple of str
        The statistics that the legend lists.
    entries : dict
        Owner → its line of the legend, for the owners that are shown; empty before `colour` is called.
    """

    def __init__(self, result: Result, digits: int | None) -> None:
        self._result, self._plan, self._digits = result, result.plan, digits
        self.statistics = tuple(result.statistics)[:LISTED]
        self.entries: dict[int, LegendEntry] = {}
        """Owner → line of the legend, for the owners that are shown."""

    def locate(self, indices: Indices) -> NDArray[np.intp]:
        """Return the owner of each cell: its group's number, or `NOBODY`.

        `indices` has an integer array for each axis; these broadcast against each other.
        """
        return locate_owners(self._result, indices)

    def locate_cell(self, index: tuple[int, ...]) -> int:
        """Return the owner of the cell with this index."""
        return int(self.locate([np.asarray(i, dtype=np.intp) for i in index]))

    def colour(self, owners: set[int]) -> None:
        """Fill `entries`: give each of some owners a colour and a line of the legend, in ascending order."""
        shown = enumerate(sorted(owners - {NOBODY}))
        self.entries = {owner: self._make_entry(owner, look) for look, owner in shown}
        if NOBODY in owners:
            blank = ("",) * len(self.statistics)
            data = (("group", "none"),)
            self.entries[NOBODY] = LegendEntry("neutral", "values that do not count", blank, data)

    def format_hidden(self) -> str | None:
        """Return words for the number of groups without a colour; None if all have one, and for windows."""
        count = self._plan.grid.group_count
        hidden = 0 if self._plan.spec.window else count - len(self.entries.keys() - {NOBODY})
        return f"… {hidden:,} of {count:,} groups are not shown" if hidden > 0 else None

    def format_description(self) -> str:
        """Return a text on the colours and the groups, for readers who do not see the picture."""
        count = self._plan.grid.group_count
        means = "Each colour is one group of values that share their statistics"
        names = [*map(translate, self.statistics)]
        listed = "; ".join(
            f"{entry.name}: " + ", ".join(map(" ".join, zip(names, entry.cells, strict=True)))
            for entry in self.entries.values()
            if entry.fill != "neutral"
        )
        sentence = f"{means}: {count:,} in all. {listed}." if listed else f"{means}."
        return f"{sentence} Values that do not count are grey." if NOBODY in self.entries else sentence

    def _make_entry(self, owner: int, look: int) -> LegendEntry:
        name, data = self._plan.grid.group_name(owner), (("group", str(owner)),)
        return LegendEntry(look, name, self._format_statistics(owner), data)

    def _format_statistics(self, group: int) -> tuple[str, ...]:
        flat = (self._result.statistics[name].reshape(-1) for name in self.statistics)
        return tuple(format_statistic(float(values[group]), self._digits) for values in flat)


class WindowOwners(Owners):
    """The owners of cells for a norm with sliding windows, of which one is shown.

    An owner is `VALUE`, `WINDOW` (the other values in its window) or `OTHER`. The value lies in the middle of
    the channels that are shown, at index 0 of all other axes.
    """

    def __init__(self, result: Result, digits: int | None, channels: Sequence[int]) -> None:
        super().__init__(result, digits)
        grid, window = result.plan.grid, result.plan.spec.window
        assert window is not None
        self._axis = grid.axes[0]
        near = [channel for place, channel in enumerate(channels) if channel == place] or [0]
        channel = near[len(near) // 2]
        self._at = tuple(channel if axis == self._axis else 0 for axis in range(len(grid.shape)))
        self._bounds = [(i, i) for i in self._at]
        last = grid.shape[self._axis] - 1
        self._bounds[self._axis] = max(0, channel - window.before), min(last, channel + window.after)
        self._name = format_index(self._at, grid.layout)

    def locate(self, indices: Indices) -> NDArray[np.intp]:
        """Return `VALUE`, `WINDOW` or `OTHER` for each cell."""
        parts = [(low <= i) & (i <= high) for i, (low, high) in zip(indices, self._bounds, strict=True)]
        inside = functools.reduce(np.logical_and, parts)
        return np.where(inside, np.where(indices[self._axis] == self._at[self._axis], VALUE, WINDOW), OTHER)

    def format_description(self) -> str:
        """Return a sentence on the window that is shown."""
        return (
            f"Each value has a window of its own; shown is that of {self._name}: "
            f"{self._make_entry(WINDOW, 0).name}. All other values are grey."
        )

    def _make_entry(self, owner: int, look: int) -> LegendEntry:
        """Return the line of the legend for `VALUE`, `WINDOW` or `OTHER`; the last is grey."""
        cells: tuple[str, ...] = ("",) * len(self.statistics)
        if owner == VALUE:
            cells = self._format_statistics(int(np.ravel_multi_index(self._at, self._plan.grid.shape)))
        first, last = self._bounds[self._axis]
        fill, part, name = (
            (1, "value", f"the value {self._name}"),
            (0, "window", f"its window: {self._plan.grid.layout.name(self._axis)}={first}…{last}"),
            ("neutral", "other", "values outside this window"),
        )[owner]
        return LegendEntry(fill, name, cells, (("part", part),))


class ReachOwners(Owners):
    """The owners of cells for a gradient, which shows the effect of the dy of one value.

    An owner is `VALUE` (its dy is 1), `WINDOW` (values whose dx this changes) or `OTHER`.
    """

    def __init__(self, result: Result, digits: int | None, reach: GradientReach) -> None:
        super().__init__(result, digits)
        self._reach, self.statistics = reach, ()
        self._name = format_index(reach.at, result.plan.grid.layout) or "the only value"

    def locate(self, indices: Indices) -> NDArray[np.intp]:
        """Return `VALUE`, `WINDOW` (the cell's dx changes) or `OTHER` for each cell."""
        pairs = zip(indices, self._reach.at, strict=True)
        here = functools.reduce(np.logical_and, (i == at for i, at in pairs), np.True_)
        return np.where(here, VALUE, np.where(self._reach.select(indices), WINDOW, OTHER))

    def format_hidden(self) -> None:
        """Return None: no groups are shown."""

    def format_description(self) -> str:
        """Return a sentence on the values whose dx changes."""
        return f"Coloured are the values whose dx a dy at {self._name} changes. All other values are grey."

    def _make_entry(self, owner: int, look: int) -> LegendEntry:
        """Return the line of the legend for `VALUE`, `WINDOW` or `OTHER`; the last is grey."""
        fill, part, name = (
            (1, "value", f"dy is 1 here: {self._name}"),
            (0, "reached", "values that it reaches: their dx changes"),
            ("neutral", "other", "values that it does not reach"),
        )[owner]
        return LegendEntry(fill, name, (), (("part", part),))


def choose_owners(
    result: Result, digits: int | None, shown: Sequence[Positions], reach: GradientReach | None = None
) -> Owners:
    """Return the owners of a result's cells: by groups, by a window for a norm with windows, or by a gradient.

    Parameters
    ----------
    result : Result
    digits : int or None
        The significant digits of statistics in the legend; None for the default.
    shown : sequence of Positions
        The positions that are shown along each axis.
    reach : GradientReach or None
        The values that one dy reaches, if a gradient is shown; None if not.
    """
    if reach is not None:
        return ReachOwners(result, digits, reach)
    if not result.plan.groups_overlap:
        return Owners(result, digits)
    return WindowOwners(result, digits, shown[result.plan.grid.axes[0]].shown)


def draw_legend(owners: Owners, most: float) -> Panel:
    """Return the drawing of a legend; beyond 16 lines in columns, side by side up to the width `most`."""
    entries = list(owners.entries.values())
    columns = max(1, math.ceil(len(entries) / _TALL))
    lines = math.ceil(len(entries) / columns)
    parts = [entries[i : i + lines] for i in range(0, len(entries), lines or 1)]
    drawn = flow([_draw_column(part, owners.statistics) for part in parts], 28, most)
    hidden = owners.format_hidden()
    if hidden is None:
        return drawn
    text = Text(0, drawn.height + 14, hidden, _SIZE, "muted")
    return Panel(max(drawn.width, text.extent), drawn.height + 20, (*drawn.shapes, text))


def _draw_column(entries: list[LegendEntry], statistics: tuple[str, ...]) -> Panel:
    """Return one column of the legend: a heading with the names of statistics, and a line for each entry."""
    widths = [
        max(measure_text(text, _SIZE, mono=True) for text in (name, *(entry.cells[i] for entry in entries)))
        for i, name in enumerate(statistics)
    ]
    left = _SWATCH + 8
    names = max(measure_text(entry.name, _SIZE) for entry in entries)
    end, *rights = itertools.accumulate((_GUTTER + width for width in widths), initial=left + names)
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
        shapes.append(ShapeGroup((swatch, Text(left, baseline, entry.name, _SIZE), *texts), role="entry"))
    return Panel(rights[-1] if rights else end, _LINE * (len(entries) + 0.9), tuple(shapes))


def name_axis(plan: Plan, axis: int) -> str:
    """Return the label of an axis: its letter in capitals if the layout has letters, otherwise its name."""
    name = plan.grid.layout.name(axis)
    return name if plan.grid.layout.letters is None else name.upper()
