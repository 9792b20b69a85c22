"""ℓp lengths of groups, (Σ|x|ᵖ)^(1/p) for every real p: a count for 0, the largest |x| for ∞, the least for −∞.

Powers are summed of |x| / unit, where the unit is the |x| whose power is the largest. So no power that changes
the sum over- or underflows, and the length has no larger error than the sum, whatever p ≥ 1 is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import EpsMode
from normcli.numerics.deciding import LOGARITHM, POWER, PRECISIONS, SUM_OF_POWERS, is_decided, round_real
from normcli.numerics.elements.compiled_kernel import measure_rows
from normcli.numerics.elements.in_pairs import KNOWN
from normcli.numerics.pairs import (
    Pair,
    Triple,
    distill,
    find_largest,
    find_least,
    pair_multiply,
    sum_pairs,
    take_exponents,
)
from normcli.numerics.powers import (
    find_to_bits,
    raise_to_power,
    take_root,
)
from normcli.numerics.rational import ROOT_BITS, make_fraction, round_once
from normcli.numerics.rational import scale as scale_fraction
from normcli.numerics.rounding import find_limits, find_magnitudes, widen_to_pair
from normcli.numerics.statistics.divisor import Solution, add_eps, replace_zero, replace_zeros
from normcli.numerics.sums.leaf_records import MAX_LEAF, LeafRecords, count_values
from normcli.numerics.sums.row_sums import cut_rows
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.sums.leaf_records import Read


_CHUNK = 1 << 13
"""Values whose powers are taken at once: the arrays of pairs then lie in a core's L2 cache."""

_LEAST_POWER = -1020
"""Powers below 2^−1020 of the largest change no bit of the sum; they are taken as 2^−1020 of it."""

_LEAST_EXPONENT, _LARGEST_EXPONENT = -900, 1000
"""Lengths that are roots, and not between these powers of 2, are calculated exactly."""


@dataclass(eq=False, repr=False)
class Powers(LeafRecords):
    """The sums of powers of leaves.

    Parameters
    ----------
    unit : ndarray
        The |x| whose power is the largest: the length itself if it is 0, infinite or NaN.
    hi, lo : ndarray
        Σ(|x| / unit)ᵖ as a pair; for p = 0, the number of values that are not 0; for p = 1, Σ|x|. For p = ±∞,
        `lo` is what is added to `unit` where an integer has more bits than a double.
    extreme : ndarray of bool
        For p = 1, whether a pair does not hold the sum; else False.
    count : ndarray
        The number of values that count.
    """

    unit: Floats
    hi: Floats
    lo: Floats
    extreme: Selected
    count: Floats


@dataclass(eq=False, repr=False)
class Lengths:
    """Count and ℓp length of groups, of any p but 2.

    Parameters
    ----------
    count : int or ndarray
    length : Pair
    error : float or ndarray
        An upper bound of the relative errors of the lengths; 0 where they are exact, 1 where nothing is known.
    recall : callable or None
        Takes the index of a group and a number of bits; returns the group's length to that many bits. None if
        all lengths are exact.
    """

    count: Any
    length: Pair
    error: Any = 0.0
    recall: Callable[[int, int], Fraction] | None = None

    def find(self, group: int, bits: int) -> Fraction:
        """Return the length of a group, to at least `bits` bits."""
        if self.recall is not None:
            return self.recall(group, bits)
        return sum((Fraction(float(part[group])) for part in self.length), Fraction(0))

    def solve(self, plan: Plan) -> Solution:
        """Return the solution of groups: no centre, the divisors, and the lengths as the statistic `norm`."""
        spec, find_length, is_zero = plan.spec, self.find, self.length.hi == 0.0
        norm = self.length.hi.copy()
        self._settle(norm)

        def ask(group: int, bits: int) -> tuple[Fraction, Fraction | None]:
            length, eps = make_fraction(0.0), make_fraction(spec.eps or 0.0)
            if not is_zero.reshape(-1)[group]:  # of p below 0, one 0 among the values makes it 0
                length = find_length(group, max(bits, ROOT_BITS))
            divisor = max(length, eps) if spec.eps_mode is EpsMode.FLOOR else length + eps
            return make_fraction(0), replace_zero(divisor, spec.zero_rule)

        # eps is added to squares of p = 2 alone
        divisor = replace_zeros(add_eps(self.length, self.length, spec.eps, spec.eps_mode), spec.zero_rule)
        divisor = divisor.map(np.copy)
        mean = Triple(*np.zeros((3, *norm.shape)))
        error = np.broadcast_to(self.error, norm.shape)
        off = np.where((error == 0.0) & (not spec.eps), 0.0, KNOWN)
        solution = Solution(mean, divisor, centred=False, statistics={"norm": norm}, ask=ask, error=off)
        for group in np.flatnonzero(error > KNOWN).tolist():
            solution.settle(group, *ask(group, ROOT_BITS))
        return solution

    def _settle(self, shown: Floats) -> None:
        """Calculate again, exactly, the lengths whose rounding is not decided, and write them to `shown`."""
        value, own = take_exponents(self.length)
        decided = is_decided(value, own, self.error, PRECISIONS["float64"]) | ~np.isfinite(shown)
        for group in np.flatnonzero(~decided & (self.length.hi != 0.0)).tolist():

            def evaluate(bits: int, group: int = group) -> tuple[Fraction, Fraction]:
                found = self.find(group, bits)
                return found, scale_fraction(found, -bits)

            shown[group] = round_real(evaluate)


def has_powers(p: float) -> bool:
    """Return whether lengths are roots of sums of powers, and no plain sums, counts or extremes."""
    return p not in (0.0, 1.0) and not math.isinf(p)


def measure_powers(x: NDArray[Any], work: Workspace, selected: Selected | None = None, *, p: float) -> Powers:
    """Return the sums of powers |x|ᵖ of leaves, one record for each row.

    Parameters
    ----------
    x : ndarray, shape (leaves, n)
        Values of any real dtype.
    work : Workspace
    selected : ndarray of bool or None
        True for values that count, of the shape of `x`; the others have to be 0. None if all count.
    p : float
        Any but 2, infinities among them.
    """
    sizes = find_magnitudes(x)
    result = Powers.empty(x.shape[:-1])
    result.count[...] = count_values(x, selected)
    result.unit[...] = 1.0
    if p == 1.0:
        sums = measure_rows(sizes, work, need_sum=True).require_exact()
        total, finite = distill(sums.sums, 2), np.isfinite(sums.sum_0)
        result.hi[...], result.lo[...] = Pair(*total.terms).keep(finite, sums.sum_0)
        result.extreme[...] = sums.extreme | (total.left & finite)
    elif p == 0.0:
        result.hi[...] = np.count_nonzero(sizes, axis=-1)
        result.hi[np.isnan(sizes).any(axis=-1)] = np.nan
    else:
        chosen, find = sizes, np.maximum if p > 0.0 else np.minimum
        # What does not count has a power of 0: of p < 0, as if it were infinite.
        left_out = None if selected is None or p > 0.0 else ~selected
        if left_out is not None:
            chosen = np.where(left_out, find_limits(sizes.dtype)[1], sizes)
        result.unit[...], result.lo[...] = widen_to_pair(find.reduce(chosen, axis=-1))
        if left_out is not None:
            empty = result.count == 0.0
            result.unit[empty], result.lo[empty] = np.inf, 0.0
        if has_powers(p):
            size = widen_to_pair(chosen)
            if left_out is not None:
                size.hi[left_out], size.lo[left_out] = np.inf, 0.0
            _sum_powers(size, result, p)
    return result


def _find_unit(size: Pair, p: float) -> Pair:
    """Return the |x| whose power is the largest, along the last axis."""
    return (find_largest if p > 0.0 else find_least)(size)


def _is_usable(unit: Floats) -> Selected:
    """Return an array that is True where a number is finite and above 0."""
    return np.isfinite(unit) & (unit > 0.0)


def _sum_powers(size: Pair, result: Powers, p: float) -> None:
    """Write Σ(|x| / unit)ᵖ of each row of `size` to `result`, whose `unit` is known."""
    leaves, n = size.hi.shape
    for rows in cut_rows(leaves, n, _CHUNK):
        unit = np.where(_is_usable(result.unit[rows]), result.unit[rows], 1.0)
        powers = _raise_quotients(size.map(lambda a, rows=rows: a[rows]), unit[:, None], p)
        result.hi[rows], result.lo[rows] = sum_pairs(powers)


def _raise_quotients(size: Pair, unit: Floats, p: float) -> Pair:
    """Return (size / unit)ᵖ, which is about 1 at most; 0 where a size is 0, infinite or NaN."""
    usable = _is_usable(size.hi)
    whole = bool(usable.all())
    if not whole:
        size = size.keep(usable, unit)
    (hi, lo), exponent = raise_to_power(size, p, unit)
    exponent = np.maximum(exponent, _LEAST_POWER)
    power = Pair(np.ldexp(hi, exponent), np.ldexp(lo, exponent))
    return power if whole else power.keep(usable)


def fold_powers(leaves: Powers, p: float) -> Powers:
    """Return one record for each group, made of the records of its leaves, which lie along the last axis."""
    total = Pair(leaves.hi, leaves.lo)
    unit, extreme = leaves.unit[..., 0], np.asarray(leaves.extreme.any(axis=-1))
    count = np.add.reduce(leaves.count, axis=-1)
    if p == 1.0 and leaves.hi.shape[-1] > 1:
        (hi, lo), left = distill([a[..., leaf] for a in total for leaf in range(leaves.hi.shape[-1])], 2)
        plain = np.add.reduce(leaves.hi, axis=-1)
        finite = np.isfinite(plain)
        return Powers(unit, *Pair(hi, lo).keep(finite, plain), extreme | (left & finite), count)
    if math.isinf(p):
        unit, rest = _find_unit(Pair(leaves.unit, leaves.lo), p)
        return Powers(unit, np.zeros_like(unit), rest, extreme, count)
    if has_powers(p):
        whole = Pair(leaves.unit, np.zeros_like(leaves.unit))
        unit = _find_unit(whole, p).hi
        common = np.where(_is_usable(unit), unit, 1.0)
        total = pair_multiply(total, _raise_quotients(whole, common[..., None], p))
    return Powers(unit, *sum_pairs(total), extreme, count)


def merge_powers(leaves: Powers, count: Any, read: Read, *, p: float) -> Lengths:
    """Return the lengths of groups, from the sums of powers of their leaves.

    Parameters
    ----------
    leaves : Powers
        Records of shape (groups, leaves).
    count : int or ndarray
        The number of values that count, in all groups or in each.
    read : callable
        Takes the index of a group, and yields arrays of its values that count. It is called only where the
        sums do not decide the length.
    p : float
    """
    folded = fold_powers(leaves, p)
    loses = p == 1.0 or has_powers(p)  # pairs may not be all of a length
    recall = (lambda group, bits: find_to_bits(read(group), p, bits)) if loses else None
    if p in (0.0, 1.0):
        lo = np.where(np.isfinite(folded.hi), folded.lo, 0.0)
        length = Pair(np.where(folded.extreme, 1.0, folded.hi), lo)  # any number in the place of unknown ones
        return Lengths(count, length, error=folded.extreme.astype(np.float64), recall=recall)
    unit = np.where(folded.count > 0, folded.unit, 0.0)
    usable = _is_usable(unit)
    size = np.where(usable, unit, 1.0)
    length = Pair(size, np.where(usable, folded.lo, 0.0))
    error: Any = 0.0
    if has_powers(p):
        root, exponent = take_root(Pair(folded.hi, folded.lo).keep(usable, 1.0), p)
        mantissa, own = np.frexp(size)
        error = SUM_OF_POWERS.error / abs(p) + (np.abs(exponent) + 1) * LOGARITHM.error + POWER.error
        length, exponent = pair_multiply(root, Pair(mantissa, 0.0)), exponent + own
        within = (exponent > _LEAST_EXPONENT) & (exponent < _LARGEST_EXPONENT)
        length = length.map(lambda part: np.where(within, np.ldexp(part, np.where(within, exponent, 0)), 1.0))
        error = np.where(usable, np.where(within, error, 1.0), 0.0)
    return Lengths(count, length.keep(usable, unit), error, recall)


def find_length_of_all(values: Floats, p: float) -> float:
    """Return the ℓp length of some finite values, for p > 0.

    If the values are lengths of groups, it is the length of all values of the groups together.
    """
    width = min(values.size, MAX_LEAF)
    rows = np.pad(values, (0, -values.size % width)).reshape(-1, width)
    leaves = measure_powers(rows, Workspace(), p=p).reshape((1, -1))
    lengths = merge_powers(leaves, values.size, lambda _: [values], p=p)
    if np.any(lengths.error > KNOWN):
        return round_once(lengths.find(0, ROOT_BITS))
    return float(lengths.length.hi[0])
