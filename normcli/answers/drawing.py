"""The answer of `normcli draw NORM`: a result as a picture, and as coloured matrices in the terminal."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normcli.answers.calculation import Answer
from normcli.documents.blocks import NOBODY, build_blocks, build_map
from normcli.documents.document import Blocks, Line, Matrix, Row, Table
from normcli.documents.excerpt import Positions, choose_positions
from normcli.documents.plans import list_groups
from normcli.errors import UsageError
from normcli.pictures.legend import LISTED, WindowOwners

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.documents.document import Section, View
    from normcli.documents.scene import Scene
    from normcli.pictures import Options

_MOST_LINES = 24


@dataclass(frozen=True)
class Drawing(Answer):
    """A result, to be drawn.

    Parameters
    ----------
    result : Result
    tensor : Tensor
    options : Options
    """

    options: Options

    def scene(self) -> Scene:
        """Return the picture."""
        from normcli.pictures.draw import draw

        return draw([self.result], self.tensor, self.options)

    def sections(self, view: View) -> Iterator[Section]:
        """Return the coloured matrices of a terminal, and the legend; without colours, the groups' numbers too.

        Raises
        ------
        UsageError
            If bars are asked for, which only files have.
        """
        if self.options.plot == "histogram":
            raise UsageError("--plot histogram needs a file: give -o FILE.svg or FILE.png")
        result, plan = self.result, self.result.plan
        bare = self.options.values == "none"
        values = result.normalized if self.options.values == "normalized" else result.input
        yield Line((f"{plan.norm.name} · {plan.norm.title}",))
        window = None if plan.spec.window is None else self._find_window(view)
        locate = window.locate if window is not None else self._locate or plan.grid.locate_groups
        title = "groups" if window is None else "window"
        drawn = []
        if not bare:
            drawn.append(build_blocks(self.options.values, values, plan, view, locate))
        if view.colour and bare:
            drawn.append(_blank(build_blocks(title, values, plan, view, locate)))
        if not view.colour and (values.size or bare):
            drawn.append(build_map(title, locate, plan, view, locate))
        yield from drawn
        if not values.size:
            return
        rows = (row for blocks in drawn for matrix in _walk(blocks) for row in matrix.groups)
        shown = sorted({group for row in rows for group in row if group is not None})
        if window is None:
            yield self._list_groups(shown, view)
            if result.selection is not None and not view.colour:
                yield Line((f"{NOBODY}: values that do not count",))
        else:
            window.colour(set(shown))
            yield _list_window(window, view)

    def _find_window(self, view: View) -> WindowOwners:
        plan = self.result.plan
        channels = choose_positions(plan.grid.shape, full=view.full)[plan.grid.axes[0]].shown
        return WindowOwners(self.result, self.format_group, view.digits, channels)

    def _list_groups(self, shown: Sequence[int], view: View) -> Table:
        columns = dict(itertools.islice(self.result.statistics.items(), LISTED))
        kept = Positions(tuple(shown if view.full else shown[:_MOST_LINES]))

        def name_group(group: int) -> str:
            return _number(self.format_group(group), group, view)

        return list_groups(self.result.plan, columns, view, name_group, kept)


def _list_window(window: WindowOwners, view: View) -> Table:
    rows = [
        Row((_number(entry.name, number, view), *entry.cells), number)
        for number, entry in window.entries.items()
    ]
    return Table(None, ("shown", *window.statistics), (False, *(True for _ in window.statistics)), rows)


def _number(label: str, number: int, view: View) -> str:
    """Return a name in the legend, behind its number in the cells where no colour says which is meant."""
    return label if view.colour else f"{number}: {label}"


def _walk(blocks: Blocks) -> Iterator[Matrix]:
    for band in blocks.bands:
        yield from (matrix for matrix in band or () if matrix is not None)


def _blank(blocks: Blocks) -> Blocks:
    """Return blocks whose cells hold no values, but their groups' colours alone."""

    def strip(matrix: Matrix) -> Matrix:
        cells = [
            [cell if group is None else " " for cell, group in zip(row, groups, strict=True)]
            for row, groups in zip(matrix.cells, matrix.groups, strict=True)
        ]
        return matrix._replace(cells=cells)

    bands = [
        None if band is None else [None if matrix is None else strip(matrix) for matrix in band]
        for band in blocks.bands
    ]
    return blocks._replace(bands=bands)
