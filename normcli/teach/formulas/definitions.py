"""The formulas of a norm with names in place of numbers: one list for every group and one for every value.

Each definition gives the result of a formula a name, which later formulas may use. Given a group's statistics,
eps and a value, evaluating them in order leads to the normalized value, for any eps. The functions at the end
take names and numbers alike: the steps of a story are made by them too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.rules import EpsMode, ZeroRule
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    LargestSingularValue,
    Maximum,
    Minimum,
    Power,
    Product,
    Quotient,
    Root,
    Sign,
    Sum,
    Symbol,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from normcli.norms.divisors import Combination
    from normcli.norms.plan import Plan
    from normcli.teach.formulas.expression import Expression

_X, _X_HAT, _N, _EPS, _DIVISOR = map(Symbol, ("x", "x̂", "n", "eps", "divisor"))

_SHARE = Symbol("share")
"""1 / n for each of the n values whose |x| is the ℓ∞ length; 0 for the others."""


_LIMITS: Mapping[float | None, tuple[str, Expression]] = {
    0.0: ("how many x are not 0", Sum((), each=Absolute(Sign(_X)))),
    math.inf: ("the largest |x|", Maximum((), each=Absolute(_X))),
    -math.inf: ("the smallest |x|", Minimum((), each=Absolute(_X))),
}
"""p → words and expression of an ℓp length that is no root of a sum."""


class Definition(NamedTuple):
    """A name and the formula of its value.

    Parameters
    ----------
    name : str or None
        The name of the result; None for a formula that is only shown.
    formula : Expression or None
        The formula, made of statistics, `n`, `eps`, `x`, `gamma`, `beta`, options of the norm, and names
        defined before; None for a definition in words.
    words : str
        A remark that the formula cannot express, such as a rounding.
    value : Expression or None
        An expression whose value is more accurate than that of the formula; None if a statistic has that name,
        or if the formula itself is to be evaluated.
    when : str or None
        When the definition applies. `zero`: if the number of this name is 0 by the definitions before.
        `exact`: if numbers are those of the result. `moved`: if the reader of a page has changed one, such as
        eps. None: always.
    slope : Expression or None
        The derivative with respect to a value of the group, for some definitions in words; None otherwise.
    reduction : Expression or None
        The reduction over the group in a program, for some definitions in words; None otherwise.
    """

    name: str | None
    formula: Expression | None = None
    words: str = ""
    value: Expression | None = None
    when: str | None = None
    slope: Expression | None = None
    reduction: Expression | None = None


def define_group(plan: Plan, *, given: bool, beyond: bool) -> Iterator[Definition]:
    """Yield the definitions of a group, from its statistics to `divisor`.

    Parameters
    ----------
    plan : Plan
    given : bool
        Whether mean and variance were given instead of measured.
    beyond : bool
        Whether the square of the group's deviation or length is out of float64's range.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> plan = make_plan(Request("bn"), (2, 3), np.dtype("f8"))
    >>> [definition.name for definition in define_group(plan, given=False, beyond=False)]
    ['mean', 'var', None, 'divisor', 'divisor']
    """
    match plan.norm.divisor.measurement:
        case Measurement.MOMENTS:
            yield from _define_moments(plan, given=given, beyond=beyond)
        case Measurement.LENGTH:
            yield from _define_length(plan, beyond=beyond)
        case Measurement.WINDOW:
            yield from _define_power(plan)
            return
        case Measurement.EXTREMES | Measurement.QUANTILES:
            yield from _define_by_order(plan)
        case Measurement.SINGULAR_VALUE:
            largest = LargestSingularValue(_X)
            iterated = plan.spec.iteration is not None
            words = "uᵀXv of u and v" if iterated else f"the {plan.norm.divisor.size} of x"
            reduction = None if iterated else largest
            value, slope = Symbol("sigma"), Product(Symbol("u"), Symbol("v"))
            yield Definition("divisor", words=words, value=value, slope=slope, reduction=reduction)
    if not plan.norm.divisor.divides:
        return
    if plan.spec.zero_rule is ZeroRule.NAN:
        yield Definition("divisor", None, "0 divides nothing: nan", Symbol("nan"), "zero")
    else:
        yield Definition("divisor", None, "0 divides nothing: 1 stands for it", Constant(1), "zero")


def _define_moments(plan: Plan, *, given: bool, beyond: bool) -> Iterator[Definition]:
    """Yield the definitions of mean, variance or mean square, its root, and the divisor."""
    row = plan.norm.divisor
    centre = "mean" if row.about_mean else None
    square, root = Symbol(row.square), Symbol(row.root, value=Symbol(row.spread or ""))
    if centre is not None:
        mean = _average(_X, Symbol(centre), _N)
        yield Definition(centre, words="as given") if given else Definition(centre, mean)
    if not row.divides:
        return
    if given:
        yield Definition(row.square, words="as given")
    elif not beyond:
        ddof = Constant(plan.spec.ddof)
        freedom = Symbol(f"(n − {ddof.value})", value=Difference(_N, ddof)) if ddof.value else _N
        yield Definition(row.square, _average(Power(_less(centre), Constant(2)), square, freedom))
    if beyond:
        words = "the root of what lies beyond double precision"
        yield Definition(row.root, words=words, value=root.value)
    elif plan.spec.eps_mode in (EpsMode.OUTSIDE, EpsMode.FLOOR):
        yield Definition(row.root, Root(square), value=root.value)
    if plan.spec.eps is None and not beyond:
        yield Definition("divisor", Root(square), value=root.value)
    else:
        yield from _define_divisor(plan, square, root, beyond=beyond)


def _define_length(plan: Plan, *, beyond: bool) -> Iterator[Definition]:
    p, norm = plan.spec.p, Symbol("norm")
    if p in _LIMITS:
        slope = Product(_SHARE, Sign(_X)) if p else None
        words, reduction = _LIMITS[p]
        yield Definition("‖x‖", words=words, value=norm, slope=slope, reduction=reduction)
    else:
        powers = Sum((), each=make_power(_X, p or 0.0))
        yield Definition("‖x‖", make_root(powers, p or 0.0), value=norm)
    square, root = Symbol("Σx²", value=Power(norm, Constant(2))), Symbol("‖x‖", value=norm)
    yield from _define_divisor(plan, square, root, beyond=beyond)


def _define_divisor(plan: Plan, square: Symbol, root: Symbol, *, beyond: bool) -> Iterator[Definition]:
    """Yield the definitions from a deviation or length (`root`) and its square, and eps, to the divisor."""
    mode = plan.spec.eps_mode
    if plan.spec.eps is None or mode is None:
        divisor: Expression = root
    elif mode in (EpsMode.OUTSIDE, EpsMode.FLOOR):
        divisor = join_eps(mode, root, _EPS)
    elif beyond and mode is EpsMode.SQUARE_FLOOR:
        divisor = Maximum((root, Root(_EPS)))
    else:
        size = Power(Symbol(f"({root.text})", value=root.value), Constant(2)) if beyond else square
        under = join_eps(mode, size, _EPS)
        if mode is EpsMode.INSIDE and not beyond:
            yield Definition(None, under)
            under = Symbol(f"({square.text} + eps)", value=under)
        divisor = Root(under)
    yield Definition("divisor", divisor)


def _define_power(plan: Plan) -> Iterator[Definition]:
    window, (k, alpha, exponent, size) = plan.spec.window, map(Symbol, ("k", "alpha", "exponent", "size"))
    assert window is not None
    mean_square = Symbol("ms")
    yield Definition("ms", _average(Power(_X, Constant(2)), mean_square, size))
    squares = Symbol("Σx²", value=Product(mean_square, size))
    yield Definition("base", define_base(k, alpha, squares, size if window.divisor == window.size else None))
    yield Definition("divisor", Power(Symbol("base"), exponent))


def _define_by_order(plan: Plan) -> Iterator[Definition]:
    for row in map(ORDER_STATISTICS.__getitem__, plan.norm.statistics):
        if row.combination is None:
            percent = f"{plan.find_percents()[row.name]:g}"
            words = row.sentence.format(count="values", percent=percent).removesuffix(".")
            yield Definition(row.name, words=words[0].lower() + words[1:])
        else:
            divides = row.name == plan.norm.divisor.spread and plan.norm.divisor.divides
            name = "divisor" if divides else row.name
            left, right = Symbol(row.combination.left), Symbol(row.combination.right)
            yield Definition(name, combine(row.combination, left, right), value=Symbol(row.name))


BARE, UNGATED, FACTOR = Symbol("norm(x)"), Symbol("x₀"), Symbol("act(z)")
"""The number that a gate multiplies behind the norm, the one before the norm, and the factor."""


def define_value(
    plan: Plan, parameters: Container[str], dtype: str, gate: str | None = None
) -> Iterator[Definition]:
    """Yield the definitions of one value, from `x` over the group's centre and `divisor` to `y`.

    Parameters
    ----------
    plan : Plan
    parameters : container of str
        `gamma`, `beta`, both or none: the parameters that are given.
    dtype : str
        The dtype of the output. x̂ is called `rounded` if it is rounded before gamma.
    gate : {"before", "behind"} or None
        Whether a gate multiplies x before the norm or the norm's result; None without a gate.
    """
    centre = plan.norm.centre.statistic
    yield Definition("x", Product(UNGATED, FACTOR) if gate == "before" else None)
    if centre is not None and plan.norm.divisor.divides:
        yield Definition(None, Difference(_X, Symbol(centre)))
    gamma, beta = (Symbol(name) if name in parameters else None for name in ("gamma", "beta"))
    affine = scale_and_shift(_X_HAT, gamma, beta, plan.spec.gamma_offset)
    difference = _X if centre is None else Difference(_X, Symbol(centre))
    quotient = Quotient(_less(centre), _DIVISOR) if plan.norm.divisor.divides else difference
    scales, rounds = affine is not _X_HAT, dtype != "float64"
    if scales or rounds or gate == "behind":
        yield Definition("x̂", quotient)
    if gate == "behind":
        if scales:
            yield Definition(BARE.text, affine)
        affine, scales = Product(BARE if scales else _X_HAT, FACTOR), True
    if not rounds:
        yield Definition("y", affine if scales else quotient)
        return
    rounds_twice = scales and plan.spec.rounds_before_gamma
    if rounds_twice:
        yield Definition("x̂", quotient, f"rounded to {dtype} before gamma", Symbol("rounded"), "exact")
    if scales:
        yield Definition(None, affine)
    yield Definition("y", affine, f"rounded {'again' if rounds_twice else 'once'}, to {dtype}", when="exact")
    yield Definition("y", affine, f"in double precision, not rounded to {dtype}", when="moved")


def _less(centre: str | None) -> Symbol:
    """Return x − centre as one symbol, whose number is shown; x alone if the centre is None."""
    return _X if centre is None else Symbol(f"(x − {centre})", value=Difference(_X, Symbol(centre)))


def _average(each: Expression, average: Symbol, count: Symbol) -> Expression:
    """Return the average of a term over the group, as a sum over a count; `average` times it is the sum."""
    return Quotient(Sum((), Symbol("Σ", value=Product(average, count)), each), count)


# -- of names and of numbers alike


def combine(combination: Combination, left: Expression, right: Expression) -> Expression:
    """Return the sum or the difference of two statistics, or half of it, as a combination has it."""
    both = Sum((left, right)) if combination.sign == "+" else Difference(left, right)
    return Quotient(both, Constant(2)) if combination.half else both


def join_eps(mode: EpsMode | None, size: Expression, eps: Expression) -> Expression:
    """Return the sum of a number and eps, or the larger of the two."""
    return Maximum((size, eps)) if mode in (EpsMode.FLOOR, EpsMode.SQUARE_FLOOR) else Sum((size, eps))


def make_power(x: Expression, p: float) -> Expression:
    """Return |x|ᵖ, a term of the sum in an ℓp length."""
    if p == 2:
        return Power(x, Constant(2))
    return Absolute(x) if p == 1 else Power(Absolute(x), _make_exponent(p))


def make_root(powers: Expression, p: float) -> Expression:
    """Return the p-th root of a sum of |x|ᵖ."""
    if p == 2:
        return Root(powers)
    return powers if p == 1 else Power(powers, Quotient(Constant(1), _make_exponent(p)))


def _make_exponent(p: float) -> Constant:
    return Constant(int(p) if p == int(p) else p)


def define_base(k: Expression, alpha: Expression, squares: Expression, size: Expression | None) -> Expression:
    """Return the base of a window's power, k + alpha · squares / size; without the division if size is None."""
    scaled = Product(alpha, squares)
    return Sum((k, scaled if size is None else Quotient(scaled, size)))


def scale_and_shift(
    x_hat: Expression, gamma: Expression | None, beta: Expression | None, offset: float
) -> Expression:
    """Return (offset + gamma) · x̂ + beta, without the parameters that are None."""
    if gamma is not None:
        x_hat = Product(Sum((Constant(offset), gamma)) if offset else gamma, x_hat)
    return x_hat if beta is None else Sum((x_hat, beta))
