"""Which norms are the same norm on a tensor, why, and what still tells them apart.

Whether two norms are the same is read off their plans, and then confirmed by the numbers: nothing is claimed
that the numbers do not show.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import get_eps, is_short_float
from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.errors import UsageError
from normcli.norms.options import OPTIONS, find_option, list_own_options
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, Centre, EpsMode, ParameterRule, ZeroRule
from normcli.norms.table import NORMS
from normcli.results.calculate import calculate
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.norms.norm import Norm
    from normcli.norms.plan import Plan
    from normcli.results.result import Result

_ROUNDINGS = 4
"""Two float64 results of one formula may differ by so many units in the last place of the larger one."""


PARAMETERS = ("gamma", "beta")
"""What comes after x̂, in this order."""


class Likeness(enum.StrEnum):
    """How two norms are alike."""

    IDENTICAL = "identical"
    COINCIDENT = "coincident"
    SIMILAR = "similar"


class Equality(NamedTuple):
    """Two norms that give the same x̂, or would but for an option.

    Parameters
    ----------
    names : tuple of str
        The two norms, as a command line names them.
    kind : Likeness
        `identical`: the same groups and the same formula, so for every tensor of this shape; `coincident`: the
        numbers of this tensor are the same; `similar`: the same groups, but another eps or ddof.
    reason : str
    differences : tuple of str
        What still tells them apart, beside x̂.
    max_abs : float
        The largest difference of x̂ on this tensor.
    related : bool
        Whether the second was not asked for.
    before : tuple of str
        `gamma`, `beta` or both, where either norm is given them: what is claimed is of x̂, before these.
    """

    names: tuple[str, str]
    kind: Likeness
    reason: str
    differences: tuple[str, ...]
    max_abs: float
    related: bool = False
    before: tuple[str, ...] = ()


class NamedPlan(NamedTuple):
    """A plan, what its norm is called on a command line (`gn:groups=2`), and what it is carried out with."""

    name: str
    plan: Plan
    inputs: Inputs = NO_INPUTS


class Member(NamedTuple):
    """A norm among those that are compared: what a command line calls it, and its result."""

    name: str
    result: Result

    @property
    def plan(self) -> Plan:
        """The result's."""
        return self.result.plan

    @property
    def evaluates(self) -> bool:
        """Whether it is normalized with running statistics, and nothing is measured."""
        return self.result.running is not None

    def is_same(self, other: Member) -> bool:
        """Whether both give equal x̂ for every tensor, with the same running statistics where they have any."""
        if self.evaluates or other.evaluates:
            return self.evaluates is other.evaluates and find_formula(self.plan) == find_formula(other.plan)
        return self._omits_nan is other._omits_nan and is_same(self.plan, other.plan)

    @property
    def _omits_nan(self) -> bool:
        return self.result.selection is not None and self.result.selection.omits_nan


class Formula(NamedTuple):
    """What is done to the values of a group; equal for two plans that do the same to every group.

    Parameters
    ----------
    quotient : tuple
        What a value is centred by and divided by, whatever eps and ddof.
    eps : float
    eps_mode : EpsMode or None
        None where eps is 0.
    ddof : int
    makes_nan : bool
        Whether a group whose divisor is 0 becomes NaN. Centred values of a constant group are 0 whether they
        are divided by 1 or said to be 0.
    window : tuple of float or None
        The constants of a window's power.
    """

    quotient: tuple[Any, ...]
    eps: float
    eps_mode: EpsMode | None
    ddof: int
    makes_nan: bool
    window: tuple[float, ...] | None


def find_equalities(members: Sequence[Member], layout: str | None = None) -> tuple[Equality, ...]:
    """Return which norms are equal on their tensor, pair by pair; then norms that were not asked for.

    Parameters
    ----------
    members : sequence of Member
        Of one tensor.
    layout : str or None
        As for `find_relatives`.

    Returns
    -------
    tuple of Equality
        None for a tensor without values, of which all norms are the same.
    """
    if not members or not members[0].result.input.size:
        return ()
    among = itertools.starmap(_compare, itertools.combinations(members, 2))
    return (*filter(None, among), *_compare_with_relatives(members, layout))


def is_same(a: Plan, b: Plan) -> bool:
    """Whether two plans of one shape give equal x̂ for every tensor."""
    return a.grid.canonical == b.grid.canonical and find_formula(a) == find_formula(b)


def find_formula(plan: Plan) -> Formula:
    """Return the formula of a plan, of which options that change nothing are left out."""
    norm, spec = plan.norm, plan.spec
    eps, mode = spec.eps or 0.0, spec.eps_mode
    if mode is EpsMode.SQUARE_FLOOR:
        eps, mode = math.sqrt(eps), EpsMode.FLOOR
    return Formula(
        quotient=(norm.centre, norm.divisor, spec.p, spec.quantiles, _find_matrix(plan)),
        eps=eps,
        eps_mode=mode if eps else None,
        ddof=spec.ddof,
        makes_nan=not eps and spec.zero_rule is ZeroRule.NAN,
        window=None if spec.window is None else spec.window[3:],
    )


def _find_matrix(plan: Plan) -> frozenset[tuple[int, ...]] | None:
    """Return the rows and the columns of a matrix, which may be exchanged; None of other groups."""
    if plan.spec.rows is None:
        return None
    long = [axis for axis in plan.grid.axes if plan.grid.shape[axis] != 1]
    rows = tuple(axis for axis in long if axis in plan.spec.rows)
    return frozenset({rows, tuple(axis for axis in long if axis not in rows)})


def find_relatives(plan: Plan, layout: str | None = None) -> Iterator[NamedPlan]:
    """Yield the norms that give the same x̂ as a plan, its own aside.

    Candidates are the rows of the table as they are; rows that take groups, with one group of all channels and
    with a group for each channel; rows whose parameters follow their axes, over the trailing axes that the plan
    reduces. Eps and ddof are the plan's; rows are left out whose default eps, or its place, is another, and
    norms of weights beside those of layers.

    Parameters
    ----------
    plan : Plan
    layout : str or None
        The layout of norms that are named without one, where it is not the default of the tensor's rank. In it
        each relative is what its name says; where the plan's own layout is another, the name says that too.
    """
    candidates = [(row, request) for row in NORMS.values() for request in _list_candidates(row, plan)]
    candidates.sort(key=lambda pair: (pair[1].axes is not None, pair[1].groups is not None))
    for row, request in candidates:
        if _is_of_weights(row) and not _is_of_weights(plan.norm):
            continue
        other = _try_plan(request, plan)
        if other is None or not is_same(plan, other):
            continue
        if (row, plan.grid.axes, plan.grid.groups) != (plan.norm, other.grid.axes, other.grid.groups):
            yield NamedPlan(_format_name(_drop_layout(request, other, layout), row), other)


def _is_of_weights(row: Norm) -> bool:
    """Whether what is normalized is a layer's weights, and not what goes through it."""
    return row.axes is AxesRule.ALL_BUT_FIRST


def _try_plan(request: Request, plan: Plan) -> Plan | None:
    """Return the plan of a request for the tensor of another plan; None if the request is refused."""
    with contextlib.suppress(UsageError):
        return make_plan(request, plan.grid.shape, plan.tensor_dtype)
    return None


def _drop_layout(request: Request, plan: Plan, layout: str | None) -> Request:
    """Return a request, axes in letters or numbers, without its layout where it means the same in another."""
    letters = plan.grid.layout.letters
    numbers = None if request.axes is None else plan.grid.axes
    lettered = "".join(letters[axis] for axis in numbers) if numbers and letters else numbers
    for axes in dict.fromkeys((lettered, numbers)):
        short = request._replace(axes=axes, layout=None)
        other = _try_plan(short._replace(layout=layout), plan)
        if other and is_same(plan, other) and plan.parameters.axes == other.parameters.axes:
            return short
    return request._replace(axes=lettered, layout=plan.grid.layout.text)


def _list_candidates(row: Norm, plan: Plan) -> Iterator[Request]:
    if (row.centre, row.divisor) != (plan.norm.centre, plan.norm.divisor) or plan.spec.window is not None:
        return
    eps = (plan.spec.eps or 0.0) if find_option("eps").belongs_to(row) else None
    if eps != row.eps and (row.eps, row.eps_mode) != (plan.norm.eps, plan.norm.eps_mode):
        return
    chosen: dict[str, Any] = {name: getattr(plan.spec, name, None) for name in list_own_options(row)}
    chosen["eps"] = eps
    if not eps or chosen.get("eps_mode") not in find_option("eps_mode").choices:
        chosen["eps_mode"] = None
    base = Request(row.name, layout=plan.grid.layout.text)._replace(**chosen)
    if find_option("groups").belongs_to(row):
        channel = plan.grid.layout.channel
        counts = () if channel is None else (1, plan.grid.shape[channel])
        yield from (base._replace(groups=groups) for groups in dict.fromkeys(counts))
        return
    yield base
    reduced = plan.grid.canonical.axes
    wide = [axis for axis, length in enumerate(plan.grid.shape) if length != 1]
    trailing = bool(reduced) and tuple(wide[-len(reduced) :]) == reduced
    if row.parameters is ParameterRule.REDUCED and trailing and plan.grid.layout.batch not in reduced:
        yield base._replace(axes=reduced)


def _format_name(request: Request, row: Norm) -> str:
    """Return a request as a command line puts it behind the norm's name."""
    parts = [row.name]
    for option in sorted(OPTIONS, key=lambda option: option.name == "layout"):
        value = getattr(request, option.name)
        default = getattr(row, option.name, None) if option.is_of else None
        if value not in (None, option.default if default is None else default):
            parts.append(f"{option.word}={option.format(value)}")
    return ":".join(parts)


def _compare_with_relatives(members: Sequence[Member], layout: str | None) -> Iterator[Equality]:
    """Yield the relatives of each member that no member before it is the same as."""
    for number, member in enumerate(members):
        if member.evaluates or any(member.is_same(earlier) for earlier in members[:number]):
            continue
        same = (other.plan for other in members if member.is_same(other))
        known = [(plan.norm, plan.grid.canonical) for plan in same]
        for relative in find_relatives(member.plan, layout):
            if relative.plan.norm.tracks and any(other.evaluates for other in members):
                continue  # it would be evaluated too
            own = (relative.plan.norm, relative.plan.grid.canonical)
            if own in known:
                continue
            known.append(own)
            plan, x, effort = relative.plan, member.result.input, member.result.effort
            inputs = Inputs(selection=member.result.selection)
            result = calculate(plan.change_spec(dtype=member.plan.spec.dtype), x, inputs, effort=effort)
            found = _compare(member, Member(relative.name, result))
            if found is not None and found.kind is Likeness.IDENTICAL:
                yield found._replace(related=True)


def _compare(a: Member, b: Member) -> Equality | None:
    apart, windowed = _measure(a.result.standardized, b.result.standardized), a.plan.grid.reach is not None
    if a.is_same(b) and apart.rounding:
        kind, reason = Likeness.IDENTICAL, _explain_sameness(a, b)
    elif apart.equal:
        kind, reason = Likeness.COINCIDENT, f"on this tensor, {_explain_coincidence(a, b)}"
    elif a.evaluates is b.evaluates and _has_same_groups(a, b) and _has_same_quotient(a, b) and not windowed:
        kind, reason = Likeness.SIMILAR, f"the same groups, but {'; '.join(_list_options(a, b))}"
    else:
        return None
    given = a.result.inputs.parameters | b.result.inputs.parameters
    before = tuple(name for name in PARAMETERS if name in given)
    differences = tuple(_list_differences(a, b))
    return Equality((a.name, b.name), kind, reason, differences, apart.max_abs, before=before)


def _has_same_groups(a: Member, b: Member) -> bool:
    return a.plan.grid.canonical == b.plan.grid.canonical


def _has_same_quotient(a: Member, b: Member) -> bool:
    return find_formula(a.plan).quotient == find_formula(b.plan).quotient


class _Apart(NamedTuple):
    """How far two tensors lie apart.

    Parameters
    ----------
    max_abs : float
        The largest difference; infinite where one is NaN and the other is not.
    rounding : bool
        Whether no difference is more than what rounding explains.
    equal : bool
        Whether none is more than what rounding explains of a float64, or there is none.
    """

    max_abs: float
    rounding: bool
    equal: bool


def _measure(a: NDArray[Any], b: NDArray[Any]) -> _Apart:
    short = is_short_float(a.dtype)
    most = get_eps(a.dtype) * (1 if short else _ROUNDINGS)
    largest, rounding = 0.0, True
    for left, right in zip(iterate_pieces(a), iterate_pieces(b), strict=True):
        with np.errstate(all="ignore"):
            one, other = left.astype(np.float64), right.astype(np.float64)
            alike = (one == other) | (np.isnan(one) & np.isnan(other))
            gap = np.where(alike, 0.0, np.abs(one - other))
            gap[np.isnan(gap)] = np.inf
            largest = max(largest, float(gap.max(initial=0.0)))
            limit = most * np.maximum(np.abs(one), np.abs(other))
            rounding = rounding and bool((alike | (gap <= limit) & np.isfinite(gap)).all())
    return _Apart(largest, rounding, largest == 0.0 if short else rounding)


def _explain_sameness(a: Member, b: Member) -> str:
    """Return why two norms are the same for every tensor."""
    if a.evaluates:
        return "both are evaluated with the same running statistics, and measure nothing"
    return _explain_groups(a.plan, b.plan)


def _explain_groups(a: Plan, b: Plan) -> str:
    """Return why two plans have the same groups, where their axes or groups read differently."""
    if a.spec.window is not None:
        return "the same window"
    names, grid = a.grid.layout.names, a.grid.canonical
    split = grid.split.axis if grid.split is not None else None
    over = [f"{names[axis]}/{grid.groups}" if axis == split else names[axis] for axis in grid.axes]
    parts = [f"both reduce {' '.join(over)}" if over else "in both each value is a group of its own"]
    for axis, name in enumerate(names):
        if _find_role(a, axis) == _find_role(b, axis):
            continue
        if a.grid.shape[axis] == 1:
            parts.append(f"{name} has length 1, so reducing it changes nothing")
            continue
        for groups in (plan.grid.groups for plan in (a, b) if _find_role(plan, axis) == "split"):
            of = "one group of all channels" if groups == 1 else "a group for each channel"
            parts.append(f"groups={groups} makes {of}")
    return f"the same groups: {'; '.join(dict.fromkeys(parts))}"


def _find_role(plan: Plan, axis: int) -> str:
    """Return what becomes of an axis of the tensor."""
    if plan.grid.split is not None and axis == plan.grid.split.axis:
        return "split"
    return "reduced" if axis in plan.grid.axes else "kept"


def _list_options(a: Member, b: Member) -> Iterator[str]:
    """Yield how eps, ddof and the rule for a divisor of 0 differ."""
    one, other = find_formula(a.plan), find_formula(b.plan)
    if (one.eps, one.eps_mode) != (other.eps, other.eps_mode):
        yield f"{_format_eps(a.plan)} against {_format_eps(b.plan)}"
    if one.ddof != other.ddof:
        yield _explain_ddof(a, b)
    if one.makes_nan != other.makes_nan:
        yield f"{a.name if one.makes_nan else b.name} makes NaN of a constant group"


def _explain_ddof(a: Member, b: Member) -> str:
    """Return what ddof does: x̂ divides by a root of n − ddof, so its factor is a root of their quotient."""
    count, ddofs = a.plan.grid.group_size, (a.plan.spec.ddof, b.plan.spec.ddof)
    against = f"ddof {ddofs[0]} against {ddofs[1]}"
    if count <= max(ddofs):
        return f"{against}, which leaves a group of {count} no variance"
    factor = math.sqrt((count - ddofs[1]) / (count - ddofs[0]))
    own, others = (f"({count} − {ddof})" if ddof else str(count) for ddof in ddofs)
    near = " except for eps" if a.plan.spec.eps or b.plan.spec.eps else ""
    return f"{against}: {b.name} is √({others}/{own}) = {factor:.6g} times {a.name}{near}"


def _format_eps(plan: Plan) -> str:
    eps, mode = plan.spec.eps, plan.spec.eps_mode
    if eps is None:
        return "no eps"
    place = f" {mode} the root" if mode in (EpsMode.INSIDE, EpsMode.OUTSIDE) else " as a floor"
    return f"eps {eps:g}{place if eps else ''}"


def _is_zero(values: NDArray[Any]) -> bool:
    """Whether all values are 0."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
        return not any(piece.any() for piece in iterate_pieces(values))


def _explain_coincidence(a: Member, b: Member) -> str:
    """Return why the numbers of one tensor are the same where the norms are not."""
    if _is_zero(a.result.input):
        return "whose values are all 0"
    if a.evaluates is not b.evaluates:
        return "whose own statistics are those that were given"
    if not _has_same_groups(a, b):
        return f"whose different groups {_explain_different_groups(a.result, b.result)}"
    windowed = a.plan.grid.reach is not None
    if a.plan.grid.group_size == 1 and not windowed:
        return "whose groups have one value each"
    centres = {member.plan.norm.centre: member.result for member in (a, b)}
    if centres.keys() == {Centre.MEAN, Centre.NOTHING} and not centres[Centre.MEAN].mean.any():
        return "where every group's mean is 0 and there is nothing to subtract"
    if _has_same_quotient(a, b) and not windowed:
        options = "; ".join(_list_options(a, b))
        return f"where the same groups with {options} come to the same after rounding"
    return "where the same groups come to the same numbers"


def _explain_different_groups(a: Result, b: Result) -> str:
    shared = [name for name in a.statistics if name in b.statistics and name != "rstd"]
    first = {name: a.statistics[name].flat[0] for name in shared}
    if shared and all((result.statistics[n] == first[n]).all() for result in (a, b) for n in shared):
        return f"all have the same {' and '.join(shared[:2])}"
    return "come to the same numbers"


def _list_differences(a: Member, b: Member) -> Iterator[str]:
    """Yield what tells two norms apart beside x̂: the affine step, and the rstd of a constant group."""
    described = zip(*(_describe_parameters(member.plan) for member in (a, b)), strict=True)
    yield from [f"{what}, {one} against {other}" for (what, one), (_, other) in described if one != other][:1]
    if a.plan.norm.parameter_names and b.plan.norm.parameter_names:
        for member, against in ((a, b), (b, a)):
            spec = member.plan.spec
            if spec.gamma_offset > against.plan.spec.gamma_offset:
                yield f"gamma, to which {member.name} adds {spec.gamma_offset}"
            if spec.rounds_before_gamma and not against.plan.spec.rounds_before_gamma:
                yield f"rounding, which {member.name} does before gamma too"
    ones = [m.name for m in (a, b) if m.plan.spec.zero_rule is ZeroRule.ONE and not m.plan.spec.eps]
    if len(ones) == 1:
        yield f"the rstd of a constant group, which is 1 for {ones[0]}"


def _describe_parameters(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return what gamma and beta are, by what may differ between two norms: first what says most."""
    names, shape = plan.norm.parameter_names, plan.parameters.shape
    wide = [str(axis) for axis in plan.parameters.axes if names and plan.grid.shape[axis] > 1]
    formatted = ("gamma's shape", format_parameters(plan))
    return (
        formatted,
        ("gamma's shape", str(shape)),
        ("gamma's axis", " ".join(wide)),
        ("parameters", " and ".join(names)),
    )


def format_parameters(plan: Plan) -> str:
    """Return the shape of gamma and beta by the letters of its axes: `(C, H, W)`, or `none`.

    Examples
    --------
    >>> format_parameters(make_plan(Request("ln", axes="CHW"), (2, 3, 4, 4), np.dtype("f8")))
    '(C, H, W)'
    """
    if not plan.norm.parameter_names:
        return "none"
    if plan.parameters.rule is ParameterRule.GROUP:
        return str(plan.parameters.rule.value)
    letters = plan.grid.layout.letters
    names = [str(plan.grid.shape[axis]) if letters is None else letters[axis] for axis in plan.parameters.axes]
    return f"({', '.join(names)})"
