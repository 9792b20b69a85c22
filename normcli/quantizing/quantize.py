"""A norm's exact result as scales and codes.

The result is calculated in float64, rounded once. Where a value equals a boundary of a scale or a code, the
norm is calculated again with that boundary subtracted: the sign says on which side of it the exact value lies.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT
from normcli.engine.run import run_into
from normcli.engine.tiling.geometry import find_geometry
from normcli.errors import DataError, NormError, UsageError
from normcli.norms.axes import ParameterShapes
from normcli.numerics.pairs import two_diff
from normcli.quantizing.blocks import (
    TILE,
    LargestSink,
    QuantizingSink,
    UndecidedError,
    find_largest,
    round_parts,
)
from normcli.quantizing.codes import decode
from normcli.quantizing.formats import FORMATS, ScaleRounding
from normcli.quantizing.scales import encode_scales, find_scales, find_tensor_scale
from normcli.quantizing.sharing import find_view, shape_scales, spread_scales
from normcli.results.arguments import read_arguments
from normcli.results.calculate import calculate
from normcli.results.result import Result
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.norms.rules import NormName
    from normcli.quantizing.blocks import Losses
    from normcli.quantizing.formats import QuantizedFormat


class Quantization(NamedTuple):
    """A format for a result, and the groups that share a scale.

    Parameters
    ----------
    row : QuantizedFormat
    per : str
        Which values share a scale: `tensor`, `token` (the last axis), `channel` or `block:N`
        (of the last axis).
    rounding : str or None
        One of `ScaleRounding`; None is the format's own.
    """

    row: QuantizedFormat
    per: str
    rounding: str | None = None

    @property
    def rounding_name(self) -> str:
        """The rule by which a scale is rounded to its format."""
        return "nearest" if self.row.scale is not None else self.rounding or ScaleRounding.FLOOR


@dataclass(frozen=True, eq=False)
class Quantized:
    """A tensor as scales and codes.

    Parameters
    ----------
    asked : Quantization
    exact : Result
        The norm's result, in float64 unless a convention that rounds before gamma defines its dtype.
    codes : ndarray of int8 or uint8
        Of the tensor's shape; the bits of a float, in the lower four for E2M1.
    scales : ndarray
        float32, or the bits of E8M0 or E4M3 as uint8. Of the tensor's rank: 1 along axes that share a scale,
        the number of blocks along a last axis in blocks.
    tensor_scale : ndarray of float32, shape ()
        1 in formats without one.
    factors : ndarray of float64
        The numbers that codes are multiplied by, of the shape of `scales`.
    error : float
        The largest |code · scale − y|.
    saturated, flushed : float
        The share of values beyond the largest code, and of values other than 0 whose code is 0.
    signal_to_noise : float
        10 · log₁₀(Σy² / Σ(code · scale − y)²), in dB; inf where nothing is lost.
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
        """The numbers that codes stand for."""
        return decode(self.codes, self.asked.row.grid)

    @functools.cached_property
    def values(self) -> Floats:
        """The numbers that codes stand for, times their scales."""
        values: Floats = self.numbers * spread_scales(self.factors, self.codes.shape)
        return values

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file, by name: no `tensor_scale` where the format has none."""
        names = ("codes", "scales", "tensor_scale") if self.asked.row.has_tensor_scale else ("codes", "scales")
        return {name: getattr(self, name) for name in names}

    @property
    def losses(self) -> dict[str, float]:
        """The losses of the codes, by name."""
        names = ("error", "saturated", "flushed", "signal_to_noise")
        return {name: getattr(self, name) for name in names}


def read_quantization(name: str | None, per: str | None, rounding: str | None) -> Quantization:
    """Return what a caller asks for.

    Raises
    ------
    UsageError
        If a word is unknown, or does not go with the format.
    """
    if name is None:
        given = "--scale-rounding" if per is None else "--per"
        raise UsageError(f"{given} is of results in few bits: give --quantize {', '.join(FORMATS)}")
    row = FORMATS.get(name)
    if row is None:
        raise UsageError(f"--quantize {name!r} is none of {', '.join(FORMATS)}")
    per = per or row.default_per
    kind, _, size = per.partition(":")
    is_block = kind == "block" and size.isascii() and size.isdecimal() and int(size) > 0
    if per not in ("tensor", "token", "channel") and not is_block:
        raise UsageError(f"--per {per!r} is none of tensor, token, channel, block:N")
    if row.block is not None and not is_block:
        raise UsageError(f"--per {per}: scales of {name} are of blocks, such as block:{row.block}")
    if rounding is not None and rounding not in tuple(ScaleRounding):
        raise UsageError(f"--scale-rounding {rounding!r} is none of {', '.join(ScaleRounding)}")
    if rounding is not None and row.scale is not None:
        raise UsageError(f"--scale-rounding is of powers of two, mxfp8 and mxfp4: {name} rounds to nearest")
    return Quantization(row, per, rounding)


def quantize(
    x: ArrayLike,
    norm: NormName,
    format_name: str,
    *,
    per: str | None = None,
    scale_rounding: str | None = None,
    **options: Any,
) -> Quantized:
    """Normalize a tensor and quantize the exact result, which is rounded by nothing before.

    Parameters
    ----------
    x, norm, **options
        As of `normalize`.
    format_name : {"int8", "fp8-e4m3", "fp8-e5m2", "mxfp8", "mxfp4", "nvfp4"}
    per : str, optional
        Which values share a scale: `tensor`, `token`, `channel`, `block:32`; the format's own by default.
    scale_rounding : {"floor", "ceil", "rceil", "even"}, optional
        Of mxfp8 and mxfp4: how a scale becomes a power of two; `floor` by default.

    Raises
    ------
    NormError
        As `normalize`; if a word is unknown; if the result is not finite, or does not divide into blocks.

    Examples
    --------
    >>> quantize([[3.0, -6.0]], "rms", "int8", eps=0).codes
    array([[  64, -127]], dtype=int8)
    """
    asked = read_quantization(format_name, per, scale_rounding)
    read = read_arguments(x, norm, options | {"dtype": "float64"})
    return quantize_plan(read.plan, read.values, read.inputs, asked, read.effort)


def quantize_plan(
    plan: Plan, values: NDArray[Any], inputs: Inputs, asked: Quantization, effort: Effort
) -> Quantized:
    """Return scales and codes of a norm's exact result.

    Parameters
    ----------
    plan : Plan
        Whose output is float64.
    values : ndarray
    inputs : Inputs
    asked : Quantization
    effort : Effort

    A convention that rounds before gamma defines its result in the tensor's dtype: that is what is quantized.

    Raises
    ------
    UsageError
        If groups overlap.
    DataError
        If it is not finite, or does not divide into blocks.
    """
    if plan.groups_overlap:
        raise UsageError(f"quantize takes no windows: {plan.norm.name} is of windows")
    scales = inputs.gamma is not None or inputs.gate is not None
    is_short = plan.spec.rounds_before_gamma and scales  # y is defined in a dtype of its own
    own = plan.change_spec(dtype=None) if is_short else plan
    found = _quantize_tiles(own, values, inputs, asked, effort)
    if found is not None:
        return found
    exact = calculate(own, values, inputs, effort=effort)
    y = np.ascontiguousarray(exact.normalized, np.float64)
    if not y.size:
        raise DataError("quantize takes a tensor of one value at least")

    def ask(y: Floats, places: Selected) -> Floats:
        """Return values of which those at some places are the next double on the side of the exact ones."""
        if is_short or not places.any():
            return y
        signs, moved = _compare(plan, values, inputs, effort, y, places), y.copy()
        beside = np.nextafter(y[places], np.copysign(np.inf, signs))
        moved[places] = np.where(signs == 0.0, y[places], beside)
        return moved

    return _quantize(y, asked, exact, ask, effort)


def _compare(
    plan: Plan, values: NDArray[Any], inputs: Inputs, effort: Effort, y: Floats, places: Selected
) -> Floats:
    """Return the signs of what the exact results have beyond y, at some places.

    Raises
    ------
    DataError
        If beta − y is no double, so that the norm cannot subtract both at once.
    """
    shape = plan.grid.view_shape

    def spread(parameter: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(np.reshape(parameter, plan.parameters.view_shape), shape)

    boundary, gate = np.where(places, y, 0.0), inputs.gate
    if gate is None:
        beta = np.zeros(shape) if inputs.beta is None else spread(inputs.beta).astype(np.float64)
        shift, rest = two_diff(beta, boundary.reshape(shape))
        if rest.any():
            raise DataError(
                "quantize: beta and a boundary between codes differ by more digits than float64 has"
            )
        every = ParameterShapes(plan.parameters.rule, tuple(range(len(shape))), shape, shape, shape)
        gamma = None if inputs.gamma is None else spread(inputs.gamma)
        plan, moved = replace(plan, parameters=every), inputs._replace(gamma=gamma, beta=shift)
    else:
        moved = inputs._replace(gate=gate._replace(less=boundary))
    found = calculate(plan, values, moved._replace(clip=None), effort=effort).normalized
    signs: Floats = np.sign(found[places])
    if inputs.clip is not None:  # a value beyond a bound is the bound
        low, high = (y[places] == bound for bound in inputs.clip)
        signs = np.where((low & (signs < 0.0)) | (high & (signs > 0.0)), 0.0, signs)
    return signs


def _quantize(
    y: Floats, asked: Quantization, exact: Result, ask: Callable[[Floats, Selected], Floats], effort: Effort
) -> Quantized:
    """Quantize y; `ask` moves values that equal a boundary to where the exact ones lie."""
    row, channel = asked.row, exact.plan.grid.layout.channel
    view = find_view(
        y.shape, asked.per, channel
    )  # groups along the axes 0 and 2, the values of each along 1 and 3
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


def _quantize_tiles(
    plan: Plan, values: NDArray[Any], inputs: Inputs, asked: Quantization, effort: Effort
) -> Quantized | None:
    """Quantize a large result tile by tile, so that it is never in memory as a whole.

    None where values that share a scale are no neighbours in a tile, and where one lies on a boundary.
    """
    row, shape = asked.row, plan.grid.shape
    if values.size <= TILE:
        return None
    view, geometry = find_view(shape, asked.per, plan.grid.layout.channel), find_geometry(plan)
    if view[1] != 1 or shape[-1] % view[3] or geometry.dims[-1] % shape[-1]:
        return None
    dtype, effort, tensor_scale = plan.choose_output_dtype(values.dtype), effort._replace(block=TILE), 1.0
    try:
        if row.has_tensor_scale:
            seen = LargestSink(dtype)
            run_into(plan, values, seen, inputs, effort)
            whole = find_tensor_scale(seen.largest, row)
            if not np.isfinite(seen.largest) or whole.is_boundary:
                return None
            tensor_scale = whole.values.item()
        sink = QuantizingSink(geometry, dtype, row, asked.rounding, tensor_scale, shape[-1], view[3])
        statistics = run_into(plan, values, sink, inputs, effort)
    except (UndecidedError, NormError):  # an error is told of the whole tensor
        return None
    counts = statistics.pop(COUNT, None)
    exact = Result(plan, values, statistics, inputs, effort, counts, is_finite=True)
    return _keep(asked, exact, sink.codes, sink.scales, tensor_scale, sink.rounder.losses)


def _keep(
    asked: Quantization,
    exact: Result,
    codes: NDArray[Any],
    scales: Floats,
    tensor_scale: float,
    losses: Losses,
) -> Quantized:
    """Keep codes and scales in the shapes that they are stored in."""
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
