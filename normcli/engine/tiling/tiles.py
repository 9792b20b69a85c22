"""The work on one tile of a tensor by NumPy: reading, measuring, solving, writing."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import choose_arithmetic, is_short_float
from normcli.engine.inputs import COUNT, NO_INPUTS, TileSelection, zero_unselected
from normcli.engine.tiling.blocks import open_full, open_parameter
from normcli.engine.tiling.geometry import find_lengths
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.norms.divisors import Measurement
from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.elements.kernel import Parameters, apply
from normcli.numerics.rational import sum_pieces
from normcli.numerics.statistics.divisor import make_neutral
from normcli.numerics.statistics.moments import find_moments
from normcli.numerics.statistics.solution import solve
from normcli.numerics.sums.leaf_records import Leaves, cut_leaves, fold_leaves, join
from normcli.tensors.pieces import forget
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.blocks import Sink, Source
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.statistics.moments import Moments
    from normcli.numerics.sums.leaf_records import LeafRecords, Read
    from normcli.numerics.workspace import Workspace


class Tiles:
    """A tensor tile by tile: each is read, measured, solved and written, and its statistics are kept.

    Parameters
    ----------
    plan : Plan
    geometry : Geometry
        The geometry of the plan's view.
    source : Source
        The source of the tensor's tiles.
    sink : Sink or None
        Takes the normalized tiles; None if nothing is to be written.
    inputs : Inputs
        Gamma, beta, the gate, the bounds and the selection are used; known statistics are given to `apply`.
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
        self.plan, self.geometry, self.source, self.sink = plan, geometry, source, sink
        self.gamma = open_parameter(plan, geometry, inputs.gamma, plan.spec.gamma_offset)
        self.beta = open_parameter(plan, geometry, inputs.beta)
        gate, self.clip = inputs.gate, inputs.clip
        self.gates = None if gate is None else gate.map(lambda a: open_full(plan, geometry, a))
        self.selection = None if inputs.selection is None else TileSelection(inputs.selection, plan, geometry)
        self.exact = not (is_short_float(source.dtype) and (sink is None or is_short_float(sink.dtype)))
        self.native = np.dtype(choose_arithmetic(source.dtype))
        self.order = geometry.kept_first
        self.centred = plan.norm.divisor.about_mean
        self.method = choose_method(plan)
        self.statistics: dict[str, Floats] = {}
        self._keeps = effort.keeps_statistics
        self._lock = threading.Lock()

    def _load(
        self, tile: Slices, work: Workspace, order: tuple[int, ...], dtype: np.dtype[Any] | None = None
    ) -> NDArray[Any]:
        """Return a contiguous tile with its runs in `order`, of `dtype` (None: `self.native`).

        It may share memory with the source.
        """
        return self.load(self.source.read(tile, order, work), work, dtype)

    def load(self, raw: NDArray[Any], work: Workspace, dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
        """Return values as a contiguous array of `dtype` (None: `self.native`): `raw` if it is one already."""
        dtype = dtype or self.native
        if raw.flags.c_contiguous and raw.dtype == dtype and raw.flags.aligned:
            return raw
        canonical = work.get("raw", raw.shape, dtype)
        np.copyto(canonical, raw, casting="unsafe")
        return canonical

    def _count_groups(self, tile: Slices) -> int:
        return math.prod(find_lengths(self.geometry.cut_groups(tile)))

    def select(self, x: NDArray[Any], tile: Slices, order: tuple[int, ...]) -> Selected | None:
        """Return an array that is True where a value of a tile counts; None if there is no selection."""
        return None if self.selection is None else self.selection.select(x, tile, order)

    def _load_selected(
        self, tile: Slices, work: Workspace, order: tuple[int, ...]
    ) -> tuple[NDArray[Any], NDArray[Any], Selected | None]:
        """Return a tile as it is, the tile with 0 for values that do not count, and where values count.

        The last is a bool array, or None if all count.
        """
        raw = self._load(tile, work, order)
        selected = self.select(raw, tile, order)
        return raw, zero_unselected(raw, selected), selected

    def _lay_rows(
        self, tile: Slices, x: NDArray[Any], selected: Selected | None
    ) -> tuple[NDArray[Any], Selected | None]:
        """Return a tile, and the array of its values that count (or None), with one row for each group."""
        groups = self._count_groups(tile)
        return x.reshape(groups, -1), None if selected is None else selected.reshape(groups, -1)

    def _write(
        self, raw: NDArray[Any], tile: Slices, solution: Solution, order: tuple[int, ...], work: Workspace
    ) -> None:
        """Normalize a tile, from a solution that broadcasts against it, and write it if there is a sink."""
        if self.sink is None:
            return
        place = self.sink.open(tile, work)
        gamma, beta = (
            None if values is None else values.cut(tile, order) for values in (self.gamma, self.beta)
        )
        gate = None if self.gates is None else self.gates.map(lambda a: a.cut(tile, order))
        parameters = Parameters(gamma, beta, gate)
        out = place.transpose(order)
        self.normalize(raw, out, solution, parameters)
        if self.clip is not None:
            np.clip(out, *map(out.dtype.type, self.clip), out=out)
        self.fill_unselected(out, raw, self.select(raw, tile, order))
        self.sink.put(tile, place, work)

    def fill_unselected(self, out: NDArray[Any], raw: NDArray[Any], selected: Selected | None) -> None:
        """Write to `out`, in place of values that do not count, the input, 0 or NaN (`Selection.fill`).

        Nothing is written if `selected` is None, or such values are normalized like the others.
        """
        if self.selection is not None and selected is not None:
            self.selection.fill(out, raw, selected)

    def normalize(
        self,
        raw: NDArray[Any],
        out: NDArray[Any],
        solution: Solution,
        parameters: Parameters,
    ) -> None:
        """Normalize values, and write them to `out`; solution and parameters broadcast against them."""
        if self.plan.spec.rounds_before_gamma and any(values is not None for values in parameters):
            dtype = self.plan.choose_output_dtype(self.source.dtype)  # a sink may take more digits
            rounded = np.empty(out.shape, dtype)
            bare, gate = parameters._replace(gate=None), parameters.gate
            if gate is None:
                self._apply(raw, rounded, solution, Parameters())
            else:  # y is rounded too
                self.normalize(raw, rounded, solution, bare)
                parameters = Parameters(gate=gate)
            values = rounded.astype(out.dtype)
            undecided = apply(values, out, None, parameters)
            _settle(values, out, undecided, make_neutral(out.ndim), parameters)
        else:
            self._apply(raw, out, solution, parameters)

    def _apply(self, raw: NDArray[Any], out: NDArray[Any], solution: Solution, parameters: Parameters) -> None:
        undecided = apply(raw, out, solution, parameters)
        _settle(raw, out, undecided, solution, parameters)

    # -- measuring

    def measure_rows(
        self, rows: NDArray[Any], work: Workspace, selected: Selected | None = None
    ) -> LeafRecords:
        """Return a record of each leaf of groups that are rows; shape (groups, leaves).

        `selected`, of the rows' shape, is True where a value counts; the others have to be 0. None for all.
        """
        chosen = itertools.repeat(None) if selected is None else cut_leaves(selected)
        parts: list[LeafRecords] = []
        for piece, some in zip(cut_leaves(rows), chosen, strict=False):
            flat = None if some is None else some.reshape(-1, piece.shape[-1])
            leaves = self.method.measure(piece.reshape(-1, piece.shape[-1]), work, flat)
            parts.append(leaves.reshape(piece.shape[:-1]))
        return parts[0] if len(parts) == 1 else join(parts)

    def _merge(self, records: LeafRecords, read: Read) -> Any:
        """Merge records of shape (groups, records) to what `solve` takes.

        `read` takes the index of a group and yields its values that count.
        """
        count = self.geometry.count if self.selection is None else np.add.reduce(records.count, axis=-1)
        return self.method.merge(records, count, read)

    def _solve_tile(
        self, x: NDArray[Any], tile: Slices, work: Workspace, selected: Selected | None
    ) -> tuple[Solution, Any]:
        """Measure a tile of whole groups; return their solution, and how many values count.

        The count is one number for all groups, or an array with one for each.
        """
        rows, chosen = self._lay_rows(tile, x, selected)
        measured = self.measure_groups(rows, work, chosen)
        return solve(self.plan, measured), measured.count

    def measure_groups(self, rows: NDArray[Any], work: Workspace, selected: Selected | None = None) -> Any:
        """Measure groups that are rows, where `selected` is True, and return what `solve` takes."""
        records = self.measure_rows(rows, work, selected)
        return self._merge(records, lambda row: _pick(rows, selected, row))

    def _keep_solution(self, tile: Slices, solution: Solution, count: Any) -> None:
        """Keep the statistics of a tile's groups, and with a selection, how many values of each count.

        `count` is an array with one number for each group, or one number for all of them.
        """
        if self.selection is not None and count is not None:
            counts = np.broadcast_to(count, (self._count_groups(tile),))
            solution.statistics[COUNT] = counts.astype(np.float64)
        groups = self.geometry.cut_groups(tile)
        shape = find_lengths(groups)
        found = {name: values.reshape(shape) for name, values in solution.statistics.items()}
        self.keep(found, groups, self.geometry.kept_shape)

    def keep(self, statistics: dict[str, Floats], index: Slices, shape: tuple[int, ...]) -> None:
        """Write the statistics of some groups at `index` of `self.statistics`, arrays of `shape`.

        Do nothing if statistics are not to be kept (`Effort.keeps_statistics`).
        """
        if not self._keeps:
            return
        self._allocate_statistics(statistics, shape)
        for name, values in statistics.items():
            self.statistics[name][index] = values
            forget(self.statistics[name])

    def _allocate_statistics(self, names: Iterable[str], shape: tuple[int, ...]) -> None:
        with self._lock:
            for name in names:  # in the order in which they are shown
                if name not in self.statistics:
                    self.statistics[name] = self.source.make_array(shape, np.dtype(np.float64))

    def open_statistics(self, tile: Slices) -> contextlib.AbstractContextManager[dict[str, Floats]]:
        """Return a context manager: a dict of arrays of one axis, by name, for a tile's statistics.

        What the block writes to them is kept at its end. The dict is empty if none are to be kept.
        """
        if not self._keeps:
            return contextlib.nullcontext({})
        count = () if self.selection is None else (COUNT,)
        self._allocate_statistics((*self.plan.norm.statistics, *count), self.geometry.kept_shape)
        return self._open_some_statistics(tile)

    @contextlib.contextmanager
    def _open_some_statistics(self, tile: Slices) -> Iterator[dict[str, Floats]]:
        index: Any = (*self.geometry.cut_groups(tile), ...)  # arrays without axes stay arrays
        places = {name: values[index] for name, values in self.statistics.items()}
        given = {name: np.ascontiguousarray(place).reshape(-1) for name, place in places.items()}
        yield given
        for name, place in places.items():
            if not place.flags.c_contiguous:  # these were copies
                place[...] = given[name].reshape(place.shape)
            forget(self.statistics[name])


def _settle(
    raw: NDArray[Any],
    out: NDArray[Any],
    undecided: NDArray[np.intp] | None,
    solution: Solution,
    parameters: Parameters,
) -> None:
    """Write the exact results at the flat indices `undecided` to `out`; do nothing if these are None."""
    if undecided is not None:
        from normcli.numerics.elements.in_fractions import settle  # on use: few values need this

        settle(raw, out, undecided, solution, parameters)


def _pick(rows: NDArray[Any], selected: Selected | None, row: int) -> list[NDArray[Any]]:
    """Return the values of a row that count, as a list of one array."""
    return [rows[row] if selected is None else rows[row][selected[row]]]


# -- how groups are measured


class Method(NamedTuple):
    """A way to measure groups.

    Parameters
    ----------
    records : type
        The class of the records that are made of leaves.
    measure : callable
        Takes leaves, shape (leaves, n), a workspace, and an array that is True where a value counts (None for
        all; the others have to be 0); returns one record for each leaf.
    fold : callable
        Makes one record of all records along the last axis.
    merge : callable
        Takes the records of groups, shape (groups, records), how many values count, and a callable that takes
        the index of a group and yields its values that count; returns what `solve` takes.
    """

    records: type[LeafRecords]
    measure: Callable[..., Any]
    fold: Callable[[Any], Any]
    merge: Callable[[Any, Any, Read], Any]


def choose_method(plan: Plan) -> Method:
    """Return the method by which the groups of a plan are measured."""
    measurement = plan.norm.divisor.measurement
    if measurement is Measurement.EXTREMES:
        from normcli.numerics.statistics.order_statistics import Extremes, fold_extremes, measure_extremes

        return Method(Extremes, measure_extremes, fold_extremes, lambda leaves, *_: fold_extremes(leaves))
    if measurement is Measurement.LENGTH and not plan.follows_from_sums:
        from normcli.numerics.statistics.lengths import Powers, fold_powers, measure_powers, merge_powers

        p = plan.spec.p
        assert p is not None  # of every length
        return Method(
            Powers, partial(measure_powers, p=p), partial(fold_powers, p=p), partial(merge_powers, p=p)
        )
    return _measure_moments(plan.norm.divisor.about_mean)


@functools.cache
def _measure_moments(centred: bool) -> Method:
    def merge(leaves: Leaves, count: Any, read: Read) -> Moments:
        return find_moments(fold_leaves(leaves), count, lambda group: sum_pieces(read(group)), centred=centred)

    return Method(Leaves, partial(measure_rows, need_sum=centred), fold_leaves, merge)
