"""A match in words: its norm, axes and numbers, the exactness of y, and the frameworks that compute it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.faults.variant import list_roots
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.search.affine_step import ESTIMATED, WAYS
from normcli.norms.conventions import find_convention
from normcli.norms.divisors import ROOT_MEAN_SQUARE
from normcli.norms.rules import Centre, EpsMode, EpsRule, GroupOrder
from normcli.norms.table import NORMS, find_norm
from normcli.printable import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from normcli.identifying.models.matrix_model import Steps
    from normcli.identifying.question import Question
    from normcli.identifying.reproduction import Reproduction
    from normcli.identifying.search.match import Match
    from normcli.norms.layout import Layout

_SHORT_DIGITS, _LONG_DIGITS = 10, 18
"""Significant digits of an exact value, enough to tell neighbours apart: of short dtypes, and of float64."""

_TELLING = ("norm", "axes", "groups", "group_order", "ddof", "p", "affine", "window", "rows", "steps")
"""The fields of a match that are told in words, besides eps."""

_MOST_NAMES = 3
"""The most frameworks, or algorithms, that one line names."""

_CONSTANT = 1e-3
"""A fitted gamma counts as one number up to this relative difference between its values."""


def format_axes(axes: Sequence[int], layout: Layout) -> str:
    """Return the names of axes, separated by spaces, such as `h w`; `no axis` for none."""
    return " ".join(map(layout.name, axes)) or "no axis"


def format_title(match: Match, layout: Layout) -> str:
    """Return the title of a match's norm and its axes, such as `layer normalization over d`."""
    title = find_norm(match.norm)[0].title
    if match.rows is not None:
        return f"{title} of rows {format_axes(match.rows, layout)}"
    return f"{title} over {format_axes(match.axes, layout)}"


def format_match(match: Match, asked: Question, layout: Layout) -> str:
    """Return a match on one line: title, clauses, and frameworks in parentheses."""
    told = ", ".join((format_title(match, layout), *list_clauses(match, asked, layout)))
    return f"{told} ({name_frameworks(match, _MOST_NAMES)})" if match.like else told


def list_clauses(match: Match, asked: Question, layout: Layout) -> Iterator[str]:
    """Yield the options of a match as clauses such as `eps 1e-05`; last an eps that y hides, `any eps`."""
    eps = [format_eps(match)] if match.takes_eps else []
    is_hidden = match.eps_range[0] == 0.0 < match.eps_range[1]
    if match.groups is not None:
        interleaved = "" if match.group_order == GroupOrder.CONTIGUOUS else f"{match.group_order} "
        yield format_count(match.groups, f"{interleaved}group")
    if match.window is not None:
        yield f"windows of {match.window.size}"
    if match.steps is not None:
        yield format_steps(match.steps)
    if match.p is not None:
        yield f"p {match.p:g}"
    yield from [] if is_hidden else eps
    if match.ddof:
        yield f"ddof {match.ddof}"
    if match.affine == ESTIMATED:
        yield format_fitted(match, asked)
    else:
        yield from filter(None, [WAYS[match.affine].removeprefix(", ")])
        if unused := list_unused(match.affine, asked):
            yield f"without the given {' and '.join(unused)}"
    if match.order != tuple(sorted(match.order)):
        yield f"its axes in the order {match.order}"
    yield from eps if is_hidden else []


def list_unused(way: str, asked: Question) -> list[str]:
    """Return the names `gamma` and `beta` of given parameters that a way of the affine step does not use."""
    return [name for name in ("gamma", "beta") if getattr(asked, name) is not None and name not in WAYS[way]]


def format_fitted(match: Match, asked: Question) -> str:
    """Return the words for a fitted gamma and beta, with gamma's value if it is one number and beta is 0.

    A root of a length of x, or of the number of values in a group, is said as 1/√12.
    """
    factor = find_factor(match)
    if factor is None:
        return "a fitted gamma and beta"
    lengths = {*asked.x.shape, math.prod(asked.x.shape[axis] for axis in match.axes) // (match.groups or 1)}
    root = next((words for words, _ in list_roots(factor, lengths)), f"{factor:.5g}")
    return f"a gamma of {root} everywhere"


def find_factor(match: Match) -> float | None:
    """Return a match's gamma if it is one number and beta is 0, both within 0.1 % of gamma; else None."""
    step = None if match.hypothesis is None else match.hypothesis.affine
    if step is None or step.scale is None:
        return None
    factor = float(np.median(step.scale))
    off = max(float(np.abs(values).max()) for values in (step.scale - factor, step.shift) if values is not None)
    return factor if off <= _CONSTANT * abs(factor) else None


def format_steps(steps: Steps) -> str:
    """Return the words for the power iterations that estimated σ, as a range if several numbers fit y."""
    if steps.is_largest:
        return f"by the largest singular value or {steps.fewest} and more power iterations from {steps.start}"
    if steps.most is None:
        return f"by {steps.fewest} or more power iterations from {steps.start}"
    if steps.most > steps.fewest:
        return f"by {steps.fewest} to {steps.most} power iterations from {steps.start}"
    return f"by {format_count(steps.fewest, 'power iteration')} from {steps.start}"


def format_eps(match: Match) -> str:
    """Return the eps in words: `eps 1e-05 outside the root`; `any eps`, or `any eps up to …`, if y hides it."""
    low, high = match.eps_range
    if low == 0.0 and math.isinf(high):
        return "any eps"
    eps = f"any eps up to {round_down(high):.2g}" if low == 0.0 < high else f"eps {format_range(match)}"
    if match.eps_mode != EpsMode.OUTSIDE:
        return eps
    return f"{eps} outside the root" if match.p is None else f"{eps} added to the length"


def format_range(match: Match) -> str:
    """Return the eps of a match as text; of an eps that is no default, the range that fits if it is wide."""
    low, high = match.eps_range
    is_known = match.has_default_eps or high <= _WIDE * low or math.isinf(high)
    return f"{match.eps:g}" if is_known else f"{low:.2g} to {high:.2g}"


_WIDE = 1.2
"""The largest ratio of the largest and the least eps that fit and of which one alone is named."""


def round_down(value: float) -> float:
    """Return the largest number of two significant digits that is at most a positive value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    nearest = float(f"{value:.1e}")
    return nearest if nearest <= value else nearest - unit


def name_frameworks(match: Match, most: int) -> str:
    """Return the names of a match's frameworks, joined by commas and cut after `most` of them.

    Frameworks without a default eps have `with this eps` behind the name.
    """
    given = {name: find_convention(name, match.norm).eps is EpsRule.GIVEN for name in match.like}
    return shorten_list([f"{name} with this eps" if own else name for name, own in given.items()], most)


def shorten_list(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Return names joined by commas, cut after `most` of them.

    Examples
    --------
    >>> shorten_list(["bn", "in", "ln"]), shorten_list(["bn", "in", "ln"], 2)
    ('bn, in, ln', 'bn, in, …')
    """
    return f"{', '.join(names[:most])}{', …' if len(names) > most else ''}"


def format_share(share: float) -> str:
    """Return a share as a percentage; `> 99.99 %` if it would be rounded up to 100 %.

    Examples
    --------
    >>> format_share(0.744), format_share(1.0), format_share(0.999999)
    ('74.4 %', '100 %', '> 99.99 %')
    """
    percent = f"{100.0 * share:.4g}"
    return f"{'> 99.99' if percent == '100' and share < 1.0 else percent} %"


def list_exactness(match: Match, told: Sequence[Reproduction] = ()) -> Iterator[str]:
    """Yield clauses on the share of exact values, and on the algorithms in `told` that reproduce y's bits.

    Nothing for a fitted gamma without such algorithms, as exactness depends on the fit.
    """
    if told:
        best, *others = told
        share = f"{format_share(best.equal)} of the bits"
        yield f"{best.computation.name} gives {'every bit' if best.equal == 1.0 else share}: {best.words}"
        more = dict.fromkeys(one.computation.name for one in others if one.computation != best.computation)
        if more:
            yield f"as many bits are of {shorten_list([*more])}"
        match = best.match
    elif match.affine == ESTIMATED:  # what is exact depends on the gamma that was fitted
        return
    step = None if match.hypothesis is None else match.hypothesis.affine
    if match.equal == 1.0 and step is not None and step.rounds_to is not None:
        yield f"every value has the bits of an x̂ that is rounded to {step.rounds_to} before gamma"
        return
    if match.equal == 1.0:
        yield "every value is the exact one, rounded"
        return
    if match.rounds_length:
        yield f"every value has the bits of a length that is rounded to {match.precision.split(',')[0]} first"
        return
    yield f"{format_share(match.equal)} of the values are the exact ones, rounded"
    if not told:
        place, *values = match.furthest
        digits = _LONG_DIGITS if match.precision == "float64" else _SHORT_DIGITS
        exact, actual = (f"{value:.{digits}g}" for value in values)
        yield f"y is {actual} at {format_place(place)}, where exact is {exact}"
        yield f"a kernel that rounds in {match.precision.split(',')[0]} can give that"


def list_fitted(best: Match, matches: Iterable[Match]) -> Iterator[str]:
    """Yield clauses that name options which y cannot tell, as gamma was fitted to it; nothing if it was not.

    Such options are ddof, and another place of eps that fits as well. `matches` are all matches of the tensor.
    """
    if best.affine != ESTIMATED:
        return
    if NORMS[best.norm].centre is Centre.MEAN:
        yield "the fitted gamma hides ddof"
    same = [match for match in matches if (match.norm, match.axes) == (best.norm, best.axes)]
    for mode in sorted({match.eps_mode for match in same if match.eps_mode} - {best.eps_mode}):
        yield f"eps {mode} the root fits as well"


def choose_others(best: Match, others: Iterable[Match]) -> list[Match]:
    """Return, in order, the matches that would be worded otherwise than the best one and than each other.

    Matches with a less usual eps or axes than the best are left out.
    """
    chosen = {_make_key(best): best}
    for match in others:
        if match.is_usual >= best.is_usual and match.by_default >= best.by_default:
            chosen.setdefault(_make_key(match), match)
    return list(chosen.values())[1:]


def _make_key(match: Match) -> tuple[Any, ...]:
    """Return a key by which matches have the same words; it has no eps mode if an eps of 0 fits too."""
    place = None if match.eps_range[0] == 0.0 else match.eps_mode
    return (place, *(getattr(match, name) for name in _TELLING))


def format_place(index: Iterable[int | np.intp]) -> str:
    """Return an index as `(0, 1, 2)`."""
    return f"({', '.join(map(str, index))})"


def list_of_factor(matches: Iterable[Match], size: int) -> Iterator[str]:
    """Yield at most one clause: a match by an ℓ2 length is also a root mean square, times a constant factor.

    x / √(Σx² + eps) is x / √(ms + eps/n), divided by √n. Only a match with an unusual eps counts, if eps/n is
    usual.

    Parameters
    ----------
    matches : iterable of Match
        Matches of the same groups; the first such length gives the clause.
    size : int
        The number of values in a group, n.
    """
    for match in matches:
        if match.p == _EUCLIDEAN and match.eps_mode == EpsMode.INSIDE and not match.is_usual:
            low, high = (bound / size for bound in match.eps_range)
            row = next(norm for norm in NORMS.values() if norm.divisor == ROOT_MEAN_SQUARE)
            for eps in (eps for eps in COMMON_EPS if low <= eps <= high):
                yield f"{row.title} with eps {eps:g}, divided by √{size}, is the same"
                return


_EUCLIDEAN = 2.0
