"""How far results are from what is exact, in ulp: of elements, and of the statistics of groups."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.request import Fill
from tests.reference.groups import Solved, solve_given, solve_group, solve_window, to_integers
from tests.reference.real import MOST_BITS, Bounds
from tests.reference.rounding import find_error, find_format, measure_ulp, round_once, split_floats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli import Result


class GroupErrors(NamedTuple):
    """The worst error of a group's elements, in ulp, and that of each statistic."""

    element: float
    statistics: dict[str, float]


class Elements(NamedTuple):
    """Elements of one group.

    Parameters
    ----------
    got, values : ndarray
        The results and what they were made of.
    gamma, beta : ndarray or None
        For each of them.
    offset : int
        Added to gamma.
    """

    got: Any
    values: Any
    gamma: Any = None
    beta: Any = None
    offset: int = 0


_NEARLY_HALF = 0.4999
"""Errors are known to 2⁻³² ulp: of larger ones, rounding the exact value tells whether they are right."""

WRONG = 1000.0
"""The error of an element that is not the exact value, rounded to nearest, ties to even."""


def measure_elements(elements: Elements, solved: Solved) -> list[float]:
    """Return how far each element is from (value − centre) / divisor · gamma + beta, in ulp; or `WRONG`."""
    form = find_format(elements.got.dtype)
    if solved.divisor.rational == 0:
        return [
            _judge_division_by_zero(*pair, solved)
            for pair in zip(elements.got.flat, elements.values.flat, strict=True)
        ]
    got, numbers = split_floats(elements.got, form), to_integers(elements.values)
    up, down = (solved.centre / Fraction(2) ** numbers.exponent).as_integer_ratio()
    divided = [down * digits - up for digits in numbers.digits]
    scale, scale_power = _take_parameter(elements.gamma, 1, len(divided))
    shift, shift_power = _take_parameter(elements.beta, 0, len(divided))
    if elements.offset:
        scale = [digits + Fraction(elements.offset) / Fraction(2) ** scale_power for digits in scale]
        unit = math.lcm(*(digits.denominator for digits in scale))
        scale, scale_power = [int(digits * unit) for digits in scale], scale_power - (unit.bit_length() - 1)
    inverse = (solved.divisor * down).invert()
    power = numbers.exponent + scale_power
    errors = []
    for place, (d, g, b) in enumerate(zip(divided, scale, shift, strict=True)):
        bits = 2 * form.precision + 64
        while True:
            low, high, exponent = inverse.enclose(bits)
            bounds = Bounds(*sorted((d * g * low, d * g * high)), exponent + power)
            if b:
                bounds = bounds.add(Bounds(b, b, shift_power), bits)
            error = find_error(got.digits[place], got.exponents[place], bounds, form)
            if error is not None:
                if _NEARLY_HALF < error < 1.0 - _NEARLY_HALF:
                    exact = inverse * (d * g * Fraction(2) ** power) + b * Fraction(2) ** shift_power
                    is_right = float(elements.got.flat[place]) == round_once(exact, elements.got.dtype)
                    error = error if is_right else WRONG
                errors.append(error)
                break
            bits *= 2
            if bits > MOST_BITS:
                raise ArithmeticError("an element cannot be told from 0")
    return errors


def _take_parameter(values: Any, otherwise: int, count: int) -> tuple[list[int], int]:
    return ([otherwise] * count, 0) if values is None else tuple(to_integers(values))


def _judge_division_by_zero(got: Any, value: Any, solved: Solved) -> float:
    """Return 0 or ∞: whether a value less a given mean, divided by 0, is infinite, or NaN where both are 0."""
    difference = Fraction(float(value)) - solved.centre
    right = math.isnan(got) if difference == 0 else math.isinf(got) and (got > 0) == (difference > 0)
    return 0.0 if right else math.inf


def measure_groups(result: Result) -> Iterator[GroupErrors]:
    """Yield the errors of each group of a result, in order; of a window's norm, of each value.

    Left out are groups that hold a value that counts and is not finite, and values that do not count, unless they
    are normalized with the others.
    """
    plan, form = result.plan, result.normalized.dtype
    if plan.spec.rounds_before_gamma and result.inputs.scales:
        raise NotImplementedError("what is rounded before gamma is no number of its own")
    view = plan.grid.view_shape
    x, y = result.input.reshape(view), result.normalized.reshape(view)
    selected = _find_selected(result).reshape(view)
    parameters = [
        None if a is None else np.broadcast_to(np.asarray(a).reshape(plan.parameters.view_shape), view)
        for a in (result.gamma, result.beta)
    ]
    given = None
    if result.running is not None:
        given = [plan.grid.spread_running(a).reshape(-1) for a in result.running]
    normalizes_all = result.selection is not None and result.selection.fill is Fill.NORMALIZE
    for group in range(plan.grid.group_count):
        place, counted = plan.grid.select_group(group), None
        if plan.spec.window is not None:
            values = plan.grid.take_group(result.input, group)
            values = values[plan.grid.take_group(selected, group)]
        else:
            values = x[place][selected[place]]
        counted = selected[place] | normalizes_all
        if given is None and not np.isfinite(values.astype(np.float64)).all():
            yield GroupErrors(0.0, {})
            continue
        if plan.spec.window is not None:
            solved = solve_window(plan.spec.window, values)
        elif given is not None:
            solved = solve_given(plan, *(a[group] for a in given))
        else:
            solved = solve_group(plan, values)
        if solved is None:
            yield GroupErrors(0.0, {})
            continue
        counted = counted & np.isfinite(np.asarray(x[place]).astype(np.float64))
        cut = (None if a is None else np.asarray(a[place])[counted] for a in parameters)
        elements = Elements(
            np.asarray(y[place])[counted], np.asarray(x[place])[counted], *cut, plan.spec.gamma_offset
        )
        assert elements.got.dtype == form
        statistics = {
            name: measure_ulp(result.statistics[name].reshape(-1)[group], exact, "float64")
            for name, exact in solved.statistics.items()
        }
        yield GroupErrors(max(measure_elements(elements, solved), default=0.0), statistics)


def _find_selected(result: Result) -> np.ndarray:
    if result.selection is None:
        return np.ones(result.input.shape, np.bool_)
    return result.selection.select(result.input, np.ix_(*map(np.arange, result.input.shape)))


def measure_result(result: Result) -> GroupErrors:
    """Return the worst error of any element of a result, and of each statistic of any group."""
    worst, statistics = 0.0, dict.fromkeys(result.statistics, 0.0)
    for errors in measure_groups(result):
        worst = max(worst, errors.element)
        for name, error in errors.statistics.items():
            statistics[name] = max(statistics[name], error)
    return GroupErrors(worst, statistics)
