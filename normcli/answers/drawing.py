"""The answer of `normcli draw NORM`: a result as a picture, and as coloured matrices in the terminal."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normcli.answers.calculation import Answer
from normcli.documents.blocks import NOBODY, build_map
from normcli.documents.document import Line, Row, Table
from normcli.documents.excerpt import choose_positions, format_hidden
from normcli.errors import UsageError
from normcli.pictures.legend import WindowOwners, choose_owners

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.documents.document import Section, View
    from normcli.documents.scene import Scene
    from normcli.pictures import Options
    from normcli.pictures.legend import Owners

_MOST_LINES = 24

_OUTPUTS = ("xhat", "y")
"""What `--values` takes of the result."""


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
        values = self.field(self.options.values) if self.options.values in _OUTPUTS else result.input
        yield self._build_header(view)
        positions = choose_positions(plan.grid.shape, full=view.full)
        owners = choose_owners(result, view.digits, positions)
        sliding = plan.spec.window is not None
        title = "window" if sliding else "groups"
        build = functools.partial(build_map, result=result, view=view, locate=owners.locate)
        drawn = []
        if view.colour or not bare:
            drawn.append(build(title if bare else self.options.values, values.__getitem__, blank=bare))
        if not view.colour and (values.size or bare):
            drawn.append(build(title, owners.locate))
        yield from drawn
        if not values.size:
            return
        matrices = (matrix for blocks in drawn for band in blocks.bands for matrix in band or () if matrix)
        rows = (row for matrix in matrices for row in matrix.groups)
        shown = sorted({group for row in rows for group in row if group is not None})
        owners.colour(set(shown if view.full else shown[:_MOST_LINES]))
        yield _list_owners(owners, "shown" if sliding else "group", plan.grid.group_count, view)
        if result.selection is not None and not view.colour:
            yield Line((f"{NOBODY}: values that do not count",))


def _list_owners(owners: Owners, heading: str, count: int, view: View) -> Table:
    """Return the legend; without colours each name stands behind the number that its cells show."""
    rows = [
        Row((entry.name if view.colour else f"{number}: {entry.name}", *entry.cells), number)
        for number, entry in owners.entries.items()
    ]
    note = None if isinstance(owners, WindowOwners) else format_hidden(count - len(rows), count, "group")
    return Table(None, (heading, *owners.statistics), (False, *(True for _ in owners.statistics)), rows, note)
