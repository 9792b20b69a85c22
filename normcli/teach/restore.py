"""An attempt to undo a norm by its affine step, with gamma = divisor and beta = centre."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.run import measure
from normcli.errors import UsageError
from normcli.norms.grid import Grid
from normcli.norms.rules import EpsMode, ParameterRule
from normcli.norms.table import NORMS
from normcli.numerics.statistics.divisor import find_divisor
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem
    from normcli.results.result import Result

RTOL, ATOL = 1e-4, 1e-4
"""The default tolerances, for values of about 1."""


class Closeness(NamedTuple):
    """The distance of a restored tensor from the input, value by value.

    Parameters
    ----------
    compared, different : int
        The number of values, and of those beyond the tolerances.
    max_abs : float
        The largest difference, in the unit of the tensors; the first ∞ or NaN if there is one.
    place : tuple of int or None
        The index of `max_abs`; None for tensors without values.
    worst : tuple of int or None
        The index of the value that exceeds its tolerance by most; None if none does.
    """

    compared: int
    different: int
    max_abs: float
    place: tuple[int, ...] | None
    worst: tuple[int, ...] | None = None


class Restoration(NamedTuple):
    """A restored tensor, and whether it is the input.

    Parameters
    ----------
    result : Result
        The result of the norm with the attempted gamma and beta.
    own : Plan
        The plan that measures gamma and beta, along the axes of the parameters.
    spread : str
        The statistic that is used as gamma.
    centre : str or None
        The statistic that is used as beta; None if beta is 0 or the norm has no beta.
    rtol, atol : float
        The tolerances of the comparison with the input.
    scaled : bool
        Whether `atol` is the default for small values: `ATOL` times the largest |x|.
    closeness : Closeness
        The comparison of the restored tensor with the input.
    """

    result: Result
    own: Plan
    spread: str
    centre: str | None
    rtol: float
    atol: float
    scaled: bool
    closeness: Closeness

    @property
    def recovered(self) -> bool:
        """Whether every value equals the input within the tolerances."""
        return not self.closeness.different

    @property
    def aligned(self) -> bool:
        """Whether each gamma and beta belongs to one group, and each group to one of them."""
        return self.own.grid.canonical == self.result.plan.grid.canonical

    @property
    def why(self) -> str:
        """The reason, in words, why the values are recovered or are not."""
        result, plan, own = self.result, self.result.plan, self.own
        if not result.input.size:
            return "there are no values to recover"
        if not np.isfinite(result.statistics[self.spread]).all():
            if {degeneracy.kind for degeneracy in result.degeneracies} & {"nan", "infinite"}:
                values = "the input holds values that are not finite"
                return f"{values}, so the statistics of their groups are not either"
            return "the statistics are not finite"
        along, statistics = (_format_axes(other, other.grid.kept) for other in (own, plan))
        parameters = " and ".join(plan.norm.parameter_names)
        if self.aligned:
            same = f"each {along} has statistics and a {parameters} of its own"
            if not plan.grid.kept:
                same = "there is one group, and one gamma for it"
            back = "is multiplied by what it was divided by"
            if plan.norm.takes_beta:
                back = f"gets its own {' and '.join(filter(None, (self.spread, self.centre)))} back"
            return f"{same}: each group {back}; {_explain_rest(self)}"
        if own.grid.group_size == 1 and self.centre is not None and self.recovered:
            effect = "gamma is 0 and beta the value itself, which takes the place of what was normalized"
            return f"each value has a gamma and beta of its own: {effect}"
        owners = _tell_owner(statistics, "statistics"), _tell_owner(along, f"a {parameters}")
        per = ", and ".join(owners)
        if self.recovered:
            return f"{per}; on this tensor they agree within the tolerances all the same"
        missed = [axis for axis in plan.grid.kept if axis not in own.grid.kept and plan.grid.shape[axis] > 1]
        if missed:
            serve = f"{'serve' if plan.norm.takes_beta else 'serves'} every {_format_axes(plan, missed)}"
            return f"{per}: the same {parameters} {serve}, whose statistics differ"
        return f"{per}: a group has one divisor for all of its values, but a gamma for each {along}"


def restore(problem: Problem, rtol: float | None = None, atol: float | None = None) -> Restoration:
    """Normalize with the gamma and beta that could undo the norm, and compare with the input.

    Gamma is the norm's spread (deviation, root mean square, length or range), beta its centre. Both are
    measured for each index of the parameters, over all other axes.

    Parameters
    ----------
    problem : Problem
        The norm and the tensor; its gamma, beta and other inputs are not used.
    rtol, atol : float or None
        A value is recovered if |restored − input| ≤ atol + rtol · |input|. None: `RTOL`; and `ATOL`, or `ATOL`
        times the largest finite |x| where that is smaller: a tensor of tiny values is not near to zeros.

    Raises
    ------
    UsageError
        If the norm has no gamma, or a tolerance is not a number ≥ 0.

    Examples
    --------
    >>> from normcli.results.arguments import read_arguments
    >>> x = [[1.0, -2.0], [3.0, 5.0], [4.0, 0.0]]
    >>> [restore(read_arguments(x, norm, {})).recovered for norm in ("bn", "ln")]
    [True, False]
    """
    plan, values = problem.plan, problem.values
    own = plan_parameters(plan)
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None and not tolerance >= 0:
            raise UsageError(f"{name} {tolerance} is not a number ≥ 0")
    spread, centre = plan.norm.divisor.spread, plan.norm.centre.statistic
    assert spread is not None  # a norm with gamma divides by a statistic
    statistics = measure(own, values, effort=problem.effort)
    gamma = statistics[spread].reshape(plan.parameters.shape) - plan.spec.gamma_offset
    beta = None
    if plan.norm.takes_beta:
        beta = np.zeros(plan.parameters.shape) if centre is None else statistics[centre]
        beta = beta.reshape(plan.parameters.shape)
    result = problem._replace(inputs=Inputs(gamma, beta)).calculate()
    _ = result.standardized  # calculated here, while the caller shows the progress
    rtol, allowed = RTOL if rtol is None else rtol, choose_atol(values) if atol is None else atol
    scaled = atol is None and allowed < ATOL
    closeness = measure_closeness(result.normalized, values, rtol, allowed)
    return Restoration(result, own, spread, centre, rtol, allowed, scaled, closeness)


def plan_parameters(plan: Plan) -> Plan:
    """Return the plan that measures statistics for each index of a norm's gamma and beta.

    Raises
    ------
    UsageError
        If the norm has neither gamma nor beta.
    """
    if not plan.norm.parameter_names:
        able = ", ".join(row.name for row in NORMS.values() if row.parameter_names)
        raise UsageError(f"{plan.norm.name} has no gamma and no beta that could undo it; restore takes {able}")
    in_groups = plan.parameters.rule is ParameterRule.GROUP
    kept = () if in_groups else plan.parameters.axes
    axes = tuple(axis for axis in range(len(plan.grid.shape)) if axis not in kept)
    grid = Grid(plan.grid.shape, plan.grid.layout, axes, plan.grid.split if in_groups else None)
    return replace(plan.change_spec(dtype=None), grid=grid)


def choose_atol(values: NDArray[Any]) -> float:
    """Return the default `atol` for some values: `ATOL` times the largest finite |x|, at most `ATOL`.

    Examples
    --------
    >>> choose_atol(np.array([3.0, -5.0])), choose_atol(np.array([0.0, -0.25]))
    (0.0001, 2.5e-05)
    """
    if not values.size:
        return ATOL
    largest = 0.0
    for piece in iterate_pieces(values):
        with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
            sizes = np.abs(piece.astype(np.float64))
        largest = max(largest, float(sizes.max(initial=0.0, where=np.isfinite(sizes))))
    return min(ATOL, ATOL * largest)


def measure_closeness(restored: NDArray[Any], values: NDArray[Any], rtol: float, atol: float) -> Closeness:
    """Compare a restored tensor with the input, of its shape; NaN is close to nothing, not even to NaN."""
    if not values.size:
        return Closeness(0, 0, 0.0, None)
    different, start, largest, worst = 0, 0, (-1.0, 0), (0.0, 0)
    for left, right in zip(iterate_pieces(restored), iterate_pieces(values), strict=True):
        with np.errstate(all="ignore"):
            one, other = left.astype(np.float64), right.astype(np.float64)
            gap = np.where(one == other, 0.0, np.abs(one - other))
            allowed = atol + rtol * np.abs(other)
            far = ~((gap <= allowed) & np.isfinite(gap))
            excess = np.where(far, np.where(np.isfinite(gap - allowed), gap - allowed, np.inf), -1.0)
        different += int(far.sum())
        largest = max(largest, _find_largest(np.where(np.isnan(gap), np.inf, gap), start))
        worst = max(worst, _find_largest(excess, start))
        start += gap.size
    index, outside = (tuple(int(i) for i in np.unravel_index(-at, values.shape)) for _, at in (largest, worst))
    distance = abs(float(restored[index]) - float(values[index]))
    return Closeness(values.size, different, distance, index, outside if different else None)


def _find_largest(sizes: NDArray[np.float64], start: int) -> tuple[float, int]:
    """Return the largest size, and −(`start` + its index); of two equal sizes, `max` takes the earlier."""
    place = int(sizes.argmax())
    return float(sizes.reshape(-1)[place]), -(start + place)


def _tell_owner(axes: str, name: str) -> str:
    """Return a clause on which indices have statistics or parameters of their own; `axes` may be empty."""
    return f"each {axes} has {name} of its own" if axes else f"all values share {name}"


def _explain_rest(attempt: Restoration) -> str:
    """Return, in words, the effect of eps and rounding on a tensor restored with a gamma for each group."""
    result, plan, worst = attempt.result, attempt.result.plan, attempt.closeness.worst
    rounding = f"but rounding the output to {result.dtype.name} moves them further than the tolerances allow"
    if not plan.spec.eps:
        return "without eps, only rounding is left" if attempt.recovered else rounding
    sizes = result.statistics[attempt.spread].reshape(-1)
    if not (sizes > 0).any():
        return f"every group is constant, and its value is its {attempt.centre or 'length'}"
    if worst is None:
        group = int(np.where(sizes > 0, sizes, np.inf).argmin())  # the group that eps moves most
    else:
        group = int(plan.grid.locate_groups([np.asarray(i) for i in worst]))
    part = find_shrinkage(plan, float(sizes[group]))
    if worst is not None and not _is_due_to_eps(attempt, group, part):
        return rounding
    size = f"{_format_shrinkage(plan, attempt.spread)} = {part:.2g}" if part < _SMALL else f"{part:.2g}"
    target = "0" if attempt.centre is None else f"the {attempt.centre}"
    if attempt.recovered and part < _SMALL:
        moved = f"eps {plan.spec.eps:g} moves each value toward {target} by at most {size} of its distance"
        return f"{moved}, which the tolerances allow"
    of = f"the values of group {plan.grid.group_name(group)}"
    moved = f"eps {plan.spec.eps:g} moves {of} toward {target} by {size} of their distance"
    if attempt.recovered:
        return f"{moved}, which the tolerances allow because they are wide beside that distance"
    return f"but {moved}, more than the tolerances allow; a smaller eps moves them less"


def find_shrinkage(plan: Plan, size: float) -> float:
    """Return the share of its distance from the mean by which eps moves a value; `size` is the deviation.

    The share is 1 − size/divisor: about eps/(2 size²) for an eps inside the root, and about eps/size outside.
    """
    if not size:
        return 0.0
    eps, mode = plan.spec.eps or 0.0, plan.spec.eps_mode
    divisor = float(find_divisor(np.array(size), eps, mode))
    if mode is EpsMode.INSIDE:
        return eps / (divisor * (divisor + size))  # without the digits that a difference of equals loses
    return eps / divisor if mode is EpsMode.OUTSIDE else (divisor - size) / divisor


_SMALL = 0.01
"""The share of a distance below which the first term of its series is right to two digits."""


def _format_shrinkage(plan: Plan, spread: str) -> str:
    if plan.spec.eps_mode is not EpsMode.INSIDE:
        return f"eps/{spread}"
    square = plan.norm.divisor.square
    return f"eps/(2 {square})" if square in plan.norm.statistics else f"eps/(2 {spread}²)"


def _is_due_to_eps(attempt: Restoration, group: int, part: float) -> bool:
    """Whether eps makes more than half of the difference at `closeness.worst`.

    `group` is the number of the value's group, and `part` the share of its distance from the mean by which eps
    moves a value.
    """
    result, index = attempt.result, attempt.closeness.worst or ()
    centre = 0.0 if attempt.centre is None else float(result.statistics[attempt.centre].reshape(-1)[group])
    taken = abs(float(result.input[index]) - centre) * part
    return taken > abs(float(result.normalized[index]) - float(result.input[index])) / 2


def _format_axes(plan: Plan, axes: Sequence[int]) -> str:
    """Return axes by their letters, the channel groups as `g`."""
    names = dict(zip(plan.grid.kept, plan.grid.kept_names, strict=True))
    return " ".join(names.get(axis, plan.grid.layout.name(axis)) for axis in axes)
