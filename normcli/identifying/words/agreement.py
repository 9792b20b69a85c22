"""Findings on a tensor that agrees with the norm: where its kernel rounds, and whether another eps is nearer.

`diagnose_casts`: a kernel of half precision rounds once, before gamma, or after each step, or cuts bits off:
its bits show which. `diagnose_closer_convention`: with another eps or ddof, far more values are exact.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import calculate_rows
from normcli.checking.ulp import measure_unit
from normcli.dtypes import is_float, is_half
from normcli.engine.inputs import NO_INPUTS
from normcli.identifying.models.divisor_fit import Model
from normcli.identifying.models.standards import MOMENTS, ROWS
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.question import Diagnosis, Kind
from normcli.identifying.sampling import MOST_SAMPLED, choose_groups, take_groups, widen
from normcli.identifying.search.affine_step import AffineStep
from normcli.identifying.search.groups import Hypothesis, measure_equality
from normcli.identifying.search.match import BY_LUCK, Scope, rank_matches
from normcli.identifying.search.match_names import agrees
from normcli.identifying.search.samples import Samples
from normcli.identifying.words.match_words import format_share, round_down
from normcli.norms.conventions import find_convention, list_frameworks
from normcli.norms.divisors import Measurement
from normcli.norms.rules import EpsMode, EpsRule
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.identifying.search.groups import Sample
    from normcli.identifying.search.match import Match
    from normcli.norms.plan import Plan

_MOST_ROUNDED = 1 << 18
"""The most values whose bits are compared; of larger tensors, whole groups of about as many values in all."""

_NEARLY_ALL = 0.9
"""The least share of exact values with which an order of roundings is named."""

_DEVIATIONS = 4.0
"""A share of exact values is clearly larger if it is larger by more than this many standard deviations."""


def diagnose_casts(plan: Plan, values: NDArray[Any], actual: NDArray[Any], given: Inputs) -> Diagnosis | None:
    """Return the diagnosis of an order of roundings that makes clearly more values exact than the plan's does.

    None without such an order, for longer dtypes than half precision, with a mask, running statistics or a gate
    behind the norm, and without gamma and beta for norms that do not divide by a variance or mean square.

    Parameters
    ----------
    plan : Plan
    values, actual : ndarray
        The input, and the tensor that is checked.
    given : Inputs
        Gamma and beta, and perhaps a gate before the norm.
    """
    grid, dtype = plan.grid, plan.choose_output_dtype(actual.dtype)
    is_of_moments = plan.norm.divisor.measurement is Measurement.MOMENTS and not plan.groups_overlap
    if not is_half(dtype) or not (given.scales or is_of_moments) or not _has_parameters_alone(given):
        return None
    if not 0 < grid.group_size <= _MOST_ROUNDED or not grid.group_count:
        return None
    chosen = choose_groups(grid, _MOST_ROUNDED)
    standardized, _ = calculate_rows(plan, take_groups(grid, values, chosen))
    theirs = widen(take_groups(grid, actual, chosen))
    orders = list(_list_orders(_make_step(plan, given).map(lambda p: take_groups(grid, p, chosen)), dtype))
    shares = [
        measure_equality(theirs, functools.reduce(lambda x, step: step.apply(x), steps, standardized), dtype)
        for _, steps in orders
    ]
    own, best = int(plan.spec.rounds_before_gamma), int(np.argmax(shares))
    more, missed = shares[best] - shares[own], 1.0 - shares[own]
    if shares[best] < _NEARLY_ALL or more < max(BY_LUCK, _DEVIATIONS * math.sqrt(missed / theirs.size)):
        return None
    rows = (find_convention(name, plan.norm.name) for name in list_frameworks(plan.norm.name))
    is_plain = given.gated_input is None
    like = [
        row.framework
        for row in rows
        if row.widens and row.rounds_before_gamma == best and (is_plain or row.gate_order == "before")
    ]
    cause = f"{plan.norm.name} agrees but for its bits: {orders[best][0]}"
    return Diagnosis(
        Kind.NORM, f"{cause} (as {like[0]})" if like else cause,
        (
            f"{format_share(shares[best])} of the values have the bits of that order in {dtype}",
            f"{format_share(shares[own])} have those of the order that was checked: {orders[own][0]}",
            *([f"so do {', '.join(like)}"] if len(like) > 1 else []),
        ),
        remedy=f"normcli {plan.norm.name} … --like {like[0]}" if like else None,
    )  # fmt: skip


def _has_parameters_alone(given: Inputs) -> bool:
    return given._replace(gamma=None, beta=None, gated_input=None) == NO_INPUTS


class _Cut(NamedTuple):
    """The step that cuts values off to a dtype, toward 0."""

    dtype: np.dtype[Any]

    def apply(self, values: Floats) -> Floats:
        unit = measure_unit(values, self.dtype)
        with np.errstate(invalid="ignore"):  # of infinities
            return np.asarray(np.trunc(values / unit) * unit)


def _list_orders(step: AffineStep, dtype: np.dtype[Any]) -> Iterator[tuple[str, tuple[AffineStep | _Cut, ...]]]:
    """Yield the orders in which a kernel may round: words, and steps to apply one after the other.

    The orders are: only the result is rounded; x̂ too; with gamma and beta, also the product of x̂ and gamma; and
    the result is cut off, not rounded.
    """
    yield "the result alone is rounded", (step,)
    yield "x̂ is rounded first", (step._replace(rounds_to=dtype),)
    if step.scale is not None and step.shift is not None:
        alone = step._replace(rounds_to=dtype, shift=None), step._replace(rounds_to=dtype, scale=None)
        yield "x̂, its product and the sum are rounded one by one", alone
    yield "the result is cut off toward 0, not rounded", (step, _Cut(dtype))


def _make_step(plan: Plan, given: Inputs) -> AffineStep:
    """Return the affine step of gamma and beta at the plan's rank; scale or shift is None for one not given."""
    offset = "" if not plan.spec.gamma_offset else f"{plan.spec.gamma_offset} + "
    names = (f"{offset}gamma", given.gamma), ("beta", given.beta)
    way = ", ".join(name for name, values in names if values is not None) or "none"
    step = AffineStep(way, given.gamma, given.beta).map(lambda p: widen(p).reshape(plan.parameters.full_shape))
    return step if step.scale is None else step._replace(scale=step.scale + plan.spec.gamma_offset)


# -- another eps or ddof

_SAMPLED, _SAMPLED_OF_LARGE = 1 << 14, 1 << 12
"""About how many values are compared, in whole groups; fewer of large tensors, which may lie in files."""

_LESS_EXACT = 0.5
"""With the request, at most this part of the values that are exact with another convention are exact."""

_MORE_EXACT = 0.2
"""Another convention's share of exact values is larger than the request's by at least this."""

_PATIENCE = 2
"""The number of levels after another convention's first fit at which the request may still fit."""

_FEW_GROUPS = 8
"""With fewer groups, the request may fit at any later level, since errors of few statistics may look like an
eps."""


def diagnose_closer_convention(
    plan: Plan, values: NDArray[Any], actual: NDArray[Any], given: Inputs
) -> Diagnosis | None:
    """Return the diagnosis of another eps, eps mode or ddof with which far more values are exact.

    A value is exact if it has every bit of the rounded result. None if no other option gives far more exact
    values than the plan's, and where none is looked for: norms without variance or mean square, with a range,
    or with eps neither inside nor outside the root; groups of one value or of more than 2¹⁷; integers; and a
    mask, running statistics, bounds or a gate behind the norm.

    Parameters
    ----------
    plan : Plan
    values, actual : ndarray
        The input, and a tensor within the tolerance of the result.
    given : Inputs
        Gamma and beta, and perhaps a gate before the norm.
    """
    dtype, grid, divisor = plan.choose_output_dtype(actual.dtype), plan.grid, plan.norm.divisor
    is_plain = divisor in MOMENTS and plan.norm.centre is ROWS[divisor].centre and plan.spec.range is None
    if not (is_plain and is_float(actual.dtype) and plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE)):
        return None
    if not _has_parameters_alone(given) or not 1 < grid.group_size <= MOST_SAMPLED:
        return None
    step = _make_step(plan, given)
    if plan.spec.rounds_before_gamma:
        step = step._replace(rounds_to=dtype)
    channel = frozenset(() if grid.layout.channel is None else (grid.layout.channel,))
    scope = Scope(plan.norm.name, channel, tuple(range(values.ndim)), dtype, None, is_laid_out=True)
    samples = Samples(values, actual, [step], scope)
    most = _SAMPLED if values.size <= MOST_SAMPLED else _SAMPLED_OF_LARGE
    sample = samples.take(grid.canonical, choose_groups(grid.canonical, most), divisor)
    if sample is None:
        return None
    eps = plan.spec.eps or 0.0
    right = Hypothesis(sample, step, Model(divisor, plan.spec.eps_mode, plan.spec.ddof)).predict(eps)
    own = measure_equality(sample.actual, right, dtype)
    matches = _find_others(plan, samples, sample, step)
    best = _choose(matches, plan) if matches else None
    gives_all = best is not None and best.equal == 1.0 and (1.0 - own) * best.compared >= CERTAIN
    if best is None or not (gives_all or best.equal >= max(own / _LESS_EXACT, own + _MORE_EXACT)):
        shift = sample.place(step).shift
        return _diagnose_factor(plan, sample.actual, right, 0.0 if shift is None else shift, dtype)
    rules = {name: find_convention(name, best.norm).eps for name in best.like}
    users = ", ".join(name for name, rule in rules.items() if rule is not EpsRule.GIVEN)
    exactly = "every value" if best.equal == 1.0 else "more values"
    shares = f"{format_share(best.equal)} of the values are exact with that, {format_share(own)} as asked for"
    return Diagnosis(
        Kind.NORM,
        f"{plan.norm.name} passes the tolerance, but {_describe(best, plan)} gives {exactly} exactly",
        (shares, *([f"so do {users}"] if users else [])),
    )


def _diagnose_factor(
    plan: Plan, actual: Floats, right: Floats, shift: Floats | float, dtype: np.dtype[Any]
) -> Diagnosis | None:
    """Return the diagnosis of a factor on the result, or on x̂, with which nearly all values are the exact ones.

    None without a factor that makes 90 % of the other values exact.

    Parameters
    ----------
    plan : Plan
    actual, right : ndarray
        The values of a tensor within the tolerance of the result, and the exact ones.
    shift : ndarray or float
        The given beta at each value; 0 without one.
    dtype : numpy.dtype
        The dtype to which the tensor was rounded.
    """
    own = measure_equality(actual, right, dtype)
    for what, kept in {"the result": 0.0, "x̂": shift}.items():
        base, rest = right - kept, actual - kept
        fitted = float(np.vdot(base, rest)) / max(float(np.vdot(base, base)), np.finfo(np.float64).tiny)
        factors = dict.fromkeys(float(f"{fitted:.{digits}g}") for digits in _DIGITS)
        shares = {one: measure_equality(actual, one * base + kept, dtype) for one in factors}
        factor = max(shares, key=shares.__getitem__)
        share = shares[factor]
        if share - own >= max(_NEARLY_ALL * (1.0 - own), CERTAIN / actual.size):
            exactly = "every value" if share == 1.0 else "more values"
            cause = (
                f"{plan.norm.name} passes the tolerance, but {factor:g} times {what} gives {exactly} exactly"
            )
            shown = f"{format_share(share)} of the values are exact with that, {format_share(own)} as asked for"
            return Diagnosis(Kind.NORM, cause, (shown,))
    return None


_DIGITS = (4, 5, 6)
"""The counts of digits to which a factor is rounded."""


def _find_others(plan: Plan, samples: Samples, sample: Sample, step: AffineStep) -> list[Match]:
    """Return certain matches of another eps or ddof that fit y with smaller rounding errors than the plan's.

    Empty if the plan's eps and ddof fit as well, or with errors up to 2 levels larger, and if no others fit.

    Parameters
    ----------
    plan : Plan
    samples : Samples
        The input and the actual tensor.
    sample : Sample
        The groups to compare.
    step : AffineStep
        The given gamma and beta.
    """
    first = math.inf
    found: list[Match] = []
    for number, level in enumerate(samples.levels):
        if level.precision != samples.levels[0].precision:
            break
        fitted = samples.fit(sample, step, level, samples.bound(sample, step, level))
        fitting = list(itertools.takewhile(lambda one: one.model.p is None, fitted))  # lengths come last
        if any(agrees(plan, hypothesis.model) for hypothesis in fitting):
            return []
        if not found:
            matches = (m for one in fitting for m in samples.describe(one, level))
            found = [m for m in matches if m.is_certain and m.is_usual]
            first = number if found else first
        if number == first + _PATIENCE and len(sample.chosen) >= _FEW_GROUPS:
            break
    return found


def _choose(matches: list[Match], plan: Plan) -> Match:
    """Return the best match; of about equally exact ones, one with the plan's eps mode and ddof if any."""
    first, *others = rank_matches(matches)
    alike = [first, *(match for match in others if match.equal >= first.equal - BY_LUCK)]
    spec = plan.spec
    return min(alike, key=lambda match: (match.eps_mode != spec.eps_mode) + (match.ddof != spec.ddof))


def _describe(match: Match, plan: Plan) -> str:
    """Return the eps of a match in words, with its eps mode and ddof if they differ from the plan's."""
    low, high = match.eps_range
    eps = f"an eps of at most {round_down(high):.2g}" if low == 0.0 < high else f"eps {match.eps:g}"
    place = "" if match.eps_mode == plan.spec.eps_mode else f" {match.eps_mode} the root"
    return f"{eps}{place}" + ("" if match.ddof == plan.spec.ddof else f" and ddof {match.ddof}")
