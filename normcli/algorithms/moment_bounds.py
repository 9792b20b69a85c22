"""The largest errors of mean and variance: the roundings of an algorithm, added up.

Each operation's result is (x ∘ y)(1 + δ) + η with |δ| ≤ u, half the distance from 1 to the next number, and
|η| ≤ h, half the smallest subnormal number, where a product or a quotient underflows. The relative error of a
number after k roundings is at most γₖ = k·u/(1 − k·u) (Higham 2002, Accuracy and Stability of Numerical
Algorithms, 2nd ed., section 2.2 and lemma 3.1). For n values, each of which goes through at most k additions,
the largest errors are:

* of a sum, γₖ Σ|x| in any order: k = n − 1, or ⌈log₂ n⌉ by halves (section 4.2);
* of two passes: of the variance, γ of k + 6 times the variance, plus the square of the mean's error (Chan,
  Golub, LeVeque 1983, Algorithms for computing the sample variance; Higham, section 1.9, problem 1.10);
* of one pass: γ of k + 4 times E[x²], which is 1 + mean²/variance times the variance; over x − s, times
  E[(x − s)²];
* of Welford's recurrence: of the mean E ≤ n·u·max|x|/2, as each step rounds it, and of the variance about 2.4 E
  times the deviation (Higham, (1.6), whose bound has no constants: they are worked out in `bound_welford`);
* of parts that are merged in d levels: E is larger by about d·10·u·max|x|, and the error of the variance by
  4 E √(d/2) times the deviation.

These are bounds of the worst case: actual errors grow about as the root of the number of roundings (Higham,
section 2.8). Over `normcli.testing.provocations`, the error of the worst value is 4 to 11 % of its bound
(median) if sums are of the result's own dtype, and more than 95 % if they are wider. The bounds hold for
gradual underflow, and if products are fused with sums. Callers silence NumPy; what overflows has no bound.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import find_type, get_eps, get_largest, get_smallest
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from normcli.dtypes import Floats

    Bound = Callable[["GroupFacts", "DtypePrecision", "Order"], "Drift"]

_DIVISION = 3
"""Roundings in a division by n, which may be a product with 1/n: of n, of 1/n and of the product."""

_MERGE = 10
"""Roundings in merging two means: of their difference, the share, product and sum, or of two products."""

_LEAF = 25
"""Additions in turn in a leaf of a pairwise sum: of 128 values in 8 lanes, these, and up to 7 that are left."""

_THREADS = 32
"""The fewest vectors that each hold a part of Welford's recurrence."""


class DtypePrecision(NamedTuple):
    """The rounding errors of operations in a dtype.

    Parameters
    ----------
    name : str
        The name of the dtype.
    unit : float
        u: the largest relative error of a rounding.
    underflow : float
        h: an upper bound of the error of a rounding to a subnormal number: half the smallest one; for float64,
        where half of it is no double, the smallest one itself.
    largest : float
        The largest finite number.
    """

    name: str
    unit: float
    underflow: float
    largest: float

    @classmethod
    def of(cls, name: str) -> DtypePrecision:
        """Return the precision of a dtype by name."""
        least = max(get_smallest(name) / 2.0, get_smallest("float64"))
        return cls(name, get_eps(np.dtype(find_type(name))) / 2.0, least, get_largest(name))

    def gamma(self, roundings: float) -> float:
        """Return γₖ = k·u/(1 − k·u) for k roundings; infinite where k·u ≥ 1."""
        together = roundings * self.unit
        return together / (1.0 - together) if together < 1.0 else math.inf

    def limit(self, sizes: Floats, error: Floats, roundings: int = _MERGE) -> Floats:
        """Return `error`, or ∞ where sizes · (1 + γ of the roundings) overflow the dtype."""
        return np.where(sizes * (1.0 + self.gamma(roundings)) < self.largest, error, np.inf)

    def halve_place(self, sizes: Floats) -> Floats:
        """Return the largest error of rounding values of these sizes: half an ulp, or h if that is more."""
        place: Floats = np.ldexp(self.unit, np.frexp(sizes)[1] - 1)
        return np.maximum(place, self.underflow)


class Order(NamedTuple):
    """An order of addition: `in_turn` values are added one by one, and such sums in pairs, `levels` times."""

    in_turn: int
    levels: int

    @property
    def depth(self) -> int:
        """The most additions that a value goes through."""
        return self.in_turn + self.levels


class GroupFacts(NamedTuple):
    """Measures of each group on which error bounds depend; arrays have the shape (groups,).

    Parameters
    ----------
    size : int
        The number of values in a group.
    ddof : int
    mean, variance : ndarray
        The exact mean and variance, rounded to float64; 0 and the mean square for norms that do not centre.
    absolute : ndarray
        The mean of |x|.
    square : ndarray
        The mean of x².
    largest : ndarray
        The largest |x|.
    shifted : GroupFacts or None
        The measures of x minus each group's first value; None in those measures themselves.
    """

    size: int
    ddof: int
    mean: Floats
    variance: Floats
    absolute: Floats
    square: Floats
    largest: Floats
    shifted: GroupFacts | None = None

    @classmethod
    def of(cls, rows: Floats, mean: Floats, variance: Floats, ddof: int) -> GroupFacts:
        """Return the measures of rows, given the exact mean and variance of each, shape (groups,).

        `rows` has the shape (groups, values).
        """
        first = rows[:, :1]
        here, shifted = (
            cls(rows.shape[1], ddof, center, variance, sizes.mean(1), (sizes * sizes).mean(1), sizes.max(1))
            for sizes, center in ((np.abs(rows), mean), (np.abs(rows - first), mean - first[:, 0]))
        )
        return here._replace(shifted=shifted)

    @property
    def excess(self) -> float:
        """The factor n / (n − ddof) from the mean of squared deviations to the variance; ∞ if n ≤ ddof."""
        return self.size / (self.size - self.ddof) if self.size > self.ddof else math.inf


class Drift(NamedTuple):
    """The largest errors of a kernel's statistics, shape (groups,).

    Parameters
    ----------
    mean, square : ndarray
        The error of the mean, and of the variance (or the mean square, for norms that do not centre).
    may_be_negative : bool
        Whether a kernel's variance may be below 0.
    """

    mean: Floats
    square: Floats
    may_be_negative: bool = False


def _bound_mean(groups: GroupFacts, p: DtypePrecision, depth: int, before: int = 0) -> Floats:
    """Return the largest error of each group's mean, calculated in a dtype of precision `p`.

    Each term was rounded `before` times, and is then part of at most `depth` additions.
    """
    error = groups.absolute * _widen(p, groups.size, depth + before + _DIVISION) + p.underflow
    return p.limit(np.maximum(groups.absolute * groups.size, groups.size), error, depth)


def bound_squares(groups: GroupFacts, p: DtypePrecision, order: Order, before: int = 0) -> Drift:
    """Return the largest errors of the mean square, for norms without mean, in a dtype of precision `p`.

    Each x was rounded `before` times before it is squared; `order` is the order in which squares are added.
    """
    depth = order.depth
    error = groups.square * _widen(p, groups.size, depth + 2 * before + _DIVISION + 1) + 3.0 * p.underflow
    square = p.limit(np.maximum(groups.square * groups.size, groups.size), error, depth + 2 * before)
    return Drift(np.zeros_like(square), square)


def bound_two_pass(groups: GroupFacts, p: DtypePrecision, order: Order) -> Drift:
    """Return the largest errors of mean and variance, if the mean is summed first, then (x − mean)².

    A mean with the error e adds e² to the variance; the roundings of the second sum are added to that. `p` is
    the precision of the dtype, `order` the order of both sums.
    """
    mean = _bound_mean(groups, p, order.depth)
    summed = groups.variance + groups.excess * mean**2
    error = groups.excess * mean**2 + summed * _widen(p, groups.size, order.depth + 2 + _DIVISION + 1)
    square = error + 3.0 * groups.excess * p.underflow
    return Drift(mean, p.limit(summed * groups.size, square, order.depth))


def bound_one_pass(groups: GroupFacts, p: DtypePrecision, order: Order, before: int = 0) -> Drift:
    """Return the largest errors of the mean E[x] and the variance E[x²] − E[x]², where both errors add up.

    Each x was rounded `before` times; `p` is the precision of the dtype, `order` the order of both sums.
    """
    mean = _bound_mean(groups, p, order.depth, before)
    square = bound_squares(groups, p, order, before).square
    product = (2.0 * np.abs(groups.mean) + mean) * mean
    rest = p.gamma(6) * (groups.mean**2 + product + groups.square + square)
    error = groups.excess * (square + product + rest + 2.0 * p.underflow) * (1.0 + p.gamma(6))
    return Drift(mean, error, may_be_negative=True)


def bound_clamped(groups: GroupFacts, p: DtypePrecision, order: Order) -> Drift:
    """Return the bounds of E[x] and max(E[x²] − E[x]², 0): as for one pass, but never negative."""
    return bound_one_pass(groups, p, order)._replace(may_be_negative=False)


def bound_shifted(groups: GroupFacts, p: DtypePrecision, order: Order) -> Drift:
    """Return the bounds of one pass over x − s, for the first value s of each row; the mean is s + E[x − s]."""
    assert groups.shifted is not None
    mean, square, _ = bound_one_pass(groups.shifted, p, order, before=1)
    square = p.limit((groups.shifted.absolute * groups.size) ** 2, square, 2 * order.depth)
    return Drift(mean + p.unit * (np.abs(groups.mean) + mean), square, may_be_negative=True)


def bound_welford(groups: GroupFacts, p: DtypePrecision, order: Order) -> Drift:
    """Return the largest errors of mean and variance by Welford's recurrence, in a dtype of precision `p`.

    `order`: k values in turn, parts merged in d levels. The proof: Step j rounds the mean, of at most M =
    max|x| + E, and the share (x − mean)/j of at most 2M/j; the error before the step counts (j − 1)/j. Together
    the mean is off by E ≤ u·M·(k + 1)/2 + 2M·γ₅. A merge, whose mean lies between those of its parts, adds its
    own roundings. Each product (x − m)(x − m′), of the means before and after a step, differs by E times both
    factors, whose squares add up to at most 2nσ² and nσ². In a merge, the difference of the means is off by 2E;
    the weights of all merges add up to n·d/2.
    """
    n, h, (in_turn, levels) = groups.size, p.underflow, order
    share = 2.0 * p.gamma(5) + (p.unit + 2.0 * h) * (in_turn + 1) / 2.0 + levels * p.gamma(_MERGE)
    if not share < 1.0:
        nothing = np.full(groups.mean.shape, np.inf)
        return Drift(nothing, nothing)
    mean = (share * groups.largest + h * ((in_turn + 1) / 2.0 + levels)) / (1.0 - share)
    biased = groups.variance / groups.excess
    factors = 1.0 + math.sqrt(2.0) + 4.0 * math.sqrt(levels / 2.0)
    summed = biased + factors * mean * np.sqrt(biased) + (1.0 + 2.0 * levels) * mean**2
    roundings = in_turn + 2 * levels + 12
    off = summed - biased + summed * _widen(p, n, roundings) + 3.0 * (1 + levels) * h
    sizes = np.maximum(np.maximum(summed, (2.0 * groups.largest) ** 2) * n, n)
    return Drift(p.limit(groups.largest, mean), p.limit(sizes, groups.excess * off, roundings))


def _widen(p: DtypePrecision, size: int, roundings: int) -> float:
    """Return the largest relative error of several roundings, one of which is of 1/n and may be subnormal."""
    return (1.0 + p.gamma(roundings)) * (1.0 + p.underflow * size) - 1.0


def _add_in_turn(size: int) -> Order:
    return Order(size, 0)


def _add_by_halves(size: int) -> Order:
    return Order(0, max(0, size - 1).bit_length())


def _add_pairwise(size: int) -> Order:
    return Order(min(size, _LEAF), _add_by_halves(size).levels)


def _add_in_threads(size: int) -> Order:
    return Order(-(-size // _THREADS), _add_by_halves(size).levels)


class BoundRule(NamedTuple):
    """The bound of an algorithm: a function from group size to `Order`, and one that returns a `Drift`."""

    order: Callable[[int], Order]
    bound: Bound


BOUNDS: Mapping[str, BoundRule] = MappingProxyType(
    {
        "one-pass": BoundRule(_add_in_turn, bound_one_pass),
        "one-pass-clamped": BoundRule(_add_in_turn, bound_clamped),
        "shifted": BoundRule(_add_in_turn, bound_shifted),
        "two-pass": BoundRule(_add_in_turn, bound_two_pass),
        "tree": BoundRule(_add_by_halves, bound_two_pass),
        "pairwise": BoundRule(_add_pairwise, bound_two_pass),
        "welford": BoundRule(_add_in_turn, bound_welford),
        "chunked-welford": BoundRule(_add_in_threads, bound_welford),
    }
)
"""Algorithm's name → its bound. Sums in turn are the worst order: their bound holds for every other one."""
