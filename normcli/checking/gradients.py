"""Somebody's gradients, held against the exact ones."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault_search import find_fault
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError
from normcli.results.backward import calculate_backward
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.checking.fault_search import Finding
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.engine.walk import Effort
    from normcli.results.backward import BackwardProblem, Gradients

PIECE = 1 << 14
"""Values compared at once: the dozen arrays that this takes stay in the cache."""


class CheckedGradients(NamedTuple):
    """What `check_gradients` returns.

    Parameters
    ----------
    gradients : Gradients
        The exact ones, rounded to float64.
    comparisons : mapping of str to Comparison
        By what was compared: `dx`, `dgamma` or `dbeta`.
    faults : mapping of str to Finding
        Of those that differ: how they are wrong, where that was found.
    """

    gradients: Gradients
    comparisons: Mapping[str, Comparison]
    faults: Mapping[str, Finding]

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return all(comparison.ok for comparison in self.comparisons.values())


def check_gradients(
    problem: BackwardProblem,
    actual: Mapping[str, NDArray[Any]],
    tolerate: Callable[..., Tolerance] = choose_tolerance,
    effort: Effort = DEFAULT_EFFORT,
    allowed: Mapping[str, Floats] = MappingProxyType({}),
) -> CheckedGradients:
    """Compare gradients with the exact ones, and say how they are wrong.

    Parameters
    ----------
    problem : BackwardProblem
    actual : mapping of str to ndarray
        `dx`, `dgamma`, `dbeta`, or some of them.
    tolerate : callable
        As of `check`; called with `scale`, the largest |expected|: gradients of a mean loss are small, and an
        absolute tolerance that is fixed would take any for right.
    effort : Effort
    allowed : mapping of str to ndarray of float64
        By name: how far each value may be off, in place of what is tolerated.

    Raises
    ------
    DataError
        If a shape does not fit.
    UsageError
        If the norm has no such parameter.
    """
    plan, inputs = problem.plan, problem.inputs
    gamma, beta = (None if a is None else a.astype(np.float64) for a in (inputs.gamma, inputs.beta))
    wide = problem._replace(
        plan=plan.change_spec(dtype="float64"), inputs=inputs._replace(gamma=gamma, beta=beta)
    )
    exact = calculate_backward(wide, effort=effort)
    comparisons, faults = {}, {}
    for name, array in actual.items():
        expected = exact.field(name)
        if expected is None:
            raise UsageError(f"{plan.norm.name} has no {name.removeprefix('d')}")
        array = _fit(name, array, expected.shape)
        found = Comparison(tolerate(choose_counting_dtype(array.dtype), scale=_find_scale(expected)))
        with np.errstate(all="ignore"):
            for piece, part in zip(iterate_pieces(array, PIECE), iterate_pieces(expected, PIECE), strict=True):
                start = found.compared
                limits = None if name not in allowed else allowed[name].reshape(-1)[start : start + part.size]
                found.compare(fetch(piece), part, start, limits)
        comparisons[name] = found
        fault = None if found.ok else find_fault(exact, name, array)
        if fault is not None:
            faults[name] = fault
    return CheckedGradients(exact, comparisons, faults)


def _find_scale(expected: NDArray[Any]) -> float:
    """Return the largest finite size of values that may lie in a file."""
    pieces = (np.abs(piece) for piece in iterate_pieces(expected))
    return max((float(piece.max(initial=0.0, where=np.isfinite(piece))) for piece in pieces), default=0.0)


def _fit(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array in a shape that it may have ones beside."""
    if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
        raise DataError(f"{name} has the shape {array.shape}; it takes {shape}")
    return array.reshape(shape)
