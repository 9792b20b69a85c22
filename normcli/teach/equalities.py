"""Which norms are the same norm on a tensor, why, and what still tells them apart.

That two norms are the same is found in their plans, and then held against the numbers: nothing is claimed that
they do not bear out.
"""

from __future__ import annotations

import enum
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import get_eps, is_short_float
from normcli.engine.run import run
from normcli.errors import UsageError
from normcli.norms.options import OPTIONS, find_option
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS, Centre, EpsMode, ParameterRule, ZeroRule
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.norms.table import Norm
    from normcli.results.result import Result

_ROUNDINGS = 4
"""So many units of the last place, of the larger value, may two float64 results of one formula lie apart."""


PARAMETERS = ("gamma", "beta")
"""What comes after x̂, in this order."""


class Kind(enum.StrEnum):
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
    kind : Kind
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
    kind: Kind
    reason: str
    differences: tuple[str, ...]
    max_abs: float
    related: bool = False
    before: tuple[str, ...] = ()


class Member(NamedTuple):
    """A norm among those that are held against each other.

    Parameters
    ----------
    name : str
        As a command line names it.
    result : Result
    standardized : ndarray
        x̂: the normalized tensor before gamma and beta.
    """

    name: str
    result: Result
    standardized: NDArray[Any]

    @property
    def plan(self) -> Plan:
        """The result's."""
        return self.result.plan

    @property
    def given(self) -> tuple[str, ...]:
        """Which of gamma and beta the result has."""
        return tuple(name for name in PARAMETERS if getattr(self.result, name) is not None)


class Relative(NamedTuple):
    """A norm that does the same as a plan, and what it is called on a command line."""

    name: str
    plan: Plan


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
    if not members or not members[0].standardized.size:
        return ()
    pairs = itertools.combinations(members, 2)
    among = [found for a, b in pairs if (found := _compare(a, b)) is not None]
    return (*among, *_compare_with_relatives(members, layout))


def is_same(a: Plan, b: Plan) -> bool:
    """Whether two plans of one shape give equal x̂ for every tensor."""
    return a.grid.canonical == b.grid.canonical and find_formula(a) == find_formula(b)


def find_formula(plan: Plan) -> tuple[Any, ...]:
    """Return what is done to the values of a group; equal for two plans that do the same to every group.

    An eps of 0 has no place; what becomes of a group whose divisor is 0 matters only then, and centred values
    of a constant group are 0 whether they are divided by 1 or said to be 0.
    """
    norm = plan.norm
    if plan.spec.window is not None:
        return norm.centre, norm.divisor, *plan.spec.window[3:]
    eps, mode = plan.spec.eps or 0.0, plan.spec.eps_mode
    if not eps:
        mode = None
    elif mode is EpsMode.SQUARE_FLOOR:
        eps, mode = math.sqrt(eps), EpsMode.FLOOR
    spoils = not eps and plan.spec.zero_rule is ZeroRule.NAN
    return *find_quotient(plan), eps, mode, plan.spec.ddof, spoils


def find_quotient(plan: Plan) -> tuple[Any, ...]:
    """Return what a value is centred by and divided by, whatever eps and ddof."""
    return plan.norm.centre, plan.norm.divisor, plan.spec.p


def find_relatives(plan: Plan, layout: str | None = None) -> Iterator[Relative]:
    """Yield the norms that give the same x̂ as a plan, its own aside.

    Looked at is each row of the table as it is; then with one group of all channels and with a group for each;
    then, where its parameters follow the axes that it is given, over the same trailing axes. Eps and ddof are
    the plan's, but a row whose own eps is another, or elsewhere, is not bent to it.

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
        try:
            other = make_plan(request, plan.grid.shape, plan.tensor_dtype)
        except UsageError:
            continue
        own = (row, plan.grid.axes, plan.grid.groups) == (plan.norm, other.grid.axes, other.grid.groups)
        if not own and is_same(plan, other):
            yield Relative(_write_name(_drop_layout(request, other, layout), row), other)


def _drop_layout(request: Request, plan: Plan, layout: str | None) -> Request:
    """Return a request, axes in letters or numbers, without its layout where it means the same in another."""
    letters = plan.grid.layout.letters
    axes = None if request.axes is None else plan.grid.axes
    spellings = [request._replace(axes=axes, layout=None)]
    if axes is not None and letters is not None:
        spellings.insert(0, request._replace(axes="".join(letters[axis] for axis in axes), layout=None))
    for spelling in spellings:
        try:
            other = make_plan(spelling._replace(layout=layout), plan.grid.shape, plan.tensor_dtype)
        except UsageError:
            continue
        if is_same(plan, other) and plan.parameters.axes == other.parameters.axes:
            return spelling
    return spellings[0]._replace(layout=letters)


def _list_candidates(row: Norm, plan: Plan) -> Iterator[Request]:
    if (
        row.centre is not plan.norm.centre
        or row.divisor is not plan.norm.divisor
        or plan.spec.window is not None
    ):
        return
    eps = (plan.spec.eps or 0.0) if "eps" in row.options else None
    if eps != row.eps and (row.eps, row.eps_mode) != (plan.norm.eps, plan.norm.eps_mode):
        return
    chosen: dict[str, Any] = {name: getattr(plan.spec, name, None) for name in row.options} | {"eps": eps}
    if not eps or chosen.get("eps_mode") not in find_option("eps_mode").choices:
        chosen["eps_mode"] = None
    base = Request(row.name, layout=plan.grid.layout.letters)._replace(**chosen)
    if "groups" in row.options:
        channel = plan.grid.layout.channel
        for groups in (
            dict.fromkeys((1, plan.grid.shape[channel])) if channel is not None and plan.grid.shape else ()
        ):
            yield base._replace(groups=groups)
        return
    yield base
    reduced = plan.grid.canonical.axes
    wide = [axis for axis, length in enumerate(plan.grid.shape) if length != 1]
    trailing = bool(reduced) and tuple(wide[-len(reduced) :]) == reduced
    if row.parameters is ParameterRule.REDUCED and trailing and plan.grid.layout.batch not in reduced:
        yield base._replace(axes=reduced)


def _write_name(request: Request, row: Norm) -> str:
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
    seen: list[Plan] = []
    for member in members:
        if any(is_same(member.plan, plan) for plan in seen):
            continue
        seen.append(member.plan)
        known = [
            (other.plan.norm, other.plan.grid.canonical)
            for other in members
            if is_same(member.plan, other.plan)
        ]
        for relative in find_relatives(member.plan, layout):
            own = (relative.plan.norm, relative.plan.grid.canonical)
            if own in known:
                continue
            known.append(own)
            plan = relative.plan.change_spec(dtype=member.plan.spec.dtype)
            standardized, _ = run(plan, member.result.input, effort=member.result.effort)
            apart = _measure(member.standardized, standardized)
            if apart.rounding:
                names = (member.name, relative.name)
                yield Equality(
                    names,
                    Kind.IDENTICAL,
                    _explain_groups(member.plan, plan),
                    tuple(_list_differences(names, member.plan, plan)),
                    apart.max_abs,
                    related=True,
                    before=member.given,
                )


def _compare(a: Member, b: Member) -> Equality | None:
    names, apart = (a.name, b.name), _measure(a.standardized, b.standardized)
    same_groups = a.plan.grid.canonical == b.plan.grid.canonical
    alike = same_groups and find_quotient(a.plan) == find_quotient(b.plan)
    if is_same(a.plan, b.plan) and apart.rounding:
        kind, reason = Kind.IDENTICAL, _explain_groups(a.plan, b.plan)
    elif apart.equal:
        kind, reason = Kind.COINCIDENT, _explain_coincidence(a.result, b.result)
    elif alike and a.plan.spec.window is None:
        kind = Kind.SIMILAR
        reason = f"the same groups, but {'; '.join(_list_options(names, a.plan, b.plan))}"
    else:
        return None
    differences = tuple(_list_differences(names, a.plan, b.plan))
    return Equality(names, kind, reason, differences, apart.max_abs, before=_find_given((a, b)))


def _find_given(members: Iterable[Member]) -> tuple[str, ...]:
    """Return which of gamma and beta any of some norms is given."""
    given = {name for member in members for name in member.given}
    return tuple(name for name in PARAMETERS if name in given)


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


def _explain_groups(a: Plan, b: Plan) -> str:
    """Return why two plans have the same groups, where their axes or groups read differently."""
    if a.spec.window is not None:
        return "the same window"
    names = [a.grid.layout.name(axis) for axis in range(len(a.grid.shape))]
    grid = a.grid.canonical
    split = grid.split.axis if grid.split is not None else None
    over = [f"{names[axis]}/{grid.groups}" if axis == split else names[axis] for axis in grid.axes]
    parts = [f"both reduce {' '.join(over)}" if over else "in both each value is a group of its own"]
    kinds = [[_name_kind(plan, axis) for axis in range(len(names))] for plan in (a, b)]
    for axis, (one, other) in enumerate(zip(*kinds, strict=True)):
        if one == other:
            continue
        if a.grid.shape[axis] == 1:
            parts.append(f"{names[axis]} has length 1, so reducing it changes nothing")
        for plan in (a, b):
            if _name_kind(plan, axis) == "split" and a.grid.shape[axis] != 1:
                of = "one group of all channels" if plan.grid.groups == 1 else "a group for each channel"
                parts.append(f"groups={plan.grid.groups} makes {of}")
    return f"the same groups: {'; '.join(dict.fromkeys(parts))}"


def _name_kind(plan: Plan, axis: int) -> str:
    if plan.grid.split is not None and axis == plan.grid.split.axis:
        return "split"
    return "reduced" if axis in plan.grid.axes else "kept"


def _list_options(names: tuple[str, str], a: Plan, b: Plan) -> Iterator[str]:
    """Yield how eps, ddof and the rule for a divisor of 0 differ."""
    if find_formula(a)[3:5] != find_formula(b)[3:5]:
        yield f"{_name_eps(a)} against {_name_eps(b)}"
    if a.spec.ddof != b.spec.ddof:
        yield _explain_ddof(names, a, b)
    if find_formula(a)[-1] != find_formula(b)[-1]:
        spoilt = names[0] if find_formula(a)[-1] else names[1]
        yield f"{spoilt} makes NaN of a constant group"


def _explain_ddof(names: tuple[str, str], a: Plan, b: Plan) -> str:
    """Return what ddof does: x̂ divides by a root of n − ddof, so its factor is a root of their quotient."""
    count = a.grid.group_size
    told = f"ddof {a.spec.ddof} against {b.spec.ddof}"
    if count <= max(a.spec.ddof, b.spec.ddof):
        return f"{told}, which leaves a group of {count} no variance"
    factor = math.sqrt((count - b.spec.ddof) / (count - a.spec.ddof))
    near = "" if not a.spec.eps and not b.spec.eps else " but for eps"
    root = f"√({_subtract(count, b.spec.ddof)}/{_subtract(count, a.spec.ddof)})"
    return f"{told}: {names[1]} is {root} = {factor:.6g} times {names[0]}{near}"


def _subtract(count: int, ddof: int) -> str:
    return f"({count} − {ddof})" if ddof else str(count)


def _name_eps(plan: Plan) -> str:
    if plan.spec.eps is None:
        return "no eps"
    place = (
        f" {plan.spec.eps_mode} the root"
        if plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE)
        else " as a floor"
    )
    return f"eps {plan.spec.eps:g}{place if plan.spec.eps else ''}"


def _explain_coincidence(a: Result, b: Result) -> str:
    """Return why the numbers of one tensor are the same where the norms are not."""
    if not a.input.any():
        return "on this tensor, whose values are all 0"
    if a.plan.grid.canonical != b.plan.grid.canonical:
        return f"on this tensor, whose different groups {_explain_different_groups(a, b)}"
    if a.plan.grid.group_size == 1 and a.plan.spec.window is None:
        return "on this tensor, whose groups have one value each"
    if {a.plan.norm.centre, b.plan.norm.centre} == {Centre.MEAN, Centre.NOTHING}:
        centred = a if a.plan.norm.centre is Centre.MEAN else b
        if not centred.mean.any():
            return "on this tensor, where every group's mean is 0 and there is nothing to subtract"
    if find_quotient(a.plan) == find_quotient(b.plan) and a.plan.spec.window is None:
        options = "; ".join(_list_options(("the first", "the second"), a.plan, b.plan))
        return f"on this tensor, where the same groups with {options} come to the same after rounding"
    return "on this tensor, where the same groups come to the same numbers"


def _explain_different_groups(a: Result, b: Result) -> str:
    shared = [name for name in a.statistics if name in b.statistics and name != "rstd"]
    spread = [np.unique(result.statistics[name]).size == 1 for result in (a, b) for name in shared]
    if shared and all(spread) and all(a.statistics[n].flat[0] == b.statistics[n].flat[0] for n in shared):
        return f"all have the same {' and '.join(shared[:2])}"
    return "come to the same numbers"


def _list_differences(names: tuple[str, str], a: Plan, b: Plan) -> Iterator[str]:
    """Yield what tells two norms apart beside x̂: the affine step, and what is said of a constant group."""
    one, other = name_parameters(a), name_parameters(b)
    if one != other:
        yield f"gamma's shape, {one} against {other}"
    elif a.parameters.shape != b.parameters.shape:
        yield f"gamma's shape, {a.parameters.shape} against {b.parameters.shape}"
    elif _list_wide_axes(a) != _list_wide_axes(b):
        along = (" ".join(map(str, _list_wide_axes(plan))) for plan in (a, b))
        yield f"gamma's axis, {' against '.join(along)}"
    elif a.norm.parameter_names != b.norm.parameter_names:
        has = [" and ".join(plan.norm.parameter_names) for plan in (a, b)]
        yield f"parameters, {has[0]} against {has[1]}"
    if a.norm.parameter_names and b.norm.parameter_names:
        for name, plan, against in zip(names, (a, b), (b, a), strict=True):
            if plan.spec.gamma_offset > against.spec.gamma_offset:
                yield f"gamma, to which {name} adds {plan.spec.gamma_offset}"
            if plan.spec.rounds_before_gamma and not against.spec.rounds_before_gamma:
                yield f"rounding, which {name} does before gamma too"
    ones = [plan.spec.zero_rule is ZeroRule.ONE and not plan.spec.eps for plan in (a, b)]
    if ones[0] != ones[1]:
        yield f"the rstd of a constant group, which is 1 for {names[ones.index(True)]}"


def _list_wide_axes(plan: Plan) -> list[int]:
    """Return the axes that gamma differs along."""
    return (
        [axis for axis in plan.parameters.axes if plan.grid.shape[axis] > 1]
        if plan.norm.parameter_names
        else []
    )


def name_parameters(plan: Plan) -> str:
    """Return the shape of gamma and beta by the letters of its axes: `(C, H, W)`, or `none`.

    Examples
    --------
    >>> name_parameters(make_plan(Request("ln", axes="CHW"), (2, 3, 4, 4), np.dtype("f8")))
    '(C, H, W)'
    """
    if not plan.norm.parameter_names:
        return "none"
    if plan.parameters.rule is ParameterRule.GROUP:
        return str(plan.parameters.rule.value)
    letters = plan.grid.layout.letters
    names = [str(plan.grid.shape[axis]) if letters is None else letters[axis] for axis in plan.parameters.axes]
    return f"({', '.join(names)})"
