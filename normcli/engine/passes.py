"""The passes over a tensor, tile by tile.

Groups that lie within a tile are read once and written at once. Of larger ones a first pass measures the
leaves, which are merged, and a second pass writes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.engine.inputs import NO_INPUTS, TileSelection
from normcli.engine.tiling.compiled import open_compiled
from normcli.engine.tiling.geometry import Totals, find_lengths
from normcli.engine.tiling.tiles import Tiles
from normcli.engine.walk import BLOCK, DEFAULT_EFFORT, Walk
from normcli.numerics.statistics.solution import Given, solve, solve_given
from normcli.numerics.sums.leaf_records import MAX_LEAF, cut_leaves
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.blocks import Sink, Source
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.statistics.solution import Measured


BUFFER = 1 << 20
"""The most bytes in a tile of a file that the compiled kernel writes: they stay in a core's cache."""

Found = TypeVar("Found")

_READ_AGAIN = 1 << 16
"""The most values of a group that are read again at once: exact sums make some twelve arrays of that size."""

_FEW = 16
"""Groups of fewer values are read in one piece, however far apart their values lie."""

_SHORT_GROUP, _SMALL_BLOCK = 1 << 6, 1 << 17
"""Groups of at most the first have many leaves: they are surveyed in tiles of at most the second."""


class Passes(Tiles):
    """The passes of one calculation over a tensor: its groups are measured, normalized, or both.

    Parameters
    ----------
    plan : Plan
    geometry : Geometry
    source : Source
        Reads the tensor, tile by tile.
    sink : Sink or None
        Takes the results; None if only statistics are wanted.
    inputs : Inputs
    effort : Effort
    """

    def __init__(
        self,
        plan: Plan,
        geometry: Geometry,
        source: Source,
        sink: Sink | None,
        inputs: Inputs = NO_INPUTS,
        effort: Effort = DEFAULT_EFFORT,
    ) -> None:
        super().__init__(plan, geometry, source, sink, inputs, effort)
        # A tile takes all values that lie behind its own, or would read a few bytes here and a few there.
        behind = math.prod(geometry.dims[geometry.reduced_runs[-1] + 1 :])
        close = behind == 1 or geometry.count < _FEW or geometry.count * behind <= effort.block
        self.whole = geometry.count <= effort.whole and close
        self.compiled = open_compiled(self)
        block = effort.block
        self.most_written = BLOCK  # values in a tile that is not only read
        if self.compiled is not None and source.copies and (behind == 1 or not self.whole):
            self.most_written = BUFFER // source.dtype.itemsize
        if self.selection is not None:  # of a tile there are then copies, of what counts and of what does not
            block //= 2
        self.walk = Walk(geometry, source, effort, block)

    def measure(self) -> dict[str, Floats]:
        """Measure all groups, and normalize them if there is a sink.

        Return the statistics by name, of `Geometry.kept_shape`; an empty dict if they are not kept
        (`Effort.keeps_statistics`).
        """
        self.walk.expect(1 if self.whole or self.sink is None else 2)
        if self.whole:
            most = BLOCK if self.sink is None else self.most_written
            self.walk.each(self._work_on_whole_groups, whole=True, most=most)
        else:
            with np.errstate(all="ignore"):
                self._measure_in_passes()
        return self.statistics

    def apply(self, known: Given | Measured | Solution) -> dict[str, Floats]:
        """Normalize with known statistics if there is a sink, and return them by name.

        They are of `Geometry.kept_shape`; the dict is empty if statistics are not kept
        (`Effort.keeps_statistics`).
        """
        self.walk.expect(0 if self.sink is None else 1)
        with np.errstate(all="ignore"):
            count = None if self.selection is None else self._count_all(self.selection).reshape(-1)
            solution = solve_given(self.plan, known) if isinstance(known, Given) else solve(self.plan, known)
            self._write_all(solution, count)
        return self.statistics

    def survey(self, measure: Callable[..., Found], add: Callable[[Found], None]) -> None:
        """Read the source once, measure its leaves, and pass what `measure` returns of them to `add`.

        Leaves are the short rows that groups are cut into.

        Parameters
        ----------
        measure : callable
            Called with leaves, shape (leaves, values), the index of each leaf's group, a workspace, and the
            keyword `need_sum`, which says whether means are subtracted.
        add : callable
            Called with what `measure` returns, in any order, by one thread at a time.
        """
        geometry = self.geometry
        most = _SMALL_BLOCK if geometry.count <= _SHORT_GROUP else BLOCK
        is_short = geometry.count <= MAX_LEAF
        are_leaves = self.whole and is_short

        def work_on(tile: Slices, work: Workspace) -> None:
            block = min(self.walk.effort.block, most)
            batches = []
            for part in geometry.tiles(self.whole, block, tile) if are_leaves else (tile,):
                groups, x = geometry.number_groups(part), self._load(part, work, self.order)
                for piece in cut_leaves(x.reshape(len(groups), -1)):
                    rows = piece.reshape(-1, piece.shape[-1])
                    numbers = groups.repeat(len(rows) // len(groups))
                    batches.append(measure(rows, numbers, work, need_sum=self.centred))
            with self._lock:
                for batch in batches:
                    add(batch)

        self.walk.expect(1)
        at_once = min(4, 4096 * geometry.count // most) if are_leaves else 1
        self.walk.each(work_on, whole=self.whole or is_short, most=most, at_once=max(1, at_once))

    def _count_all(self, selection: TileSelection) -> Floats:
        """Return each group's number of values that count; the tensor is read only if NaN does not count."""
        geometry = self.geometry
        counts = np.zeros(geometry.kept_shape)

        def count(tile: Slices, work: Workspace) -> None:
            if selection.omits_nan:
                x = self._load(tile, work, geometry.runs)
            else:
                x = np.broadcast_to(0.0, find_lengths(tile))
            selected = selection.select(x, tile, geometry.runs)
            found = np.add.reduce(selected, axis=geometry.reduced_runs, dtype=np.float64)
            with self._lock:  # sums of whole numbers are exact in any order
                counts[geometry.cut_groups(tile)] += found

        self.walk.each(count, whole=False)
        return counts

    # -- one pass

    def _work_on_whole_groups(self, tile: Slices, work: Workspace) -> None:
        if self.compiled is not None and self.compiled.measures and self.compiled.work_on(tile, work):
            return
        raw, x, selected = self._load_selected(tile, work, self.order)
        solution, count = self._solve_tile(x, tile, work, selected)
        self._keep_solution(tile, solution, count)
        if self.compiled is not None and solution.is_plain:
            self.compiled.write_groups(raw, tile, solution, work)
            return
        lengths = find_lengths(self.geometry.cut_groups(tile)) + (1,) * len(self.geometry.reduced_runs)
        self._write(raw, tile, solution.take(lambda a: a.reshape(lengths)), self.order, work)

    # -- two passes

    def _measure_in_passes(self) -> None:
        """Measure the part of each group in each tile, merge the parts, and normalize in a second walk."""
        geometry = self.geometry
        compiled = self.compiled if self.compiled is not None and self.compiled.measures else None
        collected = Totals(geometry, self.method.fold, self.method.records)

        def gather(tile: Slices, work: Workspace) -> None:
            if compiled is not None:
                collected.put(tile, compiled.measure(tile, work))
                return
            _, x, selected = self._load_selected(tile, work, self.order)
            rows, chosen = self._lay_rows(tile, x, selected)
            leaves = self.measure_rows(rows, work, chosen)
            collected.put(tile, self.method.fold(leaves).reshape((-1, 1)))

        self.walk.each(gather, whole=False)
        records = collected.records.reshape((math.prod(geometry.kept_shape), -1))
        measured = self._merge(records, self.read_group)
        self._write_all(solve(self.plan, measured), measured.count)

    def _write_all(self, solution: Solution, count: Any) -> None:
        """Keep the statistics of all groups, and if there is a sink, normalize and write every value.

        `count` is how many values of each group count, or one number for all groups.
        """
        geometry, is_plain = self.geometry, solution.is_plain

        def write(tile: Slices, work: Workspace) -> None:
            if self.compiled is not None and is_plain:
                self.compiled.write(tile, solution, work)
                return
            raw = self._load(tile, work, geometry.runs)
            here = solution.take(lambda a: geometry.spread_groups(a, tile))
            self._write(raw, tile, here, geometry.runs, work)

        self._keep_solution(geometry.everything, solution, count)
        if self.sink is not None:
            self.walk.each(write, whole=False, most=self.most_written)

    def read_group(self, number: int) -> Iterator[NDArray[Any]]:
        """Read one group again, given its index, and yield its values that count, in pieces of one axis."""
        geometry = self.geometry
        index = (int(at) for at in np.unravel_index(number, geometry.kept_shape))
        place = dict(zip(geometry.kept_runs, index, strict=True))
        lengths = tuple(1 if run in place else n for run, n in enumerate(geometry.dims))
        work = Workspace()
        alone = replace(geometry, dims=lengths)
        for part in alone.tiles(whole=False, block=min(self.walk.effort.block, _READ_AGAIN)):
            tile = tuple(
                part[run] if run not in place else slice(place[run], place[run] + 1) for run in geometry.runs
            )
            _, x, selected = self._load_selected(tile, work, geometry.runs)
            yield x.reshape(-1) if selected is None else x[selected]
            self.source.forget()


class TileBackwardPasses(Passes):
    """The backward passes of norms without gamma and beta: dx of one tile after the other.

    A subclass has `differentiate_values`, and a `differentiate` that walks over the tiles.
    """

    def differentiate_tile(
        self, tile: Slices, order: tuple[int, ...], gradients: Source, work: Workspace
    ) -> None:
        """Calculate dx of a tile and write it to the sink.

        Parameters
        ----------
        tile : slices
        order : tuple of int
            The order in which `differentiate_values` takes the tile's runs (axes that are walked over as one).
        gradients : Source
            The source of dy.
        work : Workspace
        """
        assert self.sink is not None
        _, x, counted = self._load_selected(tile, work, order)
        x = np.array(x)
        dy = np.array(gradients.read(tile, order, work), np.float64)
        place = self.sink.open(tile, work)
        out = place.transpose(order)
        used = dy if counted is None else np.where(counted, dy, 0.0)
        out[...] = self.differentiate_values(x, used, out.dtype).reshape(out.shape)
        if self.selection is not None and counted is not None:
            self.selection.fill_gradients(out, dy, counted)
        self.sink.put(tile, place, work)

    def differentiate_values(self, x: NDArray[Any], dy: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return dx of values in a dtype, one for each of `x` in C order, in any shape.

        `x` and `dy` have one shape, and are 0 where a value does not count.
        """
        raise NotImplementedError

    def find_parameters(self) -> tuple[None, None]:
        """Return None twice: there is no gamma and no beta."""
        return None, None
