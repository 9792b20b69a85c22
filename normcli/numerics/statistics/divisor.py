"""What the values of groups are divided by: how eps enters it, how it is scaled, what replaces its zeros."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.divisors import Measurement
from normcli.norms.rules import EpsMode, ZeroRule
from normcli.numerics.elements.in_pairs import KNOWN
from normcli.numerics.pairs import Pair, Triple, pair_root, quick_two_sum, two_square, two_sum

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan


def find_freedom(plan: Plan, count: Any) -> Any:
    """Return what a sum of squares is divided by."""
    return 1 if plan.norm.divisor.measurement is Measurement.LENGTH else count - plan.spec.ddof


@dataclass(eq=False, repr=False)
class Solution:
    """What a tile is normalized with, one value for each group.

    Parameters
    ----------
    mean : Triple
    divisor : Pair
        Both in the unit of values times 2^scale.
    scale : ndarray of int or None
        0 but for groups close to the ends of float64's range. None for 0.
    centred : bool
        Whether the mean is subtracted.
    statistics : dict of str to ndarray
        Of the values as they are.
    faint : ndarray of bool or None
        Groups whose means are so close to 0 that bits of them are missing: values as close have to be settled.
        None for none.
    numbers : ndarray of int or None
        The numbers by which `ask` knows the groups.
    error : float or ndarray
        How far off the divisors may be, as a part of them; 0 of those that are exact.
    ask : callable or None
        Returns the mean and the divisor of a group, of the values as they are: exactly, or a root to as many
        bits as are asked for. None if they are no more
        than what is here. A divisor of None is NaN.
    """

    mean: Triple
    divisor: Pair
    scale: Integers | None
    centred: bool
    statistics: dict[str, Floats] = field(default_factory=dict)
    faint: Selected | None = None
    numbers: Any = None
    error: Any = KNOWN
    ask: Callable[[int, int], tuple[Fraction, Fraction | None]] | None = None

    def __post_init__(self) -> None:
        if self.numbers is None:
            self.numbers = np.arange(np.size(self.divisor.hi)).reshape(np.shape(self.divisor.hi))

    @property
    def is_plain(self) -> bool:
        """Whether mean and divisor are of the values as they are, and no mean is faint."""
        return self.scale is None and self.faint is None

    def recall(self, number: int, bits: int = 0) -> tuple[Fraction, Fraction | None]:
        """Return the mean and the divisor of a group, of the values as they are, to so many bits at least."""
        from fractions import Fraction  # on use: few values need this

        if self.ask is not None:
            return self.ask(number, bits)
        place = np.flatnonzero(np.ravel(self.numbers) == number)[0]
        factor = 1 if self.scale is None else Fraction(2) ** -int(np.ravel(self.scale)[place])
        mean, divisor = (
            sum((Fraction(float(np.ravel(part)[place])) for part in parts), Fraction(0)) * factor
            for parts in (self.mean, self.divisor)
        )
        return mean, divisor

    def reshape(self, shape: tuple[int, ...]) -> Solution:
        """Return the solution with all arrays in another shape."""
        solution = self.take(lambda a: a.reshape(shape))
        solution.statistics = {name: values.reshape(shape) for name, values in self.statistics.items()}
        return solution

    def take(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Solution:
        """Return mean, divisor and scale with a function (an index, a reshape) applied to each array."""
        return Solution(
            self.mean.map(function),
            self.divisor.map(function),
            None if self.scale is None else function(self.scale),
            self.centred,
            faint=None if self.faint is None else function(self.faint),
            numbers=function(self.numbers),
            error=function(self.error) if np.ndim(self.error) else self.error,
            ask=self.ask,
        )

    def settle(self, group: int, mean: Fraction, divisor: Fraction | None) -> None:
        """Write one group's mean and divisor, exactly known, scaled where that is needed.

        Parameters
        ----------
        group : int
        mean : Fraction
        divisor : Fraction or None
            None for NaN.
        """
        from normcli.numerics import rational

        k = _choose_scale(mean, divisor)
        if k and self.scale is None:
            self.scale = np.zeros(self.divisor.hi.shape, dtype=np.int64)
        if self.scale is not None:
            self.scale[group] = k
        centre = rational.scale(mean, k)
        known = (np.nan, 0.0) if divisor is None else rational.split(rational.scale(divisor, k), 2)
        parts = rational.split(centre, 3)
        if divisor and abs(centre) < FAINT and sum(map(rational.make_fraction, parts)) != centre:
            if self.faint is None:
                self.faint = np.zeros(self.divisor.hi.shape, np.bool_)
            self.faint[group] = True
        for array, value in zip((*self.divisor, *self.mean), (*known, *parts), strict=True):
            array[group] = value


def make_neutral(rank: int) -> Solution:
    """Return the solution of a tensor of so many axes that leaves all values as they are."""
    zero = np.zeros((1,) * rank)
    return Solution(Triple(zero, zero, zero), Pair(zero + 1.0, zero), None, centred=False)


_SMALL, _HUGE = 2.0**-900, 2.0**1000
_UP, _DOWN = 860, -100
"""The k of groups whose divisors lie beyond: values times 2ᵏ do not overflow, and lose no bit that counts."""

FAINT = 2.0**-800
"""Means below lose bits at the end of float64's range, unless they are scaled."""

_TOP = 1000
"""Exponents of means that are scaled are at most this."""


def _choose_scale(mean: Fraction, divisor: Fraction | None) -> int:
    """Return the k of a group that is normalized as its values times 2ᵏ.

    Values may be of any size, whatever the divisor is: those that are normalized with what was fitted to
    others, and those beyond quantiles.
    """
    if not divisor or _SMALL <= divisor <= _HUGE:
        return 0
    if divisor > _HUGE:
        return _DOWN
    return min(_UP, _TOP - math.frexp(mean)[1])


def replace_zero(divisor: Fraction, rule: ZeroRule) -> Fraction | None:
    """Return an exact divisor, or what replaces it if it is 0; None stands for NaN."""
    if divisor != 0:
        return divisor
    return None if rule is ZeroRule.NAN else divisor + 1


def replace_zeros(divisor: Pair, rule: ZeroRule) -> Pair:
    """Return a divisor with its zeros replaced: by NaN, or by 1."""
    zero = divisor.hi == 0.0
    if not zero.any():
        return divisor
    return Pair(np.where(zero, np.nan if rule is ZeroRule.NAN else 1.0, divisor.hi), divisor.lo)


def unscale(values: Floats, k: Integers | int | None) -> Floats:
    """Return values / 2ᵏ."""
    return values if k is None else np.ldexp(values, -k)


def add_eps(square: Pair, root: Pair, eps: float | None, mode: EpsMode | None, k: Integers | None) -> Pair:
    """Return √(square + eps), root + eps, or the larger of root and eps, of values that were multiplied by 2ᵏ.

    Parameters
    ----------
    square, root : Pair
        A variance and the standard deviation, or the square of a length and the length.
    eps : float or None
        Of values as they were before they were multiplied.
    mode : EpsMode or None
        Where eps is added. None if there is no eps.
    k : ndarray of int or None
        One for each group; None for 0.
    """
    if not eps:
        return root
    if mode is EpsMode.INSIDE:
        return _root_of_sum(square, eps, k)
    added = Pair(eps, 0.0)
    if mode is EpsMode.SQUARE_FLOOR:
        added = pair_root(Pair(np.float64(eps), np.float64(0.0)))
    scaled = added.map(lambda a: np.full_like(root.hi, a) if k is None else np.ldexp(a, k))
    if mode is EpsMode.OUTSIDE:
        divisor = two_sum(root.hi, scaled.hi)
        return quick_two_sum(divisor.hi, divisor.lo + root.lo)
    under = (root.hi < scaled.hi) | ((root.hi == scaled.hi) & (root.lo < scaled.lo))
    return Pair(*(np.where(under, a, b) for a, b in zip(scaled, root, strict=True)))


def _root_of_sum(square: Pair, eps: float, k: Integers | None) -> Pair:
    """Return √(square + eps) in the unit of the scaled values."""
    inner = eps if k is None else np.ldexp(eps, 2 * k)
    s, e = two_sum(square.hi, inner)
    scaled = pair_root(quick_two_sum(s, e + square.lo))
    if k is None:
        return scaled
    fits = np.isfinite(scaled.hi) | ~np.isinf(inner)
    outer = pair_root(two_sum(np.ldexp(square.hi, -2 * k), eps))  # the square is nothing beside eps here
    return Pair(*(np.where(fits, a, np.ldexp(b, k)) for a, b in zip(scaled, outer, strict=True)))


def choose_scale(largest: Floats) -> Integers:
    """Return the k for which largest * 2**k is about 1; 0 where it is not finite; at most 900."""
    k = -np.frexp(largest)[1].astype(np.int64)
    return np.where(np.isfinite(largest) & (largest > 0.0), np.minimum(k, 900), 0)


_LEAST_SQUARED, _LARGEST_SQUARED = 2.0**-400, 2.0**400
"""The square of a size between these is exact as a pair: neither it nor its error over- or underflows."""


def find_divisor(size: Floats, eps: float | None, mode: EpsMode | None) -> Floats:
    """Return what groups of known sizes (standard deviations, lengths) are divided by: the nearest doubles."""
    with np.errstate(all="ignore"):
        outside = np.isfinite(size) & ((size > _LARGEST_SQUARED) | ((size < _LEAST_SQUARED) & (size > 0.0)))
        k = np.where(outside, choose_scale(size), 0) if outside.any() else None
        scaled = size if k is None else np.ldexp(size, k)
        root = Pair(scaled, np.zeros_like(scaled))
        return unscale(add_eps(two_square(scaled), root, eps, mode, k).hi, k)
