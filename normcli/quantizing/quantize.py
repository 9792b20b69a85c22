"""A norm's exact result as scales and codes.

The result is calculated in float64, rounded once. Where a value equals a boundary between two scales or codes,
the norm is calculated again with the boundary subtracted: the sign tells on which side the exact value lies.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT
from normcli.engine.run import run_into
from normcli.engine.tiling.geometry import find_geometry
from normcli.errors import DataError, NormError, UsageError
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from normcli.quantizing.blocks import Losses, find_largest, round_parts
from normcli.quantizing.codes import decode
from normcli.quantizing.formats import FORMATS, read_quantization
from normcli.quantizing.scales import encode_scales, find_scales, find_tensor_scale
from normcli.quantizing.sharing import RowSharing, find_view, shape_scales, spread_scales
from normcli.quantizing.tile_sinks import TILE, LargestSink, QuantizingSink, UndecidedError
from normcli.results.arguments import read_arguments
from normcli.results.result import Result
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.walk import Effort
    from normcli.norms.rules import NormName
    from normcli.quantizing.formats import Quantization
    from normcli.results.arguments import Problem


@dataclass(frozen=True, eq=False)
class Quantized:
    """A tensor as scales and codes, with the losses by rounding.

    Parameters
    ----------
    asked : Quantization
    exact : Result
        The norm's result, in float64; in the tensor's dtype for a convention that rounds before gamma.
    codes : ndarray of int8 or uint8
        The codes, of the tensor's shape: integers, or the bits of floats, those of E2M1 in the lower four.
    scales : ndarray
        The scales: float32, or the bits of E8M0 or E4M3 as uint8. The shape has the tensor's rank, with 1 along
        axes whose values share a scale, and the number of blocks along a last axis in blocks.
    tensor_scale : ndarray of float32, shape ()
        The scale of the whole tensor; 1 in formats without one.
    factors : ndarray of float64
        The numbers by which codes are multiplied, scale times tensor scale, of the shape of `scales`.
    error : float
        The largest |code · factor − y|.
    saturated, flushed : float
        The shares, from 0 to 1, of values beyond the largest code, and of values other than 0 whose code is 0.
    signal_to_noise : float
        10 · log₁₀(Σy² / Σ(code · factor − y)²), in dB; inf if nothing is lost.
    """

    asked: Quantization
    exact: Result
    codes: NDArray[Any]
    scales: NDArray[Any]
    tensor_scale: NDArray[np.float32]
    factors: Floats
    error: float
    saturated: float
    flushed: float
    signal_to_noise: float

    @functools.cached_property
    def numbers(self) -> Floats:
        """The numbers of the codes, in float64."""
        return decode(self.codes, self.asked.row.grid)

    @functools.cached_property
    def values(self) -> Floats:
        """The quantized tensor: the numbers of the codes times their factors, in float64."""
        values: Floats = self.numbers * spread_scales(self.factors, self.codes.shape)
        return values

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file by name: codes, scales, and tensor_scale if the format has one."""
        names = ("codes", "scales", "tensor_scale") if self.asked.row.has_tensor_scale else ("codes", "scales")
        return {name: getattr(self, name) for name in names}

    @property
    def losses(self) -> dict[str, float]:
        """The losses of the codes, by name."""
        return {name: getattr(self, name) for name in Losses._fields}


def quantize(
    x: ArrayLike,
    norm: NormName,
    format_name: str,
    *,
    per: str | None = None,
    scale_rounding: str | None = None,
    **options: Any,
) -> Quantized:
    """Normalize a tensor and quantize the exact result, without rounding it before.

    Parameters
    ----------
    x, norm, **options
        The tensor, the norm and its options, as for `normalize`.
    format_name : {"int8", "fp8-e4m3", "fp8-e5m2", "mxfp8", "mxfp4", "nvfp4"}
    per : str, optional
        The values that share a scale: `tensor`, `token`, `channel`, `block:32`; the format's own by default.
    scale_rounding : {"floor", "ceil", "rceil", "even"}, optional
        For mxfp8 and mxfp4: the rule by which a scale becomes a power of two; `floor` by default.

    Raises
    ------
    NormError
        If an argument is not valid, the result is not finite, or rows do not divide into blocks.

    Examples
    --------
    >>> quantize([[3.0, -6.0]], "rms", "int8", eps=0).codes
    array([[  64, -127]], dtype=int8)
    """
    asked = read_quantization(format_name, per, scale_rounding)
    return quantize_problem(read_arguments(x, norm, options | {"dtype": "float64"}), asked)


def quantize_problem(problem: Problem, asked: Quantization) -> Quantized:
    """Return the scales and codes of a norm's exact result.

    For a convention that rounds before gamma, the result is that in the tensor's own dtype.

    Parameters
    ----------
    problem : Problem
        The norm, with an output of float64, and the tensor.
    asked : Quantization

    Raises
    ------
    UsageError
        If the norm has windows, or rows do not divide into blocks.
    DataError
        If the result is not finite or empty, a scale is too large, or channels are missing.
    """
    plan, inputs = problem.plan, problem.inputs
    if plan.groups_overlap:
        raise UsageError(f"quantize takes no windows: {plan.norm.name} is of windows")
    scales = inputs.gamma is not None or inputs.gate is not None
    is_short = plan.spec.rounds_before_gamma and scales  # the convention defines y in its own dtype
    own = problem._replace(plan=plan.change_spec(dtype=None)) if is_short else problem
    found = _quantize_tiles(own, asked)
    if found is not None:
        return found
    exact = own.calculate()
    y = np.ascontiguousarray(exact.normalized, np.float64)
    if not y.size:
        raise DataError("quantize takes a tensor of one value at least")

    def ask(y: Floats, places: Selected) -> Floats:
        """Return y with each chosen inexact value moved to the next float64 toward its exact value."""
        if is_short or not places.any():
            return y
        signs, moved = _compare(problem, y, places), y.copy()
        beside = np.nextafter(y[places], np.copysign(np.inf, signs))
        moved[places] = np.where(signs == 0.0, y[places], beside)
        return moved

    return _quantize(y, asked, exact, ask, problem.effort)


def _compare(problem: Problem, y: Floats, places: Selected) -> Floats:
    """Return the sign of (exact result − y) for each value where `places` is True, as −1, 0 or 1, flat.

    The norm is calculated again with y subtracted before rounding. A value clipped to a bound counts as equal.
    """
    inputs = problem.inputs
    gate = inputs.gate or Gated(np.ones((1,) * y.ndim), Activation.NONE)
    moved = inputs._replace(gate=gate._replace(less=np.where(places, y, 0.0)), clip=None)
    signs: Floats = np.sign(problem._replace(inputs=moved).calculate().normalized[places])
    if inputs.clip is not None:  # a value beyond a bound is the bound
        low, high = (y[places] == bound for bound in inputs.clip)
        signs = np.where((low & (signs < 0.0)) | (high & (signs > 0.0)), 0.0, signs)
    return signs


def _quantize(
    y: Floats, asked: Quantization, exact: Result, ask: Callable[[Floats, Selected], Floats], effort: Effort
) -> Quantized:
    """Return y as scales and codes.

    `ask` takes y and booleans of its shape, and returns y in which each chosen value that is not exact is moved
    to the next float64 toward its exact value; it is called where y lies on a boundary of scales or codes.
    """
    row, channel = asked.row, exact.plan.grid.layout.channel
    # Groups lie along the axes 0 and 2 of the view, the values of each along 1 and 3.
    view = find_view(y.shape, asked.per, channel)
    largest = find_largest(y.reshape(view))
    if not np.isfinite(largest).all():
        raise DataError("quantize takes a finite result; NaN and infinities have no scale")
    tensor_scale = 1.0
    if row.has_tensor_scale:
        whole = find_tensor_scale(float(largest.max()), row)
        if whole.is_boundary:
            y = ask(y, np.abs(y) == largest.max())
            whole = find_tensor_scale(float(np.abs(y).max()), row)
        tensor_scale = whole.values.item()
    scaled = find_scales(largest, row, asked.rounding, tensor_scale)
    if scaled.is_boundary.any():
        y = ask(y, ((np.abs(y.reshape(view)) == largest) & scaled.is_boundary).reshape(y.shape))
        scaled = find_scales(find_largest(y.reshape(view)), row, asked.rounding, tensor_scale)
    factors, last = scaled.values * tensor_scale, y.shape[-1] if y.ndim else 1
    codes, midpoints, losses = round_parts(y.reshape(view), factors, row.grid, last, effort.threads)
    if midpoints.size:
        places = np.zeros(y.size, bool)
        places[midpoints] = True
        y = ask(y, places.reshape(y.shape))
        codes, _, losses = round_parts(y.reshape(view), factors, row.grid, last, effort.threads)
    return _keep(asked, exact, codes, scaled.values, tensor_scale, losses)


def _quantize_tiles(problem: Problem, asked: Quantization) -> Quantized | None:
    """Return a large result as scales and codes, calculated tile by tile, so that it is never in memory whole.

    If the whole tensor or a channel shares a scale, the scales are found first, by another pass. Return None if
    the tensor is small, tiles would not hold whole rows, a value lies on a boundary between two codes, or a
    `NormError` is raised: the caller then calculates the tensor at once, which raises the error again.
    """
    plan, values, inputs = problem.plan, problem.values, problem.inputs
    row, shape = asked.row, plan.grid.shape
    if values.size <= TILE:
        return None
    channel, geometry = plan.grid.layout.channel, find_geometry(plan)
    view, sharing = find_view(shape, asked.per, channel), RowSharing.of(shape, asked.per, channel)
    if geometry.dims[-1] % shape[-1]:
        return None
    dtype, tensor_scale = plan.choose_output_dtype(values.dtype), 1.0
    effort = problem.effort._replace(block=TILE)
    known: tuple[RowSharing, Floats] | None = None
    try:
        if sharing is not None or row.has_tensor_scale:
            seen = LargestSink(geometry, dtype, sharing or RowSharing(shape[-1], 1, 1))
            run_into(plan, values, seen, inputs, effort)
            if sharing is None:
                found = find_tensor_scale(seen.largest.item(), row)
                tensor_scale = found.values.item()
            else:
                found = find_scales(seen.largest, row, asked.rounding)
                known = sharing, found.values
            if not np.isfinite(seen.largest).all() or found.is_boundary.any():
                return None
        shared = view[3] if sharing is None else sharing.length
        sink = QuantizingSink(geometry, dtype, row, asked.rounding, tensor_scale, shape[-1], shared, known)
        statistics = run_into(plan, values, sink, inputs, effort)
    except (UndecidedError, NormError):  # the error is raised for the whole tensor
        return None
    counts = statistics.pop(COUNT, None)
    exact = Result(plan, values, statistics, inputs, effort, counts, is_finite=True)
    scales = sink.scales if known is None else known[1]
    return _keep(asked, exact, sink.codes, scales, tensor_scale, sink.rounder.losses)


def _keep(
    asked: Quantization,
    exact: Result,
    codes: NDArray[Any],
    scales: Floats,
    tensor_scale: float,
    losses: Losses,
) -> Quantized:
    """Return codes and scales as `Quantized`, in the shapes and dtypes in which they are stored."""
    grid = exact.plan.grid
    channel = grid.layout.channel
    shape = shape_scales(grid.shape, find_view(grid.shape, asked.per, channel), asked.per, channel)
    return Quantized(
        asked=asked,
        exact=exact,
        codes=codes.reshape(grid.shape),
        scales=encode_scales(scales, asked.row).reshape(shape),
        tensor_scale=np.array(tensor_scale, np.float32),
        factors=(scales * tensor_scale).reshape(shape),
        **losses._asdict(),
    )


class FormatCost(NamedTuple):
    """The loss in one format: its name, the values that share a scale, and the fields of `Losses`.

    `signal_to_noise` is in dB, `error` in the unit of y; `saturated` and `flushed` are shares from 0 to 1.
    """

    format: str
    per: str
    signal_to_noise: float
    error: float
    saturated: float
    flushed: float


MOST_COSTED = 1 << 22
"""The most values of a tensor whose costs are listed."""


def list_costs(problem: Problem) -> Iterator[FormatCost]:
    """Yield the loss in each format in which a norm's result can be stored.

    Formats whose blocks do not divide the rows are left out. Nothing is yielded for a tensor of more than
    `MOST_COSTED` values, a norm with windows, or a result that is not finite.
    """
    if problem.values.size > MOST_COSTED:
        return
    exact = problem._replace(plan=problem.plan.change_spec(dtype="float64"))
    for name in FORMATS:
        asked = read_quantization(name, None, None)
        # Rows may not divide into blocks, or a result may not be finite.
        with contextlib.suppress(NormError):
            found = quantize_problem(exact, asked)
            told = (found.signal_to_noise, found.error, found.saturated, found.flushed)
            yield FormatCost(name, asked.per, *told)
