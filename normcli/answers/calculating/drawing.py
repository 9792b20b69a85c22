"""The answer of `normcli draw NORM`: a result as a picture, and as coloured matrices in the terminal."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normcli.answers.calculating.calculation import Answer
from normcli.documents.bins import FEWEST_BINS, MOST_BINS, choose_ticks, collect_pairs, share_no_scale
from normcli.documents.document import Line, Table, TableRow
from normcli.documents.excerpt import choose_positions, format_hidden
from normcli.documents.matrix_blocks import NOBODY, build_map
from normcli.language import translate
from normcli.pictures.legend import ReachOwners, WindowOwners, choose_owners
from normcli.pictures.plots import MOST_LINES
from normcli.printable import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.documents.bins import BinCounts
    from normcli.documents.document import Section, View
    from normcli.documents.scene import Scene
    from normcli.pictures import Options
    from normcli.pictures.legend import Owners

_MOST_LINES = 24

_ROOM, _GAP, _WIDEST = 48, 3, 4
"""Characters: a histogram without a terminal, the gap between columns, and the widest bar."""

_BARS = " ▁▂▃▄▅▆▇█"

_MARKS = {"0": "0", "−σ": "‹", "+σ": "›", "mean": "m"}
"""Name of a mark → its character below the bars; of two marks in one bin the later one is shown."""

_KEY = "m: mean, ‹ ›: one standard deviation to each side, 0: zero"

_OUTPUTS = ("xhat", "y")
"""The fields of the result that `--values` takes."""


@dataclass(frozen=True)
class Drawing(Answer):
    """The document of `normcli draw`: a result as a picture, or as coloured matrices or histograms.

    Parameters
    ----------
    result : Result
    tensor : Tensor
        The input.
    options : Options
        The options of the picture.
    """

    options: Options

    def _list_histograms(self, view: View) -> Iterator[Section]:
        """Yield a table with histograms of the input and of y for each group, and a line that explains it.

        Below each histogram are marks of mean, deviation and zero, and a scale. With sliding windows, all
        values are one group.
        """
        grid, sliding, log = self.result.plan.grid, self.result.plan.groups_overlap, self.options.log
        groups = [] if sliding else list(range(min(grid.group_count, MOST_LINES)))
        rows: list[TableRow | None] = []
        names = [grid.group_name(group) for group in groups] or ["all values"]
        room = _ROOM if view.width is None else (view.width - max(map(len, names)) - 2 * _GAP) // 2
        pairs = collect_pairs(self.result, groups, self.options.bins, max(FEWEST_BINS, min(MOST_BINS, room)))
        tallest = max(max(counts.measure_bars(log=log)) for pair in pairs for counts in pair) or 1.0
        apart = share_no_scale(pairs)
        for number, (name, pair) in enumerate(zip(names, pairs, strict=True)):
            widths = [min(max(room // len(counts.counts), 1), _WIDEST) for counts in pair]
            sides = list(zip(pair, widths, strict=True))
            bars = (_draw_bars(counts.measure_bars(log=log), width, tallest) for counts, width in sides)
            rows.append(TableRow((name, *bars), None if sliding else number))
            rows.append(TableRow(("", *itertools.starmap(_draw_marks, sides))))
            if apart or number == len(pairs) - 1:
                rows.append(TableRow(("", *itertools.starmap(_draw_scale, sides))))
        note = format_hidden(grid.group_count - len(groups), grid.group_count, "group") if groups else None
        yield Table(None, ("group", "input", "y"), (False,) * 3, rows, note)
        highest = max(int(counts.counts.max()) for pair in pairs for counts in pair)
        facts = (f"the highest bar: {format_count(highest, 'value')}", _KEY)
        yield Line((*facts, "bars are as high as the logarithms of 1 + their counts") if log else facts)

    def scene(self) -> Scene:
        """Return the picture."""
        from normcli.pictures.draw import draw

        return draw([self.result], self.tensor, self.options)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, the values coloured by their groups, and the legend of groups.

        Without colours, a second matrix has the number of each value's group; it stands alone if
        `options.values` is "none". If `options.plot` is "histogram", histograms take the place of matrices and
        legend.
        """
        if self.options.plot == "histogram":
            yield self._build_header(view)
            yield from self._list_histograms(view)
            return
        result, plan, reach = self.result, self.result.plan, self.options.reach
        bare = self.options.values == "none"
        values = self.field(self.options.values) if self.options.values in _OUTPUTS else result.input
        pick = values.__getitem__ if reach is None else reach.pick
        shown_values = self.options.values if reach is None else "dx"
        yield self._build_header(view)
        positions = choose_positions(plan.grid.shape, full=view.full)
        owners = choose_owners(result, view.digits, positions, reach)
        title = "groups" if not plan.groups_overlap else "window"
        title = title if reach is None else "reach"
        build = functools.partial(build_map, result=result, view=view, locate=owners.locate)
        drawn = []
        if view.colour or not bare:
            drawn.append(build(title if bare else shown_values, pick, blank=bare))
        if not view.colour and (values.size or bare):
            drawn.append(build(title, owners.locate))
        yield from drawn
        if not values.size:
            return
        matrices = (matrix for blocks in drawn for band in blocks.bands for matrix in band or () if matrix)
        rows = (row for matrix in matrices for row in matrix.groups)
        shown = sorted({group for row in rows for group in row if group is not None})
        owners.colour(set(shown if view.full else shown[:_MOST_LINES]))
        yield _list_owners(owners, plan.grid.group_count, view)
        if result.selection is not None and reach is None and not view.colour:
            yield Line((f"{NOBODY}: values that do not count",))


def _draw_bars(bars: list[float], width: int, tallest: float) -> str:
    """Return a histogram as a line of block characters, each bar `width` characters wide.

    `tallest` is the height of a bar that is drawn as a full block.
    """
    heights = (math.ceil(bar * (len(_BARS) - 1) / tallest) for bar in bars)
    return "".join(_BARS[height] * width for height in heights)


def _draw_marks(counts: BinCounts, width: int) -> str:
    """Return the line below a histogram, with a letter under the bar of mean, deviations and zero."""
    line = [" "] * (width * len(counts.counts))
    for name, place in counts.marks.items():
        line[_find_place(counts, width, place)] = _MARKS[name]
    return "".join(line)


def _draw_scale(counts: BinCounts, width: int) -> str:
    """Return the axis below the bars as a line of text: round numbers, each below the bar where it lies.

    `width` is the width of a bar in characters. A number that would overlap the one before is left out.
    """
    length = width * len(counts.counts)
    line = ""
    for tick in choose_ticks(*counts.ends):
        text = f"{tick:.6g}"
        start = min(max(0, _find_place(counts, width, tick) - (len(text) - 1) // 2), length - len(text))
        if start >= len(line) + bool(line):
            line = f"{line:{start}}{text}"
    return line


def _find_place(counts: BinCounts, width: int, value: float) -> int:
    """Return the position, in characters, of a value in the line of a histogram."""
    length = width * len(counts.counts)
    return min(max(0, math.floor(counts.locate(value) * length)), length - 1)


def _list_owners(owners: Owners, count: int, view: View) -> Table:
    """Return the legend: a row for each group with its name and statistics.

    `count` is the number of all groups, from which a note says how many are not shown. Without colours, the
    number that stands for the group in the matrices comes before its name.
    """
    are_parts = isinstance(owners, WindowOwners | ReachOwners)
    names = {
        number: translate(entry.name) if are_parts else entry.name for number, entry in owners.entries.items()
    }
    rows = [
        TableRow((names[number] if view.colour else f"{number}: {names[number]}", *entry.cells), number)
        for number, entry in owners.entries.items()
    ]
    heading = "shown" if are_parts else "group"
    note = None if are_parts else format_hidden(count - len(rows), count, "group")
    return Table(None, (heading, *owners.statistics), (False, *(True for _ in owners.statistics)), rows, note)
