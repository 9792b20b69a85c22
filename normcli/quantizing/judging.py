"""A kernel's codes and scales, compared with the exact ones, and the rule that made them if they differ.

A rule makes scales, or codes for given scales, as some kernels do. It is named if it reproduces all of them bit
for bit; else the first rule is named that agrees up to a kernel's own rounding. Few codes that differ, and at
borders of rounding only, show no other rule, nor do few scales within that rounding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import NormError
from normcli.printable import format_count
from normcli.quantizing.codes import read_codes, round_quotients
from normcli.quantizing.kernel_rules import (
    LARGEST,
    list_code_rules,
    list_scale_layouts,
    list_scale_rules,
)
from normcli.quantizing.scales import decode_scales, find_scales
from normcli.quantizing.sharing import find_view, spread_scales
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.quantizing.quantize import Quantized

OWN_ROUNDING = 32 * 2.0**-23
"""The largest relative error of the scales of a right kernel in float32: 32 ulp."""

_FEWEST = 20
"""The fewest codes at borders of rounding, or scales, that show another rule; one agrees by a chance of ½."""

OWN_ROUNDING_FAULTS = ("scale-ulp", "codes-ulp")
"""The ids for differences that a right kernel's own rounding makes."""

_TRIED_ULP = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
"""The tolerances that are tried; the least with which everything passes is advised."""


class WorstScale(NamedTuple):
    """The scale with the largest relative error.

    Parameters
    ----------
    place : tuple of int
        The index in the exact scales.
    expected, actual : float
    ulp : float
        The error in ulp of float32.
    """

    place: tuple[int, ...]
    expected: float
    actual: float
    ulp: float


class QuantizedPart(NamedTuple):
    """The comparison of codes, or of scales, with the exact ones.

    Parameters
    ----------
    name : str
        `codes` or `scales`.
    total, different : int
        How many codes or scales were compared, and how many differ from the exact ones.
    fault : str or None
        The id of the kernels' rule that makes all given codes or scales, to within 32 ulp of float32 of y or of
        the scale. None if nothing differs, or no rule does.
    cause : str or None
        The words for that rule.
    remedy : str or None
        The option that makes normcli use the rule or (`--max-ulp`) tolerate the differences; None without one.
    beyond : int or None
        How many differ by more than the tolerance; None if no tolerance was applied.
    worst : WorstScale or None
        The scale that differs most; None for codes, if none differs, and if kernels' rules were not tried.
    ratio : float or None
        Given scale / exact scale, if it is one number for all; 1 for differences of rounding. Else None.
    follows : bool
        True for codes if the given scales are not exact: the codes are compared with those that follow from
        the given scales.
    """

    name: str
    total: int
    different: int
    fault: str | None = None
    cause: str | None = None
    remedy: str | None = None
    beyond: int | None = None
    worst: WorstScale | None = None
    ratio: float | None = None
    follows: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing differs; with a tolerance, whether nothing differs by more than it allows."""
        return not (self.different if self.beyond is None else self.beyond)

    @property
    def text(self) -> str:
        """The number of differences in words."""
        count = format_count(self.total, self.name.removesuffix("s"))
        if not self.different:
            follows = f"all of {count} follow from the scales that are given"
            return follows if self.follows else f"all of {count} are exact"
        told = f"{self.different:,} of {count} differ"
        return told if self.beyond is None else f"{told}, {self.beyond:,} of them by more than is tolerated"


def judge_quantized(
    found: Quantized,
    codes: NDArray[Any] | None,
    scales: NDArray[Any] | None,
    tensor_scale: NDArray[Any] | None = None,
    *,
    unit: Floats | None = None,
    max_ulp: float | None = None,
    names_rules: bool = True,
) -> list[QuantizedPart]:
    """Compare given codes and scales with the exact ones, and return the comparison of scales, then of codes.

    Given codes are compared with those that follow from the given scales, or without these from the exact ones.

    Parameters
    ----------
    found : Quantized
        The exact codes and scales.
    codes : ndarray or None
        The codes: integers, the bits of floats as uint8 (also two in a byte, the first in its lower half), or
        numbers. None: only scales are compared.
    scales : ndarray or None
        The scales: float32, the bits of E8M0 or E4M3 as uint8, or numbers, for groups of any size. None: only
        codes are compared.
    tensor_scale : ndarray or None
        The scale of the whole tensor; None: the exact one.
    unit : ndarray or None
        The ulp of each exact value in the dtype that the norm has without quantization. None: `max_ulp` is not
        used, and no `max_ulp` is advised.
    max_ulp : float or None
        The largest error that each value may have had before it was quantized; None: no error.
    names_rules : bool
        Whether rules are tried to explain differences.

    Raises
    ------
    DataError
        If shapes do not fit, or the codes are numbers that the format does not have.
    """
    parts, row, shape = [], found.asked.row, found.values.shape
    theirs = meant = spread_scales(found.factors, shape)
    numbers = found.numbers if codes is None else read_codes(codes, shape, row)
    own = found.tensor_scale if tensor_scale is None else np.float32(tensor_scale.reshape(-1)[0])
    whole = float(own) if row.has_tensor_scale else 1.0
    given = found.factors if scales is None else decode_scales(scales, row) * whole
    layout = _find_layout(found, given) if names_rules else None
    if layout is not None:
        parts.append(layout)
    elif scales is not None:
        theirs = spread_scales(given, shape)
        follows = codes is not None and np.array_equal(numbers, found.numbers)
        right = float(found.tensor_scale)
        is_reciprocal = row.has_tensor_scale and whole != right and _is_near(np.array(whole * right), 1.0)
        meant = spread_scales(decode_scales(scales, row) * right, shape) if is_reciprocal else theirs
        part = _judge_scales(found, meant, scales.size, names_rules, follows)
        if is_reciprocal and part.ok:
            told = "the tensor scale is 1 / scale: its reciprocal is stored"
            part = part._replace(different=scales.size, fault="scale-tensor-inverse", cause=told)
        elif is_reciprocal:
            part, meant = _judge_scales(found, theirs, scales.size, names_rules, follows), theirs
        if part.fault == "scale-inverse":
            meant = 1.0 / np.where(theirs == 0.0, np.inf, theirs)
        elif part.fault == "scale-tensor-none":
            meant = spread_scales(decode_scales(scales, row), shape)
        parts.append(part)
    if codes is not None:
        part = _judge_codes(found, numbers, meant, names_rules)
        is_open = scales is None and part.different and part.cause is None  # the kernel's scales would say more
        parts.append(part._replace(remedy="--actual-scale SCALES") if is_open else part)

    def count_beyond(allowed: Floats) -> dict[str, int]:
        count: dict[str, Callable[[], int]] = {
            "scales": lambda: _count_scales_beyond(found, theirs, allowed),
            "codes": lambda: _count_codes_beyond(found, numbers, meant, allowed),
        }
        return {part.name: count[part.name]() for part in parts}

    if unit is None:
        return parts
    if max_ulp is not None:
        beyond = count_beyond(max_ulp * unit)
        return [part._replace(beyond=beyond[part.name]) for part in parts]
    at = next((at for at, part in enumerate(parts) if part.fault in OWN_ROUNDING_FAULTS), None)
    if at is not None:
        least = next((ulps for ulps in _TRIED_ULP if not any(count_beyond(ulps * unit).values())), None)
        if least is not None:
            parts[at] = parts[at]._replace(remedy=f"--max-ulp {least:g}")
    return parts


def _count_scales_beyond(found: Quantized, theirs: Floats, allowed: Floats) -> int:
    """Return the number of groups whose given scale cannot come from values within `allowed` of the exact ones.

    `theirs` is, for each value, its given scale times the tensor scale; `allowed` is the tolerance of each
    value.
    """
    asked, y = found.asked, found.exact.normalized
    view, whole = find_view(y.shape, asked.per, found.exact.plan.grid.layout.channel), float(found.tensor_scale)
    sizes = np.abs(y)
    ends = (np.maximum(sizes - allowed, 0.0), sizes + allowed)
    largest = (end.reshape(view).max(axis=(1, 3), keepdims=True) for end in ends)
    least, most = (find_scales(one, asked.row, asked.rounding, whole) for one in largest)
    own = theirs.reshape(view)
    wrong = (own < least.values * whole) | (own > most.values * whole)
    return int(np.count_nonzero(wrong.any(axis=(1, 3))))


def _count_codes_beyond(found: Quantized, theirs: Floats, scales: Floats, allowed: Floats) -> int:
    """Return the number of given codes that no value within `allowed` of the exact value is rounded to.

    `theirs` are the numbers of the given codes, `scales` the scale of each value.
    """
    y, divisors = found.exact.normalized, np.where(scales == 0.0, np.inf, scales)
    low, high = (
        round_quotients(ends, divisors, found.asked.row.grid).values for ends in (y - allowed, y + allowed)
    )
    return int(np.count_nonzero((theirs < low) | (theirs > high)))


@np.errstate(all="ignore")
def _judge_scales(
    found: Quantized, theirs: Floats, count: int, names_rules: bool, follows: bool
) -> QuantizedPart:
    """Return the comparison of given scales with the exact ones, with the rule that made them if `names_rules`.

    `theirs` is, for each value, its given scale times the tensor scale; `count` the number of given scales;
    `follows` says that the codes are those of the exact scales, so that no other rounding made the scales.
    """
    right = spread_scales(found.factors, theirs.shape)
    differ = theirs != right
    if not differ.any():
        return QuantizedPart("scales", count, 0)
    channel, nearest = found.exact.plan.grid.layout.channel, None
    part = QuantizedPart("scales", count, max(1, round(count * float(differ.mean()))))
    if not names_rules:
        return part
    part = part._replace(worst=_find_worst(found, theirs, right))
    for rule in list_scale_rules(found):
        if follows and rule.fault == "scale-rounding":
            continue
        try:
            view = find_view(theirs.shape, rule.per, channel)
        except NormError:
            continue
        largest = np.abs(rule.y).reshape(view).max(axis=(1, 3), keepdims=True)
        made, own = rule.scale(largest), theirs.reshape(view)
        named = part._replace(fault=rule.fault, cause=rule.cause, remedy=rule.remedy)
        if np.array_equal(np.broadcast_to(made, view), own):
            if count < _FEWEST and _is_near(theirs, right):  # its own rounding may fall so by chance
                break
            return named
        if nearest is None and _is_near(own, made):
            nearest = named
    return _read_ratio(found, part, theirs, right, nearest)


def _find_layout(found: Quantized, given: Floats) -> QuantizedPart | None:
    """Return the comparison of given scales that are the exact ones in another order; None for others."""
    right = found.factors.reshape(-1, found.factors.shape[-1])
    if given.shape == found.factors.shape and np.array_equal(given, found.factors):
        return None
    for fault, cause, laid in list_scale_layouts(right):
        theirs = given.reshape(laid.shape) if given.size == laid.size else np.array(np.nan)
        if ((laid == theirs) | (np.isnan(laid) & ~np.isnan(theirs))).all():
            return QuantizedPart("scales", given.size, given.size, fault, cause)
    return None


def _find_worst(found: Quantized, theirs: Floats, right: Floats) -> WorstScale:
    """Return the scale with the largest relative error; `theirs` and `right` are each value's two scales."""
    off = np.abs(theirs - right) / right
    place = np.unravel_index(
        int(np.argmax(np.where(theirs == right, -1.0, np.nan_to_num(off, nan=np.inf)))), right.shape
    )
    expected, actual = float(right[place]), float(theirs[place])
    lengths = zip(place, right.shape, found.factors.shape, strict=True)
    index = tuple(int(at) * scales // full for at, full, scales in lengths)
    ulp = abs(actual - expected) / float(np.spacing(np.float32(expected)))
    return WorstScale(index, expected, actual, ulp)


def _is_near(theirs: Floats, made: Any) -> bool:
    """Whether each scale is within 32 ulp of float32 of the scale in `made`, a kernel's own rounding."""
    return bool((np.abs(theirs - made) <= OWN_ROUNDING * np.abs(made)).all())


def _read_ratio(
    found: Quantized, part: QuantizedPart, theirs: Floats, right: Floats, nearest: QuantizedPart | None
) -> QuantizedPart:
    """Return `part` with a fault if given scale / exact scale is one number for all, or all are inverses.

    Otherwise return `nearest`, the comparison with the nearest rule, or `part` if that is None. `theirs` and
    `right` are the given and the exact scale of each value.
    """
    if _is_near(theirs, right):
        assert part.worst is not None
        told = f"scales differ by at most {part.worst.ulp:.3g} ulp of float32, as a kernel's own rounding"
        return part._replace(fault="scale-ulp", cause=told, ratio=1.0)
    if _is_near(theirs, 1.0 / right):
        return part._replace(fault="scale-inverse", cause="scales are 1 / scale: their reciprocals are stored")
    ratio, largest = float(np.median(theirs / right)), found.asked.row.grid.largest
    is_other = ratio > 0.0 and abs(ratio - 1.0) > 2.0 * OWN_ROUNDING  # beyond the rounding of a kernel
    is_constant = is_other and _is_near(theirs, ratio * right)
    if not is_constant or (nearest is not None and found.factors.size == 1):
        return part if nearest is None else nearest
    told = f"every scale is {ratio:.4g} times the right one"
    for other in LARGEST:
        if _is_near(np.array(largest / other), ratio):
            told = f"{told}: {other:g} is the largest number, not {largest:g}"
            return part._replace(fault="scale-largest", cause=told, ratio=ratio)
    if found.asked.row.scale is None:
        told = f"{told}: the exponents are off by {math.log2(ratio):+g}"
    elif found.asked.row.name.startswith("fp8") and _is_near(np.array(2.0), ratio):
        told = f"{told}, as bits take it that are read as FNUZ"
    return part._replace(fault="scale-ratio", cause=told, ratio=ratio)


def _judge_codes(found: Quantized, theirs: Floats, scales: Floats, names_rules: bool) -> QuantizedPart:
    """Return the comparison of given codes with the codes of the exact values for the given scales.

    `theirs` are the numbers that given codes stand for, `scales` the given scale of each value.
    """
    grid, y = found.asked.row.grid, found.exact.normalized
    factors = spread_scales(found.factors, y.shape)
    divisors, own = (np.where(one == 0.0, np.inf, one) for one in (scales, factors))
    is_exact = np.array_equal(scales, factors)
    right = found.numbers if is_exact else round_quotients(y, divisors, grid).values
    wrong = int(np.count_nonzero(right != theirs))
    part = QuantizedPart("codes", theirs.size, wrong, follows=not is_exact)
    if not (wrong and names_rules):
        return part
    ends = (y * (1.0 - OWN_ROUNDING), y * (1.0 + OWN_ROUNDING))
    nearest = None
    for (fault, cause, made), *others in zip(
        *(list_code_rules(one, divisors, own, grid) for one in (y, *ends)), strict=True
    ):
        least, most = (find(*(numbers for *_, numbers in others)) for find in (np.minimum, np.maximum))
        named = part._replace(fault=fault, cause=cause)
        if np.array_equal(made, theirs, equal_nan=True):
            if nearest is None or nearest.fault != "codes-ulp" or wrong >= _FEWEST:
                return named
            return nearest
        is_between = (least <= theirs) & (theirs <= most) | (np.isnan(made) & np.isnan(theirs))
        if nearest is None and is_between.all():
            nearest = named
    return nearest or part
