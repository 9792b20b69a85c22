"""Tiles by the compiled kernel, and by NumPy those groups and leaves that it does not decide."""

from __future__ import annotations

import functools
import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.dtypes import is_long_integer
from normcli.engine.inputs import COUNT, zero_unselected
from normcli.numerics.elements.compiled_kernel import (
    Counts,
    Groups,
    apply_to_rows,
    is_plan_served,
    is_served,
    make_rule,
    measure_parts,
    name_statistics,
    normalize_groups,
)
from normcli.numerics.elements.kernel import Parameters
from normcli.numerics.rounding import widen_exactly
from normcli.numerics.statistics.divisor import find_freedom
from normcli.numerics.statistics.solution import solve
from normcli.numerics.sums.leaf_records import Leaves, count_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.compiled import Kernel
    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.tiling.geometry import Slices
    from normcli.engine.tiling.tiles import Tiles
    from normcli.numerics.elements.compiled_kernel import RowParameter
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.sums.leaf_records import LeafRecords
    from normcli.numerics.workspace import Workspace

    Shape = tuple[int, ...]
    Rows = tuple[RowParameter | None, RowParameter | None]


class CompiledTiles:
    """The compiled kernel, which measures and normalizes the tiles of a run.

    Parameters
    ----------
    run : Tiles
        The run; only a weak reference to it is kept.
    kernel : Kernel
    """

    def __init__(self, run: Tiles, kernel: Kernel) -> None:
        self._run: Tiles = weakref.proxy(run)  # which holds this: a circle would keep its arrays for a while
        self._kernel = kernel
        geometry = run.geometry
        self._kept, self._reduced = geometry.kept_runs, geometry.reduced_runs
        hides = run.selection is None or run.selection.hides
        self.measures = hides and is_plan_served(run.plan, geometry.count)
        """Whether the kernel measures and solves groups, too; otherwise it only applies a solution."""
        if self.measures:
            self._rule = make_rule(run.plan, geometry.count, exact=run.exact)
            self._names = name_statistics(run.plan)

    def work_on(self, tile: Slices, work: Workspace) -> bool:
        """Measure and normalize a tile of whole groups, and keep their statistics; then return True.

        Return False, with nothing done, if the kernel does not read the dtype of the tile.
        """
        run = self._run
        order = self._kept + self._reduced
        raw = self._read(tile, order, work)
        if not is_served(raw.dtype):
            return False
        place = None if run.sink is None else run.sink.open(tile, work)
        there = None if place is None else place.transpose(order)
        selected = run.select(raw, tile, order)
        x, out = _lay(zero_unselected(raw, selected), there, len(self._kept))
        with run.open_statistics(tile) as statistics:
            chosen = None if selected is None else selected.reshape(x.shape[0] * x.shape[1], -1)
            self._normalize(x, out, chosen, statistics, tile, work)
        if run.sink is not None and place is not None and there is not None and out is not None:
            _return(out, there)
            run.fill_unselected(there, raw, selected)
            run.sink.put(tile, place, work)
        return True

    def _read(self, tile: Slices, order: tuple[int, ...], work: Workspace) -> NDArray[Any]:
        raw = self._run.source.read(tile, order, work)
        if is_served(raw.dtype) and raw.flags.aligned:
            return raw
        return _widen_integers(self._run.load(raw, work), work)

    def _normalize(
        self,
        x: NDArray[Any],
        out: NDArray[Any] | None,
        selected: Selected | None,
        statistics: dict[str, Floats],
        tile: Slices,
        work: Workspace,
    ) -> None:
        """Normalize groups, and write their statistics.

        Parameters
        ----------
        x : ndarray, shape (outer, inner, parts, values)
            The values; 0 where a value does not count.
        out : ndarray or None
            An array of x's shape that results are written to; None to measure only.
        selected : ndarray of bool or None
            True where a value counts, shape (groups, values of a group); None for all.
        statistics : dict of str to ndarray, shape (groups,)
            The arrays that statistics are written to; may be empty.
        tile : slices
        work : Workspace
        """
        run = self._run
        groups = Groups(x, out, *self._lay_parameters(tile, self._reduced))
        counts = None if selected is None else count_values(x, selected)
        if counts is not None and COUNT in statistics:
            statistics[COUNT][:] = counts
        places = tuple([statistics.get(name) for name in self._names])
        known = None
        if selected is not None and counts is not None:
            known = Counts(counts, find_freedom(run.plan, counts), selected)
        left = normalize_groups(self._kernel, self._rule, groups, places, known)
        if not left.size:
            return
        index = np.unravel_index(left, x.shape[:2])
        rows = run.load(x[index].reshape(left.size, -1), work)
        some = None if selected is None else selected[left]
        solution = solve(run.plan, run.measure_groups(rows, work, some))
        for name in statistics.keys() & solution.statistics.keys():
            statistics[name][left] = solution.statistics[name]
        self._normalize_left(left, groups, solution.take(lambda a: a[:, None]))

    def _normalize_left(self, left: Integers, groups: Groups, solution: Solution) -> None:
        """Normalize by NumPy the groups with the indices `left`, which the kernel has not decided."""
        x, out, *parameters = groups
        if out is None:
            return
        index = np.unravel_index(left, x.shape[:2])
        rows = x[index].reshape(left.size, -1)
        results = np.empty(rows.shape, out.dtype)
        gamma, beta = (None if p is None else p.spread(left, rows.shape[1]) for p in parameters)
        self._run.normalize(rows, results, solution, Parameters(gamma, beta))
        out[index] = results.reshape(-1, *out.shape[2:])

    def _lay_parameters(self, tile: Slices, along: tuple[int, ...]) -> Rows:
        run = self._run
        if run.gamma is None and run.beta is None:
            return None, None
        ends = tuple([(part.start, part.stop) for part in tile])
        gamma, beta = [
            None if values is None else values.lay_rows(ends, along) for values in (run.gamma, run.beta)
        ]
        return gamma, beta

    # -- in passes

    def measure(self, tile: Slices, work: Workspace) -> LeafRecords:
        """Return one record for the part of each group that lies in a tile; shape (groups, 1)."""
        run, order = self._run, self._kept + self._reduced
        raw = self._read(tile, order, work)
        selected = run.select(raw, tile, order)
        x, _ = _lay(zero_unselected(raw, selected), None, len(self._kept))
        count = x.shape[0] * x.shape[1]
        chosen = None if selected is None else selected.reshape(count, -1)
        if is_served(x.dtype):
            found = measure_parts(self._kernel, x, need_sum=run.centred).reshape((-1, 1))
        else:
            found = Leaves.empty((count, 1))
            found.extreme[:] = True
        if chosen is not None:
            found.count = count_values(chosen, chosen)[:, None]
        again = np.flatnonzero(found.extreme)
        if again.size:
            rows = run.load(x[np.unravel_index(again, x.shape[:2])].reshape(again.size, -1), work)
            some = None if chosen is None else chosen[again]
            found.put((again, 0), run.method.fold(run.measure_rows(rows, work, some)))
        return found

    def write(self, tile: Slices, solution: Solution, work: Workspace) -> None:
        """Normalize a tile and write it to the sink, given the solution of all groups.

        The caller makes sure that the solution is plain (`is_plain`).
        """
        along = self._reduced[-1:]
        others = tuple(i for i in self._run.geometry.runs if i not in along)
        raw = self._read(tile, others + along, work)
        lengths = [tile[i].stop - tile[i].start if i in self._kept else 1 for i in others]
        groups = self._run.geometry.number_groups(tile).reshape(lengths)
        numbers = np.broadcast_to(groups, raw.shape[:-1]).reshape(-1)
        self._write(raw, tile, (others, along), numbers, solution, work)

    def write_groups(self, raw: NDArray[Any], tile: Slices, solution: Solution, work: Workspace) -> None:
        """Normalize a tile of whole groups and write it; do nothing if there is no sink.

        Parameters
        ----------
        raw : ndarray
            The values of the tile, kept runs first.
        tile : slices
        solution : Solution
            The solution of the tile's groups.
        work : Workspace
        """
        if self._run.sink is None:
            return
        raw = _widen_integers(raw, work)
        numbers = np.arange(math.prod(raw.shape[: len(self._kept)]))
        self._write(raw, tile, (self._kept, self._reduced), numbers, solution, work)

    def _write(
        self,
        raw: NDArray[Any],
        tile: Slices,
        order: tuple[tuple[int, ...], tuple[int, ...]],
        numbers: Integers,
        solution: Solution,
        work: Workspace,
    ) -> None:
        """Normalize the rows of a tile, and write them to the sink.

        Parameters
        ----------
        raw : ndarray
            The values of the tile, its runs in `order`.
        tile : slices
        order : tuple of two tuples of int
            There is a row for each position along the runs of the first; a row lies along those of the second.
        numbers : ndarray of int
            The group of each row, as a flat index into the solution's arrays.
        solution : Solution
        work : Workspace
        """
        run, (before, along) = self._run, order
        assert run.sink is not None
        place = run.sink.open(tile, work)
        there = place.transpose(before + along)
        selected = run.select(raw, tile, before + along)
        seen = selected if run.selection is not None and run.selection.hides else None
        x, out = _lay(zero_unselected(raw, seen), there, len(before))
        assert out is not None
        rows, exact = Groups(x, out, *self._lay_parameters(tile, along)), run.exact
        left = np.arange(numbers.size)
        if is_served(x.dtype):
            left = apply_to_rows(self._kernel, rows, solution, numbers, seen, exact=exact)
        if left.size:
            here = solution.take(lambda a: a.reshape(-1)[numbers[left], None])
            self._normalize_left(left, rows, here)
        _return(out, there)
        run.fill_unselected(there, raw, selected)
        run.sink.put(tile, place, work)


def _widen_integers(values: NDArray[Any], work: Workspace) -> NDArray[Any]:
    """Return integers as float64 if that holds each of them exactly; other values as they are."""
    if values.dtype.kind not in "iu":
        return values
    wide, rest = widen_exactly(values, work, "integers")
    return wide if rest is None else values


def _return(out: NDArray[Any], place: NDArray[Any]) -> None:
    """Copy results to `place`, the part of the output that they belong to, unless they were written there."""
    if not np.may_share_memory(out, place):
        place[...] = out.reshape(place.shape)


def _lay(raw: NDArray[Any], out: NDArray[Any] | None, kept: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return a tile and the array of its results, both of shape (outer, inner, parts, values).

    The first `kept` axes of a tile number its groups. Where views of that shape are not possible, the tile is
    copied and the results get a new array. The array of results is None if `out` is None.
    """
    arrays = [raw] if out is None else [raw, out]
    views = _join(arrays, kept) if all(a.flags.aligned for a in arrays) else None
    if views is None:
        arrays = [np.ascontiguousarray(raw), *(np.empty(a.shape, a.dtype) for a in arrays[1:])]
        views = _join(arrays, kept)
        assert views is not None  # of arrays without gaps
    return views[0], None if out is None else views[1]


def _join(arrays: list[NDArray[Any]], kept: int) -> list[NDArray[Any]] | None:
    """Return views, of shape (outer, inner, parts, values), of arrays; None if these would need copies."""
    if all(a.flags.c_contiguous for a in arrays):
        return [a.reshape(1, -1, 1, math.prod(a.shape[kept:])) for a in arrays]
    shape = find_shape(arrays[0].shape, tuple([a.strides for a in arrays]), kept)
    # Axes that lie behind each other are joined, which takes no copy.
    return None if shape is None else [a.reshape(shape) for a in arrays]


@functools.lru_cache(maxsize=64)
def find_shape(shape: Shape, strides: tuple[Shape, ...], kept: int) -> Shape | None:
    """Return the shape (outer, inner, parts, values) that arrays take without a copy; None if there is none.

    The first two axes number groups, the last two the values of each.

    Parameters
    ----------
    shape : tuple of int
        The shape of all arrays.
    strides : tuple of tuple of int
        The strides of each array.
    kept : int
        The number of axes of `shape` that number groups: the first ones.
    """
    groups: list[Shape] = []
    values: list[Shape] = []
    for axis, (length, *steps) in enumerate(zip(shape, *strides, strict=True)):
        runs = groups if axis < kept else values
        if length == 1:
            continue
        if runs and [length * step for step in steps] == list(runs[-1][1:]):
            length *= runs.pop()[0]
        runs.append((length, *steps))
    if len(groups) > 2 or len(values) > 2:
        return None
    lengths = [run[0] for run in groups], [run[0] for run in values]
    return tuple(n for own in lengths for n in (*[1] * (2 - len(own)), *own))


def open_compiled(run: Tiles) -> CompiledTiles | None:
    """Return the compiled kernel for a run's tiles; None if NumPy has to work on them.

    NumPy works on them if there is no kernel, for dtypes that it does not read or write, with a gate or bounds
    (`clip`), with gamma or beta in a file, and where x̂ is rounded before gamma or beta.
    """
    kernel = find_kernel()
    parameters = [values for values in (run.gamma, run.beta) if values is not None]
    if (
        kernel is None
        or (parameters and run.plan.spec.rounds_before_gamma)
        or (run.gates, run.clip) != (None, None)
        or not (is_served(run.native) or is_long_integer(run.native))
        or not (run.sink is None or is_served(run.sink.dtype))
        or any(values.lies_in_file for values in parameters)
    ):
        return None
    return CompiledTiles(run, kernel)
