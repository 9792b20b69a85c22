"""A norm's exact result as scales and codes.

The result is calculated in float64, rounded once. Where a value equals a boundary of a scale or a code, the
norm is calculated again with that boundary subtracted: the sign says on which side of it the exact value lies.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.norms.shapes.parameter_shapes import ParameterShapes
from normcli.numerics.pairs import two_diff
from normcli.quantizing.blocks import find_largest, round_parts
from normcli.quantizing.codes import decode
from normcli.quantizing.formats import FORMATS, ScaleRounding
from normcli.quantizing.scales import encode_scales, find_scales, find_tensor_scale
from normcli.quantizing.sharing import find_view, shape_scales, spread_scales
from normcli.results.arguments import read_arguments
from normcli.results.calculate import calculate
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.norms.type_names import NormName
    from normcli.quantizing.formats import QuantizedFormat
    from normcli.results.result import Result


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
        If there is a gate, or bounds behind the norm, or groups overlap.
    DataError
        If it is not finite, or does not divide into blocks.
    """
    if (inputs.gate, inputs.clip) != (None, None) or plan.groups_overlap:
        raise UsageError("quantize takes no gate, no bounds and no windows")
    is_short = plan.spec.rounds_before_gamma and inputs.gamma is not None  # y is defined in a dtype of its own
    exact = calculate(plan.change_spec(dtype=None) if is_short else plan, values, inputs, effort=effort)
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

    boundary = np.where(places, y, 0.0).reshape(shape)
    beta = np.zeros(shape) if inputs.beta is None else spread(inputs.beta).astype(np.float64)
    shift, rest = two_diff(beta, boundary)
    if rest.any():
        raise DataError("quantize: beta and a boundary between codes differ by more digits than float64 has")
    every = ParameterShapes(plan.parameters.rule, tuple(range(len(shape))), shape, shape, shape)
    gamma = None if inputs.gamma is None else spread(inputs.gamma)
    moved = inputs._replace(gamma=gamma, beta=shift)
    found = calculate(replace(plan, parameters=every), values, moved, effort=effort).normalized
    signs: Floats = np.sign(found[places])
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
    factors = scaled.values * tensor_scale
    rounding = round_parts(y.reshape(view), factors, row.grid, effort.threads)
    if rounding.midpoints.size:
        places = np.zeros(y.size, bool)
        places[rounding.midpoints] = True
        y = ask(y, places.reshape(y.shape))
        rounding = round_parts(y.reshape(view), factors, row.grid, effort.threads)
    shape = shape_scales(y.shape, view, asked.per, channel)
    return Quantized(
        asked=asked,
        exact=exact,
        codes=rounding.codes.reshape(y.shape),
        scales=encode_scales(scaled.values, row).reshape(shape),
        tensor_scale=np.array(tensor_scale, np.float32),
        factors=factors.reshape(shape),
        error=rounding.error,
        saturated=rounding.saturated / y.size,
        flushed=rounding.flushed / y.size,
        signal_to_noise=rounding.signal_to_noise,
    )
