"""The passes over a tensor, tile by tile.

Groups that lie within a tile are read once and written at once. Of larger ones a first pass measures the
leaves, which are merged, and a second pass writes.
"""

from __future__ import annotations

import itertools
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import choose_arithmetic, is_short_float
from normcli.engine.blocks import open_parameters
from normcli.engine.geometry import Segments, fold_rows
from normcli.engine.inputs import COUNT, NO_INPUTS, Counting, leave_counting
from normcli.engine.walk import DEFAULT_EFFORT, Walk
from normcli.norms.divisors import Measurement
from normcli.norms.table import Centre
from normcli.numerics.kernel import SHORTEST_WIDE_LINE, apply, apply_affine
from normcli.numerics.leaves import Leaves, measure_leaves, measure_powers, measure_short_leaves
from normcli.numerics.moments import (
    Moments,
    choose_scale,
    fold_leaves,
    fold_powers,
    measure_columns,
    merge_leaves,
    merge_powers,
)
from normcli.numerics.solution import Given, solve, solve_given
from normcli.tensors.pieces import forget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.blocks import Sink, Source
    from normcli.engine.geometry import Geometry, Slices
    from normcli.engine.inputs import Inputs, Marks
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.divisor import Solution
    from normcli.numerics.quartiles import Quartiles
    from normcli.numerics.workspace import Workspace

    Floats = NDArray[np.float64]

COLUMN_BLOCK = 1 << 17
"""Values in a tile of groups that stand as columns: there every operation is on the whole tile."""


class Run:
    """One normalization: a plan, its geometry, a source, and a sink (None: nothing is written)."""

    def __init__(
        self,
        plan: Plan,
        geometry: Geometry,
        source: Source,
        sink: Sink | None,
        inputs: Inputs = NO_INPUTS,
        effort: Effort = DEFAULT_EFFORT,
    ) -> None:
        self.plan, self.geometry, self.source, self.sink = plan, geometry, source, sink
        self.gamma, self.beta = open_parameters(plan, geometry, inputs.gamma, inputs.beta)
        self.counting = None if inputs.selection is None else Counting(inputs.selection, plan, geometry)
        self.centred = plan.norm.centre is Centre.MEAN
        block = min(effort.block, COLUMN_BLOCK) if geometry.columns else effort.block
        self.walk = Walk(geometry, source, effort, block)
        dtypes = [source.dtype] if sink is None else [source.dtype, sink.dtype]
        short = all(is_short_float(dtype) for dtype in dtypes)
        self.exact_output = not short
        self.exact = (
            not short or inputs.beta is not None
        )  # beta may cancel all but the last bits of what it is added to
        self.native = np.dtype(np.float64 if self.exact else choose_arithmetic(source.dtype))
        kept, reduced = geometry.kept_runs, geometry.reduced_runs
        self.order = reduced + kept if geometry.columns else kept + reduced
        behind = math.prod(
            geometry.dims[reduced[-1] + 1 :]
        )  # a tile takes all that lies behind, or reads crumbs
        self.whole = geometry.columns or (
            geometry.count <= effort.whole and (behind == 1 or geometry.count * behind <= effort.block)
        )
        self._p = 2.0 if plan.spec.p is None else plan.spec.p
        self.powers = plan.norm.divisor.measurement is Measurement.LENGTH and self._p != 2.0
        self.scales_always = self.powers and self._p not in (0.0, 1.0) and not math.isinf(self._p)
        self.statistics: dict[str, Floats] = {}
        self._lock = threading.Lock()

    def do(self) -> dict[str, Floats]:
        """Measure, and normalize if there is a sink; return the statistics in the shape of the kept runs."""
        self.walk.expect(1 if self.whole or self.sink is None else 2)
        if self.whole:
            line = 0 if self.geometry.columns else int(self.geometry.leaf_sizes.max())
            self.walk.each(self._do_whole, whole=True, line=line)
        else:
            with np.errstate(all="ignore"):
                self._do_two_passes()
        return self.statistics

    def use(self, given: Given) -> dict[str, Floats]:
        """Normalize with statistics that are known; return them in the shape of the kept runs."""
        self.walk.expect(0 if self.sink is None else 1)
        with np.errstate(all="ignore"):
            count = None if self.counting is None else self._count_all(self.counting).reshape(-1)
            self._write_all(solve_given(self.plan, given, exact=self.exact), count)
        return self.statistics

    def follow(self, moments: Moments | Quartiles) -> None:
        """Normalize with moments that are known: one of each group."""
        self.walk.expect(1)
        with np.errstate(all="ignore"):
            self._write_all(solve(self.plan, moments, exact=self.exact))

    def _count_all(self, counting: Counting) -> Floats:
        """Return how many values of each group count: the tensor is read only where NaN does not."""
        geometry, natural = self.geometry, tuple(range(len(self.geometry.dims)))
        counts = np.zeros(geometry.kept_shape)

        def count(tile: Slices, work: Workspace) -> None:
            lengths = tuple(part.stop - part.start for part in tile)
            x = self._load(tile, work, natural) if counting.omits_nan else np.broadcast_to(0.0, lengths)
            marks = counting.mark(x, tile, natural)
            found = np.add.reduce(marks, axis=geometry.reduced_runs, dtype=np.float64)
            with self._lock:  # of whole numbers, whose sum no order changes
                counts[tuple(tile[run] for run in geometry.kept_runs)] += found

        self.walk.each(count, whole=False, line=SHORTEST_WIDE_LINE)
        return counts

    # -- tiles

    def _load(self, tile: Slices, work: Workspace, order: tuple[int, ...] | None = None) -> NDArray[Any]:
        """Return a tile, contiguous in the engine's order, of the native dtype; it may be the source itself."""
        raw = self.source.read(tile, order or self.order, work)
        if raw.flags.c_contiguous and raw.dtype == self.native and raw.flags.aligned:
            return raw
        canonical = work.get("raw", raw.shape, self.native)
        np.copyto(canonical, raw, casting="unsafe")
        return canonical

    def _tile_groups(self, tile: Slices) -> tuple[int, ...]:
        return tuple(tile[i].stop - tile[i].start for i in self.geometry.kept_runs)

    def _spread(self, values: Any, tile: Slices) -> Any:
        """Shape one value for each group of a tile so that it broadcasts against the tile."""
        shape = self._tile_groups(tile)
        ones = (1,) * len(self.geometry.reduced_runs)
        return values.reshape(ones + shape if self.geometry.columns else shape + ones)

    def _mark(self, x: NDArray[Any], tile: Slices, order: tuple[int, ...]) -> Marks | None:
        """Return which values of a tile count; None if all do."""
        return None if self.counting is None else self.counting.mark(x, tile, order)

    def _write(
        self,
        raw: NDArray[Any],
        tile: Slices,
        solution: Solution,
        scale: NDArray[np.int64] | None,
        work: Workspace,
        order: tuple[int, ...],
    ) -> None:
        """Write a tile with what was solved for it, all of it and the scale spread against the tile."""
        if self.sink is None:
            return
        x = raw if scale is None else np.ldexp(raw.astype(np.float64), scale)
        place = self.sink.open(tile, work)
        gamma = None if self.gamma is None else self.gamma.cut(tile, order)
        beta = None if self.beta is None else self.beta.cut(tile, order)
        out = place.transpose(order)
        if self.plan.spec.rounds_before_gamma and not (gamma is None and beta is None):
            apply(x, out, solution, self.exact_output, None, None, work)
            apply_affine(out, gamma, beta)
        else:
            apply(x, out, solution, self.exact_output, gamma, beta, work)
        if self.counting is not None:
            self.counting.fill(out, raw, self.counting.mark(raw, tile, order))
        self.sink.put(tile, place, work)

    # -- measuring

    def _measure(self, leaves: NDArray[Any], work: Workspace, marks: Marks | None) -> Leaves:
        if self.powers:
            return measure_powers(leaves.astype(np.float64), self._p, work, exact=self.exact, counting=marks)
        measure = measure_leaves if self.exact else measure_short_leaves
        return measure(leaves, work, need_sum=self.centred, counting=marks)

    def _measure_rows(
        self, rows: NDArray[Any], tile: Slices, work: Workspace, marks: Marks | None = None
    ) -> Leaves:
        """Return the leaves of rows of values that are a tile's, of shape (groups, leaves).

        `marks`, of the shape of the rows, says which values count; the others are 0.
        """
        cut = self.geometry.cut_leaves
        marked = itertools.repeat(None) if marks is None else (piece for _, piece in cut(marks, tile))
        parts = []
        for (place, piece), counting in zip(cut(rows, tile), marked, strict=False):
            flat = None if counting is None else counting.reshape(-1, piece.shape[-1])
            leaves = self._measure(piece.reshape(-1, piece.shape[-1]), work, flat)
            parts.append((place, leaves.reshape(piece.shape[:-1])))
        leaves = parts[0][1]
        if len(parts) > 1:
            groups, outer, _ = leaves.sum_hi.shape
            leaves = Leaves.empty((groups, outer, parts[-1][0].stop))
            for place, part in parts:
                leaves.put((slice(None), slice(None), place), part)
        return leaves.map(lambda a: a.reshape(rows.shape[0], -1))

    def _fold(self, leaves: Leaves) -> Leaves:
        if self.powers:
            return fold_powers(leaves, self._p)
        return fold_leaves(leaves, centred=self.centred)

    def _merge(self, leaves: Leaves) -> Moments:
        """Merge the records of segments, of shape (groups, segments)."""
        count = self.geometry.count if self.counting is None else np.add.reduce(leaves.count, axis=-1)
        if self.powers:
            return merge_powers(leaves, count, self._p, exact=self.exact)
        return merge_leaves(leaves, count, centred=self.centred, short=not self.exact)

    # -- one pass

    def _do_whole(self, tile: Slices, work: Workspace) -> None:
        raw = self._load(tile, work)
        marks = self._mark(raw, tile, self.order)
        solution, count = self._solve_tile(leave_counting(raw, marks), tile, work, marks)
        self._tell(tile, solution, count)
        scale = None if solution.scale is None else self._spread(solution.scale, tile)
        self._write(raw, tile, solution.take(lambda a: self._spread(a, tile)), scale, work, self.order)

    def _solve_tile(
        self, x: NDArray[Any], tile: Slices, work: Workspace, marks: Marks | None
    ) -> tuple[Solution, Any]:
        """Measure a tile of whole groups; return what it is normalized with, and how many values count."""
        groups = math.prod(self._tile_groups(tile))
        if not self.geometry.columns:
            flat = None if marks is None else marks.reshape(groups, -1)
            moments = self._measure_groups(x.reshape(groups, -1), tile, work, flat)
        else:
            standing = None if marks is None else marks.reshape(-1, groups)
            moments = self._measure_standing(x.reshape(-1, groups), tile, work, standing)
        return solve(self.plan, moments, exact=self.exact), moments.count

    def _measure_standing(
        self, columns: NDArray[Any], tile: Slices, work: Workspace, marks: Marks | None
    ) -> Moments:
        """Measure groups that stand as columns."""
        if not self.powers:
            return self._measure_columns(columns, work, marks)
        lying = None if marks is None else np.ascontiguousarray(marks.T)
        return self._measure_groups(np.ascontiguousarray(columns.T), tile, work, lying)

    def _measure_groups(
        self, rows: NDArray[Any], tile: Slices, work: Workspace, marks: Marks | None
    ) -> Moments:
        leaves = self._measure_rows(rows, tile, work, marks)
        scale = None
        if self.scales_always or leaves.extreme.any():
            chosen = np.asarray(leaves.extreme.any(axis=-1))
            if self.scales_always:
                chosen = np.ones_like(chosen)
            part = rows[chosen].astype(np.float64)
            scale = np.zeros(rows.shape[0], dtype=np.int64)
            scale[chosen] = choose_scale(np.maximum.reduce(np.abs(part), axis=-1))
            again = np.ldexp(part, scale[chosen][:, None])
            leaves.put(chosen, self._measure_rows(again, tile, work, None if marks is None else marks[chosen]))
        moments = self._merge(fold_rows(leaves, self.geometry, self._fold))
        moments.scale = scale
        return moments

    def _measure_columns(self, x: NDArray[Any], work: Workspace, marks: Marks | None) -> Moments:
        columns = x
        if x.dtype != np.float64:
            columns = work.get("x", x.shape)
            np.copyto(columns, x)
        kind = {"exact": self.exact, "centred": self.centred}
        moments, extreme = measure_columns(columns, **kind, counting=marks)
        if extreme.any():
            part = columns[:, extreme]
            k = choose_scale(np.maximum.reduce(np.abs(part), axis=0))
            chosen = None if marks is None else marks[:, extreme]
            again, _ = measure_columns(np.ldexp(part, k), **kind, counting=chosen)
            moments.put(extreme, again)
            moments.scale = np.zeros(columns.shape[1], dtype=np.int64)
            moments.scale[extreme] = k
        return moments

    def _tell(self, tile: Slices, solution: Solution, count: Any = None) -> None:
        shape = self._tile_groups(tile)
        if self.counting is not None and count is not None:
            solution.statistics[COUNT] = np.broadcast_to(count, (math.prod(shape),)).astype(np.float64)
        if shape == self.geometry.kept_shape:  # all at once: they are there already
            self.statistics = {name: values.reshape(shape) for name, values in solution.statistics.items()}
            return
        if not self.statistics:
            with self._lock:
                if not self.statistics:
                    whole, dtype = self.geometry.kept_shape, np.dtype(np.float64)
                    make = self.source.make_array
                    self.statistics = {name: make(whole, dtype) for name in solution.statistics}
        index = tuple(tile[i] for i in self.geometry.kept_runs)
        for name, values in solution.statistics.items():
            self.statistics[name][index] = values.reshape(shape)
            forget(self.statistics[name])

    # -- two passes

    def _do_two_passes(self) -> None:
        """Measure all leaves, merge them, write (between: measure again what has to be scaled)."""
        geometry = self.geometry
        reduced_axes = tuple(range(len(geometry.kept_runs), len(geometry.dims)))
        segments = Segments(geometry, self._fold)
        largest = np.zeros(geometry.kept_shape)
        scale: NDArray[np.int64] | None = None

        def load(tile: Slices, work: Workspace) -> tuple[NDArray[Any], Marks | None]:
            raw = self._load(tile, work)
            marks = self._mark(raw, tile, self.order)
            x = leave_counting(raw, marks)
            if scale is None:
                return x, marks
            k = scale[tuple(tile[i] for i in geometry.kept_runs)]
            return np.ldexp(x.astype(np.float64), k.reshape(k.shape + (1,) * len(reduced_axes))), marks

        def gather(tile: Slices, work: Workspace) -> None:
            x, marks = load(tile, work)
            groups = math.prod(self._tile_groups(tile))
            rows = x.reshape(groups, -1)
            counting = None if marks is None else marks.reshape(groups, -1)
            segments.put(tile, self._measure_rows(rows, tile, work, counting))

        def enlarge(tile: Slices, work: Workspace) -> None:
            top = np.maximum.reduce(np.abs(load(tile, work)[0]), axis=reduced_axes)
            place = largest[tuple(tile[i] for i in geometry.kept_runs)]
            with self._lock:
                np.maximum(place, top, out=place)

        leaf = int(geometry.leaf_sizes.max())
        self.walk.each(gather, whole=False, line=leaf)
        extreme = segments.records.extreme.any(axis=-1)
        if self.scales_always or extreme.any():
            self.walk.expect(2)
            self.walk.each(enlarge, whole=False, line=leaf)
            k = choose_scale(largest)
            scale = k if self.scales_always else np.where(extreme, k, 0)
            segments = Segments(geometry, self._fold)
            self.walk.each(gather, whole=False, line=leaf)
        moments = self._merge(segments.records.reshape((math.prod(geometry.kept_shape), -1)))
        moments.scale = None if scale is None else scale.reshape(-1)
        solution = solve(self.plan, moments, exact=self.exact)
        self._write_all(solution, moments.count)

    def _write_all(self, solution: Solution, count: Any = None) -> None:
        """Write every value with what was solved for all groups at once; their counts are told if known."""
        geometry, scale = self.geometry, solution.scale
        natural = tuple(range(len(geometry.dims)))
        spread = [1 if kind else n for n, kind in zip(geometry.dims, geometry.reduced, strict=True)]

        def write(tile: Slices, work: Workspace) -> None:
            raw = self._load(tile, work, natural)
            index = tuple(s if n > 1 else slice(None) for s, n in zip(tile, spread, strict=True))
            here = solution.take(lambda a: a.reshape(spread)[index])
            k = None if scale is None else scale.reshape(spread)[index]
            self._write(raw, tile, here, k, work, natural)

        self._tell(tuple(slice(0, n) for n in geometry.dims), solution, count)
        if self.sink is not None:
            self.walk.each(write, whole=False, line=SHORTEST_WIDE_LINE)
