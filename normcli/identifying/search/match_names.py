"""Names for hypotheses: the norms and frameworks that group and divide in the same way, as matches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import find_type, get_eps, is_half
from normcli.errors import NormError
from normcli.identifying.models.divisor_fit import COMMON_EPS, LENGTH_EPS, choose_eps
from normcli.identifying.models.error_bounds import Level, measure_lost
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.search.groups import measure_equality
from normcli.identifying.search.match import Match
from normcli.norms.conventions import find_convention, list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesChoice, AxesRule, EpsMode, EpsRule, GroupOrder, ParameterRule
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.identifying.models.divisor_fit import Model
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.groups import Hypothesis
    from normcli.identifying.search.match import Scope
    from normcli.norms.conventions import Convention
    from normcli.norms.grid import Grid
    from normcli.norms.norm import Norm
    from normcli.norms.plan import Plan


_ANY_DTYPE = np.dtype(np.float64)
"""The dtype of plans of which only the groups are used."""


def describe_hypothesis(hypothesis: Hypothesis, scope: Scope, level: Level) -> Iterator[Match]:
    """Yield a match for every norm that has the groups of a hypothesis, by its own or a framework's default.

    Without such a norm, at least one match is of a norm that has these groups if its axes are given.

    Parameters
    ----------
    hypothesis : Hypothesis
        A hypothesis whose grid is in canonical form.
    scope : Scope
    level : Level
        The precision at which the hypothesis fits.
    """
    (grid, _, standard, actual, _), model, precision = hypothesis.sample, hypothesis.model, level.precision
    eps = _choose_eps(hypothesis, scope.dtype)
    expected = hypothesis.predict(eps)
    dtype = max(scope.dtype, np.dtype(find_type(precision)), key=get_eps)  # the shorter
    unnamed = Match.of(
        "",
        actual,
        expected,
        dtype,
        hypothesis.sample.locate,
        axes=grid.axes,
        precision=precision if hypothesis.affine.rounds_to is None else f"{precision}, rounded before gamma",
        order=scope.order,
        eps=eps,
        eps_range=(model.low, model.high),
        eps_mode=None if model.eps_mode is EpsMode.FLOOR else model.eps_mode,
        ddof=model.ddof,
        p=model.p,
        affine=hypothesis.affine.way,
        bits=model.bits,
        is_odd=model.is_odd,
        lost=float(measure_lost(standard, level).max(where=standard.size > 0.0, initial=0.0)),
        rounds_length=hypothesis.rounds_length(eps, scope.dtype),
        hypothesis=hypothesis,
    )
    trace = _Trace(
        is_coarse=is_half(scope.dtype) and precision == scope.dtype.name,
        one_pass=_find_one_pass(hypothesis, scope.dtype, unnamed.max_abs),
        omits_nan=standard.missing is not None,
    )
    for norm, like, users, by_default in _name_hypothesis(hypothesis, scope, trace):
        groups = _count_groups(norm, grid)
        yield unnamed._replace(
            norm=norm.name,
            like=like,
            groups=groups,
            group_order=None if groups is None else grid.group_order or GroupOrder.CONTIGUOUS,
            by_default=by_default,
            has_default_eps=_is_default_eps(eps, norm, model, like),
            fine=math.inf if _exceeds_rounding(hypothesis, eps, norm, scope.dtype) else model.fine,
            users=users,
        )


_BY_LUCK = 0.005
"""Shares of equal values that differ by less than this are taken for equal."""


def _choose_eps(hypothesis: Hypothesis, dtype: np.dtype[Any]) -> float:
    """Return the simplest eps that fits; or a usual eps that fits, if it has over 0.5 % more exact values."""
    model = hypothesis.model
    simplest = choose_eps(model.low, model.high, LENGTH_EPS if model.eps_mode is EpsMode.FLOOR else None)
    usual = [eps for eps in COMMON_EPS if model.low <= eps <= model.high and eps != simplest]
    if model.eps_mode is EpsMode.FLOOR or dtype.itemsize > _LONGEST_JUDGED or not usual:
        return simplest
    shares = {
        eps: measure_equality(hypothesis.sample.actual, hypothesis.approximate(eps), dtype)
        for eps in (simplest, *usual)
    }
    return next(eps for eps, share in shares.items() if share >= max(shares.values()) - _BY_LUCK)


_LONGEST_JUDGED = 4
"""Exact values are counted for dtypes of at most this many bytes, for which float64 arithmetic is enough."""


class _Trace(NamedTuple):
    """Properties of a kernel's arithmetic, as far as y shows them.

    Parameters
    ----------
    is_coarse : bool
        True if the kernel calculated in half precision.
    one_pass : bool or None
        False if the variance cannot be E[x²] − E[x]²; None if it may be.
    omits_nan : bool
        True if x has NaN that the kernel ignored.
    """

    is_coarse: bool
    one_pass: bool | None
    omits_nan: bool

    def allows(self, convention: Convention) -> bool:
        """Whether a framework's arithmetic agrees with these signs."""
        if (self.is_coarse and convention.widens) or (self.omits_nan and not convention.omits_nan):
            return False
        return self.one_pass in (None, convention.one_pass)


_CLEARLY = 16.0
"""E[x²] − E[x]² is ruled out if its typical error is more than this many times the largest error of y."""


def _find_one_pass(hypothesis: Hypothesis, dtype: np.dtype[Any], error: float) -> bool | None:
    standard = hypothesis.sample.standard
    if not standard.centred or hypothesis.affine.scale is not None:
        return None
    arithmetic = np.dtype(np.float32) if is_half(dtype) else dtype
    with np.errstate(all="ignore"):
        step = measure_unit((standard.offset * standard.size) ** 2, arithmetic)  # the last place of E[x]²
        typical = float(np.median(step / standard.size**2))
    return False if typical > _CLEARLY * error else None


def _name_hypothesis(
    hypothesis: Hypothesis, scope: Scope, trace: _Trace
) -> list[tuple[Norm, tuple[str, ...], int, bool]]:
    """Return the norms that group and divide as a hypothesis does, at least one, each as a tuple.

    The tuple is (norm, names of the frameworks that compute it so, how many of these do by default, True if the
    axes are the norm's or a framework's default). `trace` has the signs of a kernel's arithmetic.
    """
    grid, model = hypothesis.sample.grid, hypothesis.model
    rows = [
        norm
        for norm in NORMS.values()
        if norm.divisor == model.divisor and (model.p is None or norm.p in (None, model.p))
    ]
    named: list[tuple[Norm, tuple[str, ...], int, bool]] = []
    for norm in rows:
        like, users = _find_like(norm, hypothesis, scope.dtype, trace)
        own = _has_own_eps(norm, model) and any(_is_own(norm, hypothesis, axis) for axis in scope.channels)
        if like or own:
            chosen = [find_convention(framework, norm.name).axes for framework in like]
            theirs = not scope.is_laid_out and any(axes is not AxesRule.GIVEN for axes in chosen)
            named.append((norm, like, users, own or theirs))
    if any(by_default for *_, by_default in named):
        return named
    if len(grid.kept) == 1:  # the output axis of weights, which may be any
        weights = [norm for norm in rows if _is_of_weights(norm, hypothesis) and _has_own_eps(norm, model)]
        already = [norm for norm, *_ in named]
        named += [(norm, (), 0, False) for norm in weights if norm not in already]
    if not named:  # a choice of axes that is nobody's default
        rule = AxesRule.LAST if grid.split is None else AxesRule.CHANNEL_GROUPS
        named.append((next((norm for norm in rows if norm.axes is rule), rows[0]), (), 0, False))
    return named


def _is_default_eps(eps: float, norm: Norm, model: Model, like: tuple[str, ...]) -> bool:
    """Whether an eps is a norm's or a framework's default, 0 or a floor, or the norm adds none and 0 fits."""
    if model.eps_mode is EpsMode.FLOOR or eps == 0.0 or (norm.eps is None and model.low == 0.0):
        return True
    if (norm.eps, norm.eps_mode) == (eps, model.eps_mode):
        return True
    rules = [find_convention(framework, norm.name).eps for framework in like]
    return any(rule in (eps, EpsRule.MACHINE, EpsRule.ROOT_COUNT) for rule in rules)


_ROUNDED = 4.0
"""The most by which half precision changes a divisor, in machine epsilons: of mean, variance, eps and root."""


def _exceeds_rounding(hypothesis: Hypothesis, eps: float, norm: Norm, dtype: np.dtype[Any]) -> bool:
    """Whether an eps moves a divisor further from that with a norm's own eps than half precision can."""
    fitted, own = hypothesis.measure_factors_of_each((eps, norm.eps or 0.0))
    most = _ROUNDED * get_eps(dtype) * (1.0 + np.square(hypothesis.sample.standard.offset))
    return bool(np.any(np.abs(own - fitted)[:, 0] > most * own[:, 0]))


def _count_groups(norm: Norm, grid: Grid) -> int | None:
    return grid.groups or (1 if norm.axes is AxesRule.CHANNEL_GROUPS else None)


def _has_own_eps(norm: Norm, model: Model) -> bool:
    """Return True if a norm adds eps inside the root or as the model does, and for an ℓp length.

    For a norm without eps, return True if an eps of 0 fits y.
    """
    if model.p is not None:
        return True
    if norm.eps is None:
        return model.low == 0.0
    return norm.eps_mode in (EpsMode.INSIDE, model.eps_mode)


def _is_own(norm: Norm, hypothesis: Hypothesis, channel: int) -> bool:
    """Return True if a norm has a hypothesis' groups by default, and can have its gamma and beta.

    `channel` is the channel axis. Any number of channel groups, and of trailing axes, counts as a default.
    """
    grid = hypothesis.sample.grid
    request = Request(norm.name, layout=lay_out(len(grid.shape), channel))
    if norm.axes is AxesRule.LAST:
        if not _is_trailing(grid):
            return False
        request = request._replace(axes=grid.axes)
    if norm.axes is AxesRule.CHANNEL_GROUPS:
        request = request._replace(groups=grid.groups or 1, group_order=grid.group_order)
    plan = try_plan(request, grid.shape)
    return plan is not None and plan.grid.canonical == grid and _takes(norm, plan, hypothesis.affine)


def _is_of_weights(norm: Norm, hypothesis: Hypothesis) -> bool:
    """Return True if a norm for weights (gamma has the kept axes) can have a hypothesis' axes and gamma."""
    if norm.parameters is not ParameterRule.KEPT:
        return False
    grid = hypothesis.sample.grid
    plan = try_plan(Request(norm.name, axes=grid.axes), grid.shape)
    return plan is not None and _takes(norm, plan, hypothesis.affine)


def _is_trailing(grid: Grid) -> bool:
    """Whether the reduced axes are the last ones, any number of them; axes of length 1 do not count."""
    wide = [axis for axis, length in enumerate(grid.shape) if length > 1]
    return grid.split is None and list(grid.axes) == [axis for axis in wide if axis >= grid.axes[0]]


def _may_choose(convention: Convention, grid: Grid) -> bool:
    """Whether a framework lets its caller choose the axes of a grid."""
    if convention.chooses is AxesChoice.TRAILING:
        return _is_trailing(grid)
    return convention.chooses is AxesChoice.ALL_BUT_ONE and grid.split is None and len(grid.kept) == 1


def _takes(owner: Norm | Convention, plan: Plan, affine: AffineStep) -> bool:
    """Return True if a norm or framework can have a step's gamma and beta in their shapes, or both are None."""
    if affine.scale is None and affine.shift is None:
        return True
    has_none = ParameterRule.NONE in (owner.parameters, plan.parameters.rule)
    if has_none or (affine.shift is not None and False in (owner.takes_beta, plan.norm.takes_beta)):
        return False
    held = [values for values in (affine.scale, affine.shift) if values is not None]
    return all(values.size == 1 or values.shape == plan.parameters.full_shape for values in held)


def try_plan(request: Request, shape: tuple[int, ...], dtype: np.dtype[Any] = _ANY_DTYPE) -> Plan | None:
    """Return the plan of a request; None if `make_plan` refuses it, as a shape that the norm cannot have."""
    try:
        return make_plan(request, shape, dtype)
    except NormError:
        return None


def lay_out(rank: int, channel: int) -> str:
    """Return a layout, one letter for each axis, with C at the axis `channel`."""
    letters = list("NABDEFGHIJKLMOPQRSTUVWXYZ"[:rank])
    letters[channel] = "C"
    return "".join(letters)


def _find_like(
    norm: Norm, hypothesis: Hypothesis, dtype: np.dtype[Any], trace: _Trace
) -> tuple[tuple[str, ...], int]:
    """Return the frameworks that compute a norm as a hypothesis does, and how many of these do by default."""
    affine, model, grid = hypothesis.affine, hypothesis.model, hypothesis.sample.grid
    if grid.split is not None and not norm.needs_groups:  # they have no such option
        return (), 0
    if affine.way == ESTIMATED:  # a fitted gamma takes up ddof, 1 + gamma and a factor of each channel
        return (), 0
    is_given = affine.scale is not None
    adds_one = affine.way.startswith("1 +") if is_given else None
    rounds = affine.rounds_to is not None if is_given and is_half(dtype) else None
    found, users = [], 0
    for framework in list_frameworks(norm.name):
        convention = find_convention(framework, norm.name)
        plan, is_default = _plan_as(norm, convention, hypothesis, dtype)
        if (
            plan is not None
            and trace.allows(convention)
            and (not convention.exponents or model.p in convention.exponents)
            and agrees(plan, model)
            and adds_one in (None, plan.spec.gamma_offset == 1)
            and rounds in (None, plan.spec.rounds_before_gamma)
            and plan.grid.canonical == grid
            and _takes(convention, plan, affine)
        ):
            found.append(framework)
            shows = is_given or not plan.spec.gamma_offset  # 1 + gamma of no gamma shows nothing
            users += is_default and shows and convention.eps is not EpsRule.GIVEN
    return tuple(found), users


def _plan_as(
    norm: Norm, convention: Convention, hypothesis: Hypothesis, dtype: np.dtype[Any]
) -> tuple[Plan | None, bool]:
    """Return a framework's plan with the groups of a hypothesis, and whether they are its default.

    The plan is None if the framework cannot have such groups.
    """
    grid, model = hypothesis.sample.grid, hypothesis.model
    request = Request(
        norm.name,
        groups=_count_groups(norm, grid),
        like=convention.framework,
        eps=choose_eps(model.low, model.high) if convention.eps is EpsRule.GIVEN else None,
        p=model.p if norm.p is None else None,
    )
    default = try_plan(request, grid.shape, dtype)
    if default is not None and default.grid.canonical == grid:
        return default, True
    if convention.axes is AxesRule.GIVEN or _may_choose(convention, grid):
        return try_plan(request._replace(axes=grid.axes), grid.shape, dtype), False
    return None, False


def agrees(plan: Plan, model: Model) -> bool:
    """Whether a plan's p and ddof are the model's, and its eps, added where the plan adds it, fits y."""
    spec, eps = plan.spec, plan.spec.eps or 0.0
    if (spec.p, spec.ddof) != (model.p, model.ddof):
        return False
    floors = {EpsMode.FLOOR: model.floor, EpsMode.SQUARE_FLOOR: model.floor * model.floor}  # may overflow
    if spec.eps_mode in floors:
        return model.low == 0.0 and eps <= floors[spec.eps_mode]
    if model.eps_mode is EpsMode.FLOOR:
        return eps <= model.square
    return model.low <= eps <= model.high and (spec.eps_mode is model.eps_mode or eps == 0.0)
