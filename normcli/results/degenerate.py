"""Groups whose statistics mean little: found, named and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_float
from normcli.norms.grid import ONLY_GROUP
from normcli.norms.table import Centre, ZeroRule
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.engine.inputs import Selection
    from normcli.norms.plan import Plan

    Marks = NDArray[np.bool_]


class Degeneracy(NamedTuple):
    """One kind of degenerate group, with the first group of the kind.

    Parameters
    ----------
    kind : str
        `empty`, `masked` (no value counts), `single`, `constant`, `zero`, `nan`, `infinite`, `overflow` (of a
        statistic) or `output` (normalized values that are not finite in the output's dtype).
    first_group : str or None
        The name of the first such group; None where there is no group to name.
    group_count : int
        How many groups are of the kind.
    consequence : str
        What comes out for them.
    """

    kind: str
    first_group: str | None
    group_count: int
    consequence: str

    def __str__(self) -> str:
        if self.first_group is None:
            return self.consequence
        others = self.group_count - 1
        more = "" if not others else f" (and {others} more group{'s' if others > 1 else ''})"
        name = "the only group" if self.first_group == ONLY_GROUP else f"group {self.first_group}"
        return f"{name}{more} {self.consequence}"


def find_degeneracies(
    plan: Plan,
    values: NDArray[Any],
    statistics: Mapping[str, NDArray[np.float64]],
    normalized: NDArray[Any] | None,
    counts: NDArray[np.float64] | None = None,
    selection: Selection | None = None,
) -> tuple[Degeneracy, ...]:
    """Return the degenerate kinds of groups, each once, in a fixed order.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The input.
    statistics : mapping of str to ndarray
        Of `Grid.stats_shape`.
    normalized : ndarray or None
        The output, where gamma, beta or a window may have made it infinite; None where nothing can have.
    counts : ndarray or None
        How many values of each group count, of `Grid.stats_shape`; None where all do.
    selection : Selection or None
        Which values count; None where all do.

    Notes
    -----
    The statistics tell nearly all; the values are looked at only where they leave a doubt.
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
        return tuple(_search(plan, values, statistics, normalized, counts, selection))


def find_degeneracies_of_evaluation(
    plan: Plan,
    values: NDArray[Any],
    statistics: Mapping[str, NDArray[np.float64]],
    normalized: NDArray[Any] | None,
    selection: Selection | None = None,
) -> tuple[Degeneracy, ...]:
    """Return the degenerate kinds of groups where running statistics were used instead of their own.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The input.
    statistics : mapping of str to ndarray
        The running ones, of `Grid.stats_shape`.
    normalized : ndarray or None
        The output; None where it is not known.
    selection : Selection or None
        Which values count; None where all do.
    """
    with np.errstate(invalid="ignore"):
        return tuple(_search_evaluation(plan, values, statistics, normalized, selection))


def _search_evaluation(
    plan: Plan,
    values: NDArray[Any],
    statistics: Mapping[str, NDArray[np.float64]],
    normalized: NDArray[Any] | None,
    selection: Selection | None,
) -> Iterator[Degeneracy]:
    if not values.size:
        yield Degeneracy(
            "empty", None, 0, f"the tensor {plan.grid.shape} holds no values: nothing to normalize"
        )
        return
    known = _find_groups(_is_any_not_finite, statistics["mean"], statistics["var"])
    if known.size:
        yield _describe(plan, "nan", known, "has running statistics that are not finite")
    zero = _without(_find_groups(np.isinf, statistics["rstd"]), known)
    if zero.size:
        told = "has the running variance 0 and no eps: its normalized values are infinite or NaN"
        yield _describe(plan, "zero", zero, told)
    bad = _unite(known, zero)
    if is_float(values.dtype):
        spoilt = _without(_find_spoilt_groups(values, values, plan, selection), bad)
        if spoilt.size:
            yield _describe(plan, "nan", spoilt, "holds NaN or an infinity, which stays what it is")
            bad = _unite(bad, spoilt)
    if normalized is None:
        return
    spoilt = _without(_find_spoilt_groups(normalized, values, plan, selection), bad)
    if spoilt.size:
        told = f"has normalized values that are not finite in {normalized.dtype}"
        yield _describe(plan, "output", spoilt, told)


def _search(
    plan: Plan,
    values: NDArray[Any],
    statistics: Mapping[str, NDArray[np.float64]],
    normalized: NDArray[Any] | None,
    counts: NDArray[np.float64] | None,
    selection: Selection | None,
) -> Iterator[Degeneracy]:
    divisor = plan.norm.divisor
    if plan.grid.group_count == 0:
        yield Degeneracy("empty", None, 0, f"the tensor {plan.grid.shape} has no groups: nothing to normalize")
        return
    if plan.grid.group_size == 0:
        told = f"holds no values: {divisor.told_of_nothing}"
        yield _describe(plan, "empty", range(plan.grid.group_count), told)
        return
    suspect = _find_groups(_is_any_not_finite, *(statistics[name] for name in divisor.sizes))
    bad = np.zeros(0, dtype=np.intp)
    if counts is not None and plan.spec.window is None:  # a window may well be empty: it is a sum
        bad = _find_groups(_is_zero, counts)
        if bad.size:
            yield _describe(plan, "masked", bad, f"has no value that counts: {divisor.told_of_nothing}")
        suspect = _without(suspect, bad)
    if is_float(values.dtype) and (suspect.size or _passes_over_infinities(plan)):
        nan, infinite = _find_groups_with(np.isnan, values, plan), _find_groups_with(np.isinf, values, plan)
        if counts is not None:  # what does not count may be anything
            nan, infinite = _common(nan, suspect), _common(infinite, suspect)
        if nan.size:
            yield _describe(plan, "nan", nan, "holds NaN: its statistics and values are NaN")
        if infinite.size:
            consequence = "holds an infinity: its statistics or values are infinite or NaN"
            yield _describe(plan, "infinite", infinite, consequence)
        bad = _unite(bad, nan, infinite)
    if counts is not None and plan.norm.centre is not Centre.NOTHING:
        few = _without(_find_groups(lambda n: n <= max(1, plan.spec.ddof), counts), bad)
        if few.size:
            yield _describe(plan, "single", few, _tell_of_singles(plan, " that counts"))
            bad = _unite(bad, few)
    elif plan.norm.centre is not Centre.NOTHING and plan.grid.group_size <= max(1, plan.spec.ddof):
        yield _describe(plan, "single", range(plan.grid.group_count), _tell_of_singles(plan, ""))
        return
    if plan.spec.window is None:
        yield from _search_flat_groups(plan, statistics, bad)
    if plan.spec.window is not None and bad.size:
        return  # what is not finite spoils its neighbours' windows too
    overflown = _without(suspect, bad)
    if overflown.size:
        yield _describe(plan, "overflow", overflown, "is beyond float64: its statistics are not finite")
        bad = _unite(bad, overflown)
    if normalized is not None:
        spoiled = _without(_find_spoilt_groups(normalized, values, plan, selection), bad)
        if spoiled.size:
            consequence = f"has normalized values that are not finite in {normalized.dtype}"
            yield _describe(plan, "output", spoiled, consequence)


def _tell_of_singles(plan: Plan, which: str) -> str:
    """Return what to say of groups of one value, or of no more than ddof."""
    if plan.spec.ddof:
        size = f"{plan.grid.group_size} value(s)" if not which else "no more values that count than that"
        return f"has {size} against ddof {plan.spec.ddof}: its variance is NaN"
    return f"holds a single value{which}: its {plan.norm.divisor.size} is 0 and its normalized value 0"


def _passes_over_infinities(plan: Plan) -> bool:
    """Whether statistics may be finite beside values that are not: a count, or quartiles."""
    return plan.spec.p == 0 or plan.norm.divisor.resists_outliers


def _search_flat_groups(
    plan: Plan, statistics: Mapping[str, NDArray[np.float64]], bad: NDArray[np.intp]
) -> Iterator[Degeneracy]:
    size, spread = plan.norm.divisor.size, plan.norm.divisor.spread
    assert spread is not None  # of every divisor but that of a window
    flat = _without(_find_groups(_is_zero, statistics[spread]), bad)
    if not flat.size:
        return
    spoilt = plan.spec.zero_rule is ZeroRule.NAN and not plan.spec.eps
    if plan.norm.divisor.resists_outliers:
        values = "NaN" if spoilt else plan.norm.format_zero(plan.spec.zero_rule)
        told = f"has the {size} 0: its normalized values are {values}"
        yield _describe(plan, "constant", flat, told)
    elif plan.norm.centre is not Centre.NOTHING:
        told = f"is constant: its {size} is 0 and its normalized values {'NaN' if spoilt else '0'}"
        yield _describe(plan, "constant", flat, told)
    else:
        told = "its normalized values are NaN" if spoilt else "so are its normalized values"
        yield _describe(plan, "zero", flat, f"is all zeros: {told}")


def _unite(*numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return numbers in order, each once. Not by NumPy's sets: they import masked arrays, which takes 8 ms."""
    ordered: NDArray[np.intp] = np.sort(np.concatenate(numbers))
    fresh = np.ones(ordered.shape, dtype=bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    unique: NDArray[np.intp] = ordered[fresh]
    return unique


def _common(numbers: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the numbers that are among others; both are in order, each once."""
    return _without(numbers, _without(numbers, others))


def _without(numbers: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the numbers that are not among others; both are in order, each once."""
    if not others.size:
        return numbers
    places = np.minimum(np.searchsorted(others, numbers), others.size - 1)
    left: NDArray[np.intp] = numbers[others[places] != numbers]
    return left


def _is_zero(values: NDArray[Any]) -> Marks:
    marks: Marks = values == 0.0
    return marks


def _is_not_finite(values: NDArray[Any]) -> Marks:
    marks: Marks = ~np.isfinite(values)
    return marks


def _is_any_not_finite(*statistics: NDArray[Any]) -> Marks:
    marks: Marks = np.logical_or.reduce([_is_not_finite(values) for values in statistics])
    return marks


def _find_groups(test: Callable[..., Marks], *statistics: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the numbers of the groups whose statistics pass a test, in order."""
    found, start = [np.zeros(0, dtype=np.intp)], 0
    for pieces in zip(*map(iterate_pieces, statistics), strict=True):
        found.append(np.flatnonzero(test(*pieces)) + start)
        start += pieces[0].size
    return np.concatenate(found)


def _find_groups_with(
    test: Callable[[NDArray[Any]], Marks], values: NDArray[Any], plan: Plan
) -> NDArray[np.intp]:
    """Return the numbers of the groups that hold a value that passes a test, in order."""
    found, start = [np.zeros(0, dtype=np.intp)], 0
    for piece in iterate_pieces(values):
        passing = np.flatnonzero(test(piece))
        if passing.size:
            places = np.unravel_index(passing + start, plan.grid.shape or (1,))
            found.append(_unite(plan.grid.locate_groups(places)))
        start += piece.size
    return _unite(*found)


def _find_spoilt_groups(
    tested: NDArray[Any], values: NDArray[Any], plan: Plan, selection: Selection | None
) -> NDArray[np.intp]:
    """Return the numbers of the groups that hold what is not finite, other than for not counting."""
    if selection is None:
        return _find_groups_with(_is_not_finite, tested, plan)
    found, start = [np.zeros(0, dtype=np.intp)], 0
    for piece in iterate_pieces(tested):
        passing = np.flatnonzero(_is_not_finite(piece))
        if passing.size:
            places = np.unravel_index(passing + start, plan.grid.shape or (1,))
            spoilt = selection.find_spoilt(values.reshape(plan.grid.shape or (1,)), places)
            found.append(_unite(plan.grid.locate_groups([index[spoilt] for index in places])))
        start += piece.size
    return _unite(*found)


def _describe(plan: Plan, kind: str, numbers: range | NDArray[np.intp], consequence: str) -> Degeneracy:
    return Degeneracy(kind, plan.grid.group_name(int(numbers[0])), len(numbers), consequence)
