"""Comparisons of given gradients with the exact ones, and the fault of each that differs."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_faults import FACTOR, ROWS, ZERO
from normcli.checking.gradient_forms import WrongGradient
from normcli.checking.gradient_terms import make_terms
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.dtypes import get_eps, get_smallest, is_float, is_short_float
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError
from normcli.numerics.rounding import widen
from normcli.results.backward import calculate_backward
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.checking.fault import Fault
    from normcli.checking.gradient_terms import GradientTerms
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.engine.walk import Effort
    from normcli.results.backward import BackwardProblem, Gradients

_MOST_VALUES = 1 << 22
"""No fault is looked for in larger tensors: it takes about a dozen float64 arrays of their size."""

_CLEARLY = 8.0
"""A gradient has a fault if it is this many times nearer to that with the fault than to the exact one."""

_FEW, _MORE_CLEARLY = 16, 32.0
"""With fewer than 16 values or 4 groups, the gradient has to be 32 times nearer: 8 times may be by chance."""

_SAME = 1e-9
"""Gradients with two faults count as equal if they differ by less than this part of the exact gradient."""

_LEAST_ROUNDINGS = 4.0
"""The error of a right gradient, in roundings of its terms; for n terms, √n if this is more."""

_MOST_SAID = 3
"""The most numbers that are named if several fit a gradient equally well, as in `eps is 1e-08 or 0`."""

_Wrong = tuple["Fault", tuple[str, ...], Any]
"""A fault, the values for its words, and the gradient of a kernel with the fault."""


class GradientFinding(NamedTuple):
    """A fault that was found in a given gradient.

    Parameters
    ----------
    name : str
        The gradient: `dx`, `dgamma`, `dbeta` or `dgate`.
    fault : Fault
        The fault whose gradient is nearest, with values in its words.
    alternatives : tuple of Fault
        Other faults whose gradients are about as near on these data.
    evidence : str
        A clause that compares the errors from the gradient with the fault and from the exact one; empty for a
        gradient of zeros.
    """

    name: str
    fault: Fault
    alternatives: tuple[Fault, ...] = ()
    evidence: str = ""

    @property
    def sentence(self) -> str:
        """The fault in a sentence, with its alternatives."""
        same = [fault.words for fault in (self.fault, *self.alternatives)]
        return f"{self.name}: {', or on these data the same: '.join(same[:2])}."


class CheckedGradients(NamedTuple):
    """The comparisons that `check_gradients` made.

    Parameters
    ----------
    gradients : Gradients
        The exact gradients, rounded to float64.
    comparisons : mapping of str to Comparison
        The comparison of each gradient, by its name: `dx`, `dgamma`, `dbeta` or `dgate`.
    faults : mapping of str to GradientFinding
        The fault of each gradient that differs, by its name; gradients without a known fault are left out.
    """

    gradients: Gradients
    comparisons: Mapping[str, Comparison]
    faults: Mapping[str, GradientFinding]

    @property
    def ok(self) -> bool:
        """Whether every value of every gradient is within the tolerance."""
        return all(comparison.ok for comparison in self.comparisons.values())


def check_gradients(
    problem: BackwardProblem,
    actual: Mapping[str, NDArray[Any]],
    tolerate: Callable[..., Tolerance] = choose_tolerance,
    effort: Effort = DEFAULT_EFFORT,
    allowed: Mapping[str, Floats] = MappingProxyType({}),
) -> CheckedGradients:
    """Compare gradients with the exact ones, and find the fault of each that differs.

    Parameters
    ----------
    problem : BackwardProblem
    actual : mapping of str to ndarray
        The given gradients, by name: some of `dx`, `dgamma`, `dbeta` and `dgate`.
    tolerate : callable
        Takes a dtype and `scale`, the largest |expected|, and returns the tolerance. Gradients of a mean loss
        are so small that with a fixed absolute tolerance every gradient would pass.
    effort : Effort
        Threads and memory; the result does not depend on it.
    allowed : mapping of str to ndarray of float64
        The largest error of each value of a gradient, by its name, in place of the tolerance. Gradients that
        are left out are judged by the tolerance.

    Raises
    ------
    DataError
        If a shape does not fit.
    UsageError
        If the problem has no parameter or gate of a gradient's name.
    """
    plan, inputs = problem.plan, problem.inputs
    gamma, beta = (None if a is None else a.astype(np.float64) for a in (inputs.gamma, inputs.beta))
    gate, before = (
        None if gate is None else gate._replace(values=widen(gate.values))
        for gate in (inputs.gate, inputs.gated_input)
    )
    inputs = inputs._replace(gamma=gamma, beta=beta, gate=gate, gated_input=before)
    wide = problem._replace(plan=plan.change_spec(dtype="float64"), inputs=inputs)
    exact = calculate_backward(wide, effort=effort)
    comparisons, faults = {}, {}
    for name, array in actual.items():
        expected = exact.field(name)
        if expected is None:
            missing = name.removeprefix("d")
            raise UsageError(f"{plan.norm.name} has no {missing}{'; give --gate' if missing == 'gate' else ''}")
        array = _fit(name, array, expected.shape)
        found = Comparison(tolerate(choose_counting_dtype(array.dtype), scale=_find_scale(expected)))
        found.compare_all(array, expected, allowed.get(name))
        comparisons[name] = found
        fault = None if found.ok else find_fault(exact, name, array)
        if fault is not None:
            faults[name] = fault
    return CheckedGradients(exact, comparisons, faults)


def _find_scale(expected: NDArray[Any]) -> float:
    """Return the largest finite |value| of a tensor in memory or in a file; 0 if no value is finite."""
    pieces = (np.abs(piece) for piece in iterate_pieces(expected))
    return max((float(piece.max(initial=0.0, where=np.isfinite(piece))) for piece in pieces), default=0.0)


def _fit(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array in another shape; raise `DataError` if the shapes differ other than by lengths of 1.

    `name` is the gradient's name in the message.
    """
    if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
        raise DataError(f"{name} has the shape {array.shape}; it takes {shape}")
    return array.reshape(shape)


# -- how a gradient is wrong


def find_fault(exact: Gradients, name: str, actual: NDArray[Any]) -> GradientFinding | None:
    """Return the fault of a given gradient; None if it has no known fault, or if x has more than 2²² values.

    Parameters
    ----------
    exact : Gradients
        All exact gradients, in float64.
    name : {"dx", "dgamma", "dbeta", "dgate"}
    actual : ndarray
        The given gradient, of the shape of the exact one.
    """
    right = exact.field(name)
    if right is None or exact.input.size > _MOST_VALUES:
        return None
    if not actual.any():
        return GradientFinding(name, ZERO._replace(id=f"{name}-{ZERO.id}"))
    with np.errstate(all="ignore"):
        wide, terms = actual.astype(np.float64), _make_terms(exact, name)
        scales, all_count = _Scales.of(exact, name, actual, right, terms), exact.inputs.selection is None
        faults = _list_wrong(exact, name, wide, right) if all_count else ()
        found = _choose(name, wide, right, faults, scales)
        return found or _choose(name, wide, right, _scale(wide, right, scales), scales)


def is_off_by_rounding(exact: Gradients, name: str, actual: NDArray[Any]) -> bool:
    """Whether a gradient's error is within the rounding errors of its terms, which may be far larger than it.

    False if x has more than 2²² values.

    Parameters
    ----------
    exact : Gradients
        All exact gradients, in float64.
    name : {"dx", "dgamma", "dbeta", "dgate"}
    actual : ndarray
        The given gradient, of the size of the exact one.
    """
    right = exact.field(name)
    if right is None or exact.input.size > _MOST_VALUES:
        return False
    with np.errstate(all="ignore"):
        wide = actual.astype(np.float64).reshape(right.shape)
        scales = _Scales.of(exact, name, actual, right, _make_terms(exact, name))
        return scales.measure(wide - right) <= scales.measure(scales.noise)


def _make_terms(exact: Gradients, name: str) -> GradientTerms | None:
    """Return the terms of a gradient; None for dgate, dx of a gated input, and norms without terms."""
    gated_last = name == "dgate" or (name == "dx" and exact.inputs.gated_input is not None)
    return None if gated_last else make_terms(exact)


class _Scales(NamedTuple):
    """The weight of each value of a gradient in comparisons, and the bound on its rounding error.

    Parameters
    ----------
    weight : ndarray
        The weight of each value, with which every group counts alike: groups of large x have small gradients.
    noise : ndarray
        The bound on the rounding error of each value.
    known : ndarray of bool or None
        True where the bound is finite; None if it is finite everywhere.
    clearly : float
        The factor by which a fault's gradient has to be nearer than the exact one.
    """

    weight: Any
    noise: Any
    known: Any
    clearly: float

    @classmethod
    def of(
        cls, exact: Gradients, name: str, actual: NDArray[Any], right: Floats, terms: GradientTerms | None
    ) -> _Scales:
        """Return the weights and bounds for a gradient.

        Parameters
        ----------
        exact : Gradients
        name : {"dx", "dgamma", "dbeta", "dgate"}
        actual, right : ndarray
            The given gradient, whose dtype counts, and the exact one.
        terms : GradientTerms or None
            If None, bounds are taken from the exact gradient alone, and all weights are 1.
        """
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
        """Return the root of the sum of (weight · value)², without values whose bound is not finite."""
        weighed = values * self.weight
        return float(np.linalg.norm(weighed if self.known is None else weighed[self.known]))


def _find_length(values: Floats, axes: tuple[int, ...]) -> Floats:
    lengths: Floats = np.sqrt((values * values).sum(axes, keepdims=True))
    return lengths


def _choose(
    name: str, actual: Floats, right: Floats, candidates: Iterable[_Wrong], scales: _Scales
) -> GradientFinding | None:
    """Return the finding of the fault nearest to a given gradient, with the faults about as near.

    None if no fault's gradient is much nearer than the exact one (see `_Scales.clearly`), or if the difference
    from the exact one is within rounding.

    Parameters
    ----------
    name : {"dx", "dgamma", "dbeta", "dgate"}
    actual, right : ndarray
        The given gradient and the exact one.
    candidates : iterable of (Fault, tuple of str, ndarray)
        The faults to choose from, each with the values for its words and its gradient.
    scales : _Scales
    """
    off, noise = scales.measure(actual - right), scales.measure(scales.noise)
    if off <= noise:
        return None
    near = []
    for fault, details, wrong in candidates:
        distance = scales.measure(actual - wrong)
        if distance * scales.clearly < min(off, scales.measure(wrong)):
            near.append((distance, fault, details))
    if not near:
        return None
    best, size = min(distance for distance, *_ in near), scales.measure(right) or off
    near.sort(key=lambda one: max(one[0], 2.0 * best, _SAME * size))  # else as in the table
    alike: dict[str, tuple[Fault, list[tuple[str, ...]]]] = {}
    for distance, fault, details in near:
        if distance <= max(_CLEARLY * best, _SAME * size, noise):
            alike.setdefault(fault.id, (fault, []))[1].append(details)
    first, *others = [_say(name, *one) for one in alike.values()]
    so, else_ = best / size, off / size
    return GradientFinding(
        name, first, tuple(others), f"so calculated, it is off by {so:.1g} of its size, not by {else_:.2g}"
    )


def _say(name: str, fault: Fault, every: list[tuple[str, ...]]) -> Fault:
    """Return a fault with the gradient's name in its id, and with values in its words, joined by `or`.

    `every` has a tuple of values for each equally good form of the fault, one value for each pair of braces.
    """
    joined = [" or ".join(list(dict.fromkeys(column))[:_MOST_SAID]) for column in zip(*every, strict=True)]
    words, remedy = fault.words.format(*joined), fault.remedy.format(*joined)
    return fault._replace(id=f"{name}-{fault.id}", words=words, remedy=remedy)


def _scale(actual: Floats, right: Floats, scales: _Scales) -> Iterator[_Wrong]:
    """Yield the fault of a factor, with the nearest multiple of the exact gradient.

    The factor is that of least squares; nothing is yielded if it is 1, rounded to 3 digits.
    """
    usable = np.isfinite(actual) & np.isfinite(right)
    known, wide = (np.where(usable, values * scales.weight, 0.0) for values in (right, actual))
    factor = float(np.vdot(wide, known) / np.vdot(known, known))
    if f"{factor:.3g}" != "1":
        yield FACTOR, (f"{factor:.3g}",), np.where(usable, factor * right, actual)


def _list_wrong(exact: Gradients, name: str, actual: Floats, right: Floats) -> Iterator[_Wrong]:
    """Yield each possible fault, the values for its words, and the gradient of a kernel with the fault.

    If `make_terms` returns None for the norm, only the turned sign is yielded. `actual` and `right` are the
    given and the exact gradient of this name, of one shape.
    """
    terms = make_terms(exact)
    if terms is None:
        yield ROWS[0].fault, (), -right
        return
    case = WrongGradient(exact, name, actual, right, terms)
    for row in ROWS:
        for made in row.vary(case):
            details, wrong = made if isinstance(made, tuple) else ((), made)
            if wrong is not None:
                yield row.fault, details, _add_up(wrong, exact.input.shape, right.shape)


def _add_up(wrong: Floats, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Floats:
    """Return a gradient in the shape `wanted`; of a gate that broadcast to `shape`, repetitions are added."""
    if wrong.size != math.prod(wanted):
        lengths = (1,) * (len(shape) - len(wanted)) + wanted
        wrong = wrong.reshape(shape).sum(tuple(axis for axis, n in enumerate(lengths) if n == 1))
    return wrong.reshape(wanted)
