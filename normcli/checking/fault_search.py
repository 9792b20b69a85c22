"""How a gradient is wrong: each known fault is tried on the data, and those that come nearest are said."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_faults import FACTOR, ROWS, ZERO
from normcli.checking.gradient_forms import Case
from normcli.checking.gradient_terms import make_terms
from normcli.dtypes import get_eps, get_smallest, is_float, is_short_float
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from normcli.checking.fault import Fault
    from normcli.checking.gradient_terms import Terms
    from normcli.dtypes import Floats
    from normcli.results.backward import Gradients

_MOST_VALUES = 1 << 22
"""In larger tensors no fault is looked for: some dozen float64 arrays are made of their size."""

_CLEARLY = 8.0
"""A fault explains what is so many times nearer to it than to the exact gradient."""

_FEW, _MORE_CLEARLY = 16, 32.0
"""Of fewer values, or of a quarter as many groups, one of so many faults comes as near by chance."""

_SAME = 1e-9
"""What differs by less, as part of a gradient, is the same on the data."""

_LEAST_ROUNDINGS = 4.0
"""A right gradient may be off by so many roundings of its terms, or by the root of how many are summed."""

_MOST_SAID = 3
"""So many numbers are said that explain a gradient equally well: `eps is 1e-08 or 0`."""

_Wrong = tuple["Fault", tuple[str, ...], Any]
"""A fault, the values of its words, and the gradient that it gives."""


class Finding(NamedTuple):
    """How a gradient is wrong.

    Parameters
    ----------
    name : str
        Of the gradient.
    fault : Fault
        The one that comes nearest, with its values in its words.
    alternatives : tuple of Fault
        Those that come as near, on these data.
    evidence : str
        How near.
    """

    name: str
    fault: Fault
    alternatives: tuple[Fault, ...] = ()
    evidence: str = ""

    @property
    def sentence(self) -> str:
        """What is wrong, and what else it may be."""
        same = [fault.words for fault in (self.fault, *self.alternatives)]
        return f"{self.name}: {', or on these data the same: '.join(same[:2])}."


class _Candidate(NamedTuple):
    """A fault, the values of its words, and how far it is off."""

    fault: Fault
    details: tuple[str, ...]
    distance: float


def find_fault(exact: Gradients, name: str, actual: NDArray[Any]) -> Finding | None:
    """Return how somebody's gradient is wrong; None where no one fault explains it.

    Parameters
    ----------
    exact : Gradients
        In float64.
    name : {"dx", "dgamma", "dbeta"}
    actual : ndarray
        Of the shape of the exact one.
    """
    right = exact.field(name)
    if right is None or exact.input.size > _MOST_VALUES:
        return None
    if not actual.any():
        return Finding(name, ZERO._replace(id=f"{name}-{ZERO.id}"))
    with np.errstate(all="ignore"):
        wide, terms = actual.astype(np.float64), make_terms(exact)
        scales, all_count = _Scales.of(exact, name, actual, right, terms), exact.inputs.selection is None
        faults = _list_wrong(exact, name, wide, right, terms) if all_count else ()
        found = _choose(name, wide, right, faults, scales)
        return found or _choose(name, wide, right, _scale(wide, right, scales), scales)


class _Scales(NamedTuple):
    """What each value is multiplied by before it is compared, and how far a right one may be off.

    Parameters
    ----------
    weight : ndarray
        Large groups of x have small gradients: each counts as much as the others.
    noise : ndarray
    known : ndarray of bool or None
        Where there is a gradient; None for everywhere.
    clearly : float
        How many times nearer than what is right a fault has to come.
    """

    weight: Any
    noise: Any
    known: Any
    clearly: float

    @classmethod
    def of(
        cls, exact: Gradients, name: str, actual: NDArray[Any], right: Floats, terms: Terms | None
    ) -> _Scales:
        """Return them for a gradient; where the divisor is made of other powers, for its values alone."""
        short = is_short_float(actual.dtype) or is_short_float(exact.input.dtype)
        stored, least = 0.0, 0.0
        if is_float(actual.dtype):
            stored, least = get_eps(actual.dtype) / 2, get_smallest(actual.dtype.name)
        rounding, size, weight = 2.0**-24 if short else 2.0**-53, np.abs(right), np.ones(right.shape)
        count = exact.input.size // max(1, right.size)
        if terms is not None and name == "dx":
            count, size = terms.size, terms.measure()
            weight = np.broadcast_to(terms.divisor, size.shape) / _find_length(terms.dy, terms.axes)
        elif terms is not None:
            along = tuple(axis for axis, n in enumerate(exact.plan.parameters.view_shape) if n == 1)
            shares = terms.measure_shares() if name == "dgamma" else np.abs(terms.dy)
            size, weight = shares.sum(along), 1.0 / _find_length(terms.dy, along)
        roundings = max(_LEAST_ROUNDINGS, math.sqrt(count)) * rounding
        weight = np.where(np.isfinite(weight), weight, 0.0).reshape(right.shape)
        noise = np.abs(right) * stored + least / 2 + size.reshape(right.shape) * roundings
        known = np.isfinite(noise)
        is_few = right.size < _FEW or exact.plan.grid.group_count < _FEW // 4
        return cls(weight, noise, None if known.all() else known, _MORE_CLEARLY if is_few else _CLEARLY)

    def measure(self, values: Floats) -> float:
        """Return how large values are, where the gradient is known."""
        weighed = values * self.weight
        return float(np.linalg.norm(weighed if self.known is None else weighed[self.known]))


def _find_length(values: Floats, axes: tuple[int, ...]) -> Floats:
    lengths: Floats = np.sqrt((values * values).sum(axes, keepdims=True))
    return lengths


def _choose(
    name: str,
    actual: Floats,
    right: Floats,
    candidates: Iterable[_Wrong],
    scales: _Scales,
) -> Finding | None:
    """Return the fault that is much nearer than what is right, and those that are as near."""
    off, noise = scales.measure(actual - right), scales.measure(scales.noise)
    if off <= noise:
        return None
    near = []
    for fault, details, wrong in candidates:
        distance = scales.measure(actual - wrong)
        if distance * scales.clearly < min(off, scales.measure(wrong)):
            near.append(_Candidate(fault, details, distance))
    if not near:
        return None
    best, size = min(candidate.distance for candidate in near), scales.measure(right) or off
    near.sort(key=lambda candidate: max(candidate.distance, 2.0 * best, _SAME * size))  # else as in the table
    found: dict[str, list[_Candidate]] = {}
    for candidate in near:
        if candidate.distance <= max(_CLEARLY * best, _SAME * size, noise):
            found.setdefault(candidate.fault.id, []).append(candidate)
    first, *others = [_say(name, same) for same in found.values()]
    so, else_ = best / size, off / size
    return Finding(
        name, first, tuple(others), f"so calculated, it is off by {so:.1g} of its size, not by {else_:.2g}"
    )


def _say(name: str, same: list[_Candidate]) -> Fault:
    """Return a fault with its whole id, and the values that fit equally well in its words."""
    fault = same[0].fault
    columns = zip(*(candidate.details for candidate in same), strict=True)
    joined = [" or ".join(list(dict.fromkeys(column))[:_MOST_SAID]) for column in columns]
    words, remedy = fault.words.format(*joined), fault.remedy.format(*joined)
    return fault._replace(id=f"{name}-{fault.id}", words=words, remedy=remedy)


def _scale(actual: Floats, right: Floats, scales: _Scales) -> Iterator[_Wrong]:
    """Yield the multiple of what is right that comes nearest."""
    usable = np.isfinite(actual) & np.isfinite(right)
    known, wide = (np.where(usable, values * scales.weight, 0.0) for values in (right, actual))
    factor = float(np.vdot(wide, known) / np.vdot(known, known))
    if f"{factor:.3g}" != "1":
        yield FACTOR, (f"{factor:.3g}",), np.where(usable, factor * right, actual)


def _list_wrong(
    exact: Gradients, name: str, actual: Floats, right: Floats, terms: Terms | None
) -> Iterator[_Wrong]:
    """Yield each fault, the values of its words, and what it would give."""
    if terms is None:
        yield ROWS[0].fault, (), -right
        return
    has = {"": True, "centre": terms.centres, "gamma": exact.inputs.gamma is not None}
    case = Case(exact, name, actual, right, terms)
    for row in ROWS:
        if name in row.names.split() and has[row.needs]:
            made = row.make(case)
            for details, wrong in [((), made)] if made is None or isinstance(made, np.ndarray) else made:
                if wrong is not None:
                    yield row.fault, details, wrong.reshape(right.shape)
