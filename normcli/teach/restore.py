"""Can the affine step undo a norm? With gamma = divisor and beta = centre, along their own axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.run import measure, run
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS, EpsMode, Norm, ParameterRule
from normcli.results.result import Result, calculate
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan

RTOL, ATOL = 1e-4, 1e-4
"""The tolerances of the experiment that this repeats, on values of about 1."""


class Closeness(NamedTuple):
    """How near one tensor is to another, value by value.

    Parameters
    ----------
    compared, different : int
        Values, and those of them that are further apart than the tolerances allow.
    max_abs : float
        The largest difference, in the unit of the tensors; NaN where any is.
    place : tuple of int or None
        Where that is; None for tensors without values.
    worst : tuple of int or None
        Where a difference is more than is tolerated there, and by most; None where none is.
    """

    compared: int
    different: int
    max_abs: float
    place: tuple[int, ...] | None
    worst: tuple[int, ...] | None = None


class Restoration(NamedTuple):
    """What came of the attempt.

    Parameters
    ----------
    result : Result
        Of the norm with that gamma and beta.
    standardized : ndarray
        The normalized tensor without them.
    spread, centre : str or None
        The statistics that gamma and beta are; None for a beta of 0, or where there is no beta.
    aligned : bool
        Whether each gamma and beta belongs to one group, and each group to one of them.
    rtol, atol : float
    scaled : bool
        Whether `atol` was not given and is of the size of the values: `ATOL` times the largest |x|.
    closeness : Closeness
        Of the restored tensor to the input.
    why : str
    """

    result: Result
    standardized: NDArray[Any]
    spread: str
    centre: str | None
    aligned: bool
    rtol: float
    atol: float
    scaled: bool
    closeness: Closeness
    why: str

    @property
    def recovered(self) -> bool:
        """Whether every value is the input's, to what the tolerances allow."""
        return not self.closeness.different


def restore(
    plan: Plan,
    values: NDArray[Any],
    *,
    rtol: float = RTOL,
    atol: float | None = None,
    effort: Effort = DEFAULT_EFFORT,
) -> Restoration:
    """Normalize with gamma and beta that would undo it, if anything of their shape did.

    Gamma is what the norm divides by (its deviation, root mean square, length or range), beta what it
    subtracts, both measured along the axes that gamma and beta vary along: over all others.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        Of an integer, boolean or float dtype.
    rtol, atol : float
        A value is recovered if |restored − input| ≤ atol + rtol · |input|. Without an `atol` it is `ATOL`, or
        `ATOL` times the largest finite |x| where that is smaller: a tensor of tiny values is not near to zeros.
    effort : Effort

    Raises
    ------
    UsageError
        If the norm has no gamma, or a tolerance is not a number ≥ 0.

    Examples
    --------
    >>> x = np.array([[1.0, -2.0], [3.0, 5.0], [4.0, 0.0]])
    >>> [restore(make_plan(Request(norm), x.shape, x.dtype), x).recovered for norm in ("bn", "ln")]
    [True, False]
    """
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None and not tolerance >= 0:
            raise UsageError(f"{name} {tolerance} is not a number ≥ 0")
    own = plan_parameters(plan)
    spread, centre = plan.norm.divisor.spread, plan.norm.centre.statistic
    assert spread is not None  # a norm with gamma divides by a statistic
    statistics = measure(own, values, effort=effort)
    gamma = statistics[spread].reshape(plan.parameters.shape) - plan.spec.gamma_offset
    beta = None
    if plan.norm.takes_beta:
        beta = np.zeros(plan.parameters.shape) if centre is None else statistics[centre]
        beta = beta.reshape(plan.parameters.shape)
    result = calculate(plan, values, Inputs(gamma, beta), effort=effort)
    standardized, _ = run(plan, values, effort=effort)
    allowed = choose_atol(values) if atol is None else atol
    scaled = atol is None and allowed < ATOL
    closeness = measure_closeness(result.normalized, values, rtol, allowed)
    aligned = own.grid.canonical == plan.grid.canonical
    attempt = Restoration(result, standardized, spread, centre, aligned, rtol, allowed, scaled, closeness, "")
    return attempt._replace(why=_explain(attempt, own))


def plan_parameters(plan: Plan) -> Plan:
    """Return the plan whose statistics are those along the axes that a norm's gamma and beta vary along.

    Raises
    ------
    UsageError
        If the norm has neither.
    """
    if not plan.norm.parameter_names:
        able = ", ".join(row.name for row in NORMS.values() if row.parameter_names)
        raise UsageError(f"{plan.norm.name} has no gamma and no beta that could undo it; restore takes {able}")
    ndim = len(plan.grid.shape)
    in_groups = plan.parameters.rule is ParameterRule.GROUP
    kept = () if in_groups else plan.parameters.axes
    row = next(row for row in NORMS.values() if _measures_alike(row, plan.norm, in_groups))
    request = Request(
        row.name,
        axes=tuple(axis for axis in range(ndim) if axis not in kept),
        layout=plan.grid.layout.letters,
        ddof=plan.spec.ddof if "ddof" in row.options else None,
        groups=plan.grid.groups if in_groups else None,
        group_order=plan.grid.group_order if in_groups else None,
    )
    return make_plan(request, plan.grid.shape, plan.tensor_dtype)


def _measures_alike(row: Norm, norm: Norm, in_groups: bool) -> bool:
    """Whether a row has the statistics of a norm, over any axes."""
    alike = (row.centre, row.divisor, row.p) == (norm.centre, norm.divisor, norm.p)
    return alike and ("groups" in row.options) == in_groups


def choose_atol(values: NDArray[Any]) -> float:
    """Return the tolerated difference that suits some values: `ATOL` times the largest |x|, `ATOL` at most.

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
    """Hold a tensor against another of its shape, as `torch.isclose` does: NaN is close to nothing."""
    different, start, largest, place, most, worst = 0, 0, -1.0, 0, 0.0, 0
    for left, right in zip(iterate_pieces(restored), iterate_pieces(values), strict=True):
        with np.errstate(all="ignore"):
            one, other = left.astype(np.float64), right.astype(np.float64)
            gap = np.where(one == other, 0.0, np.abs(one - other))
            allowed = atol + rtol * np.abs(other)
            far = ~((gap <= allowed) & np.isfinite(gap))
            excess = np.where(far, np.where(np.isfinite(gap - allowed), gap - allowed, np.inf), -1.0)
        different += int(far.sum())
        ranked = np.where(np.isnan(gap), np.inf, gap)
        if ranked.max(initial=-1.0) > largest:
            largest, place = float(ranked.max()), start + int(ranked.argmax())
        if excess.max(initial=-1.0) > most:
            most, worst = float(excess.max()), start + int(excess.argmax())
        start += gap.size
    if not values.size:
        return Closeness(0, 0, 0.0, None)
    index, outside = (tuple(int(i) for i in np.unravel_index(n, values.shape)) for n in (place, worst))
    distance = abs(float(restored[index]) - float(values[index]))
    return Closeness(values.size, different, distance, index, outside if different else None)


def _explain(attempt: Restoration, own: Plan) -> str:
    result, plan = attempt.result, attempt.result.plan
    if not result.input.size:
        return "there are no values to recover"
    if not np.isfinite(result.statistics[attempt.spread]).all():
        kinds = {degeneracy.kind for degeneracy in result.degeneracies}
        spoiled = "the input holds values that are not finite, and they spoil their groups"
        return spoiled if kinds & {"nan", "infinite"} else "the statistics are not finite"
    along, statistics = (_name_axes(other, other.grid.kept) or "no axis" for other in (own, plan))
    if attempt.aligned:
        told = f"statistics and parameters run along the same axes ({along})"
        if not plan.grid.kept:
            told = "there is one group, and one gamma for it"
        if plan.norm.parameter_names == ("gamma",):
            told += ": each group is multiplied by what it was divided by"
        else:
            told += f": each group gets its own {_name_own(attempt)} back"
        return f"{told}; {_explain_rest(attempt)}"
    if own.grid.group_size == 1 and attempt.centre is not None and attempt.recovered:
        single = f"each gamma and beta (along {along}) is of a single value, gamma 0 and beta the value itself"
        return f"{single}: that puts the input in place of what was normalized"
    per = f"statistics run along {statistics}, gamma and beta along {along}"
    if plan.norm.parameter_names == ("gamma",):
        per = f"statistics run along {statistics}, gamma along {along}"
    if attempt.recovered:
        return f"{per}; on this tensor they agree all the same, to what the tolerances allow"
    return f"{per}: {_contrast(plan, own)}"


def _name_own(attempt: Restoration) -> str:
    """Return the statistics that gamma and beta are."""
    return " and ".join(name for name in (attempt.spread, attempt.centre) if name is not None)


def _contrast(plan: Plan, own: Plan) -> str:
    """Return why parameters along other axes than the statistics cannot do."""
    missed = [axis for axis in plan.grid.kept if axis not in own.grid.kept and plan.grid.shape[axis] > 1]
    if missed:
        both = len(plan.norm.parameter_names) > 1
        serve = "the same gamma and beta serve" if both else "the same gamma serves"
        return f"{serve} every {_name_axes(plan, missed)}, whose statistics differ"
    return (
        f"a group has one divisor for all of its values, and a gamma for each {_name_axes(own, own.grid.kept)}"
    )


def _explain_rest(attempt: Restoration) -> str:
    """Return what is left between a restored tensor and its input where groups and parameters are the same."""
    result, plan = attempt.result, attempt.result.plan
    if not plan.spec.eps:
        return "without an eps, only rounding is left" if attempt.recovered else _blame_rounding(attempt)
    sizes = result.statistics[attempt.spread].reshape(-1)
    usable = sizes[sizes > 0]
    if not usable.size:
        return f"every group is constant, and its value is its {attempt.centre or 'length'}"
    if not attempt.recovered and not _predict_gap(attempt):
        return _blame_rounding(attempt)
    group = _find_drawn_group(attempt)
    shrunk = find_shrinkage(plan, float(sizes[group]))
    size = f"{_name_shrinkage(plan, attempt.spread)} = {shrunk:.2g}" if shrunk < _SMALL else f"{shrunk:.2g}"
    target = "0" if attempt.centre is None else f"the {attempt.centre}"
    if attempt.recovered and shrunk < _SMALL:
        return f"eps {plan.spec.eps:g} draws values to {target} by {size} at most, which the tolerances allow"
    name = plan.grid.group_name(group)
    drawn = f"eps {plan.spec.eps:g} draws the values of group {name} to {target} by {size} of their distance"
    if attempt.recovered:
        return f"{drawn}, which the tolerances allow, wide as they are beside that distance"
    return f"but {drawn}, more than the tolerances allow: the smaller eps, the nearer they come"


def _find_drawn_group(attempt: Restoration) -> int:
    """Return the group that eps draws most; where values are not recovered, that of the worst of them."""
    sizes = attempt.result.statistics[attempt.spread].reshape(-1)
    if attempt.closeness.worst is None:
        return int(np.where(sizes > 0, sizes, np.inf).argmin())
    return _locate_group(attempt.result.plan, attempt.closeness.worst)


def _locate_group(plan: Plan, index: tuple[int, ...]) -> int:
    return int(plan.grid.locate_groups([np.asarray(i) for i in index]))


def find_shrinkage(plan: Plan, size: float) -> float:
    """Return the part of a value's distance from its mean that eps takes, in a group of some deviation.

    Inside the root that is 1 − √(var/(var + eps)), about eps/(2 var); outside 1 − std/(std + eps), about
    eps/std; of a floor, what is missing to it.
    """
    eps = plan.spec.eps or 0.0
    if plan.spec.eps_mode in (EpsMode.FLOOR, EpsMode.SQUARE_FLOOR):
        floor = eps if plan.spec.eps_mode is EpsMode.FLOOR else math.sqrt(eps)
        return max(0.0, 1 - size / floor)
    if plan.spec.eps_mode is EpsMode.INSIDE:
        root = math.hypot(size, math.sqrt(eps))
        return eps / (root * (root + size))
    return eps / (size + eps)


_SMALL = 0.01
"""Up to here, the first term of what eps takes is all of it, to two digits."""


def _name_shrinkage(plan: Plan, spread: str) -> str:
    if plan.spec.eps_mode is EpsMode.INSIDE:
        return {"std": "eps/(2 var)", "rms": "eps/(2 ms)"}.get(spread, f"eps/(2 {spread}²)")
    return f"eps/{spread}"


def _predict_gap(attempt: Restoration) -> bool:
    """Whether what eps takes is most of the difference that is least tolerated."""
    result, plan, index = attempt.result, attempt.result.plan, attempt.closeness.worst or ()
    group = _locate_group(plan, index)
    size = float(result.statistics[attempt.spread].reshape(-1)[group])
    centre = 0.0 if attempt.centre is None else float(result.statistics[attempt.centre].reshape(-1)[group])
    taken = abs(float(result.input[index]) - centre) * (find_shrinkage(plan, size) if size else 0.0)
    return taken > abs(float(result.normalized[index]) - float(result.input[index])) / 2


def _blame_rounding(attempt: Restoration) -> str:
    return f"but the output is rounded to {attempt.result.dtype.name}, which the tolerances do not allow for"


def _name_axes(plan: Plan, axes: Sequence[int]) -> str:
    """Return axes by their letters, the channel groups as `g`."""
    names = dict(zip(plan.grid.kept, plan.grid.kept_names, strict=True))
    return " ".join(names.get(axis, plan.grid.layout.name(axis)) for axis in axes)
