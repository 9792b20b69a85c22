"""The exact sums of groups that gradients are made of: of values, powers, gradients, and products of these."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.pairs import (
    Pair,
    find_largest,
    find_least,
    pair_add,
    sum_pairs,
    two_prod,
    two_square,
)
from normcli.numerics.powers import raise_pair
from normcli.numerics.sums.fixed_point import Fixed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.gradients.rows import GradientRows

_LEAST, _LARGEST = 2.0**-250, 2.0**250
"""Products of three numbers between these are exact: neither they nor their errors leave float64."""

_LEAST_BASE, _LARGEST_BASE, _LEAST_P, _LARGEST_P = 2.0**-20, 2.0**20, 1.0 / 16.0, 16.0
"""Powers of numbers between these with exponents between those are within `GRADIENT_POWER` of themselves."""


def needs_decimals(p: float) -> bool:
    """Whether the powers that a length is made of are irrational: p is not 0, 1, 2 or ±∞."""
    return p not in (0.0, 1.0, 2.0) and not math.isinf(p)


class GradientSums:
    """The exact sums of groups that gradients are made of, to which rows of values are added in any order.

    d is a value minus the shift of its group, and g the derivative of the loss with respect to x̂.

    Parameters
    ----------
    groups : int
        The number of groups.
    p : float
        The exponent of the powers: 2 for variances and mean squares.

    Attributes
    ----------
    count : ndarray of int64
        The number of values of each group that count.
    totals, powers : Fixed
        Σd and, for p = 0, 1 and 2, Σ|d|ᵖ of the values that count.
    gradients, products : Fixed
        Σg and Σg · d.
    peak, ties : Pair, ndarray of int64
        For p = ∞ the largest |d|, for p = −∞ the smallest, and how many values have it.
    lengths : Pair
        For any other p, Σ|d|ᵖ, with a relative error of `GRADIENT_POWER`.
    rough : ndarray of bool
        True for groups whose `lengths` is too large or too small for that bound, or has an infinite term (a
        power of 0).
    unknown, endless : ndarray of bool
        True for groups with an infinity or NaN in x or gamma (`unknown`), or in dy (`endless`). A row with such
        a dy is added as if all of its dy were 0.
    beyond : ndarray of bool
        True for groups with a dy that, times a gate, is beyond the range of doubles: sums leave it out.
    errors, product_errors : ndarray
        Upper bounds of the errors of gradients and products that come from a gate's factors.
    """

    def __init__(self, groups: int, p: float) -> None:
        self.p = p
        self.count, self.ties = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        self.totals, self.powers, self.gradients, self.products = (Fixed.zeros(groups) for _ in range(4))
        self.peak = Pair(np.full(groups, -np.inf if p > 0 else np.inf), np.zeros(groups))
        self.unknown, self.endless, self.beyond = np.zeros((3, groups), np.bool_)
        self.lengths = Pair(np.zeros(groups), np.zeros(groups))
        self.rough = np.zeros(groups, np.bool_)
        self.errors, self.product_errors = np.zeros((2, groups))

    def add(self, groups: Integers, rows: GradientRows) -> None:
        """Add one row to each of some groups.

        Parameters
        ----------
        groups : ndarray of int, shape (rows,)
            The index of each row's group, none twice.
        rows : GradientRows
        """
        endless = np.asarray(~np.isfinite(rows.dy).all(axis=-1))
        if endless.any():
            self.endless[groups] |= endless
            rows = rows.leave_gradients_out(endless[:, np.newaxis])
        counted = np.ones(rows.dy.shape, np.bool_) if rows.counted is None else rows.counted
        self.count[groups] += np.count_nonzero(counted, axis=-1)
        finite, ordinary = np.ones((2, len(groups)), np.bool_)
        for factor in rows.factors:
            size = np.abs(factor)
            finite &= np.isfinite(size).all(axis=-1)
            ordinary &= (((size > _LEAST) & (size < _LARGEST)) | (size == 0.0)).all(axis=-1)
        self.unknown[groups] |= ~finite
        if rows.upstream is not None:
            error = rows.error
            self.beyond[groups] |= rows.upstream.beyond.any(axis=-1)
            self.errors[groups] += np.add.reduce(error, axis=-1)
            self.product_errors[groups] += np.add.reduce(error * np.abs(rows.deviations.hi), axis=-1)
        if ordinary.all():
            self._add_ordinary(groups, rows)
        else:
            chosen = rows.map(lambda a: np.broadcast_to(a, rows.dy.shape)[ordinary])
            self._add_ordinary(groups[ordinary], chosen)
            for row in np.flatnonzero(finite & ~ordinary).tolist():
                self._add_exactly(int(groups[row]), rows.take(row))
        if math.isinf(self.p):
            self._find_peak(groups[finite], rows.deviations.map(lambda a: a[finite]), counted[finite])
        if needs_decimals(self.p):
            self._add_lengths(groups, rows, counted)

    def merge(self, other: GradientSums) -> None:
        """Add the sums of other values of the same groups."""
        for name in ("count", "errors", "product_errors"):
            getattr(self, name)[...] += getattr(other, name)
        for name in ("rough", "unknown", "endless", "beyond"):
            getattr(self, name)[...] |= getattr(other, name)
        for name in ("totals", "powers", "gradients", "products"):
            getattr(self, name).merge(getattr(other, name))
        self.lengths = pair_add(self.lengths, other.lengths)
        self._raise_peak(np.arange(len(self.count)), other.peak, other.ties)

    def _add_ordinary(self, groups: Integers, rows: GradientRows) -> None:
        if not rows.dy.size:
            return
        d, g = rows.deviations, rows.gradients
        counted = d if rows.counted is None else d.map(lambda a: np.where(rows.counted, a, 0.0))
        products = (_multiply(a, b) for a in g for b in d)
        for fixed, terms in (
            (self.totals, counted),
            (self.powers, _raise(counted, self.p)),
            (self.gradients, g),
            (self.products, (term for product in products for term in product)),
        ):
            _add(fixed, groups, terms)

    def _add_exactly(self, group: int, rows: GradientRows) -> None:
        """Add one row to the sums of a group, in rationals, as its products leave the range of doubles."""
        values = rows.take_exactly()
        among = [d for d, _, _, counts in values if counts]
        powers = [abs(d) if self.p == 1.0 else d * d if self.p else Fraction(d != 0) for d in among]
        for fixed, terms in (
            (self.totals, among),
            (self.powers, powers),
            (self.gradients, [g for _, g, *_ in values]),
            (self.products, [d * g for d, g, *_ in values]),
        ):
            fixed.add_fraction(group, sum(terms, Fraction(0)))

    def _find_peak(self, groups: Integers, d: Pair, counted: Selected) -> None:
        find, nothing = (find_largest, -np.inf) if self.p > 0 else (find_least, np.inf)
        sizes = take_sizes(d).keep(counted, nothing)
        peak = find(sizes)
        ties = np.count_nonzero(counted & is_equal(sizes, peak.map(lambda a: a[:, None])), axis=-1)
        self._raise_peak(groups, peak, ties)

    def _raise_peak(self, groups: Integers, new: Pair, ties: Integers) -> None:
        """Replace the peak |d| of groups where a new one is larger (for p = −∞, smaller), and update the ties.

        Ties are how many values have the peak.

        Parameters
        ----------
        groups : ndarray of int
            The indices of the groups.
        new : Pair
            The peak of other values of each group.
        ties : ndarray of int
            How many of these values have it.
        """
        find = find_largest if self.p > 0 else find_least
        old = self.peak.map(lambda a: a[groups])
        best = find(Pair(*(np.stack(parts, axis=-1) for parts in zip(old, new, strict=True))))
        same, other = is_equal(best, old), is_equal(best, new)
        self.ties[groups] = np.where(same, self.ties[groups], 0) + np.where(other, ties, 0)
        for held, value in zip(self.peak, best, strict=True):
            held[groups] = value

    def _add_lengths(self, groups: Integers, rows: GradientRows, counted: Selected) -> None:
        powers = raise_sizes(rows.deviations, self.p)
        zero = counted & (rows.deviations.hi == 0.0)
        rough = counted & ~(is_moderate(rows.deviations.hi) | zero)
        is_usual = _LEAST_P <= abs(self.p) <= _LARGEST_P
        self.rough[groups] |= (rough | (zero & (self.p < 0.0))).any(axis=-1) | (not is_usual)
        if rows.dy.size:
            sums = sum_pairs(powers.map(lambda a: np.where(counted & ~zero & ~rough, a, 0.0)))
            total = pair_add(self.lengths.map(lambda a: a[groups]), sums)
            for held, value in zip(self.lengths, total, strict=True):
                held[groups] = value


def raise_sizes(d: Pair, p: float) -> Pair:
    """Return |d|ᵖ with a relative error of `GRADIENT_POWER` where d is moderate; 1 elsewhere."""
    return raise_pair(take_sizes(d).keep(is_moderate(d.hi), 1.0), p)


def is_moderate(values: Floats) -> Selected:
    """Return an array that is True where |value| is between 2⁻²⁰ and 2²⁰, so that powers are well known."""
    size = np.abs(values)
    return np.asarray((size > _LEAST_BASE) & (size < _LARGEST_BASE))


def take_sizes(d: Pair) -> Pair:
    """Return |d| of pairs."""
    return Pair(np.abs(d.hi), np.where(d.hi < 0.0, -d.lo, d.lo))


def is_equal(a: Pair, b: Pair) -> Selected:
    """Return True where two pairs are equal."""
    return np.asarray((a.hi == b.hi) & (a.lo == b.lo))


def _raise(d: Pair, p: float) -> Iterable[Floats]:
    """Return arrays of doubles that add up to |d|ᵖ exactly, for p = 1 or 2; any other p is taken as 0."""
    if p == 2.0:
        return (*two_square(d.hi), *_multiply(2.0 * d.hi, d.lo), *_multiply(d.lo, d.lo))
    if p == 1.0:
        return take_sizes(d)
    return ((d.hi != 0.0).astype(np.float64),)


def _multiply(a: Floats, b: Floats) -> Iterable[Floats]:
    """Return a product and its rounding error; an empty tuple if a factor is 0 everywhere, as many are."""
    return two_prod(a, b) if a.any() and b.any() else ()


def _add(fixed: Fixed, groups: Integers, terms: Iterable[Floats]) -> None:
    for term in terms:
        fixed.add(groups, term)
