"""The faults of gradients that have several forms: other axes, groups, eps, activations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.gradient_terms import MOVED_EPS
from normcli.checking.half_precision import HALVES, sum_in_half
from normcli.checking.wrong_gradient import slope_of
from normcli.norms.rules import ParameterRule
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rounding import round_to_short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.checking.wrong_gradient import Detailed, WrongGradient
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan

_CLEARLY = 8.0
"""Values are permuted if their error, once sorted, is at least this many times below the exact differences."""

_EPS = (0.0, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 2.0**-10, 1e-3, 2.0**-7, 1e-2)
"""The eps that kernels use, in other frameworks or by mistake."""

_MOST_ROUNDED = 0.5
"""The largest relative error of a gradient for which sums in half precision are tried."""


def leave_gate(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the gradient without the gate, and for a gate before the norm also dx without the gate's factor."""
    yield (), c.pass_gate(None)
    if c.name == "dx" and c.exact.inputs.gated_input is not None:
        yield (), c.t._replace(behind=1.0)


def change_activation(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the gradient with each other activation of the gate.

    For dgate of a gate before the norm, also with only the activation's derivative changed.
    """
    own = c.gate
    assert own is not None
    for act in Activation:
        if act is not own.activation:
            other, words = own._replace(activation=act), (act.value, own.activation.value)
            yield words, c.pass_gate(other)
            if c.name == "dgate" and c.exact.inputs.gate is None and act is not Activation.NONE:
                yield words, c.pass_gate(own, slope=slope_of(other))


def multiply_slope(c: WrongGradient, values: Floats) -> Floats:
    """Return values times the derivative of the gate's activation, of the shape of x; there must be a gate."""
    return np.asarray(values.reshape(c.x.shape) * slope_of(c.gate))


def sum_otherwise(c: WrongGradient) -> Iterator[Detailed]:
    """Yield a parameter's gradient summed over each other set of axes whose sum has its shape."""
    for axes in find_summed(c.plan, c.right.shape):
        shares = np.broadcast_to(c.shares, c.plan.grid.shape)
        yield (c.name_axes(axes), c.name_axes(c.along)), shares.sum(axes).reshape(c.right.shape)


def find_summed(plan: Plan, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield each set of axes, from one to all but one, over which x is summed to a given shape; not dgamma's.

    Axes of length 1 are ignored in both comparisons. Nothing is yielded for channel groups.
    """
    lengths = plan.grid.shape if plan.grid.split is None else ()
    wanted, own = [n for n in shape if n != 1], plan.parameters.view_shape
    for some in range(1, len(lengths)):
        for axes in itertools.combinations(range(len(lengths)), some):
            left = [n for axis, n in enumerate(lengths) if axis not in axes and n != 1]
            others = {axis for axis, n in enumerate(lengths) if n != 1 and (own[axis] == 1) != (axis in axes)}
            if left == wanted and others:
                yield axes


def change_groups(c: WrongGradient) -> Iterator[Detailed]:
    """Yield terms for other counts of channel groups; nothing if there are none or gamma has one a group."""
    split, plan = c.plan.grid.split, c.plan
    if split is None or plan.parameters.rule is ParameterRule.GROUP:
        return
    channels = plan.grid.shape[split.axis]
    for groups in (n for n in range(1, channels + 1) if channels % n == 0 and n != split.groups):
        yield (str(groups), str(split.groups)), c.regroup(split=split._replace(groups=groups))


def change_eps(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms with each other usual eps; nothing for a norm without eps."""
    own = c.plan.spec.eps
    if own is not None:
        yield from (((f"{eps:g}", f"{own:g}"), c.change(eps=eps)) for eps in _EPS if eps != own)


def move_eps(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms with eps outside the root in place of inside, or inside; nothing if it is a floor."""
    own = c.plan.spec.eps_mode
    terms = c.change(eps_mode=MOVED_EPS[own]) if own in MOVED_EPS else None
    if terms is not None:
        yield from (((str(MOVED_EPS[own]), str(own)), one) for one in (terms, terms.plain))


def centre(c: WrongGradient, *, centres: bool) -> Iterator[Detailed]:
    """Yield the terms with a mean, or without one; dx with and without the mean of dy · gamma."""
    terms = c.vary(centres=centres) if centres is not c.t.centres else None
    if terms is not None:
        yield from (((), one) for one in (terms, terms._replace(centres=not centres)))


def exchange(c: WrongGradient) -> Detailed:
    """Return the gradient of the other parameter, dbeta for dgamma or dgamma for dbeta; None without one."""
    other = "dbeta" if c.name == "dgamma" else "dgamma"
    return (other,), c.exact.field(other)


def reorder(c: WrongGradient, *, flip: bool) -> Iterator[Detailed]:
    """Yield the exact gradient reversed along each axis if `flip`, else rolled by the shift that fits best."""
    for axis in range(c.right.ndim):
        if flip:
            yield (), np.flip(c.right, axis)
            continue
        shift, words = _find_shift(c.actual, c.right, axis)
        yield (words, c.name_axes(c.plan.parameters.axes[axis : axis + 1])), np.roll(c.right, shift, axis)


def _find_shift(actual: Floats, right: Floats, axis: int = 0) -> tuple[int, str]:
    """Return the shift along an axis by which `right` fits `actual` best; and it in words, −1 for the last."""
    first, second = (np.fft.fft(np.nan_to_num(values), axis=axis) for values in (actual, right))
    fits = np.fft.ifft(first * second.conj(), axis=axis).real
    shift = int(fits.sum(tuple(other for other in range(fits.ndim) if other != axis)).argmax())
    return shift, str(shift if 2 * shift <= right.shape[axis] else shift - right.shape[axis])


def roll_gamma(c: WrongGradient) -> Detailed | None:
    """Return dx with gamma rolled by the shift that fits best; None if none fits better than no shift."""
    t = c.t
    along = tuple(axis for axis, n in enumerate(t.gamma.shape) if n == 1)
    used = t.dy * np.nan_to_num(c.actual.reshape(t.dy.shape)) * t.divisor
    ends = (values.reshape(-1) for values in (used.sum(along) / np.square(t.dy).sum(along), t.gamma))
    shift, words = _find_shift(*(values - values.mean() for values in ends))
    rolled = np.roll(t.gamma.reshape(-1), shift).reshape(t.gamma.shape)
    return ((words,), t._replace(g=t.dy * rolled)) if shift else None


def turn_gamma(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms with gamma along another axis of its length; nothing if it has several of its own."""
    shape, grid = c.t.gamma.shape, c.plan.grid
    own = [axis for axis, n in enumerate(shape) if n != 1]
    if len(own) == 1 and grid.split is None:
        for axis in (axis for axis, n in enumerate(grid.shape) if n == shape[own[0]] and axis != own[0]):
            turned = np.moveaxis(c.t.gamma, own[0], axis)
            yield (c.name_axes((axis,)), c.name_axes(own)), c.t._replace(g=c.t.dy * turned)


def round_statistics(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms with the mean, 1 / divisor, or both rounded to half precision, as they may be saved."""
    t = c.t
    for name in HALVES:
        mean, divisor = round_to_short(t.mean, name), 1.0 / round_to_short(1.0 / t.divisor, name)
        for centre, root in ((mean, divisor), (mean, t.divisor), (t.mean, divisor)):
            yield (name,), t._replace(mean=centre, w=t.w + (t.mean - centre), divisor=root).plain


def average_without_gamma(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx with gamma left out of both means of the backward pass, or of one."""
    t = c.t
    bare = t._replace(g=t.dy)
    for a, b in ((1.0, 1.0), (0.0, 1.0), (1.0, 0.0)):
        means = bare.scale(a, b).differentiate() - bare.scale(0.0, 0.0).differentiate()
        yield (), t.scale(1.0 - a, 1.0 - b).differentiate() + means


def divide_by_gate(c: WrongGradient) -> Floats | None:
    """Return dgate with act(z) / z in place of act′(z), for activations that are z times a factor; or None."""
    gate = c.gate
    if gate is None or gate.activation not in (Activation.SILU, Activation.GELU, Activation.GELU_TANH):
        return None
    values = gate.values.astype(np.float64)
    factor = gate._replace(times=None).activate()
    return c.pass_gate(gate, slope=np.where(values == 0.0, 0.5, factor / values))


def permute(c: WrongGradient) -> Floats | None:
    """Return the exact gradient's values in the order (by rank) of the given gradient's values.

    None if the two then differ, or if the order is a reversal or a roll, which have faults of their own.
    """
    order, found = np.argsort(c.right, axis=None), np.argsort(c.actual, axis=None)
    right, actual = c.right.reshape(-1)[order], c.actual.reshape(-1)[found]
    if np.linalg.norm(actual - right) * _CLEARLY > np.linalg.norm(np.diff(right)):
        return None
    wrong: Floats = np.empty(c.right.shape)
    wrong.flat[found] = right
    known = (*reorder(c, flip=True), *reorder(c, flip=False))
    return None if any(np.array_equal(wrong, other) for _, other in known) else wrong


def round_sums(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the sums in half precision; nothing if the given gradient is off by half of its size or more."""
    if c.along and np.linalg.norm(c.actual - c.right) < _MOST_ROUNDED * np.linalg.norm(c.right):
        factors = (c.t.dy, c.t.xhat) if c.name == "dgamma" else (c.t.dy,)
        yield from (((dtype, order), total) for dtype, order, total in sum_in_half(factors, c.along))
