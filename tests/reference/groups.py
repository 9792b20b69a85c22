"""The statistics of a group, its centre and its divisor: the definitions of all norms, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_float
from normcli.norms.divisors import HALF_RANGE, LENGTH, RANGE
from normcli.norms.rules import Centre, EpsMode, ZeroRule
from tests.reference.real import Real
from tests.reference.rounding import FORMATS, split_floats
from tests.reference.singular import find_singular_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.norms.plan import Plan
    from normcli.norms.spec import Window


class Integers(NamedTuple):
    """Numbers as integers times one power of two."""

    digits: list[int]
    exponent: int

    def fractions(self) -> list[Fraction]:
        """Return the numbers."""
        unit = Fraction(2) ** self.exponent
        return [unit * digits for digits in self.digits]


def to_integers(values: Any) -> Integers:
    """Return finite numbers of any dtype exactly."""
    array = np.asarray(values).reshape(-1)
    if not is_float(array.dtype):
        return Integers([int(value) for value in array.tolist()], 0)
    digits, exponents = split_floats(array, FORMATS["float64"])
    least = min((e for d, e in zip(digits, exponents, strict=True) if d), default=0)
    return Integers([d << (e - least) if d else 0 for d, e in zip(digits, exponents, strict=True)], least)


class Solved(NamedTuple):
    """What is exact of a group.

    Parameters
    ----------
    statistics : dict of str to Real
        By name; those that are infinite are missing.
    centre : Fraction
        What is subtracted.
    divisor : Real
        What is divided by: 1 where the definition has 0 and all that is divided is 0 too.
    """

    statistics: dict[str, Real]
    centre: Fraction
    divisor: Real


def solve_group(plan: Plan, values: Any) -> Solved | None:
    """Return what is exact of a group of finite values, as `_solve_whole`, without the steps that are left out."""
    found = _solve_whole(plan, values)
    if found is None or not plan.norm.is_partial:
        return found
    statistics = {name: value for name, value in found.statistics.items() if name in plan.norm.statistics}
    centre = Fraction(0) if plan.norm.centre is Centre.NOTHING else found.centre
    return Solved(statistics, centre, found.divisor if plan.norm.divisor.divides else Real.of(1))


def _solve_whole(plan: Plan, values: Any) -> Solved | None:
    """Return what is exact of a group of finite values; None where the definition has nothing.

    Parameters
    ----------
    plan : Plan
        Of a norm without windows.
    values : array_like
        Those that count.
    """
    numbers = to_integers(values)
    if plan.norm.divisor.is_by_order:
        return _solve_by_order(plan, sorted(numbers.digits), numbers.exponent) if numbers.digits else None
    if plan.norm.divisor == LENGTH:
        length = find_length(numbers, 2.0 if plan.spec.p is None else plan.spec.p)
        divisor = _add_eps(
            plan,
            length * length if plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.SQUARE_FLOOR) else None,
            length,
        )
        return Solved({"norm": length}, Fraction(0), _replace_zero(divisor))
    if plan.spec.rows is not None:
        sigma = find_singular_value(_lay_rows(plan, numbers.digits)) * Fraction(2) ** numbers.exponent
        return Solved({"sigma": sigma}, Fraction(0), _replace_zero(sigma))
    n, unit = len(numbers.digits), Fraction(2) ** numbers.exponent
    freedom = n - plan.spec.ddof
    if freedom <= 0:
        return None
    centred = plan.norm.divisor.about_mean
    total = sum(numbers.digits) if centred else 0
    squares = n * sum(digits * digits for digits in numbers.digits) - total * total
    square = Fraction(squares, n * freedom) * unit * unit
    mean = Fraction(total, n) * unit
    return _solve_square(plan, {"mean": Real.of(mean)} if centred else {}, mean, square)


def _lay_rows(plan: Plan, digits: Sequence[int]) -> list[list[int]]:
    """Return the values of a group as the rows of its matrix; fewer, as some do not count, have to be a vector."""
    lengths = {axis: plan.grid.view_shape[axis] for axis in plan.grid.view_axes}
    if len(digits) != math.prod(lengths.values()):
        assert max(lengths.values(), default=1) == math.prod(lengths.values())
        return [list(digits)]
    rows = [place for place, axis in enumerate(lengths) if axis in (plan.spec.rows or ())]
    array = np.array(digits, dtype=object).reshape(tuple(lengths.values()))
    height = math.prod(array.shape[place] for place in rows)
    laid: list[list[int]] = np.moveaxis(array, rows, range(len(rows))).reshape(height, -1).tolist()
    return laid


def solve_given(plan: Plan, mean: Any, var: Any) -> Solved:
    """Return what is exact of a group whose mean and variance are given, both finite."""
    centre, square = Fraction(float(mean)), Fraction(float(var))
    return _solve_square(plan, {"mean": Real.of(centre)}, centre, square, is_given=True)


def _solve_square(
    plan: Plan, statistics: dict[str, Real], centre: Fraction, square: Fraction, *, is_given: bool = False
) -> Solved:
    """Return what follows from a variance or a mean square."""
    root = Real.of(square).root()
    divisor = _add_eps(plan, Real.of(square), root)
    if not is_given and plan.spec.zero_rule is ZeroRule.ONE:
        divisor = _replace_zero(divisor)
    row = plan.norm.divisor
    assert row.spread is not None
    statistics |= {row.square: Real.of(square), row.spread: root}
    if divisor.rational != 0:
        statistics["rstd"] = divisor.invert()
    return Solved(statistics, centre, divisor if is_given else _replace_zero(divisor))


def _add_eps(plan: Plan, square: Real | None, root: Real) -> Real:
    """Return the divisor: eps with the square or with its root, where the plan puts it."""
    if not plan.spec.eps:
        return root
    eps = Fraction(plan.spec.eps)
    match plan.spec.eps_mode:
        case EpsMode.INSIDE:
            assert square is not None
            return (square + eps).root()
        case EpsMode.OUTSIDE:
            return root + eps
        case EpsMode.SQUARE_FLOOR:
            assert square is not None
            return root if square.compare(eps) > 0 else Real.of(eps).root()
        case _:
            return root if root.compare(eps) > 0 else Real.of(eps)


def _replace_zero(divisor: Real) -> Real:
    return Real.of(1) if divisor.rational == 0 else divisor


def find_length(numbers: Integers, p: float) -> Real:
    """Return the ℓp length of numbers, of any real p and both infinities: 0 of a 0 among them if p < 0."""
    sizes, unit = [abs(digits) for digits in numbers.digits], Fraction(2) ** numbers.exponent
    if p == 0:
        return Real.of(sum(size != 0 for size in sizes))
    if p < 0 and 0 in sizes:
        return Real.of(0)
    sizes = [size for size in sizes if size]
    if not sizes:
        return Real.of(0)
    if math.isinf(p):
        return Real.of(unit * (max(sizes) if p > 0 else min(sizes)))
    if p == 1:
        return Real.of(unit * sum(sizes))
    if p == 2:
        return Real.of(unit * unit * sum(size * size for size in sizes)).root()
    return Real.sum([Real.of(unit * size).power(p) for size in sizes]).power(1 / Fraction(p))


def _solve_by_order(plan: Plan, ordered: list[int], exponent: int) -> Solved:
    unit = Fraction(2) ** exponent
    if plan.norm.divisor in (RANGE, HALF_RANGE):
        low, high = ordered[0] * unit, ordered[-1] * unit
        found = {"min": low, "max": high}
        if plan.norm.divisor == RANGE:
            found["range"] = high - low
        else:
            found |= {"middle": (low + high) / 2, "half_range": (high - low) / 2}
    else:
        shares = (Fraction(1, 2), *(Fraction(str(percent)) / 100 for percent in plan.spec.quantiles or ()))
        values = [unit * _interpolate(ordered, share) for share in shares]
        found = dict(zip(plan.norm.divisor.statistics, (*values, values[2] - values[1]), strict=True))
    assert plan.norm.divisor.spread is not None
    divisor = Real.of(found[plan.norm.divisor.spread])
    statistics = {name: Real.of(value) for name, value in found.items()}
    return Solved(statistics, found.get(plan.norm.centre.value, Fraction(0)), _replace_zero(divisor))


def _interpolate(ordered: Sequence[int], part: Fraction) -> Fraction:
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def solve_window(window: Window, values: Any) -> Solved | None:
    """Return what is exact of a value whose window holds these values; None where the base is not above 0."""
    numbers = to_integers(values)
    squares = Fraction(4) ** numbers.exponent * sum(digits * digits for digits in numbers.digits)
    base = Fraction(window.k) + Fraction(window.alpha) * squares / window.divisor
    if base <= 0:
        return None
    divisor = Real.of(base).power(window.exponent)
    return Solved({"ms": Real.of(squares / window.size), "rstd": divisor.invert()}, Fraction(0), divisor)
