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
"""Bytes of the smallest tensor that is copied: of smaller ones, statistics are kept."""


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
        The array that the result is written to: C-contiguous, of the tensor's shape and the dtype that
        `Plan.choose_output_dtype` returns. None for a new array.
    effort : Effort
    copy : ndarray or None
        An array that the tensor itself is copied to, as `make_copy` returns it; None for no copy.

    Returns
    -------
    tuple of (ndarray, dict)
        The normalized tensor, in C order; the statistics, of `Grid.stats_shape`; with a selection also, under
        `COUNT`, how many values of each group count.

    Raises
    ------
    DataError
        If the result does not fit into memory, or a file of the tensor, gamma, beta or the mask has changed
        since it was opened.
    UsageError
        If `out` is not as above, or shares memory with `values`; or if the plan's statistics are over some
        values (`over`), and there is no selection.
    """
    if out is not None:
        require_place(out, plan, values)
    small = None if copy is not None else run_small(plan, values, inputs, out, effort)
    if small is not None:
        return small
    _require_selection(plan, inputs)
    if _has_no_values(plan):
        place = np.empty(plan.grid.shape, plan.choose_output_dtype(values.dtype)) if out is None else out
        return place, _fill_statistics(plan, inputs.given)
    with open_run(plan, values, out, copy) as (place, geometry, source, sink):
        return place, run_source(plan, geometry, source, sink, inputs, effort)


def make_copy(plan: Plan, values: NDArray[Any], inputs: Inputs) -> NDArray[Any] | None:
    """Return a new array, to which the run copies the tensor while it reads it; None if no copy is needed.

    From a copy, the tensor can be measured again when its statistics are asked for. No copy is needed if the
    run keeps the statistics, as it does if they take less memory, if the tensor is small or in a file, if there
    are inputs in addition to gamma and beta, or if the compiled kernel does not measure its groups.
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
    """Open a run, as a context manager: its result's array (`out` or a new one), geometry, source and sink.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor, which the source reads.
    out : ndarray or None
    copy : ndarray or None
        An array that the source fills with the values that it reads; None for no copy.

    Raises
    ------
    DataError
        If the result does not fit into memory; when the block ends, if the tensor's file has changed since it
        was opened.
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

    Raises
    ------
    DataError
        If a file of the tensor, gamma, beta or the mask has changed since it was opened.
    UsageError
        If the plan's statistics are over some values (`over`), and there is no selection.
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
    """Return the statistics of a tensor's groups by name, of `Grid.stats_shape`.

    Where the inputs have known statistics, those are returned, and the tensor is not measured.
    """
    small = run_small(plan, values, inputs, None, effort, writes=False)
    return run_into(plan, values, None, inputs, effort) if small is None else small[1]


def _require_selection(plan: Plan, inputs: Inputs) -> None:
    """Raise `UsageError` if the plan's statistics are over some places (`over`), and there is no selection."""
    if plan.request.over is not None and inputs.selection is None:
        raise UsageError("over is of the norm itself, check, backward and golden: leave it out here")


def _has_no_values(plan: Plan) -> bool:
    return plan.grid.group_count == 0 or plan.grid.group_size == 0


def _fill_statistics(plan: Plan, given: Given | None) -> dict[str, Floats]:
    """Return the statistics of groups that are not measured: the given ones, or those of groups without values.

    The latter are 0 or NaN, as the norm defines.
    """
    if given is not None:
        with np.errstate(all="ignore"):
            return solve_given(plan, given).statistics
    empty = 0.0 if plan.norm.divisor.is_0_of_nothing else np.nan
    return {name: np.full(plan.grid.stats_shape, empty) for name in plan.norm.statistics}


def require_place(out: NDArray[Any] | None, plan: Plan, values: NDArray[Any], *others: NDArray[Any]) -> None:
    """Raise `UsageError` if `out` cannot hold the result, or shares memory with `values` or the others.

    Parameters
    ----------
    out : ndarray or None
        It has to be writable, C-contiguous, and of the result's shape and dtype. None for a new array: it fits.
    plan : Plan
    values : ndarray
        The tensor.
    *others : ndarray
        Other arrays that are read while `out` is written.
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

    Parameters
    ----------
    plan : Plan
        The plan of a tensor that has values.
    geometry : Geometry
        The geometry of the plan's view, in which source and sink have their tiles.
    source : Source
    sink : Sink or None
        None if only the statistics are wanted.
    inputs : Inputs
    effort : Effort

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
    """Return the class of passes that measures a norm's groups; rare ones are imported on use."""
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
