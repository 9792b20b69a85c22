"""Comparisons of a given tensor, or given statistics, with the exact ones, tile by tile."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.half_precision import compare_saved
from normcli.checking.tally import PIECE, Comparison, GroupTally
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.engine.inputs import COUNT, Inputs
from normcli.engine.run import measure, run, run_into
from normcli.engine.tiling.blocks import open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.norms.axes import ParameterShapes
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.engine.inputs import Selection
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace
    from normcli.results.arguments import Problem

    Affine = tuple[NDArray[Any] | None, NDArray[Any] | None]


NORMALIZED = "normalized"
"""The key of the normalized tensor among the arrays that are compared; other keys are statistics."""


class Checked(NamedTuple):
    """The comparisons that `check` made.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        The comparison of each array, by its name: `normalized`, or a statistic.
    statistics : mapping of str to ndarray of float64
        The exact statistics, by name, of the shape `Grid.stats_shape`.
    counts : ndarray of float64 or None
        The number of values that count in each group; None if all values count.
    selection : Selection or None
        The values that count; None if all do.
    saved : numpy.dtype or None
        The half precision in which the normalized tensor was judged, if it was saved in a longer dtype; else
        None.
    """

    comparisons: Mapping[str, Comparison]
    statistics: Mapping[str, Floats]
    counts: Floats | None = None
    selection: Selection | None = None
    saved: np.dtype[Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether every value of every array is within the tolerance."""
        return all(comparison.ok for comparison in self.comparisons.values())


def check(
    problem: Problem,
    actual: Mapping[str, NDArray[Any]],
    tolerate: Callable[[np.dtype[Any]], Tolerance] = choose_tolerance,
    allowed: NDArray[np.float64] | None = None,
) -> Checked:
    """Compare arrays with the exact result of a norm.

    Parameters
    ----------
    problem : Problem
        The norm and its input. The dtype of the plan, if it has one, is the one whose ulp are counted.
    actual : mapping of str to ndarray
        `normalized`, of the tensor's shape, and any statistics of the norm, by name.
    tolerate : callable
        Takes a dtype and returns the tolerance for values of it; by default that of torch's `assert_close`.
    allowed : ndarray of float64 or None
        The largest error of each value of the normalized tensor, in place of the tolerance; if None, the
        tolerance holds.

    Raises
    ------
    DataError
        If a shape does not fit.
    UsageError
        If `actual` is empty, if the norm has no statistic of a name, or if `tolerate` refuses a dtype.

    Notes
    -----
    The exact values are rounded once to float64. A result in a shorter dtype that is rounded once is off by at
    most 0.5 ulp.

    If every number of the inputs and of the normalized tensor is also a float16 (or a bfloat16), the tensor is
    judged in that dtype, unless the plan has a dtype or `allowed` is given.

    Examples
    --------
    >>> from normcli.results.arguments import read_arguments
    >>> x = np.array([[1.0, 3.0], [5.0, 5.0]], dtype=np.float32)
    >>> y = np.array([[-1.0, 1.0], [0.0, 0.5]], dtype=np.float32)
    >>> found = check(read_arguments(x, "ln", {}), {"normalized": y}).comparisons["normalized"]
    >>> found.mismatches, found.worst.place, found.worst.expected
    (1, 3, 0.0)
    """
    if not actual:
        raise UsageError("there is nothing to compare")
    plan, values, inputs, effort = problem.plan, problem.values, problem.inputs, problem.effort
    for name, array in actual.items():
        require_shape(plan, name, array)
    dtypes = {name: array.dtype for name, array in actual.items()}
    if NORMALIZED in actual:
        dtypes[NORMALIZED] = plan.choose_output_dtype(dtypes[NORMALIZED])
    tolerances = {name: tolerate(choose_counting_dtype(dtype)) for name, dtype in dtypes.items()}
    comparisons: dict[str, Comparison] = {}
    saved, statistics = None, {}

    def compare(half: np.dtype[Any] | None) -> Comparison:
        nonlocal statistics
        geometry = find_geometry(plan)
        with contextlib.ExitStack() as files:
            source = files.enter_context(open_source(actual[NORMALIZED], plan, geometry))
            limits = None if allowed is None else files.enter_context(open_source(allowed, plan, geometry))
            tolerance = tolerances[NORMALIZED] if half is None else tolerate(half)
            sink = ComparingSink(plan, geometry, source, tolerance, limits)
            statistics = run_into(plan, values, sink, inputs, effort)
        return sink.comparison

    if NORMALIZED in actual:
        addends = problem.tensor.addends
        every = (values,) if addends is None else (addends.values, addends.residual)
        read = every if plan.spec.dtype is None and allowed is None else None
        comparisons[NORMALIZED], saved = compare_saved(read, actual[NORMALIZED], compare)
    else:
        statistics = measure(plan, values, inputs, effort)
    counts = statistics.pop(COUNT, None)
    for name, array in actual.items():
        if name != NORMALIZED:
            comparisons[name] = Comparison(tolerances[name], GroupTally((statistics[name].size,)))
            comparisons[name].compare_all(array, statistics[name])
    return Checked(comparisons, statistics, counts, inputs.selection, saved)


def fit_actual(plan: Plan, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of shape (N,) as one of (N, 1), if this is the tensor's shape; other arrays unchanged."""
    return array.reshape(plan.grid.shape) if (*array.shape, 1) == plan.grid.shape else array


def require_shape(plan: Plan, name: str, array: NDArray[Any]) -> None:
    """Raise `DataError` unless an array has the shape of the tensor (`normalized`) or of a named statistic.

    A statistic may have lengths of 1 for the reduced axes, or be flat.

    Raises
    ------
    DataError
        If the shape does not fit.
    UsageError
        If the norm has no statistic of this name.
    """
    if name == NORMALIZED:
        if array.shape != plan.grid.shape:
            raise DataError(f"the shape is {array.shape}; that of the input is {plan.grid.shape}")
        return
    if name not in plan.norm.statistics:
        raise UsageError(f"{plan.norm.name} has no {name}; it has {', '.join(plan.norm.statistics)}")
    lengths = [length for length in array.shape if length != 1]
    wanted = [length for length in plan.grid.stats_shape if length != 1]
    if array.size != plan.grid.group_count or (lengths != wanted and len(lengths) > 1):
        raise DataError(f"the shape is {array.shape}; there is one {name} for each of {plan.grid.stats_shape}")


class ComparingSink:
    """A receiver of the exact result, tile by tile, that compares it with a given tensor.

    The totals are in `comparison`.

    Parameters
    ----------
    plan : Plan
    geometry : Geometry
        The axes of the tensor as tiles are cut from it.
    source : Source
        The reader of the given tensor.
    tolerance : Tolerance
    limits : Source or None
        The reader of the largest error of each value, in place of the tolerance; if None, the tolerance holds.
    """

    dtype: np.dtype[Any] = np.dtype(np.float64)

    def __init__(
        self, plan: Plan, geometry: Geometry, source: Source, tolerance: Tolerance, limits: Source | None = None
    ) -> None:
        groups = None if plan.groups_overlap else GroupTally(geometry.kept_shape)
        self.comparison = Comparison(tolerance, groups)
        self._geometry, self._source, self._limits = geometry, source, limits
        self._lock = threading.Lock()

    def open(self, tile: Slices, work: Workspace) -> NDArray[Any]:
        """Return a buffer of a tile's shape, for the exact values."""
        return work.get("write", tuple(part.stop - part.start for part in tile), self.dtype)

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Compare a tile of exact values with the given tensor, and add the totals to `comparison`.

        `values` is overwritten: with the distance in ulp at each mismatch, and with 0 elsewhere.
        """
        natural = tuple(range(len(tile)))
        actual = self._source.read(tile, natural, work).reshape(-1)
        expected = values.reshape(-1)
        limits = None if self._limits is None else self._limits.read(tile, natural, work).reshape(-1)
        here = Comparison(self.comparison.tolerance)
        for start in range(0, expected.size, PIECE):
            part = slice(start, start + PIECE)
            allowed = None if limits is None else limits[part]
            expected[part] = here.compare(actual[part], expected[part], start, allowed)
        if here.worst is not None:
            here.worst = here.worst._replace(place=self._locate(tile, here.worst.place))
        with self._lock:
            self.comparison.merge(here)
            if here.mismatches and self.comparison.groups is not None:
                index = tuple(tile[run] for run in self._geometry.kept_runs)
                self.comparison.groups.add(index, values, self._geometry.reduced_runs)
        self._source.forget()

    def _locate(self, tile: Slices, place: int) -> int:
        """Return the flat index in the whole tensor of a value, given its flat index in a tile."""
        inside = np.unravel_index(place, [part.stop - part.start for part in tile])
        index = tuple(int(i) + part.start for i, part in zip(inside, tile, strict=True))
        return int(np.ravel_multi_index(index, self._geometry.dims))


def calculate_rows(
    plan: Plan, rows: NDArray[Any], affine: Affine = (None, None), selection: Selection | None = None
) -> tuple[Floats, dict[str, Floats]]:
    """Return the exact result of rows, rounded to float64, and the statistics of each row by name.

    Parameters
    ----------
    plan : Plan
        The plan of the tensor that the rows are groups of; not of a norm with windows.
    rows : ndarray, shape (groups, values)
    affine : tuple of ndarray or None
        Scale (gamma, or 1 + gamma) and shift of each value, of the shape of the rows; None for 1 and for 0.
    selection : Selection or None
        The values that statistics count; None if all values count.
    """
    parameters = ParameterShapes(plan.parameters.rule, (0, 1), rows.shape, rows.shape, rows.shape)
    alone = replace(plan, grid=Grid(rows.shape, Layout(2, None), (1,)), parameters=parameters)
    plain = alone.change_spec(dtype="float64", gamma_offset=0, rounds_before_gamma=False)
    return run(plain, rows, Inputs(*affine, selection=selection), effort=Effort(threads=1))
