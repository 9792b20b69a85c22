"""The ways in which kernels make scales and codes: each is a rule with an id, words and arithmetic."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.rounding import round_to_short
from normcli.quantizing.codes import decode, encode, find_units, round_quotients
from normcli.quantizing.formats import E4M3, E5M2, FLOAT32, NumberGrid, ScaleRounding
from normcli.quantizing.scales import find_scales
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.quantizing.quantize import Quantized

LARGEST = (448.0, 240.0, 57344.0, 127.0, 128.0, 127.5, 256.0, 6.0, 1.0)
"""The numbers by which kernels divide the largest magnitude; 240 is the largest of E4M3 in AMD's variant."""

_EPS = (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)

_SHORT = ("float32", "bfloat16", "float16")
"""The dtypes to which a kernel may have rounded the result before quantization."""

_BLOCKS = (16, 32, 64, 128)

_EIGHT_BITS = {
    "E4M3": E4M3,
    "E5M2": E5M2,
    "E4M3FNUZ": NumberGrid(3, -7, 240.0),
    "E5M2FNUZ": NumberGrid(2, -15, 57344.0),
}
"""The float formats of 8 bits; those of FNUZ, of AMD's MI300, have exponents one smaller for the same bits."""


class ScaleRule(NamedTuple):
    """A way in which kernels make scales: which values share one, and the scale from their largest magnitude.

    Parameters
    ----------
    fault : str
        The id of the rule.
    cause : str
        The words for the rule, a clause.
    per : str
        The values that share a scale: `tensor`, `token`, `channel` or `block:N`.
    y : ndarray of float64
        The values whose largest magnitude is taken.
    scale : callable
        Takes an array of largest magnitudes, and returns the scales, times the tensor scale.
    remedy : str or None
        The option with which normcli follows the rule; None without one.
    """

    fault: str
    cause: str
    per: str
    y: Floats
    scale: Callable[[Floats], Floats]
    remedy: str | None = None


def list_scale_rules(found: Quantized) -> Iterator[ScaleRule]:
    """Yield the ways in which kernels make scales, likely ones first, for the format and result in `found`.

    They differ in the scale's formula and rounding, in the values that share a scale, and in the tensor whose
    largest magnitudes are taken.
    """
    asked, y = found.asked, found.exact.normalized
    row, per = asked.row, asked.per

    def make(largest: Floats, rounding: str | None = asked.rounding) -> Floats:
        return find_scales(largest, row, rounding, float(found.tensor_scale)).values * float(found.tensor_scale)

    if row.scale is None:
        for rounding in ScaleRounding:
            scale = functools.partial(make, rounding=rounding)
            remedy = f"--scale-rounding {rounding}"
            yield ScaleRule("scale-rounding", f"scales are rounded by {rounding}", per, y, scale, remedy)
    short = [(f", of y rounded to {dtype}", round_to_short(y, dtype)) for dtype in _SHORT]
    usual = found.exact.plan.change_spec(dtype=None).choose_output_dtype(found.exact.plan.tensor_dtype).name
    for of, values in (("", y), *short):
        if of:
            tolerance = "--max-ulp 0.5" if of.endswith(f" {usual}") else None
            yield ScaleRule("scale-rounded-y", f"scales are {of[2:]}", per, values, make, tolerance)
        for other in ("tensor", "token", "channel", *(f"block:{length}" for length in _BLOCKS)):
            option = None if of else f"--per {other}"
            yield ScaleRule("scale-group", f"scales are per {other}{of}", other, values, make, option)
        if row.scale is FLOAT32:
            yield from _list_divisions(per, values, of)
    if row.scale is FLOAT32:
        lower = functools.partial(_raise_to_power, divisor=row.grid.largest * 2.0)
        told = f"scales are amax / {row.grid.largest:g}, lowered to a power of two"
        yield ScaleRule("scale-lowered", told, per, y, lower)
    for of, values in (("", y), *short) if row.scale is FLOAT32 else ():
        yield from _list_eps(per, values, of)
    exact = found.exact
    told = "scales are of the largest y, not of the largest magnitude"
    yield ScaleRule("scale-signed", told, per, np.maximum(y, 0.0), make)
    told = "scales are of the largest magnitude of x, not of y"
    yield ScaleRule("scale-input", told, per, exact.input.astype(np.float64), make)
    if exact.inputs.scales:
        told = "scales are of x̂: gamma, beta and what follows are left out"
        yield ScaleRule("scale-bare", told, per, exact.standardized.astype(np.float64), make)

    def shorten(largest: Floats, dtype: str) -> Floats:
        return round_to_short(make(largest), dtype)

    def shift(largest: Floats, step: int) -> Floats:
        return np.roll(make(largest), step, axis=2)

    def leave_out(largest: Floats, by: float) -> Floats:
        return find_scales(largest, row, asked.rounding).values * by

    whole = float(found.tensor_scale)
    for by in dict.fromkeys((whole, 1.0)):  # as the kernel's tensor scale is not given, or given as 1
        told = "every scale is 1"
        yield ScaleRule("scale-one", told, per, y, functools.partial(np.full_like, fill_value=by))
        if row.has_tensor_scale:
            told = "scales are made without the tensor scale"
            yield ScaleRule("scale-tensor-none", told, per, y, functools.partial(leave_out, by=by))
    for dtype in _SHORT[1:]:
        told = f"scales are rounded to {dtype}"
        yield ScaleRule("scale-rounded", told, per, y, functools.partial(shorten, dtype=dtype))
    for step, told in (
        (1, "each scale is of the group before it"),
        (-1, "each scale is of the group after it"),
    ):
        yield ScaleRule("scale-shifted", told, per, y, functools.partial(shift, step=step))


def list_scale_layouts(right: NDArray[Any]) -> Iterator[tuple[str, str, NDArray[Any]]]:
    """Yield (id, words, scales) for other orders in which kernels store scales of blocks.

    `right` are the scales of shape (rows, blocks). cuBLAS takes them in tiles of 128 rows and 4 blocks, in
    which row 32 · i + j is the i-th quarter of line j; where there are fewer, any number stands: here NaN.
    """
    yield "scale-transposed", "scales are transposed: those of one block of all rows are neighbours", right.T
    padded = np.pad(right, [(0, -right.shape[0] % 128), (0, -right.shape[1] % 4)], constant_values=np.nan)
    tiles = padded.reshape(padded.shape[0] // 128, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4)
    yield "scale-tiled", "scales are in tiles of 128 rows and 4 blocks, as cuBLAS takes them", tiles


def _list_divisions(per: str, y: Floats, of: str) -> Iterator[ScaleRule]:
    """Yield the ways in which kernels make a float32 scale from the largest magnitude, amax.

    `per` says which of the values `y` share a scale; `of` is words about `y`, or "", at the end of the sentence
    that names the rule.
    """
    for divisor in LARGEST:
        for fault, words, scale in (
            ("scale-largest", f"amax / {divisor:g}", _divide),
            ("scale-reciprocal", f"amax · (1 / {divisor:g}) in float32", _multiply),
            ("scale-inverse", f"{divisor:g} / amax, the inverse", _invert),
            ("scale-power-of-two", f"amax / {divisor:g}, raised to a power of two", _raise_to_power),
        ):
            told = f"scales are {words}{of}"
            yield ScaleRule(fault, told, per, y, functools.partial(scale, divisor=divisor))


def _list_eps(per: str, y: Floats, of: str) -> Iterator[ScaleRule]:
    """Yield the ways in which an eps enters a float32 scale: (amax + eps) / divisor, max(amax, eps) / divisor.

    `per` says which of the values `y` share a scale; `of` is words about `y`, or "", at the end of the sentence
    that names the rule.
    """
    for divisor in LARGEST:
        for eps in _EPS:
            added = functools.partial(_divide, divisor=divisor, eps=eps)
            words = f"(amax + {eps:g}) / {divisor:g}"
            yield ScaleRule("scale-eps", f"scales are {words}{of}", per, y, added)
            bounded = functools.partial(_divide, divisor=divisor, least=eps)
            words = f"max(amax, {eps:g}) / {divisor:g}"
            yield ScaleRule("scale-least", f"scales are {words}{of}", per, y, bounded)


def _divide(largest: Floats, divisor: float, eps: float = 0.0, least: float = 0.0) -> Floats:
    """Return max(largest + eps, least) / divisor, the sum and the quotient each rounded to float32."""
    if eps:  # the sum is rounded to float32, as in kernels
        largest = _round_to_float32(largest.astype(np.float32) + np.float32(eps))
    return _round_to_float32(np.maximum(largest, least) / divisor)


def _multiply(largest: Floats, divisor: float) -> Floats:
    """Return largest · (1 / divisor), with each of the three numbers rounded to float32."""
    return _round_to_float32(largest.astype(np.float32) * np.float32(1.0 / divisor))


def _invert(largest: Floats, divisor: float) -> Floats:
    """Return divisor / largest rounded to float32; 0 for a largest magnitude of 0."""
    return _round_to_float32(divisor / np.where(largest == 0.0, np.inf, largest))


def _raise_to_power(largest: Floats, divisor: float) -> Floats:
    """Return the least power of two that is at least largest / divisor."""
    part, exponents = np.frexp(largest / divisor)
    found: Floats = np.ldexp(1.0, exponents - (part == 0.5))
    return found


def _round_to_float32(values: NDArray[Any]) -> Floats:
    return values.astype(np.float32).astype(np.float64)


def list_code_rules(
    y: Floats, divisors: Floats, own: Floats, grid: NumberGrid
) -> Iterator[tuple[str, str, Floats]]:
    """Yield (id, words, numbers) for the ways in which kernels make codes with given scales.

    `numbers` are the numbers that the codes stand for, in float64 and of the shape of y, the exact values.
    `divisors` are the given scale of each value, `own` the exact one, with inf in place of a scale of 0. The
    first is the right way: codes near it differ by a kernel's rounding of y.
    """
    short = divisors.astype(np.float32)
    told = "codes differ at borders of rounding alone, as by a kernel's own rounding"
    yield "codes-ulp", told, _round(y, divisors, grid)
    yield "codes-own-scale", "codes are of the right scales, not of the given ones", _round(y, own, grid)
    quotients = y / divisors
    for fault, cause, share, kept in (
        ("codes-truncated", "codes are cut off toward 0, not rounded to nearest", 0.0, np.abs(quotients)),
        ("codes-half-away", "codes halfway are rounded away from 0, not to even", 0.5, np.abs(quotients)),
        ("codes-floored", "codes are rounded down, not to nearest", 0.0, quotients),
    ):
        made = _step(kept, grid, share)
        yield fault, cause, made if kept is quotients else np.copysign(made, y)
    if grid.sign_place < 4 and y.shape[-1:] > (1,) and not y.shape[-1] % 2:
        pairs = _round(y, divisors, grid).reshape(*y.shape[:-1], -1, 2)
        told = "each two neighbouring codes are exchanged, as in a byte whose first code is in its upper half"
        yield "codes-swapped", told, pairs[..., ::-1].reshape(y.shape)
    for name, other in _EIGHT_BITS.items() if grid.sign_place == E4M3.sign_place else ():
        if other != grid and not grid.is_integer:
            made = _round(y, divisors, other)
            yield "codes-format", f"codes are numbers of {name}", made
            yield "codes-format", f"codes are bits of {name}", decode(encode(made, other), grid)
    for dtype in _SHORT:
        rounded = round_to_short(y, dtype)
        values, of = rounded.astype(np.float32), f"of y rounded to {dtype}"
        yield "codes-rounded-y", f"codes are {of}", _round(rounded, divisors, grid)
        yield "codes-divided-short", f"codes are {of}, divided in float32", _round(values / short, 1.0, grid)
        inverse = np.float32(1.0) / short
        made = _round(values * inverse, 1.0, grid)
        yield "codes-reciprocal", f"codes are {of}, times 1 / scale in float32", made


def _round(values: NDArray[Any], divisors: Any, grid: NumberGrid) -> Floats:
    """Return values / divisors rounded to the numbers of a grid."""
    return round_quotients(values.astype(np.float64), divisors, grid).values


def _step(quotients: Floats, grid: NumberGrid, share: float) -> Floats:
    """Return quotients rounded down to numbers of a grid, after adding a share of a step to each.

    A quotient k · step becomes ⌊k + share⌋ · step; `share` 0.5 rounds to nearest, halves up. The result is at
    most the largest number of the grid; at least its opposite, for integers one less.
    """
    units = find_units(np.abs(quotients), grid)
    stepped = np.floor(quotients / units + share) * units
    return np.clip(stepped, -grid.largest - grid.is_integer, grid.largest)
