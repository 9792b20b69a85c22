"""The engine's entry: normalize a tensor into an array or a sink, or measure it alone."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.passes import Passes
from normcli.engine.small import run_small
from normcli.engine.tiling.blocks import CopyingSource, open_sink, open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError
from normcli.norms.divisors import Measurement
from normcli.numerics.elements.compiled_kernel import is_plan_served, is_served
from normcli.numerics.statistics.solution import solve_given
from normcli.tensors.mapped import require_unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.blocks import Sink, Source
    from normcli.engine.tiling.geometry import Geometry
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.solution import Given

_STATISTIC_BYTES = np.dtype(np.float64).itemsize
_LEAST_COPIED = 1 << 20
"""Bytes of the smallest tensor that is copied: memory for less is there already."""


def run(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs = NO_INPUTS,
    out: NDArray[Any] | None = None,
    effort: Effort = DEFAULT_EFFORT,
    copy: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], dict[str, Floats]]:
    """Normalize a tensor.

    Parameters
    ----------
    plan : Plan
        Made for the shape of `values`.
    values : ndarray
        Real numbers of any dtype and memory order; it is not written to.
    inputs : Inputs
        Gamma, beta, known statistics, and which values count.
    out : ndarray or None
        Where the result goes: C-contiguous, of the tensor's shape and of `choose_output_dtype`.
    effort : Effort
    copy : ndarray or None
        Where the tensor itself goes, as `make_copy` returns it.

    Returns
    -------
    tuple of (ndarray, dict)
        The normalized tensor, in C order; the statistics, of `Grid.stats_shape`; with a selection also, under
        `COUNT`, how many values of each group count.

    Raises
    ------
    DataError
        If the result does not fit into memory.
    UsageError
        If `out` is not what it has to be.
    """
    require_place(out, plan, values)
    _require_selection(plan, inputs)
    if _has_no_values(plan):
        return np.empty(
            plan.grid.shape, plan.choose_output_dtype(values.dtype)
        ) if out is None else out, _fill_statistics(plan, inputs.given)
    small = None if copy is not None else run_small(plan, values, inputs, out, effort)
    if small is not None:
        return small
    with open_run(plan, values, out, copy) as (place, geometry, source, sink):
        return place, run_source(plan, geometry, source, sink, inputs, effort)


def make_copy(plan: Plan, values: NDArray[Any], inputs: Inputs) -> NDArray[Any] | None:
    """Return memory for a copy of a tensor whose statistics would take more; None if they are to be kept.

    A copy is for tensors in memory, and for groups that the compiled kernel measures, which is soon done again.
    """
    size = values.nbytes
    if (
        size < _LEAST_COPIED
        or plan.grid.group_count * len(plan.norm.statistics) * _STATISTIC_BYTES <= size
        or isinstance(values, np.memmap)
        or any(known is not None for known in inputs[2:])
        or not (is_served(values.dtype) and is_plan_served(plan, plan.grid.group_size))
        or find_kernel() is None
    ):
        return None
    return np.empty(values.shape, values.dtype)


@contextlib.contextmanager
def open_run(
    plan: Plan, values: NDArray[Any], out: NDArray[Any] | None, copy: NDArray[Any] | None = None
) -> Iterator[tuple[NDArray[Any], Geometry, Source, Sink]]:
    """Open what a run reads and writes: the array of its result (`out` or a new one), and where tiles lie.

    The tensor itself goes to a copy, if there is one.

    Raises
    ------
    DataError
        If the result does not fit into memory.
    """
    geometry, shape = find_geometry(plan), plan.grid.shape
    opened = open_source(values, plan, geometry)
    if copy is not None:
        opened = contextlib.nullcontext(CopyingSource(values, copy, plan.grid.view_shape, geometry))
    with opened as source:
        try:
            place = source.make_array(shape, plan.choose_output_dtype(values.dtype)) if out is None else out
        except MemoryError as error:
            raise DataError(f"the result of {shape} does not fit into memory") from error
        with open_sink(place, geometry) as sink:
            yield place, geometry, source, sink


def run_into(
    plan: Plan, values: NDArray[Any], sink: Sink | None, inputs: Inputs, effort: Effort
) -> dict[str, Floats]:
    """Normalize a tensor into a sink of any kind, tile by tile, and return the statistics.

    Parameters
    ----------
    plan : Plan
    values : ndarray
    sink : Sink or None
        Made for `find_geometry(plan)`; the result has its dtype. It is given each tile once, in any order and
        from several threads. None if only the statistics are wanted.
    inputs : Inputs
    effort : Effort
    """
    _require_selection(plan, inputs)
    is_known = inputs.given is not None and sink is None and inputs.selection is None
    if _has_no_values(plan) or is_known:
        return _fill_statistics(plan, inputs.given)
    geometry = find_geometry(plan)
    with open_source(values, plan, geometry) as source:
        return run_source(plan, geometry, source, sink, inputs, effort)


def measure(
    plan: Plan, values: NDArray[Any], inputs: Inputs = NO_INPUTS, effort: Effort = DEFAULT_EFFORT
) -> dict[str, Floats]:
    """Return the statistics of a tensor's groups, of `Grid.stats_shape`; those given are not measured."""
    small = None if _has_no_values(plan) else run_small(plan, values, inputs, None, effort, writes=False)
    return run_into(plan, values, None, inputs, effort) if small is None else small[1]


def _require_selection(plan: Plan, inputs: Inputs) -> None:
    """Raise `UsageError` where statistics are to be over some places, by a caller that takes those of all."""
    if plan.request.over is not None and inputs.selection is None:
        raise UsageError("over is of the norm itself, check, backward and golden: leave it out here")


def _has_no_values(plan: Plan) -> bool:
    return plan.grid.group_count == 0 or plan.grid.group_size == 0


def _fill_statistics(plan: Plan, given: Given | None) -> dict[str, Floats]:
    """Return the statistics of groups that are not measured: the known ones, or those of no values."""
    if given is not None:
        with np.errstate(all="ignore"):
            return solve_given(plan, given).statistics
    empty = 0.0 if plan.norm.divisor.is_0_of_nothing else np.nan
    return {name: np.full(plan.grid.stats_shape, empty) for name in plan.norm.statistics}


def require_place(out: NDArray[Any] | None, plan: Plan, values: NDArray[Any], *others: NDArray[Any]) -> None:
    """Raise `UsageError` if an array of the caller's is none that a result of `values` goes into.

    Parameters
    ----------
    out : ndarray or None
        None is a new array, which fits.
    plan : Plan
    values : ndarray
        The tensor, whose dtype is that of the result if the plan does not choose one.
    *others : ndarray
        What else is read while `out` is written.
    """
    if out is None:
        return
    dtype = plan.choose_output_dtype(values.dtype)
    if (
        not isinstance(out, np.ndarray)
        or out.shape != plan.grid.shape
        or out.dtype != dtype
        or not out.flags.c_contiguous
        or not out.flags.writeable
    ):
        raise UsageError(f"out must be a writable C-contiguous {dtype} array of the shape {plan.grid.shape}")
    if any(np.may_share_memory(out, read) for read in (values, *others)):
        raise UsageError("out must not share memory with the input")


def run_source(
    plan: Plan,
    geometry: Geometry,
    source: Source,
    sink: Sink | None,
    inputs: Inputs,
    effort: Effort,
) -> dict[str, Floats]:
    """Normalize the tiles of a source into a sink, or measure them alone, and return the statistics.

    Raises
    ------
    DataError
        If the file of gamma, beta or the mask has changed since it was opened.
    """
    passes = _choose_passes(plan)(plan, geometry, source, sink, inputs, effort)
    known = inputs.given if inputs.measured is None else inputs.measured
    statistics = passes.measure() if known is None else passes.apply(known)
    require_unchanged(inputs.gamma, inputs.beta, None if inputs.selection is None else inputs.selection.mask)
    shape = plan.grid.stats_shape
    return {name: array.reshape(shape) for name, array in statistics.items()}


def _choose_passes(plan: Plan) -> type[Passes]:
    """Return the passes that measure a norm's groups; the rarer ones are imported on use."""
    match plan.norm.divisor.measurement:
        case Measurement.WINDOW:
            from normcli.engine.lrn.windows import WindowPasses

            return WindowPasses
        case Measurement.SINGULAR_VALUE:
            from normcli.engine.sn.passes import MatrixPasses

            return MatrixPasses
        case Measurement.QUANTILES:
            from normcli.engine.order import QuantilePasses

            return QuantilePasses
        case _:
            return Passes
