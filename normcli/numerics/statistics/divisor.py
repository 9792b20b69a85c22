"""Divisors of groups: the place of eps, the replacement of zeros, and what counts as zero."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_float
from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.rules import EpsMode, FlatRule, ZeroRule
from normcli.numerics import rational
from normcli.numerics.elements.in_pairs import KNOWN
from normcli.numerics.pairs import (
    Pair,
    Triple,
    is_faint,
    map_arrays,
    pair_root,
    quick_two_sum,
    two_square,
    two_sum,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan


def find_freedom(plan: Plan, count: Any) -> Any:
    """Return the divisor of sums of squares: 1 for lengths; else count − ddof, an array if `count` is."""
    return 1 if plan.norm.divisor.measurement is Measurement.LENGTH else count - plan.spec.ddof


@dataclass(eq=False, repr=False)
class Solution:
    """The numbers with which a tile is normalized, one for each group.

    Parameters
    ----------
    mean : Triple
    divisor : Pair
    centred : bool
        Whether the mean is subtracted.
    statistics : dict of str to ndarray
        The groups' statistics, by name.
    numbers : ndarray of int or None
        The index of each group that `ask` takes; None for 0, 1, 2 … in C order.
    error : float or ndarray
        An upper bound of the relative errors of the divisors; 0 for exact ones, and large for those that
        doubles do not hold.
    ask : callable or None
        Takes the index of a group and a number of bits; returns its mean and its divisor, exactly or, if it is
        a root, to that many bits; None for a divisor of NaN. If `ask` is None, mean and divisor here are exact.
    """

    mean: Triple
    divisor: Pair
    centred: bool
    statistics: dict[str, Floats] = field(default_factory=dict)
    numbers: Any = None
    error: Any = KNOWN
    ask: Callable[[int, int], tuple[Fraction, Fraction | None]] | None = None

    def __post_init__(self) -> None:
        if self.numbers is None:
            self.numbers = np.arange(np.size(self.divisor.hi)).reshape(np.shape(self.divisor.hi))

    @property
    def is_plain(self) -> bool:
        """False if a mean of more than one double is so near 0 that its further doubles lose bits."""
        return not is_faint(self.mean).any()

    def recall(self, number: int, bits: int = 0) -> tuple[Fraction, Fraction | None]:
        """Return (mean, divisor) of a group, the divisor to at least `bits` bits; None for a divisor of NaN."""
        from fractions import Fraction  # on use: few values need this

        if self.ask is not None:
            return self.ask(number, bits)
        place = np.flatnonzero(np.ravel(self.numbers) == number)[0]
        mean, divisor = (
            sum((Fraction(float(np.ravel(part)[place])) for part in parts), Fraction(0))
            for parts in (self.mean, self.divisor)
        )
        return mean, divisor

    def reshape(self, shape: tuple[int, ...]) -> Solution:
        """Return the solution with all arrays in another shape."""
        solution = self.take(lambda a: a.reshape(shape))
        solution.statistics = {name: values.reshape(shape) for name, values in self.statistics.items()}
        return solution

    def take(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Solution:
        """Return the solution without statistics, with a function (say, an index) applied to each array."""
        mean, divisor, numbers = self.mean.map(function), self.divisor.map(function), function(self.numbers)
        error = map_arrays(self.error, function)
        return Solution(mean, divisor, self.centred, numbers=numbers, error=error, ask=self.ask)

    def settle(self, group: int, mean: Fraction, divisor: Fraction | None) -> None:
        """Write a group's exact mean and divisor to the arrays, as sums of doubles, and what error remains.

        Parameters
        ----------
        group : int
            The flat index of the group.
        mean : Fraction
        divisor : Fraction or None
            None for NaN.
        """
        parts: tuple[float, ...] = (np.nan, 0.0)
        error = 0.0
        if divisor is not None:
            parts = rational.split(min(divisor, rational.make_fraction(_FINITE)), 2)
            kept = sum(map(rational.make_fraction, parts), rational.make_fraction(0.0))
            least = min(kept, divisor)
            error = (
                float(min(abs(kept - divisor) / least, rational.make_fraction(_UNKNOWN))) if least else _UNKNOWN
            )
        for array, value in zip((*self.divisor, *self.mean), (*parts, *rational.split(mean, 3)), strict=True):
            array[group] = value
        if error:
            self.error = np.array(np.broadcast_to(self.error, self.divisor.hi.shape))
            self.error[group] = max(self.error[group], 2.0 * error)


_FINITE, _UNKNOWN = float(np.finfo(np.float64).max), 2.0**1000
"""The largest divisor that a double holds, and the error of a divisor that is not known in doubles."""


def make_neutral(rank: int) -> Solution:
    """Return the solution with a mean of 0 and a divisor of 1, in arrays with `rank` axes of length 1."""
    zero = np.zeros((1,) * rank)
    return Solution(Triple(zero, zero, zero), Pair(zero + 1.0, zero), centred=False)


def replace_zero(divisor: Fraction, rule: ZeroRule) -> Fraction | None:
    """Return an exact divisor; in place of 0, None for NaN if the rule says so, else 1."""
    if divisor != 0:
        return divisor
    return None if rule is ZeroRule.NAN else divisor + 1


def replace_zeros(divisor: Pair, rule: ZeroRule) -> Pair:
    """Return a divisor with its zeros replaced: by NaN, or by 1."""
    zero = divisor.hi == 0.0
    if not zero.any():
        return divisor
    return Pair(np.where(zero, np.nan if rule is ZeroRule.NAN else 1.0, divisor.hi), divisor.lo)


def add_eps(square: Pair, root: Pair, eps: float | Floats | None, mode: EpsMode | None) -> Pair:
    """Return √(square + eps), root + eps, or the larger of root and eps.

    Parameters
    ----------
    square, root : Pair
        A variance and the standard deviation, or the square of a length and the length.
    eps : float, ndarray or None
    mode : EpsMode or None
        Where eps is added. None if there is no eps.
    """
    if not isinstance(eps, np.ndarray) and not eps:
        return root
    if mode is EpsMode.INSIDE:
        total, error = two_sum(square.hi, eps)
        return pair_root(quick_two_sum(total, error + square.lo))
    if mode is EpsMode.OUTSIDE:
        total, error = two_sum(root.hi, eps)
        return quick_two_sum(total, error + root.lo)
    least = Pair(np.float64(eps), np.float64(0.0))
    if mode is EpsMode.SQUARE_FLOOR:
        least = pair_root(least)
    under = (root.hi < least.hi) | ((root.hi == least.hi) & (root.lo < least.lo))
    return Pair(*(np.where(under, a, b) for a, b in zip(least, root, strict=True)))


def find_exact_divisor(plan: Plan, square: Fraction, bits: int = rational.ROOT_BITS) -> Fraction:
    """Return the divisor, eps included, of a variance, mean square or squared length; roots to `bits` bits.

    A divisor of 0 is not replaced.
    """
    return rational.add_eps(square, plan.spec.eps, plan.spec.eps_mode, bits)


_LEAST_SQUARED, _LARGEST_SQUARED = 2.0**-400, 2.0**400
"""The square of a size between these is exact as a pair: neither it nor its error over- or underflows."""


def find_divisor(size: Floats, eps: float | None, mode: EpsMode | None) -> Floats:
    """Return the divisors of groups, from their sizes (standard deviations or lengths) and eps.

    They are the nearest doubles; a size of 0 is not replaced.
    """
    return np.asarray(find_divisors(size, (eps,), mode)[0])


def find_divisors(size: Floats, every: Sequence[float | None], mode: EpsMode | None) -> Floats:
    """Return the divisors of groups for several eps, along a first axis, as `find_divisor` does for one."""
    eps = np.reshape([one or 0.0 for one in every], (-1, *[1] * size.ndim))
    with np.errstate(all="ignore"):
        added = add_eps(two_square(size), Pair(size, np.zeros_like(size)), eps, mode).hi
        outside = np.isfinite(size) & ~((size <= _LARGEST_SQUARED) & ((size >= _LEAST_SQUARED) | (size == 0.0)))
    found: Floats = np.where(eps == 0.0, size, added)
    for place in np.flatnonzero(outside).tolist():
        exact = rational.make_fraction(size.item(place))
        rounded = [rational.round_once(rational.add_eps(exact * exact, one, mode)) for one in every]
        found.reshape(len(every), -1)[:, place] = rounded
    return found


# -- groups that a convention counts as constant, though they are not quite

_MANY = 10
"""Machine epsilons up to which scikit-learn counts a scale as 0 (`_handle_zeros_in_scale`)."""

_DOUBLE = np.dtype(np.float64)


def find_flat(plan: Plan, statistics: Mapping[str, Floats], count: Any) -> Selected:
    """Return an array that is True for groups that count as constant though their divisor is not 0.

    Parameters
    ----------
    plan : Plan
    statistics : mapping of str to ndarray
        The statistics of groups, by name.
    count : int or ndarray
        The number of values of a group that count: one number for all groups, or one for each.

    Notes
    -----
    The rules are those of scikit-learn 1.9 (`_handle_zeros_in_scale`, `_is_constant_feature`) and of SciPy 1.17
    (`zscore`), here of the exact statistics, rounded once.
    """
    rule, spread = plan.spec.flat_rule, statistics[plan.norm.divisor.spread or ""]
    dtype = plan.tensor_dtype if is_float(plan.tensor_dtype) else _DOUBLE
    eps = get_eps(_DOUBLE if rule in _IN_FLOAT64 or dtype.itemsize > _DOUBLE.itemsize else dtype)
    with np.errstate(all="ignore"):
        match rule:
            case FlatRule.SMALL:
                flat = spread < _MANY * eps
            case FlatRule.SMALL_OF_ROUNDED:
                combination = ORDER_STATISTICS[plan.norm.divisor.spread or ""].combination
                assert combination is not None  # of a range
                flat = statistics[combination.left] - statistics[combination.right] < _MANY * eps
            case FlatRule.TWO_PASSES:
                var, mean = statistics["var"], statistics["mean"]
                flat = var <= count * eps * var + (count * mean * eps) ** 2
            case FlatRule.BESIDE_MEAN:
                flat = spread <= np.abs(eps * statistics["mean"])
            case None:
                flat = np.zeros(spread.shape, np.bool_)
        return np.asarray(flat & (spread > 0.0))


_IN_FLOAT64 = (FlatRule.SMALL_OF_ROUNDED, FlatRule.TWO_PASSES)
"""The rules whose machine epsilon is float64's for every input."""


def replace_flat(plan: Plan, solution: Solution, count: Any) -> Solution:
    """Return a solution in which the divisor of nearly constant groups is 1, or NaN under `ZeroRule.NAN`.

    Nearly constant groups are those of `find_flat`: their divisor is not 0, but the plan's `flat_rule` counts
    it as 0. Divisors that are exactly 0 are not touched (see `replace_zeros`). With a divisor of 1, their
    `rstd` is 1 too.

    Parameters
    ----------
    plan : Plan
    solution : Solution
        It is returned itself if no group is nearly constant.
    count : int or ndarray
        The number of values of a group that count: one number for all groups, or one for each.
    """
    flat = find_flat(plan, solution.statistics, count)
    if not flat.any():
        return solution
    is_one, ask = plan.spec.zero_rule is not ZeroRule.NAN, solution.ask
    hi = np.where(flat, 1.0 if is_one else np.nan, solution.divisor.hi)
    statistics = dict(solution.statistics)
    if is_one and "rstd" in statistics:
        statistics["rstd"] = np.where(flat, 1.0, statistics["rstd"])

    def ask_again(group: int, bits: int) -> tuple[Fraction, Fraction | None]:
        from fractions import Fraction

        assert ask is not None
        mean, divisor = ask(group, bits)
        return mean, (Fraction(1) if is_one else None) if flat[group] else divisor

    divisor = Pair(hi, np.where(flat, 0.0, solution.divisor.lo))
    return replace(solution, divisor=divisor, statistics=statistics, ask=None if ask is None else ask_again)
