"""A wrong gradient with its terms, and the faults that have several forms: other axes, shards, another eps."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_terms import MOVED_EPS, make_terms, spread_parameter
from normcli.checking.half_precision import sum_in_half
from normcli.norms.rules import ParameterRule
from normcli.numerics.elements.activation import Activation
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from normcli.checking.gradient_terms import GradientTerms
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.results.backward import Gradients

_CLEARLY = 8.0
"""Values are permuted if their error, once sorted, is at least this many times below the exact differences."""

_EPS = (0.0, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 2.0**-10, 1e-3, 2.0**-7, 1e-2)
"""The eps that kernels use, in other frameworks or by mistake."""

MOST_VARIED = 1 << 20
"""With more values than this, the gradients of other norms (up to a hundred) are not tried."""

_MOST_ROUNDED = 0.5
"""The largest relative error of a gradient for which sums in half precision are tried."""

GRADIENTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "dx": frozenset(("dx", "norm", "statistics")),
        "dgamma": frozenset(("dgamma", "norm", "parameter", "statistics")),
        "dbeta": frozenset(("dbeta", "norm", "parameter")),
        "dgate": frozenset(("dgate",)),
    }
)
"""The parts of each gradient that rows of the table may need: its name, `norm`, `parameter`, `statistics`."""

LAYER_PARTS = frozenset(("mean", "gamma", "gate", "behind", "before"))
"""The parts of a norm that rows may need: a mean, a gamma, a gate, or a gate behind or before the norm."""

Detailed = tuple[tuple[str, ...], Any]
"""The values for the braces in a fault's words, and the gradient, or the terms, of a kernel with the fault."""


class WrongGradient(NamedTuple):
    """A wrong gradient, with the exact one and the terms that the exact one is made of.

    Parameters
    ----------
    exact : Gradients
        All exact gradients, in float64.
    name : {"dx", "dgamma", "dbeta", "dgate"}
    actual, right : ndarray
        The wrong gradient and the exact one, of one shape.
    t : GradientTerms
        The terms of the exact gradients.
    """

    exact: Gradients
    name: str
    actual: Floats
    right: Floats
    t: GradientTerms

    @property
    def parts(self) -> frozenset[str]:
        """The names, such as "mean" and "gate", of the parts of gradient and norm that faults may need."""
        inputs, mean = self.exact.inputs, {"mean"} if self.t.centres else set()
        parts = {"gamma": inputs.gamma, "gate": self.gate, "behind": inputs.gate, "before": inputs.gated_input}
        return GRADIENTS[self.name] | mean | {name for name, part in parts.items() if part is not None}

    @property
    def plan(self) -> Plan:
        """The plan of the requested norm."""
        return self.exact.plan

    @property
    def along(self) -> tuple[int, ...]:
        """The axes of the view that gradients of parameters are summed over."""
        return tuple(axis for axis, n in enumerate(self.plan.parameters.view_shape) if n == 1)

    @property
    def shares(self) -> Floats:
        """The term of each value in the sum that is a parameter's gradient, at the view's rank."""
        return self.t.dy * self.t.xhat if self.name == "dgamma" else self.t.dy

    @property
    def gamma(self) -> Floats:
        """Gamma, or 1 + gamma, of the shape of the gradient of gamma."""
        return np.broadcast_to(self.t.gamma, self.plan.parameters.view_shape).reshape(self.right.shape)

    @property
    def y(self) -> Floats:
        """The norm's result, at the view's rank."""
        return self.t.xhat * self.t.gamma + spread_parameter(self.plan, self.exact.inputs.beta, 0.0)

    @property
    def is_trained(self) -> bool:
        """Whether statistics are computed from x over whole axes: no running statistics, no channel groups."""
        return self.plan.grid.split is None and self.exact.inputs.given is None

    @property
    def gate(self) -> Gated | None:
        """The gate, on either side of the norm."""
        return self.exact.inputs.gate or self.exact.inputs.gated_input

    @property
    def x(self) -> Floats:
        """The input in float64, before a gate in front of the norm multiplies it."""
        before = self.exact.inputs.gated_input
        return np.asarray(self.exact.input if before is None else before.times, np.float64)

    def pass_gate(
        self, gate: Gated | None, *, slope: Floats | None = None, is_first: bool | None = None
    ) -> Floats | None:
        """Return this gradient for the norm with another gate; None if `make_terms` returns None for the norm.

        Parameters
        ----------
        gate : Gated or None
            The other gate; None for a norm without gate.
        slope : ndarray or None
            For dgate, its last factor; None for the derivative of the gate's activation.
        is_first : bool or None
            True if the gate multiplies x before the norm, False if y after it; None for the checked norm's
            order.
        """
        is_first = self.exact.inputs.gated_input is not None if is_first is None else is_first
        gate = None if gate is None else gate._replace(times=None)
        x, factor = self.x, 1.0 if gate is None else gate.activate()
        behind, before = (None, gate) if is_first else (gate, None)
        inputs = self.exact.inputs._replace(gate=behind, gated_input=before)
        exact = replace(self.exact, input=x * factor if is_first else x, inputs=inputs)
        terms = make_terms(exact)
        if terms is None or self.name == "dx":
            return terms and terms.differentiate()
        other = self._replace(exact=exact, t=terms)
        if self.name != "dgate":
            return other.add(other.shares)
        slope = slope_of(gate) if slope is None else slope
        known = terms._replace(behind=1.0).differentiate() if is_first else other.y
        return np.asarray(known.reshape(x.shape) * (x if is_first else self.exact.dy) * slope)

    def add(self, shares: Floats) -> Floats:
        """Return the gradient of a parameter as the sum of `shares`, the term of each value."""
        total: Floats = shares.reshape(self.plan.grid.view_shape).sum(self.along)
        return total.reshape(self.right.shape)

    def take(self, terms: GradientTerms) -> Floats:
        """Return this gradient (dx or dgamma) of other terms."""
        return terms.differentiate() if self.name == "dx" else self.add(terms.dy * terms.xhat)

    def vary(self, plan: Plan | None = None, **how: Any) -> GradientTerms | None:
        """Return the terms for another plan, or with other arguments `how` of `make_terms`.

        None for tensors above 2²⁰ values, and if `make_terms` returns None.
        """
        return make_terms(self.exact, plan, **how) if self.exact.input.size <= MOST_VARIED else None

    def change(self, **numbers: Any) -> GradientTerms | None:
        """Return the terms for the norm with other options, such as eps; None if `vary` returns None."""
        return self.vary(self.plan.change_spec(**numbers))

    def regroup(self, **grid: Any) -> GradientTerms | None:
        """Return the terms for other `axes` or another `split` of the grid; None if `vary` returns None."""
        return self.vary(replace(self.plan, grid=replace(self.plan.grid, **grid)))

    def name_axes(self, axes: Iterable[int]) -> str:
        """Return the names of axes, joined: `n×h×w`."""
        return "×".join(self.plan.grid.layout.name(axis) for axis in axes)

    def list_axes(self) -> Iterator[tuple[int, ...]]:
        """Yield every set of axes but the norm's own; nothing with channel groups or running statistics."""
        axes = range(len(self.plan.grid.shape) if self.is_trained else 0)
        choices = (itertools.combinations(axes, count) for count in range(1, len(axes) + 1))
        yield from (some for some in itertools.chain(*choices) if some != tuple(sorted(self.t.axes)))


# -- faults that have several forms


def leave_gate(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the gradient without the gate, and for a gate before the norm also dx without the gate's factor."""
    yield (), c.pass_gate(None)
    if c.name == "dx" and c.exact.inputs.gated_input is not None:
        yield (), c.t._replace(behind=1.0).differentiate()


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


def slope_of(gate: Gated | None) -> Floats:
    """Return the derivative of a gate's activation at each value of the gate, which must not be None."""
    assert gate is not None
    return gate._replace(times=None, is_slope=True).activate()


def change_means(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx with the means of the backward pass over each other set of axes, and the right statistics."""
    own = c.name_axes(c.plan.grid.axes)
    yield from (((c.name_axes(axes), own), c.t.differentiate(axes=axes)) for axes in c.list_axes())


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


def widen_sums(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx with its sums over more axes than the norm's, still divided by the size of a group."""
    for axes in c.list_axes():
        if set(axes) > set(c.t.axes):
            more = math.prod(c.plan.grid.shape[axis] for axis in axes) / c.t.size
            yield (c.name_axes(axes),), c.t.differentiate(a=more, b=more, axes=axes)


def change_axes(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the terms of the norm over each other set of axes."""
    own = c.name_axes(c.plan.grid.axes)
    yield from (((c.name_axes(axes), own), c.regroup(axes=axes)) for axes in c.list_axes())


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


def keep_mean(c: WrongGradient) -> GradientTerms | None:
    """Return the terms with mean(dy · gamma) subtracted; None with it, and with running statistics."""
    return None if c.t.centres or c.exact.inputs.given is not None else c.t._replace(centres=True)


def exchange(c: WrongGradient) -> Iterator[Detailed]:
    """Yield the gradient of the other parameter: dbeta for dgamma, or dgamma for dbeta, if there is one."""
    other = "dbeta" if c.name == "dgamma" else "dgamma"
    if c.exact.field(other) is not None:
        yield (other,), c.exact.field(other)


def reorder(c: WrongGradient, *, flip: bool) -> Iterator[Detailed]:
    """Yield the exact gradient reversed along each axis if `flip`, else rolled by the shift that fits best."""
    for axis, length in enumerate(c.right.shape):
        if flip:
            yield (), np.flip(c.right, axis)
            continue
        ends = np.fft.fft(np.nan_to_num(c.actual), axis=axis), np.fft.fft(np.nan_to_num(c.right), axis=axis)
        fits = np.fft.ifft(ends[0] * ends[1].conj(), axis=axis).real
        shift = int(fits.sum(tuple(other for other in range(fits.ndim) if other != axis)).argmax())
        signed = shift if 2 * shift <= length else shift - length
        yield (str(signed), c.name_axes(c.plan.parameters.axes[axis : axis + 1])), np.roll(c.right, shift, axis)


def roll_gamma(c: WrongGradient) -> Detailed | None:
    """Return dx with gamma rolled by the shift that fits best; None if none fits better than no shift."""
    t = c.t
    along = tuple(axis for axis, n in enumerate(t.gamma.shape) if n == 1)
    used = t.dy * np.nan_to_num(c.actual.reshape(t.dy.shape)) * t.divisor
    ends = (values.reshape(-1) for values in (used.sum(along) / np.square(t.dy).sum(along), t.gamma))
    first, second = (np.fft.fft(values - values.mean()) for values in ends)
    length = t.gamma.size
    shift = int(np.fft.ifft(first * second.conj()).real.argmax())
    signed = shift if 2 * shift <= length else shift - length
    rolled = np.roll(t.gamma.reshape(-1), shift).reshape(t.gamma.shape)
    return ((str(signed),), t.differentiate(g=t.dy * rolled)) if shift else None


def average_without_gamma(c: WrongGradient) -> Iterator[Detailed]:
    """Yield dx with gamma left out of both means of the backward pass, or of one."""
    t = c.t
    for a, b in ((1.0, 1.0), (0.0, 1.0), (1.0, 0.0)):
        bare = t.differentiate(a=a, b=b, g=t.dy) - t.differentiate(a=0.0, b=0.0, g=t.dy)
        yield (), t.differentiate(a=1.0 - a, b=1.0 - b) + bare


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
