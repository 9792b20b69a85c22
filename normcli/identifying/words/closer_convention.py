"""What a check that passes did not test: an eps, or a ddof, with which far more values are the exact ones."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from normcli.dtypes import is_float
from normcli.engine.inputs import NO_INPUTS
from normcli.identifying.models.evidence import Model
from normcli.identifying.models.standards import MOMENTS, ROWS
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.question import Kind
from normcli.identifying.search.affine import AffineStep
from normcli.identifying.search.groups import widen
from normcli.identifying.search.hypothesis import Hypothesis, measure_equality
from normcli.identifying.search.match import BY_LUCK, Scope, rank_matches
from normcli.identifying.search.samples import MOST_VALUES, Samples
from normcli.identifying.words.diagnosis import Diagnosis
from normcli.identifying.words.match_words import format_share, round_down
from normcli.norms.conventions import find_convention
from normcli.norms.rules import EpsMode, EpsRule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs as Given
    from normcli.identifying.search.hypothesis import Sample
    from normcli.identifying.search.match import Match
    from normcli.norms.plan import Plan

_SAMPLED, _SAMPLED_OF_LARGE = 1 << 14, 1 << 12
"""Values that are looked at, in whole groups; fewer of large tensors, which may lie in files."""

_LESS_EXACT = 0.5
"""What was asked for gives at most this part of the exact values that another convention gives."""

_MORE_EXACT = 0.2
"""And the share of exact values is larger by at least this."""

_PATIENCE = 2
"""So many levels further, each twice as careless, what was asked for may still explain y: then it does."""

_FEW_GROUPS = 8
"""Statistics of fewer groups may all be off as another eps would have them: then patience has no end."""


def diagnose_closer_convention(
    plan: Plan, values: NDArray[Any], actual: NDArray[Any], given: Given
) -> Diagnosis | None:
    """Return which other eps or ddof rounding explains y by, where it does not by the plan's; or None.

    Parameters
    ----------
    plan : Plan
    values, actual : ndarray
        The input, and what is within the tolerance of the result.
    given : Inputs
        Gamma and beta. Where some values do not count, or statistics are given, nothing is looked for.
    """
    dtype, grid, divisor = plan.choose_output_dtype(actual.dtype), plan.grid, plan.norm.divisor
    is_plain = divisor in MOMENTS and plan.norm.centre is ROWS[divisor].centre and plan.spec.range is None
    if not (is_plain and is_float(actual.dtype) and plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE)):
        return None
    if given._replace(gamma=None, beta=None) != NO_INPUTS or not 1 < grid.group_size <= MOST_VALUES:
        return None
    step = _make_step(plan, given)
    if plan.spec.rounds_before_gamma:
        step = step._replace(rounds_to=dtype)
    channel = frozenset(() if grid.layout.channel is None else (grid.layout.channel,))
    scope = Scope(plan.norm.name, channel, tuple(range(values.ndim)), dtype, None, is_laid_out=True)
    samples = Samples(values, actual, [step], scope)
    sample = samples.take_some(
        grid.canonical, _SAMPLED if values.size <= MOST_VALUES else _SAMPLED_OF_LARGE, divisor
    )
    if sample is None:
        return None
    matches = _find_others(plan, samples, sample, step)
    if not matches:
        return None
    best = _choose(matches, plan)
    eps = plan.spec.eps or 0.0
    asked = Hypothesis(sample, step, Model(divisor, plan.spec.eps_mode, plan.spec.ddof))
    own = measure_equality(sample.actual, asked.predict(eps), dtype)
    gives_all = best.equal == 1.0 and (1.0 - own) * best.compared >= CERTAIN
    if not gives_all and best.equal < max(own / _LESS_EXACT, own + _MORE_EXACT):
        return None
    users = ", ".join(_list_users(best))
    exactly = "every value" if best.equal == 1.0 else "more values"
    shares = f"{format_share(best.equal)} of the values are exact with that, {format_share(own)} as asked for"
    return Diagnosis(
        Kind.NORM,
        f"{plan.norm.name} passes the tolerance, but {_describe(best, plan)} gives {exactly} exactly",
        (shares, *([f"so do {users}"] if users else [])),
    )


def _make_step(plan: Plan, given: Given) -> AffineStep:
    """Return how gamma and beta enter, in the tensor's rank."""
    scale, shift = (
        None if p is None else widen(p).reshape(plan.parameters.full_shape) for p in (given.gamma, given.beta)
    )
    offset = "" if not plan.spec.gamma_offset else f"{plan.spec.gamma_offset} + "
    way = ", ".join([*(() if scale is None else (f"{offset}gamma",)), *(() if shift is None else ("beta",))])
    return AffineStep(way or "none", None if scale is None else scale + plan.spec.gamma_offset, shift)


def _find_others(plan: Plan, samples: Samples, sample: Sample, step: AffineStep) -> list[Match]:
    """Return what explains y with fewer roundings than what was asked for, if that does not explain it."""
    first = math.inf
    found: list[Match] = []
    for number, level in enumerate(samples.levels):
        if level.precision != samples.levels[0].precision:
            break
        of_moments = itertools.takewhile(_has_eps, samples.fit(sample, step, level))  # lengths come last
        fitting = list(of_moments)
        if any(_holds(hypothesis.model, plan) for hypothesis in fitting):
            return []
        if not found:
            matches = (m for one in fitting for m in samples.describe(one, level))
            found = [m for m in matches if m.is_certain and m.is_usual]
            first = number if found else first
        if number == first + _PATIENCE and len(sample.chosen) >= _FEW_GROUPS:
            break
    return found


def _has_eps(fitted: Hypothesis) -> bool:
    return fitted.model.p is None


def _holds(model: Model, plan: Plan) -> bool:
    """Whether a model is what was asked for, as far as the values show."""
    eps = plan.spec.eps or 0.0
    is_placed = model.eps_mode is plan.spec.eps_mode or eps == 0.0
    return is_placed and model.ddof == plan.spec.ddof and model.low <= eps <= model.high


def _choose(matches: list[Match], plan: Plan) -> Match:
    """Return the best of some matches: of equally good ones that with as little else than was asked for."""
    first, *others = rank_matches(matches)
    alike = [first, *(match for match in others if match.equal >= first.equal - BY_LUCK)]
    spec = plan.spec
    return min(alike, key=lambda match: (match.eps_mode != spec.eps_mode) + (match.ddof != spec.ddof))


def _describe(match: Match, plan: Plan) -> str:
    """Return an eps, with its place and ddof where those are others than what was asked for."""
    low, high = match.eps_range
    eps = f"an eps of at most {round_down(high):.2g}" if low == 0.0 < high else f"eps {match.eps:g}"
    place = "" if match.eps_mode == plan.spec.eps_mode else f" {match.eps_mode} the root"
    return f"{eps}{place}" + ("" if match.ddof == plan.spec.ddof else f" and ddof {match.ddof}")


def _list_users(match: Match) -> list[str]:
    """Return the frameworks whose own convention it is."""
    return [name for name in match.like if find_convention(name, match.norm).eps is not EpsRule.GIVEN]
