"""The backward pass of every norm in exact arithmetic, as the sum over all j of g_j · ∂x̂_j/∂x_i."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.divisors import LENGTH
from normcli.norms.request import Fill
from normcli.norms.rules import Centre, EpsMode, ZeroRule
from tests.reference.groups import solve_given, solve_group
from tests.reference.real import Real
from tests.reference.rounding import measure_ulp

if TYPE_CHECKING:
    from normcli import Gradients
    from normcli.norms.plan import Plan


class Expected(NamedTuple):
    """Derivatives by x, gamma and beta, flat; None for NaN."""

    dx: list[Real | None]
    dgamma: list[Real | None]
    dbeta: list[Real | None]


def to_fractions(values: Any) -> list[Fraction]:
    """Return finite numbers exactly."""
    array = np.asarray(values).reshape(-1)
    return [Fraction(v) for v in (array if array.dtype.kind in "iub" else array.astype(np.float64)).tolist()]


def differentiate_group(
    plan: Plan, x: list[Fraction], g: list[Fraction], others: list[tuple[Fraction, Fraction]]
):
    """Return dx of the values that count, and centre and divisor of the group; None where there is none.

    `others` are x and g of values that are normalized with the statistics of those that count.
    """
    solved = solve_group(plan, [float(v) for v in x]) if _are_doubles(x) else None
    if solved is None:
        return None
    steps = find_steps(plan, x, solved)
    if steps is None and plan.spec.zero_rule is ZeroRule.NAN:
        return None
    pull = sum(((v - solved.centre) * h for v, h in [*zip(x, g, strict=True), *others]), Fraction(0))
    total = sum(g, Fraction(0)) + sum((h for _, h in others), Fraction(0))
    shift = total / len(x) if plan.norm.centre is Centre.MEAN else Fraction(0)
    inverse = solved.divisor.invert()
    if steps is None:  # what is normalized is 0, but has no derivative
        return [None] * len(x), solved.centre, inverse
    square = inverse * inverse
    dx = [inverse * (h - shift) - square * step * pull for h, step in zip(g, steps, strict=True)]
    return dx, solved.centre, inverse


def _are_doubles(x: list[Fraction]) -> bool:
    return all(Fraction(float(v)) == v for v in x)


def find_steps(plan: Plan, x: list[Fraction], solved: Any) -> list[Real] | None:
    """Return the derivatives of the divisor by the values; None where it is 0."""
    root = solved.statistics[plan.norm.divisor.spread]
    eps, mode = Fraction(plan.spec.eps or 0), plan.spec.eps_mode
    nothing = [Real.of(0)] * len(x)
    if root.rational == 0:
        replaced = plan.spec.zero_rule is ZeroRule.ONE
        return nothing if eps or replaced else None
    floor = {EpsMode.FLOOR: eps * eps, EpsMode.SQUARE_FLOOR: eps}.get(mode, Fraction(0))
    if floor and (root * root).compare(floor) < 0:
        return nothing
    p = 2.0 if plan.spec.p is None else plan.spec.p
    if p != 2.0:
        return [differentiate_length(v, x, root, p) for v in x]
    freedom = 1 if plan.norm.divisor == LENGTH else len(x) - plan.spec.ddof
    beside = (solved.divisor if mode is EpsMode.INSIDE else root) * freedom
    return [(v - solved.centre) * beside.invert() for v in x]


def differentiate_length(v: Fraction, x: list[Fraction], length: Real, p: float) -> Real:
    """Return the derivative of an ℓp length by one of its values; 0 at corners, ties share."""
    sign = (v > 0) - (v < 0)
    if p == 0 or not sign:
        return Real.of(0)
    if math.isinf(p):
        return Real.of(
            Fraction(sign, sum(abs(w) == length.rational for w in x)) if abs(v) == length.rational else 0
        )
    if p == 1:
        return Real.of(sign)
    return Real.of(abs(v)).power(Fraction(p) - 1) * length.power(1 - Fraction(p)) * sign


def differentiate(found: Gradients) -> Expected:
    """Return what the derivatives are exactly; all values that count are finite."""
    plan, inputs = found.plan, found.inputs
    grid, size = plan.grid, found.input.size
    view, names = grid.view_shape, plan.norm.parameter_names
    selected = np.ones(found.input.shape, np.bool_)
    if inputs.selection is not None:
        selected = inputs.selection.select(found.input, np.ix_(*map(np.arange, found.input.shape)))
    fill = None if inputs.selection is None else inputs.selection.fill
    shape = plan.parameters.view_shape
    numbers = np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), view).reshape(-1).tolist()
    gamma = [Fraction(1)] * math.prod(shape)
    if inputs.gamma is not None:
        gamma = to_fractions(inputs.gamma.astype(np.float64) + plan.spec.gamma_offset)
    places = np.arange(size).reshape(view)
    counts = selected.reshape(-1).tolist()
    raw = np.nan_to_num(np.asarray(found.input)) if found.input.dtype.kind == "f" else found.input
    x, dy = to_fractions(raw), to_fractions(found.dy)
    if plan.spec.window is not None:
        return Expected(_differentiate_windows(plan, x, dy, counts, fill, places), [], [])
    dx: list[Real | None] = [Real.of(v if fill is Fill.PASS else 0) for v in dy]
    shares: list[list[Real | None]] = [[] for _ in gamma]
    shifts = [Fraction(0)] * len(gamma)
    given = None if inputs.given is None else [grid.spread_running(a).reshape(-1) for a in inputs.given]
    for group in range(grid.group_count):
        members = places[grid.select_group(group)].reshape(-1).tolist()
        inside = [i for i in members if counts[i]]
        outside = [i for i in members if not counts[i]] if fill is Fill.NORMALIZE else []
        g = {i: dy[i] * gamma[numbers[i]] for i in members}
        solved: Any = None
        if given is not None:
            known = solve_given(plan, *(a[group] for a in given))
            inverse = known.divisor.invert()
            solved = [inverse * g[i] for i in inside], known.centre, inverse
        elif inside or plan.norm.divisor == LENGTH:  # the length of nothing is 0
            solved = differentiate_group(
                plan, [x[i] for i in inside], [g[i] for i in inside], [(x[i], g[i]) for i in outside]
            )
        for k, i in enumerate(inside):
            dx[i] = None if solved is None else solved[0][k]
        for i in outside:
            dx[i] = None if solved is None else solved[2] * g[i]
        pulls: dict[int, Fraction] = {}
        for i in (*inside, *outside):
            shifts[numbers[i]] += dy[i]
            if solved is not None:
                pulls[numbers[i]] = pulls.get(numbers[i], Fraction(0)) + dy[i] * (x[i] - solved[1])
            else:
                shares[numbers[i]].append(None)
        for number, pull in pulls.items():
            shares[number].append(solved[2] * pull)
    scales = [None if None in terms else Real.sum(terms) if terms else Real.of(0) for terms in shares]
    return Expected(
        dx, scales if "gamma" in names else [], [Real.of(s) for s in shifts] if "beta" in names else []
    )


def _differentiate_windows(
    plan: Plan, x: list[Fraction], dy: list[Fraction], counts: list[bool], fill: Any, places: Any
):
    window, axis = plan.spec.window, plan.grid.axes[0]
    lines = np.moveaxis(places, axis, -1).reshape(-1, places.shape[axis]).tolist()
    dx: list[Real | None] = [Real.of(v if fill is Fill.PASS else 0) for v in dy]
    alpha = Fraction(window.alpha) / window.divisor
    for line in lines:
        bases = []
        for j in range(len(line)):
            among = line[max(0, j - window.before) : j + window.after + 1]
            bases.append(Real.of(Fraction(window.k) + alpha * sum(x[i] ** 2 for i in among if counts[i])))
        for i, place in enumerate(line):
            if not counts[place]:
                continue
            terms = [bases[i].power(-window.exponent) * dy[place]]
            for j, other in enumerate(line):
                if counts[other] and j - window.before <= i <= j + window.after:
                    by = -2 * alpha * Fraction(window.exponent) * x[place] * dy[other] * x[other]
                    terms.append(bases[j].power(-Fraction(window.exponent) - 1) * by)
            dx[place] = Real.sum(terms)
    return dx


def measure_gradients(found: Gradients) -> dict[str, float]:
    """Return the worst error of each derivative, in ulp of its dtype; infinite where one is NaN and should not be."""
    worst = {}
    for name, exact in differentiate(found)._asdict().items():
        array = getattr(found, name)
        if array is None:
            assert not exact
            continue
        worst[name] = max((_measure(*pair) for pair in zip(array.reshape(-1), exact, strict=True)), default=0.0)
    return worst


def _measure(got: Any, exact: Real | None) -> float:
    if exact is None:
        return 0.0 if np.isnan(got) else math.inf
    return measure_ulp(got, exact, got.dtype)
