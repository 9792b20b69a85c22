"""Comparisons of given gradients with the exact ones, and the cause of each that differs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_cause import find_cause
from normcli.checking.gradient_forms import find_summed
from normcli.checking.half_precision import compare_saved
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.errors import DataError, UsageError
from normcli.numerics.rounding import widen
from normcli.results.backward import calculate_backward
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.checking.gradient_cause import GradientFinding
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem
    from normcli.results.backward import Gradients


class CheckedGradients(NamedTuple):
    """The comparisons that `check_gradients` made.

    Parameters
    ----------
    gradients : Gradients
        The exact gradients, rounded to float64.
    comparisons : mapping of str to Comparison
        The comparison of each gradient, by its name: `dx`, `dgamma`, `dbeta` or `dgate`.
    causes : mapping of str to GradientFinding
        The cause of each gradient that differs, by its name. No cause is looked for if x has more than 2²²
        values.
    saved : mapping of str to tuple of str
        Clauses that say so, of each gradient that was saved from half precision and is judged in it.
    """

    gradients: Gradients
    comparisons: Mapping[str, Comparison]
    causes: Mapping[str, GradientFinding]
    saved: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    @property
    def faults(self) -> Mapping[str, GradientFinding]:
        """The causes that are faults of a kernel: neither rounding, nor unknown."""
        return {name: found for name, found in self.causes.items() if found.fault.id}

    @property
    def ok(self) -> bool:
        """Whether every value of every gradient is within the tolerance."""
        return all(comparison.ok for comparison in self.comparisons.values())


def check_gradients(
    problem: Problem,
    actual: Mapping[str, NDArray[Any]],
    tolerate: Callable[..., Tolerance] = choose_tolerance,
    allowed: Mapping[str, Floats] = MappingProxyType({}),
) -> CheckedGradients:
    """Compare gradients with the exact ones, and find the fault of each that differs.

    Parameters
    ----------
    problem : Problem
        The problem, with dy.
    actual : mapping of str to ndarray
        The given gradients, by name: some of `dx`, `dgamma`, `dbeta` and `dgate`.
    tolerate : callable
        Takes a dtype and `scale`, the largest |expected|, and returns the tolerance. Gradients of a mean loss
        are so small that with a fixed absolute tolerance every gradient would pass.
    allowed : mapping of str to ndarray of float64
        The largest error of each value of some gradients, by name, in place of the tolerance.

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
    exact = calculate_backward(wide)
    comparisons, causes, saved = {}, {}, {}
    for name, array in actual.items():
        expected = exact.field(name)
        if expected is None:
            missing = name.removeprefix("d")
            raise UsageError(f"{plan.norm.name} has no {missing}{'; give --gate' if missing == 'gate' else ''}")
        array = _fit(name, array, expected.shape, plan)
        scale = _find_scale(expected)

        def compare(half: np.dtype[Any] | None) -> Comparison:
            found = Comparison(tolerate(half or choose_counting_dtype(array.dtype), scale=scale))  # noqa: B023
            found.compare_all(array, expected, allowed.get(name))  # noqa: B023
            return found

        may_be_half = plan.spec.dtype is None and name not in allowed
        every = (problem.values, exact.dy) if may_be_half else None
        found, half = compare_saved(every, array, compare)
        comparisons[name] = found
        if half is not None:
            saved[name] = f"{name} holds {half} numbers, saved as {array.dtype}", f"it is judged as {half}"
            array = fetch(array).astype(half)
        usual = choose_tolerance(found.tolerance.dtype, scale=scale)
        asked = None if found.tolerance == usual else found.tolerance
        cause = None if found.ok else find_cause(exact, name, array, asked)
        if cause is not None:
            causes[name] = cause
    return CheckedGradients(exact, comparisons, causes, saved)


def _find_scale(expected: NDArray[Any]) -> float:
    """Return the largest finite |value| of a tensor in memory or in a file; 0 if no value is finite."""
    pieces = (np.abs(piece) for piece in iterate_pieces(expected))
    return max((float(piece.max(initial=0.0, where=np.isfinite(piece))) for piece in pieces), default=0.0)


def _fit(name: str, array: NDArray[Any], shape: tuple[int, ...], plan: Plan) -> NDArray[Any]:
    """Return an array in another shape; raise `DataError` if the shapes differ other than by lengths of 1."""
    if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
        summed = next(find_summed(plan, array.shape), None) if name in ("dgamma", "dbeta") else None
        if summed is None:
            raise DataError(f"{name} has the shape {array.shape}; it takes {shape}")
        axes = "×".join(map(plan.grid.layout.name, summed))
        raise DataError(f"{name} has the shape {array.shape}, that of a sum over {axes}; it takes {shape}")
    return array.reshape(shape)
