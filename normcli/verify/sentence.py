"""What was identified, as a sentence for the reader."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.errors import NormError
from normcli.norms.conventions import find_convention
from normcli.norms.layout import make_layout
from normcli.norms.rules import EpsMode, EpsRule
from normcli.norms.table import find_norm
from normcli.printable import agree, format_count
from normcli.results.normalize import normalize
from normcli.verify.affine import ESTIMATED
from normcli.verify.apart import format_axes, list_hidden_by_gamma, list_taken_up, list_untold
from normcli.verify.estimates import tell_estimate
from normcli.verify.identify import Question, identify
from normcli.verify.other_sentence import (
    OF_OTHER_MAPS,
    format_affine,
    format_other_map,
    format_stored,
    format_title,
)
from normcli.verify.samples import MOST_VALUES
from normcli.verify.weight import CERTAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.norms.layout import Layout
    from normcli.norms.names import FrameworkName, NormName
    from normcli.norms.plan import Plan
    from normcli.numerics.solution import Given
    from normcli.verify.hypothesis import Match
    from normcli.verify.identify import Identification
    from normcli.verify.matrices import Steps
    from normcli.verify.reproduction import Reproduction

USUAL_REFERENCE = "torch"
"""The framework whose result is shown beside y where that is another, and none was asked for."""

_BEYOND_ROUNDING = 4.0
"""So many times the match's own distance is more than another order of the same arithmetic makes."""

_SHORT_DIGITS, _LONG_DIGITS = 10, 18
"""Significant digits of an exact value: one more than tells neighbours apart."""

_TELLING = ("norm", "axes", "groups", "group_order", "ddof", "p", "affine", "window", "rows", "steps")
"""What a sentence says of a match, eps aside."""

_MOST_OTHERS = 3
"""Other matches that a sentence names."""


def explain_actual(
    plan: Plan,
    values: NDArray[Any],
    actual: NDArray[Any],
    parameters: Mapping[str, NDArray[Any] | None],
    given: Given | None = None,
) -> str:
    """Return what made somebody's tensor, as far as the data show, in a sentence or two.

    Parameters
    ----------
    plan : Plan
        Of the norm that it should be.
    values, actual : ndarray
    parameters : mapping of str to ndarray or None
        gamma and beta, of any shape that the plan takes.
    given : Given or None
        Running statistics.
    """
    found = identify(
        Question(values, actual, parameters.get("gamma"), parameters.get("beta"), plan.grid.layout.text)
    )
    sentence = format_sentence(found, plan.spec.like or USUAL_REFERENCE)
    return sentence + format_stored(found, given) + tell_estimate(plan, found)


def format_sentence(found: Identification, reference: str = USUAL_REFERENCE) -> str:
    """Return what was found, in a sentence or two.

    Parameters
    ----------
    found : Identification
    reference : str
        The framework whose result is shown beside y, where that is another.
    """
    asked = found.question
    layout = make_layout(asked.layout, asked.x.ndim)
    if found.reason is not None:
        return f"No norm can be identified: {found.reason}."
    sample = f" (Compared were whole groups of about {found.sampled:,} values.)" if found.sampled else ""
    if found.kind in OF_OTHER_MAPS:
        return f"{format_other_map(found, layout)}{_format_nearly(found, layout)}{sample}"
    if found.matches:
        best, *others = found.matches
        described = (
            f"{_format_match(best, layout)}{format_affine(best.affine, asked)}{_format_frameworks(best)}"
        )
        equal = _choose_others(best, others)
        exactness = _format_computation(found.reproductions) or _format_exactness(best)
        exactness += _format_reference(best, asked, reference)
        unseen = (*list_taken_up(best, found.matches), *list_untold(best, equal, asked, layout))
        untold = "".join(f" {sentence}" for sentence in unseen)
        return f"y is {described}{exactness}.{_format_others(best, equal, asked, layout)}{untold}{sample}"
    near = found.nearest
    if near is None:
        return "No norm reproduces y."
    described = f"{_format_match(near.match, layout)}{format_affine(near.match.affine, asked)}"
    if found.unchanged is not None:
        count = f"{asked.x.size - found.unchanged:,} of {asked.x.size:,} values"
        return f"No norm reproduces y; it is the input, except for {count}."
    if near.bits >= CERTAIN:
        count = f"{near.mismatches:,} of {near.compared:,} values"
        equal = _choose_others(near.match, near.others)
        untold = "".join(f" {sentence}" for sentence in list_taken_up(near.match, [near.match]))
        more = f"{_format_others(near.match, equal, asked, layout)}{untold}{sample}"
        if near.shared:
            place = " ".join(f"{layout.name(axis)}={index}" for axis, index in near.shared)
            more = f" All of them are at {place}.{more}"
        return f"y is {described}, except for {count}, the first at {_format_index(near.first)}.{more}"
    distance = f"with differences of up to {near.match.max_abs:.3g}"
    hidden = "".join(f" {sentence}" for sentence in list_hidden_by_gamma(asked, layout))
    nearly = _format_nearly(found, layout)
    return f"No norm reproduces y; {described} comes nearest, {distance}.{nearly}{hidden}{sample}"


def _choose_others(best: Match, others: Iterable[Match]) -> list[Match]:
    """Return the matches that are named after the best: as usual ones, no two of the same words."""
    chosen = {_make_key(best): best}
    for match in others:
        if match.is_usual >= best.is_usual and match.by_default >= best.by_default:
            chosen.setdefault(_make_key(match), match)
    return list(chosen.values())[1:]


def _make_key(match: Match) -> tuple[Any, ...]:
    """Return what tells a match from another: the place of eps only where there has to be one."""
    place = None if match.eps_range[0] == 0.0 else match.eps_mode
    return (place, *(getattr(match, name) for name in _TELLING))


def _format_computation(told: Sequence[Reproduction]) -> str:
    """Return which algorithm gives the bits, where the exact result does not; empty where none is known."""
    if not told:
        return ""
    best, *others = told
    more = [other.computation.name for other in others if other.computation != best.computation]
    alike = f", as {' and '.join(more[:_MOST_OTHERS])} {agree(len(more), 'does', 'do')}" if more else ""
    share = "every bit" if best.equal == 1.0 else f"{format_share(best.equal)} of the bits"
    exact = f"{format_share(best.match.equal)} are the exact ones, rounded"
    return f"; computed with {best.words} ({best.computation.name}), which gives {share}{alike}; {exact}"


def _format_nearly(found: Identification, layout: Layout) -> str:
    """Return the algorithm that gives most bits, of what is not certain to be a norm."""
    if not found.reproductions:
        return ""
    match = found.reproductions[0].match
    return f" Nearly, it is {_format_match(match, layout)}{_format_computation(found.reproductions)}."


def _format_match(match: Match, layout: Layout) -> str:
    """Return the norm with its axes and numbers: `LayerNorm over d with eps 1e-05 outside the root`."""
    parts = [format_title(match)]
    if match.groups is not None:
        parts.append(f"with {match.groups} {match.group_order} group{'s' if match.groups > 1 else ''}")
    parts.append(f"over {format_axes(match.axes, layout)}")
    if match.window is not None:
        window = match.window
        constants = f"alpha {window.alpha:g}, exponent {window.exponent:g}, k {window.k:g}"
        parts.append(f"in windows of {window.size} ({window.before} before, {window.after} after), {constants}")
        return " ".join(parts)
    if match.rows is not None:
        parts.append(f"with rows along {format_axes(match.rows, layout)}")
    if match.steps is not None:
        parts.append(_format_steps(match.steps))
    if match.p is not None:
        parts.append(f"with p {match.p:g}")
    if match.takes_eps:
        parts.append(_format_eps(match))
    if match.ddof:
        parts.append(f"and ddof {match.ddof}")
    if match.order != tuple(sorted(match.order)):
        parts.append(f"(its axes in the order {match.order})")
    return " ".join(parts)


def _format_steps(steps: Steps) -> str:
    """Return what estimated σ, no closer than y tells."""
    if steps.is_largest:
        return f"by the largest singular value or {steps.fewest} and more power iterations from {steps.start}"
    if steps.most is None:
        return f"by {steps.fewest} or more power iterations from {steps.start}"
    if steps.most > steps.fewest:
        return f"by {steps.fewest} to {steps.most} power iterations from {steps.start}"
    return f"by {format_count(steps.fewest, 'power iteration')} from {steps.start}"


def _format_eps(match: Match) -> str:
    low, high = match.eps_range
    place = f" {match.eps_mode} the root" if match.eps_mode else ""
    if match.p is not None and match.eps_mode == EpsMode.OUTSIDE:
        place = " added to the length"
    if low == 0.0 and math.isinf(high):
        return "with any eps"
    if low == 0.0 < high:
        return f"with any eps up to {_round_down(high):.2g}{place}"
    return f"with eps {match.eps:g}{place}"


def _round_down(value: float) -> float:
    """Return a positive number with two significant digits that is no larger."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    nearest = float(f"{value:.1e}")
    return nearest if nearest <= value else nearest - unit


def _format_frameworks(match: Match) -> str:
    given = {name: find_convention(name, match.norm).eps is EpsRule.GIVEN for name in match.like}
    named = ", ".join(f"{name} (where eps is given)" if has_none else name for name, has_none in given.items())
    return f", as in {named}" if named else ""


def _format_exactness(match: Match) -> str:
    """Return how many values are equal to the bit, and what the furthest of the others is and should be."""
    if match.cancelled is not None:
        percent = f"{100.0 * match.cancelled:.2g} %"
        return f"; its variance is E[x²] − E[x]², which cancels: it is off by up to {percent}"
    if match.affine == ESTIMATED:  # what is exact depends on the gamma that was fitted
        return ""
    if match.equal == 1.0:
        return "; every value is the exact one, rounded"
    place, *values = match.furthest
    digits = _LONG_DIGITS if match.precision == "float64" else _SHORT_DIGITS
    exact, actual = (f"{value:.{digits}g}" for value in values)
    share, kernel = format_share(match.equal), f"a kernel that rounds in {match.precision.split(',')[0]}"
    found = f"{share} of the values are the exact ones, rounded"
    return f"; {found}. At {_format_index(place)} exact is {exact}; {kernel} can give y's {actual}"


def format_share(share: float) -> str:
    """Return a share in percent; of all but a few, `> 99.99 %`.

    Examples
    --------
    >>> format_share(0.744), format_share(1.0), format_share(0.999999)
    ('74.4 %', '100 %', '> 99.99 %')
    """
    percent = f"{100.0 * share:.4g}"
    return f"{'> 99.99' if percent == '100' and share < 1.0 else percent} %"


def _format_reference(match: Match, asked: Question, reference: str) -> str:
    """Return what a framework gives exactly where that differs most, if by more than any rounding."""
    x = asked.x
    fitted = match.window is not None or match.rows is not None or match.affine == ESTIMATED
    if fitted or reference in match.like or x.size > MOST_VALUES:
        return ""
    try:
        theirs = normalize(
            x, cast("NormName", match.norm), axes=match.axes, groups=match.groups,
            like=cast("FrameworkName", reference),
            gamma=asked.gamma, beta=asked.beta, p=match.p if find_norm(match.norm)[0].p is None else None,
        ).normalized  # fmt: skip
    except NormError:  # it has no such norm, or not of such a shape
        return ""
    with np.errstate(all="ignore"):
        mine, theirs = asked.y.transpose(match.order).astype(np.float64), theirs.astype(np.float64)
        distance = np.abs(mine - theirs)
        place = np.unravel_index(int(np.nanargmax(distance)), x.shape)
    if distance[place] <= _BEYOND_ROUNDING * match.max_abs:
        return ""
    index = _format_index(place)
    return (
        f"; by {reference}'s convention exact is {theirs[place]:.9g} at {index}, where y has {mine[place]:.9g}"
    )


def _format_others(best: Match, others: list[Match], asked: Question, layout: Layout) -> str:
    """Return what fits as well: how gamma and beta entered is said again where that differs."""
    if not others:
        return ""
    shown = []
    for match in others[:_MOST_OTHERS]:
        affine = "" if match.affine == best.affine else format_affine(match.affine, asked)
        shown.append(f"{_format_match(match, layout)}{affine}{_format_frameworks(match)}")
    more = f"; and {len(others) - _MOST_OTHERS} more" if len(others) > _MOST_OTHERS else ""
    return f" These values fit as well: {'; or '.join(shown)}{more}."


def _format_index(index: Iterable[int | np.intp]) -> str:
    return f"({', '.join(map(str, index))})"
