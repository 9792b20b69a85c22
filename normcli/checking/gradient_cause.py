"""The cause of a wrong gradient: a fault whose gradient is nearest, or two, or rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.checking.fault import Fault, find_fault
from normcli.checking.gradient_bounds import CLEARLY, GradientScales
from normcli.checking.gradient_faults import (
    FITS,
    OVERFLOW,
    VALUES,
    ZERO,
    count_factors,
    find_overflow,
    list_factors,
    list_pairs,
    list_wrong,
)
from normcli.checking.gradient_terms import make_terms
from normcli.checking.wrong_gradient import WrongGradient
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from normcli.checking.gradient_faults import Wrong
    from normcli.checking.gradient_terms import GradientTerms
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.results.backward import Gradients

_MOST_VALUES = 1 << 22
"""No fault is looked for in larger tensors: it takes about a dozen float64 arrays of their size."""

_SAME = 1e-9
"""Gradients with two faults count as equal if they differ by less than this part of the exact gradient."""

_MOST_SAID = 3
"""The most numbers that are named if several fit a gradient equally well, as in `eps is 1e-08 or 0`."""

_FEWEST = 3
"""The fewest sizes of values that show a fault where rounding may explain it too: fewer fit by chance."""

_FEW_WRONG = 0.05
"""The largest part of all values that may be wrong where rounding explains the others."""


class GradientFinding(NamedTuple):
    """The cause of a given gradient's difference: a fault, or rounding.

    Parameters
    ----------
    name : str
        The gradient: `dx`, `dgamma`, `dbeta` or `dgate`.
    fault : Fault
        The fault whose gradient is nearest, with values in its words. Its id is empty if rounding explains the
        difference, or nothing does.
    alternatives : tuple of Fault
        Other faults whose gradients are about as near on these data.
    evidence : tuple of str
        Clauses with numbers: how far off the gradient is with and without the fault, or compared with bounds of
        rounding. Empty for a gradient of zeros.
    is_rounding : bool
        True if rounding explains the difference.
    """

    name: str
    fault: Fault
    alternatives: tuple[Fault, ...] = ()
    evidence: tuple[str, ...] = ()
    is_rounding: bool = False

    @property
    def sentence(self) -> str:
        """The fault in a sentence, with its alternatives."""
        same = [fault.words for fault in (self.fault, *self.alternatives)]
        return f"{self.name}: {', or on these data the same: '.join(same[:2])}."


def find_cause(
    exact: Gradients, name: str, actual: NDArray[Any], tolerance: Tolerance | None = None
) -> GradientFinding | None:
    """Return the cause of a given gradient's difference; None above 2²² values, and if none can be told.

    With a mask, or if the norm's gradients have no known terms, only a few faults can be told.

    Parameters
    ----------
    exact : Gradients
        All exact gradients, in float64.
    name : {"dx", "dgamma", "dbeta", "dgate"}
    actual : ndarray
        The given gradient, of the shape of the exact one.
    tolerance : Tolerance or None
        The tolerance that the user asked for: a fault counts if its gradient is within it of the given one.
        None if the bounds of rounding decide.
    """
    right = exact.field(name)
    if right is None or exact.input.size > _MOST_VALUES:
        return None
    with np.errstate(all="ignore"):
        wide, terms = actual.astype(np.float64), make_terms(exact)
        scales, all_count = (
            GradientScales.of(exact, name, actual.dtype, right, terms),
            exact.inputs.selection is None,
        )
        if not actual.any() and scales.find_level(right) > 0:
            over = find_overflow(exact, name, actual.dtype, terms)
            return GradientFinding(name, _say(name, find_fault(OVERFLOW if over else ZERO), [over]))
        case = WrongGradient(exact, name, wide, right, cast("GradientTerms", terms))
        faults = [*list_wrong(case)] if all_count else []
        found = _choose(case, [*faults, *list_factors(case, scales)], scales, tolerance)
        fine, level = scales._replace(roundings=scales.roundings[:2]), scales.find_level(wide - right)
        if level == len(scales.roundings) and not isinstance(found, GradientFinding):
            fits = [*list_wrong(case, FITS)] if faults and case.is_known else []
            pairs = list_pairs(case, [*faults, *fits], scales) if scales.clearly == CLEARLY else ()
            every = (_choose(case, some, fine) for some in (fits, pairs))  # few values fit by chance
            found = next((one for one in every if isinstance(one, GradientFinding)), found)
        if isinstance(found, GradientFinding):
            return found
        known = terms is not None and all_count  # else bounds are of the exact gradient alone
        return _tell_rounding(name, wide, right, scales, found) if known else None


def _tell_rounding(
    name: str, actual: Floats, right: Floats, scales: GradientScales, nearest: str | None
) -> GradientFinding:
    """Return a finding for a gradient that no fault explains: rounding, a few wrong values, or unknown.

    `nearest` has the words of the nearest fault, which evidence of an unknown cause mentions; None without one.
    """
    error, size = actual - right, scales.measure(right) or 1.0
    beyond = [int(scales.exceeds(error, level).sum()) for level in range(len(scales.roundings))]
    off = scales.measure(error) / size
    clauses: tuple[str, ...] = ("some of it is infinitely far off",)
    if np.isfinite(off):
        clauses = (f"it is off by {off:.2g} of its size",)
    wrong, largest = beyond[-1], scales.roundings[-1].bound
    if not wrong:
        fault, source = scales.blame(beyond.index(0))
        if source != "terms":
            clauses = f"|mean| is up to {scales.skew:.3g} divisors: x̂ may be off by {scales.lost:.2g}", *clauses
        return GradientFinding(name, fault, (), clauses, is_rounding=True)
    far = int(scales.exceeds(error, -1, CLEARLY).sum())
    if wrong <= max(1.0, _FEW_WRONG * error.size) and 2 * far >= wrong < error.size / 2:
        fault = _say(name, find_fault(VALUES), [(format_count(wrong, "value"),)])
        return GradientFinding(name, fault, (), ("rounding explains every other value",))
    clauses = *clauses, f"rounding comes to {scales.measure(largest) / size:.2g} at most"
    clauses = clauses if nearest is None else (*clauses, f"nearest: {nearest}")
    return GradientFinding(name, Fault("", "nothing known explains it", "", ""), (), clauses)


def _choose(
    case: WrongGradient,
    candidates: Iterable[Wrong],
    scales: GradientScales,
    tolerance: Tolerance | None = None,
) -> GradientFinding | str | None:
    """Return the finding of the fault whose gradient is nearest to a given one, with faults about as near.

    The nearest fault has to be nearer than the exact gradient by the factor `scales.clearly`, and what then
    remains within rounding: else a str is returned, the fault's words. None if no fault is near enough, if
    roundings of terms explain the difference and no fault gives the very bits, or if any rounding does and
    values have fewer than 3 sizes. Of few values, rounding that explains the difference as well is an
    alternative.

    Parameters
    ----------
    case : WrongGradient
    candidates : iterable of Wrong
        The faults to choose from.
    scales : GradientScales
    tolerance : Tolerance or None
        If not None, what remains may also be as large as this tolerance.
    """
    name, actual, right = case.name, case.actual, case.right
    off, level = scales.measure(actual - right), scales.find_level(actual - right)
    is_few = np.unique(np.abs(actual[actual != 0.0])).size < _FEWEST  # in groups of two, dx is ±a
    if level < len(scales.roundings) and is_few:
        return None
    if level == 0:  # only what has the very bits is nearer than what rounds as it should
        is_enough = scales.clearly == CLEARLY
        candidates = [one for one in candidates if is_enough and np.array_equal(one.gradient, actual)]
    noise, size = scales.measure(scales.roundings[level - 1].bound), scales.measure(right) or off
    near = []
    for wrong in candidates:
        distance, length = scales.measure(actual - wrong.gradient), scales.measure(wrong.gradient)
        if distance * scales.clearly < min(off, length):
            near.append((distance, max(1.0, length / size), wrong))
    if not near:
        return None
    near.sort(key=lambda one: max(one[0], _SAME * size))
    best, length, nearest = near[0]
    tolerated = 0.0 if tolerance is None else scales.measure(tolerance.atol + tolerance.rtol * np.abs(right))
    if best > max(noise * length, tolerated) and not _is_rounding_of(case, nearest, best, scales):
        return _say(name, nearest.fault, [nearest.details]).words if level == len(scales.roundings) else None
    near.sort(key=lambda one: (max(one[0], 2.0 * best, _SAME * size), count_factors(one[2].fault.id)))
    alike: dict[str, tuple[Fault, list[tuple[str, ...]]]] = {}
    for distance, _, wrong in near:
        if distance <= max(CLEARLY * best, _SAME * size, noise):
            alike.setdefault(wrong.fault.id, (wrong.fault, []))[1].append(wrong.details)
    most = count_factors(next(iter(alike)))  # every fault of one group is about a factor
    first, *others = [_say(name, *one) for id_, one in alike.items() if count_factors(id_) <= most]
    if level < len(scales.roundings) and scales.clearly > CLEARLY:  # few values fit by chance
        others.append(scales.blame(level)[0])
    so, else_ = best / size, off / size
    shown = f"so calculated, it is off by {so:.1g} of its size, not by {else_:.2g}"
    return GradientFinding(name, first, tuple(others), (shown,))


def _is_rounding_of(case: WrongGradient, wrong: Wrong, size: float, scales: GradientScales) -> bool:
    """Whether rounding in a kernel with the fault may come to an error of this size, if its terms are known."""
    if wrong.terms is None or wrong.terms.w.shape != case.t.w.shape:
        return False
    own = GradientScales.of(case.exact, case.name, scales.dtype, wrong.gradient, wrong.terms)
    return size <= scales.measure(own.roundings[len(scales.roundings) - 1].bound)


def _say(name: str, fault: Fault, every: list[tuple[str, ...]]) -> Fault:
    """Return a fault with the gradient's name in front of its id, and with values in the braces of its words.

    `every` has a tuple of values for each form of the fault that fits, one value for each pair of braces.
    Different values for a pair of braces are joined by `or`.
    """
    joined = [" or ".join(list(dict.fromkeys(column))[:_MOST_SAID]) for column in zip(*every, strict=True)]
    return fault.fill(joined)._replace(id=f"{name}-{fault.id}")
