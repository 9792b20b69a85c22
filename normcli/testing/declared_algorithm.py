"""The algorithm that a caller declares for a kernel, and the largest error of each value that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.element_bounds import RowTask, bound_gradients, bound_rows, bound_sum
from normcli.algorithms.moment_bounds import GroupFacts
from normcli.algorithms.row_computation import Accumulation, Computation
from normcli.algorithms.row_formula import RowFormula
from normcli.algorithms.table import CASTS, find_algorithm, find_cast, find_dtype
from normcli.checking.ulp import Tolerance, choose_tolerance
from normcli.dtypes import find_type, get_eps, get_largest, get_smallest, is_float
from normcli.engine.run import measure
from normcli.errors import UsageError
from normcli.identifying.sampling import put_back, take_groups
from normcli.norms.divisors import Measurement
from normcli.printable import format_count
from normcli.results.arguments import read_dtype
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import DTypeLike, NDArray

    from normcli.dtypes import Floats
    from normcli.results.arguments import Problem

_USUAL = "two-pass", next(iter(CASTS))


class DerivedBound(NamedTuple):
    """The largest error that roundings may cause in each value of a result of a declared algorithm.

    Parameters
    ----------
    allowed : ndarray of float64
        The errors, of the tensor's shape and in the unit of the result.
    void : ndarray of int
        The numbers of the groups for which the algorithm has no useful bound.
    """

    allowed: Floats
    void: NDArray[np.intp]


def read_declared(
    accumulate: DTypeLike | None,
    algorithm: str | None,
    cast: str | None = None,
    limits: Iterable[float | None] = (),
) -> Computation | None:
    """Return the computation that a caller declares; None if `accumulate`, `algorithm` and `cast` are None.

    Parameters
    ----------
    accumulate : dtype or None
        The dtype of the sums.
    algorithm, cast : str or None
        The algorithm for the variance and the order of casts; None for `two-pass` and `once`.
    limits : iterable of float or None
        Other tolerances, all of which have to be None if `accumulate` is given.

    Raises
    ------
    UsageError
        If only `accumulate` is None, a name is in no table, or one of `limits` is given too.
    """
    for what, name in (("algorithm", algorithm), ("cast", cast)):
        if name is not None and not isinstance(name, str):
            raise UsageError(f"{what} {name!r} is not a name")
    dtype = read_dtype("accumulate", accumulate)
    if dtype is None:
        if algorithm is not None or cast is not None:
            raise UsageError("bounds follow from the dtype of the sums: give --accumulate, such as float32")
        return None
    if any(limit is not None for limit in limits):
        raise UsageError("--accumulate takes the place of --max-ulp, --rtol and --atol; give one or the other")
    found = find_algorithm(algorithm or _USUAL[0])
    order = find_cast((cast or _USUAL[1]).replace(" ", "-"))
    return Computation(Accumulation(found, find_dtype(dtype)), order)


def derive_bounds(computation: Computation, asked: Problem) -> DerivedBound:
    """Return the largest error that a kernel's roundings may cause in each value of its result.

    The kernel calculates as `computation` says. In groups that are not finite, the errors are 0.

    Raises
    ------
    UsageError
        If bounds are not known for the norm, or with running statistics or a mask, or if the dtype of the sums
        does not hold the values.
    """
    plan, values = asked.plan, asked.values
    _require_bounds(computation, asked)
    if not values.size:
        return DerivedBound(np.zeros(values.shape), np.zeros(0, np.intp))
    task, finite = _make_task(asked)
    slack = bound_rows(task, computation, plan.choose_output_dtype(values.dtype))
    error = np.where(finite[:, None], slack.error, 0.0)  # no error is tolerated in groups that are not finite
    return DerivedBound(put_back(plan.grid, error), np.flatnonzero(slack.void & finite))


def tolerate_derived(words: str, dtype: np.dtype[Any], scale: float = 1.0) -> Tolerance:
    """Return the default tolerance of a dtype, marked as derived from the algorithm that `words` name.

    `scale` is the largest magnitude of the exact values.
    """
    return choose_tolerance(dtype, scale=scale)._replace(derived=words)


def derive_gradient_bounds(
    computation: Computation, asked: Problem, dy: NDArray[Any], dtypes: Mapping[str, np.dtype[Any]]
) -> tuple[dict[str, Floats], NDArray[np.intp]]:
    """Return the largest errors that roundings may cause in gradients, and the groups without a useful bound.

    The first result has an array of the gradient's shape by name, the second the numbers of groups.

    Parameters
    ----------
    computation : Computation
        The algorithm of the backward pass: all operations are in the dtype of its sums, and each gradient is
        rounded to its own dtype at the end.
    asked : Problem
    dy : ndarray
    dtypes : mapping of str to dtype
        The dtypes of the gradients that are checked: `dx`, `dgamma`, `dbeta`.

    Raises
    ------
    UsageError
        If there are no bounds for the norm or with running statistics or a mask, the dtype of the sums does not
        hold the values, or the cast is not the usual one.
    """
    plan, accumulation = asked.plan, computation.accumulation
    _require_bounds(computation, asked)
    if computation.cast.name != _USUAL[1]:
        raise UsageError("bounds of gradients are derived for one cast at the end; give rtol and atol")
    shapes = {name: plan.grid.shape if name == "dx" else plan.parameters.shape for name in dtypes}
    if not asked.values.size:
        return {name: np.zeros(shape) for name, shape in shapes.items()}, np.zeros(0, np.intp)
    task, finite = _make_task(asked)
    slack = bound_gradients(task, _take(asked, dy), accumulation, dtypes.get("dx", asked.values.dtype))
    along = tuple(axis for axis, length in enumerate(plan.parameters.view_shape) if length == 1)
    sums = {"dgamma": (slack.shares, slack.off), "dbeta": (slack.slopes, np.zeros_like(slack.off))}
    error = put_back(plan.grid, np.where(finite[:, None], slack.error, 0.0))
    allowed = {"dx": error} if "dx" in dtypes else {}
    for name in dtypes.keys() - {"dx"}:
        sizes, off = (put_back(plan.grid, part).reshape(plan.grid.view_shape).sum(along) for part in sums[name])
        count = asked.values.size // max(1, sizes.size)
        allowed[name] = bound_sum(sizes, off, count, accumulation, dtypes[name]).reshape(shapes[name])
    return allowed, np.flatnonzero(slack.void & finite)


def _require_bounds(computation: Computation, asked: Problem) -> None:
    """Raise `UsageError` if no bounds are known for this norm and these inputs.

    It is raised, too, if the dtype of the sums does not hold the values of x.
    """
    plan, inputs, dtype = asked.plan, asked.inputs, asked.values.dtype
    measures = plan.norm.divisor.measurement in (Measurement.MOMENTS, Measurement.LENGTH)
    if not measures or plan.spec.p not in (None, 2.0) or inputs.given or inputs.selection:
        raise UsageError(
            f"{plan.norm.name}: bounds are derived for means and squares that are measured of all values; "
            "give max_ulp, or rtol and atol"
        )
    name = computation.accumulation.dtype
    if not _holds(name, dtype):
        raise UsageError(f"{name} does not hold every {dtype.name}; accumulate in one that does")


def describe_void(computation: Computation, asked: Problem, void: NDArray[np.intp]) -> str:
    """Return a sentence: the computation has no useful error bound for the groups `void` of x."""
    grid, norm = asked.plan.grid, asked.plan.norm.name
    which = f"{len(void):,} of {format_count(grid.group_count, 'group')}"
    return (
        f"{norm}: {computation.name} promises nothing of {which}, the first {grid.group_name(int(void[0]))}: "
        "by its bounds, sums may overflow there, or lose every digit"
    )


def _make_task(asked: Problem) -> tuple[RowTask, NDArray[np.bool_]]:
    """Return a `RowTask`: the groups as rows, with statistics, gamma and beta, for which bounds are derived.

    The second result says for each row whether its values and their variance are finite.
    """
    plan, values, inputs, effort = asked.plan, asked.values, asked.inputs, asked.effort
    formula, statistics = RowFormula.of(plan), measure(plan, values, effort=effort)
    mean = statistics["mean"].reshape(-1) if formula.centres else np.zeros(plan.grid.group_count)
    offset = plan.spec.gamma_offset if inputs.gamma is not None else 0
    with np.errstate(all="ignore"):
        x, square = _take(asked, values), _find_square(statistics, plan.grid.group_size)
        groups = GroupFacts.of(x, mean, square, formula.ddof)
        gamma, beta = _spread(asked, inputs.gamma, 1.0) + offset, _spread(asked, inputs.beta, 0.0)
        finite = np.isfinite(x).all(1) & np.isfinite(square)
    return RowTask(x, groups, formula, gamma, beta, plan.spec.rounds_before_gamma), finite


def _take(asked: Problem, values: NDArray[Any]) -> Floats:
    """Return values of the tensor's shape as float64, a row for each group."""
    return take_groups(asked.plan.grid, values.astype(np.float64))


def _spread(asked: Problem, parameter: NDArray[Any] | None, otherwise: float) -> Floats:
    """Return gamma or beta for each value of the rows; without one, `otherwise`, of the shape (1, 1)."""
    if parameter is None:
        return np.full((1, 1), otherwise)
    grid, view_shape = asked.plan.grid, asked.plan.parameters.view_shape
    return _take(asked, np.broadcast_to(parameter.reshape(view_shape), grid.view_shape).reshape(grid.shape))


def _find_square(statistics: dict[str, Floats], size: int) -> Floats:
    """Return each group's variance, mean square, or (length)² / number of values, flat.

    It is the first of these that `statistics` has; `size` is the number of values.
    """
    square = statistics.get("var", statistics.get("ms"))
    return statistics["norm"].reshape(-1) ** 2 / size if square is None else square.reshape(-1)


def _holds(name: str, dtype: np.dtype[Any]) -> bool:
    """Whether the dtype called `name` holds every value of `dtype`."""
    if not is_float(dtype):
        return bool(np.can_cast(dtype, np.dtype(find_type(name))))
    other = dtype.name
    return (
        get_eps(np.dtype(find_type(name))) <= get_eps(dtype.newbyteorder("="))
        and get_smallest(name) <= get_smallest(other)
        and get_largest(name) >= get_largest(other)
    )
