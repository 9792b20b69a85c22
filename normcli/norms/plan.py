"""A norm's row resolved against one shape: every choice made, every check done, nothing computed.

`make_plan` turns a request and a shape into a frozen `Plan`, which is all that the kernel reads. Plans hold no
data, so they are cached.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import get_eps, is_short_float
from normcli.errors import DataError, UsageError
from normcli.norms.choices import DEFAULT_P, choose
from normcli.norms.layout import Layout, make_layout
from normcli.norms.request import Request, check_options
from normcli.norms.table import (
    AxesRule,
    Divisor,
    EpsMode,
    EpsRule,
    ExtraNeighbour,
    GroupOrder,
    Norm,
    ParameterRule,
    ZeroRule,
    find_norm,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.norms.choices import Choices
    from normcli.norms.conventions import Convention

_MOST_DIVISORS = 1024
"""Divisors up to here are suggested in a message."""

ONLY_GROUP = "all"
"""The name of the one group of a norm that reduces every axis."""


class Window(NamedTuple):
    """The neighbourhood of `lrn`: channels c − before … c + after, and the constants of its power.

    `size` is the option; `divisor` is what alpha is divided by.
    """

    before: int
    after: int
    size: int
    alpha: float
    exponent: float
    k: float
    divisor: int

    @property
    def length(self) -> int:
        """The number of channels in a window that no edge cuts."""
        return self.before + self.after + 1


class Plan(NamedTuple):
    """How one norm acts on one shape.

    The tensor is worked on in its *view*, which is its own shape but for `gn`, where the channel axis stands
    split in two: (groups, channels of a group), or the other way round where the groups are interleaved.

    Parameters
    ----------
    norm : Norm
    shape : tuple of int
    layout : Layout
    axes : tuple of int
        The axes reduced, whole or (the channel of `gn`) in part; for `lrn` the axis of the window.
    kept : tuple of int
        The axes over which there is one statistic each.
    view_shape, view_axes : tuple of int
        The shape that is worked on, and its reduced axes.
    groups : int or None
        The number of channel groups of `gn`.
    group_order : GroupOrder or None
        Which channels a group is made of; None without groups.
    group_count, group_size : int
        Their product is the tensor's size, but for `lrn`, where each value has a window of its own.
    eps, eps_mode, ddof, zero_rule, p, window, dtype, like
        Numeric options, resolved; None where the norm has no such thing.
    gamma_offset : int
        Added to gamma before it multiplies.
    rounds_before_gamma : bool
        Whether x̂ is rounded to the output's dtype before gamma multiplies it.
    parameter_shape : tuple of int
        The shape of gamma and beta.
    parameter_view_shape : tuple of int
        The same with ones where it broadcasts against the view.
    """

    norm: Norm
    shape: tuple[int, ...]
    layout: Layout
    axes: tuple[int, ...]
    kept: tuple[int, ...]
    view_shape: tuple[int, ...]
    view_axes: tuple[int, ...]
    groups: int | None
    group_order: GroupOrder | None
    group_count: int
    group_size: int
    eps: float | None
    eps_mode: EpsMode | None
    ddof: int
    zero_rule: ZeroRule
    p: float | None
    window: Window | None
    dtype: str | None
    like: str | None
    gamma_offset: int
    rounds_before_gamma: bool
    parameter_rule: ParameterRule
    parameter_shape: tuple[int, ...]
    parameter_view_shape: tuple[int, ...]

    @property
    def formula(self) -> str:
        """The definition on one line, as this plan applies it."""
        divides_alpha = self.window is None or self.window.divisor == self.window.size
        return self.norm.formula(self.eps_mode, divides_alpha=divides_alpha)

    @property
    def kept_view_axes(self) -> tuple[int, ...]:
        """The axes of the view that are kept; for a window, all of them."""
        if self.window is not None:
            return tuple(range(len(self.view_shape)))
        return tuple(axis for axis in range(len(self.view_shape)) if axis not in self.view_axes)

    @property
    def stats_shape(self) -> tuple[int, ...]:
        """The shape of each statistic: the kept axes only."""
        return tuple(self.view_shape[axis] for axis in self.kept_view_axes)

    @property
    def keepdims_shape(self) -> tuple[int, ...]:
        """The shape of each statistic with 1 for each reduced axis, as `keepdims=True` gives it."""
        if self.window is not None:
            return self.shape
        return tuple(self._kept_length(axis) if axis in self.kept else 1 for axis in range(len(self.shape)))

    @property
    def kept_names(self) -> tuple[str, ...]:
        """What the axes of `stats_shape` are called: `("n", "g")`."""
        group = "g" if "G" not in (self.layout.letters or "") else "group"
        return tuple(group if axis == self._split_axis else self.layout.name(axis) for axis in self.kept)

    def group_index(self, group: int) -> dict[str, int]:
        """Return the named indices of a group, given its number in C order over the kept axes."""
        return dict(zip(self.kept_names, self._unravel(group), strict=True))

    def group_name(self, group: int) -> str:
        """Return what a group is called in tables and messages: `n=0 c=1`, or `all` if nothing is kept."""
        return " ".join(f"{name}={i}" for name, i in self.group_index(group).items()) or ONLY_GROUP

    def locate_groups(self, indices: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Return the numbers of the groups that cells belong to.

        Parameters
        ----------
        indices : sequence of integer arrays
            The cells' positions along each axis of the tensor; they broadcast against each other, so that
            `numpy.ix_` gives an excerpt.

        Returns
        -------
        ndarray
            Of the shape that the indices broadcast to.
        """
        numbers: NDArray[np.intp] = np.zeros((), dtype=np.intp)
        for axis in self.kept:
            positions = indices[axis]
            if axis == self._split_axis:
                positions = self._group_channels(positions)
            numbers = numbers * self._kept_length(axis) + positions
        return np.broadcast_to(numbers, np.broadcast_shapes(*(index.shape for index in indices)))

    def select_group(self, group: int) -> tuple[int | slice, ...]:
        """Return what picks the values of a group out of the view (for a window: the one value)."""
        index = iter(self._unravel(group))
        kept = self.kept_view_axes
        return tuple(next(index) if axis in kept else slice(None) for axis in range(len(self.view_shape)))

    def walk_groups(self) -> Iterator[tuple[dict[str, int], tuple[int | slice, ...]]]:
        """Yield `group_index` and `select_group` of every group, in order: for many, much faster than those."""
        names, kept = self.kept_names, self.kept_view_axes
        selection: list[int | slice] = [slice(None)] * len(self.view_shape)
        for index in itertools.product(*map(range, self.stats_shape)):
            for axis, place in zip(kept, index, strict=True):
                selection[axis] = place
            yield dict(zip(names, index, strict=True)), tuple(selection)

    def fit_parameter(self, name: str, parameter: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return gamma or beta as a read-only array of the parameters' shape.

        Taken are the shape that the table names, any shape that broadcasts to it, the same with ones for the
        other axes ((1, C, 1, 1) for (C)), and a single column ((C, 1), as a CSV file has it).

        Raises
        ------
        UsageError
            If the norm has no such parameter.
        DataError
            If the shape does not fit.
        """
        if name not in self.norm.parameter_names:
            has = " and ".join(self.norm.parameter_names)
            raise UsageError(
                f"{self.norm.name} has no {name}" + (f", only {has}" if has else ": it has no affine step")
            )
        full_rank = _spread_parameter(self.parameter_rule, self.shape, self.layout, self.axes, self.groups)
        fitted = _fit(parameter, self.parameter_shape, full_rank)
        if fitted is None:
            raise DataError(
                f"{name} has the shape {parameter.shape}; {self.norm.name} of {self.shape} takes "
                f"{self.parameter_shape}"
            )
        return fitted

    def fit_mask(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask at the tensor's rank, with 1 for the axes that it does not vary along.

        Parameters
        ----------
        mask : ndarray of bool
            Of a shape that broadcasts to the tensor's.

        Raises
        ------
        DataError
            If it does not.
        """
        try:
            np.broadcast_to(mask, self.shape)
        except ValueError as error:
            raise DataError(
                f"the mask has the shape {mask.shape}, which does not broadcast to {self.shape}"
            ) from error
        return mask.reshape((1,) * (len(self.shape) - mask.ndim) + mask.shape)

    def view_mask(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the tensor's rank at the rank of the view."""
        split = self._split_axis
        if split is None:
            return mask
        if mask.shape[split] == 1:
            return np.expand_dims(mask, split)
        interleaved = self.group_order is GroupOrder.INTERLEAVED
        return mask.reshape(_split_channel(mask.shape, split, self.groups, interleaved=interleaved))

    @property
    def running_shape(self) -> tuple[int, ...]:
        """The shape of running statistics: where each sample has its own, their average is kept."""
        return tuple(self._kept_length(axis) for axis in self.kept if axis != self.layout.batch)

    def running_name(self, number: int) -> str:
        """Return what a running statistic is called, given its number in C order: `c=1`."""
        lengths = [
            (name, self._kept_length(axis))
            for name, axis in zip(self.kept_names, self.kept, strict=True)
            if axis != self.layout.batch
        ]
        index = []
        for name, length in reversed(lengths):
            number, place = divmod(number, length)
            index.append(f"{name}={place}")
        return " ".join(reversed(index)) or ONLY_GROUP

    def fit_running(self, name: str, values: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return a running statistic as a read-only array of `running_shape`.

        Parameters
        ----------
        name : str
            For messages.
        values : ndarray
            Of a shape that broadcasts to `running_shape`, or the same with ones for the other axes.

        Raises
        ------
        UsageError
            If the norm has no running statistics.
        DataError
            If the shape does not fit.
        """
        if not self.norm.tracks:
            raise UsageError(f"{self.norm.name} has no {name}: no running statistics are kept of it")
        spread = self._spread_running()
        full_rank = [1] * len(self.shape)
        for axis, length in zip(self.kept, spread, strict=True):
            full_rank[axis] = length
        fitted = _fit(values, self.running_shape, tuple(full_rank))
        if fitted is None:
            raise DataError(
                f"{name} has the shape {values.shape}; {self.norm.name} of {self.shape} takes "
                f"{self.running_shape}"
            )
        return fitted.astype(np.float64)

    def spread_running(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a running statistic, of `running_shape`, as one value for each group, of `stats_shape`."""
        return np.broadcast_to(values.reshape(self._spread_running()), self.stats_shape)

    def _spread_running(self) -> tuple[int, ...]:
        """Return the shape of running statistics with 1 for a kept batch axis."""
        return tuple(1 if axis == self.layout.batch else self._kept_length(axis) for axis in self.kept)

    @property
    def parameter_axes(self) -> tuple[int, ...]:
        """The axes of the tensor that gamma and beta vary along."""
        return _choose_parameter_axes(self.parameter_rule, self.layout, self.axes)

    @property
    def _split_axis(self) -> int | None:
        return self.layout.channel if self.groups is not None else None

    def _group_channels(self, channels: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return which group of channels each of some channels belongs to."""
        groups = self.groups or 1
        if self.group_order is GroupOrder.INTERLEAVED:
            return channels % groups
        return channels // max(1, self.shape[self.layout.channel or 0] // groups)

    def _unravel(self, group: int) -> tuple[int, ...]:
        """Return a group's index over the kept axes; for one group, much faster than NumPy's function."""
        index = []
        for length in reversed(self.stats_shape):
            group, place = divmod(group, length)
            index.append(place)
        return tuple(reversed(index))

    def _kept_length(self, axis: int) -> int:
        return self.groups if axis == self._split_axis and self.groups is not None else self.shape[axis]


@functools.lru_cache(maxsize=512)
def make_plan(request: Request, shape: tuple[int, ...], dtype: np.dtype[Any] | None = None) -> Plan:
    """Resolve a request against a shape.

    Parameters
    ----------
    request : Request
    shape : tuple of int
        The tensor's shape.
    dtype : dtype, optional
        The tensor's, which an eps may depend on; without it, float64.

    Returns
    -------
    Plan

    Raises
    ------
    UsageError
        If an option is unknown to the norm, out of range, or contradicts another or the shape.

    Examples
    --------
    >>> plan = make_plan(Request("gn", groups=2), (4, 6, 5, 5))
    >>> plan.group_count, plan.group_size, plan.keepdims_shape
    (8, 75, (4, 2, 1, 1))
    """
    norm, fixed = find_norm(request.norm)
    convention = _find_convention(request.like, norm)
    check_options(norm, request, fixed, convention)
    chosen = choose(request, norm, convention, fixed)
    _check_length(norm, chosen)
    layout = make_layout(chosen.layout, len(shape), channel_last=chosen.channel_last)
    axes = _choose_axes(norm, layout, request, chosen)
    groups = _choose_groups(norm, layout, request.groups, axes, shape)
    split = None if groups is None else layout.channel
    interleaved = chosen.group_order is GroupOrder.INTERLEAVED
    view_shape = _split_channel(shape, split, groups, interleaved=interleaved)
    view_axes = axes if split is None else _split_axes(axes, split, interleaved=interleaved)
    window = _make_window(chosen) if norm.divisor is Divisor.WINDOW_POWER else None
    if window is None:
        group_size = math.prod(view_shape[axis] for axis in view_axes)
        group_count = math.prod(size for axis, size in enumerate(view_shape) if axis not in view_axes)
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes or axis == split)
    else:
        group_size, group_count, kept = window.length, math.prod(shape), tuple(range(len(shape)))
    spread = _spread_parameter(chosen.parameters, shape, layout, axes, groups)
    parameter_axes = _choose_parameter_axes(chosen.parameters, layout, axes)
    return Plan(
        norm=norm,
        shape=shape,
        layout=layout,
        axes=axes,
        kept=kept,
        view_shape=view_shape,
        view_axes=view_axes,
        groups=groups,
        group_order=None if groups is None else chosen.group_order,
        group_count=group_count,
        group_size=group_size,
        eps=_resolve_eps(norm, chosen, dtype, group_size),
        eps_mode=chosen.eps_mode,
        ddof=chosen.ddof,
        zero_rule=chosen.zero_rule,
        p=chosen.p,
        window=window,
        dtype=request.dtype,
        like=chosen.like,
        gamma_offset=chosen.gamma_offset,
        rounds_before_gamma=chosen.rounds_before_gamma,
        parameter_rule=chosen.parameters,
        parameter_shape=tuple(spread[axis] for axis in parameter_axes),
        parameter_view_shape=_split_channel(spread, split, groups, interleaved=interleaved),
    )


def _fit(
    values: NDArray[np.generic], shape: tuple[int, ...], full_rank: tuple[int, ...]
) -> NDArray[np.generic] | None:
    """Return values in a shape, given in any that broadcasts to it or to its form at the tensor's rank."""
    candidates = [(values, shape), (values, full_rank)]
    if values.ndim == 2 and values.shape[1] == 1:
        candidates.append((values[:, 0], shape))
    for candidate, target in candidates:
        if candidate.ndim <= len(target):
            try:
                return np.broadcast_to(candidate, target).reshape(shape)
            except ValueError:
                continue
    return None


def _find_convention(framework: str | None, norm: Norm) -> Convention | None:
    if framework is None:
        return None
    from normcli.norms.conventions import find_convention  # a long table, for those alone who ask for it

    return find_convention(framework, norm.name)


def _split_channel(
    shape: tuple[int, ...], channel: int | None, groups: int | None, *, interleaved: bool
) -> tuple[int, ...]:
    if channel is None or groups is None:
        return shape
    within = shape[channel] // groups
    return (*shape[:channel], *((within, groups) if interleaved else (groups, within)), *shape[channel + 1 :])


def _split_axes(axes: tuple[int, ...], channel: int, *, interleaved: bool) -> tuple[int, ...]:
    """Return the reduced axes of the view: of the split channel, the channels of a group."""
    return tuple(axis + (axis > channel or (axis == channel and not interleaved)) for axis in axes)


def _choose_axes(norm: Norm, layout: Layout, request: Request, chosen: Choices) -> tuple[int, ...]:
    every = tuple(range(layout.ndim))
    if request.axes is not None:
        axes = layout.resolve(request.axes, "axes")
    elif request.keep is not None:
        kept = layout.resolve(request.keep, "keep")
        axes = tuple(axis for axis in every if axis not in kept)
    else:
        axes = _default_axes(chosen.axes, layout, every)
    if norm.axes is AxesRule.CHANNEL_WINDOW and len(axes) != 1:
        raise UsageError(f"{norm.name} has a window along one axis, not along {len(axes)}")
    return axes


_PLACES = {
    AxesRule.FIRST: slice(0, 1),
    AxesRule.SECOND: slice(1, 2),
    AxesRule.LAST: slice(-1, None),
    AxesRule.LAST_THREE: slice(-3, None),
    AxesRule.ALL_BUT_FIRST: slice(1, None),
    AxesRule.ALL_BUT_LAST: slice(0, -1),
}
"""The rules that go by place alone, whatever the layout."""


def _default_axes(rule: AxesRule, layout: Layout, every: tuple[int, ...]) -> tuple[int, ...]:
    if rule in _PLACES:
        return every[_PLACES[rule]]
    if rule in (AxesRule.CHANNEL, AxesRule.CHANNEL_WINDOW):
        return (_require_channel(layout),)
    if rule is AxesRule.CHANNEL_GROUPS:
        channel = _require_channel(layout)
        return tuple(axis for axis in every if axis != layout.batch or axis == channel)
    if rule is AxesRule.GIVEN:
        raise UsageError("this convention has no default axes; give them (--axes)")
    kept = {
        AxesRule.ALL_BUT_BATCH: (layout.batch,),
        AxesRule.ALL_BUT_BATCH_AND_CHANNEL: (layout.batch, layout.channel),
    }.get(rule, (layout.channel,))
    return tuple(axis for axis in every if axis not in kept)


def _require_channel(layout: Layout) -> int:
    if layout.channel is None or not layout.ndim:
        raise UsageError(
            f"a tensor of {layout.ndim} axes has no channel axis; name it with a layout such as NC"
        )
    return layout.channel


def _choose_groups(
    norm: Norm, layout: Layout, groups: int | None, axes: tuple[int, ...], shape: tuple[int, ...]
) -> int | None:
    if norm.axes is not AxesRule.CHANNEL_GROUPS:
        return None
    channel = _require_channel(layout)
    count = shape[channel]
    divisors = ", ".join(str(g) for g in range(1, min(count, _MOST_DIVISORS) + 1) if count % g == 0) or "none"
    if groups is None:
        raise UsageError(
            f"{norm.name} needs groups (--groups): the divisors of {count} (axis {channel}) are {divisors}"
        )
    if groups < 1 or count % groups:
        raise UsageError(
            f"groups {groups} does not divide the length {count} of the channel axis {channel}; try {divisors}"
        )
    if channel not in axes:
        raise UsageError(f"{norm.name} reduces the channels of a group: axes must hold axis {channel}")
    return groups


def _check_length(norm: Norm, chosen: Choices) -> None:
    """Refuse an eps among the squares of a length that has none."""
    if norm.divisor is not Divisor.LP_NORM or chosen.eps_mode not in (EpsMode.INSIDE, EpsMode.SQUARE_FLOOR):
        return
    if chosen.p != DEFAULT_P:
        raise UsageError(
            f"{norm.name} like {chosen.like} has eps among the squares of ℓ2; p {chosen.p:g} has none"
        )


def _resolve_eps(norm: Norm, chosen: Choices, dtype: np.dtype[Any] | None, group_size: int) -> float | None:
    """Return eps as a number; that of a machine is of the dtype that the framework calculates in."""
    match chosen.eps:
        case EpsRule.MACHINE:
            short = dtype is not None and is_short_float(dtype)
            return get_eps(np.dtype(np.float32 if short else np.float64))
        case EpsRule.ROOT_COUNT:
            return 1.0 / math.sqrt(max(1, group_size))
        case EpsRule.GIVEN:
            raise UsageError(f"{norm.name} like {chosen.like} has no default eps; give it (--eps)")
        case eps:
            return eps


def _make_window(chosen: Choices) -> Window:
    size = chosen.size
    shorter, longer = (size - 1) // 2, size // 2
    before, after = {
        ExtraNeighbour.BEFORE: (longer, shorter),
        ExtraNeighbour.AFTER: (shorter, longer),
        ExtraNeighbour.NEITHER: (shorter, shorter),
    }[chosen.extra_neighbour]
    return Window(
        before=before,
        after=after,
        size=size,
        alpha=chosen.alpha,
        exponent=chosen.exponent,
        k=chosen.k,
        divisor=size if chosen.divides_alpha else 1,
    )


def _spread_parameter(
    rule: ParameterRule, shape: tuple[int, ...], layout: Layout, axes: tuple[int, ...], groups: int | None
) -> tuple[int, ...]:
    """Return the shape of gamma and beta at the tensor's rank, with ones where they do not vary."""
    held = _choose_parameter_axes(rule, layout, axes)
    lengths = shape if rule is not ParameterRule.GROUP else (groups or 1,) * len(shape)
    return tuple(lengths[axis] if axis in held else 1 for axis in range(len(shape)))


def _choose_parameter_axes(rule: ParameterRule, layout: Layout, axes: tuple[int, ...]) -> tuple[int, ...]:
    if rule is ParameterRule.REDUCED:
        return axes
    if rule is ParameterRule.FIRST:
        return (0,) if layout.ndim else ()
    if rule is ParameterRule.LAST:
        return (layout.ndim - 1,) if layout.ndim else ()
    if rule is not ParameterRule.NONE and layout.channel is not None and layout.ndim:
        return (layout.channel,)
    return ()
