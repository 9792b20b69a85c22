"""Compared norms: whether two of them have equal x̂ for every tensor, and other norms that do."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from normcli.errors import UsageError
from normcli.norms.options import OPTIONS, find_option, list_own_options
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, EpsMode, ParameterRule, ZeroRule
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.norms.norm import Norm
    from normcli.norms.plan import Plan
    from normcli.results.result import Result


class Member(NamedTuple):
    """A norm that is compared with others: its name on the command line, and its result."""

    name: str
    result: Result

    @property
    def plan(self) -> Plan:
        """The plan of the result."""
        return self.result.plan

    @property
    def evaluates(self) -> bool:
        """Whether the tensor is normalized with running statistics, not with its own."""
        return self.result.running is not None

    def is_same(self, other: Member) -> bool:
        """Whether both norms have equal x̂ for every tensor; in evaluation, with equal running statistics."""
        if self.evaluates or other.evaluates:
            return self.evaluates is other.evaluates and find_formula(self.plan) == find_formula(other.plan)
        return self._omits_nan is other._omits_nan and is_same(self.plan, other.plan)

    @property
    def _omits_nan(self) -> bool:
        return self.result.selection is not None and self.result.selection.omits_nan

    def has_same_groups(self, other: Member) -> bool:
        """Whether both norms have equal groups."""
        return self.plan.grid.canonical == other.plan.grid.canonical

    def has_same_quotient(self, other: Member) -> bool:
        """Whether both norms centre and divide by equal statistics; eps and ddof may differ."""
        return find_formula(self.plan).quotient == find_formula(other.plan).quotient


class Formula(NamedTuple):
    """The formula of x̂ in a plan, without its groups; equal for two plans whose x̂ are equal for every group.

    Parameters
    ----------
    quotient : tuple
        Centre and divisor, without eps and ddof.
    eps : float
    eps_mode : EpsMode or None
        The place of eps in the formula; None if eps is 0.
    ddof : int
    makes_nan : bool
        Whether x̂ is NaN in a group whose divisor is 0; otherwise it is 0 there, the value minus the centre.
    window : tuple of float or None
        k, alpha and the exponent of a window; None for norms without windows.
    """

    quotient: tuple[Any, ...]
    eps: float
    eps_mode: EpsMode | None
    ddof: int
    makes_nan: bool
    window: tuple[float, ...] | None


def find_formula(plan: Plan) -> Formula:
    """Return the formula of a plan in a form that compares equal for plans with equal x̂.

    Options that change no result are left out; an eps that bounds the square becomes one that bounds the root.
    """
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


def is_same(a: Plan, b: Plan) -> bool:
    """Whether two plans of one shape have equal x̂ for every tensor."""
    return a.grid.canonical == b.grid.canonical and find_formula(a) == find_formula(b)


def _find_matrix(plan: Plan) -> frozenset[tuple[int, ...]] | None:
    """Return the axes of a matrix's rows and of its columns, as a set of two tuples, as order is no matter.

    None for norms whose groups are no matrices.
    """
    if plan.spec.rows is None:
        return None
    long = [axis for axis in plan.grid.axes if plan.grid.shape[axis] != 1]
    rows = tuple(axis for axis in long if axis in plan.spec.rows)
    return frozenset({rows, tuple(axis for axis in long if axis not in rows)})


def find_relatives(plan: Plan, layout: str | None = None) -> Iterator[tuple[str, Plan]]:
    """Yield name and plan of each norm with the x̂ of a plan for every tensor: `gn:groups=1` for `ln:axes=CHW`.

    All norms of the table are tried, with the plan's eps and ddof. A norm of channel groups is tried with one
    group and with a group for each channel. A norm whose gamma lies along the reduced axes is tried with its
    default axes and, if the plan reduces the last axes, with these. Norms with another default eps are left
    out, as are norms of weights unless the plan's norm is one.

    Parameters
    ----------
    plan : Plan
    layout : str or None
        The layout that the user chose for all norms; None for the default of the tensor's rank. A relative
        that needs another layout has it in its name.
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
            yield _format_name(_drop_layout(request, other, layout), row), other


def _is_of_weights(row: Norm) -> bool:
    """Whether a norm is of a layer's weights, not of its values."""
    return row.axes is AxesRule.ALL_BUT_FIRST


def _try_plan(request: Request, plan: Plan) -> Plan | None:
    """Return the plan of a request for the tensor of another plan; None if the request is refused."""
    with contextlib.suppress(UsageError):
        return make_plan(request, plan.grid.shape, plan.tensor_dtype)
    return None


def _drop_layout(request: Request, plan: Plan, layout: str | None) -> Request:
    """Return a request in its shortest form: axes as letters or numbers, and no layout if possible.

    The layout is dropped if the request has the same plan with `layout`, the user's for all norms (None: the
    default of the tensor's rank).
    """
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
    """Yield requests for a norm of the table whose x̂ may be equal to a plan's, with its options.

    Nothing is yielded if the norm has another centre or divisor or cannot have the plan's eps, or if the plan
    has sliding windows.
    """
    if (row.centre, row.divisor) != (plan.norm.centre, plan.norm.divisor) or plan.groups_overlap:
        return
    eps = None if row.eps is None else plan.spec.eps or 0.0
    if eps != row.eps and (row.eps, row.eps_mode) != (plan.norm.eps, plan.norm.eps_mode):
        return
    chosen: dict[str, Any] = {name: getattr(plan.spec, name, None) for name in list_own_options(row)}
    chosen["eps"] = eps
    if not eps or chosen.get("eps_mode") not in find_option("eps_mode").choices:
        chosen["eps_mode"] = None
    base = Request(row.name, layout=plan.grid.layout.text)._replace(**chosen)
    if row.needs_groups:
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
    """Return a request as a text for a command line, such as `gn:groups=2`."""
    parts = [row.name]
    for option in sorted(OPTIONS, key=lambda option: option.name == "layout"):
        value = getattr(request, option.name)
        if value not in (None, option.find_default(row)):
            parts.append(f"{option.word}={option.format(value)}")
    return ":".join(parts)
