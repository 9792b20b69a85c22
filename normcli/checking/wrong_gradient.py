"""A wrong gradient with its terms, and those of the norm with other options, groups or gates."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_terms import GradientTerms, make_terms, spread_parameter
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.results.backward import Gradients

MOST_VARIED = 1 << 20
"""With more values than this, the gradients of other norms (up to a hundred) are not tried."""

GRADIENTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "dx": frozenset(("dx", "norm", "statistics")),
        "dgamma": frozenset(("dgamma", "norm", "parameter", "statistics")),
        "dbeta": frozenset(("dbeta", "norm", "parameter")),
        "dgate": frozenset(("dgate",)),
    }
)
"""The parts of each gradient that rows of the table may need: its name, `norm`, `parameter`, `statistics`."""

LAYER_PARTS = frozenset(("mean", "given", "own", "gamma", "gate", "behind", "before"))
"""The parts of a norm that rows may need: a mean, running statistics or the norm's own, a gamma, a gate, or a
gate behind or before the norm."""

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
        The terms of the exact gradients; None for norms whose gradients have no known terms.
    """

    exact: Gradients
    name: str
    actual: Floats
    right: Floats
    t: GradientTerms

    @property
    def is_known(self) -> bool:
        """Whether the gradients of the norm have known terms."""
        return isinstance(self.t, GradientTerms)

    @property
    def parts(self) -> frozenset[str]:
        """The names, such as "mean" and "gate", of the parts of gradient and norm that faults may need."""
        inputs, own = self.exact.inputs, {"own" if self.exact.inputs.given is None else "given"}
        parts = {"gamma": inputs.gamma, "gate": self.gate, "behind": inputs.gate, "before": inputs.gated_input}
        mean = {"mean"} if self.is_known and self.t.centres else set()
        return GRADIENTS[self.name] | own | mean | {name for name, part in parts.items() if part is not None}

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
        """Return this gradient (not dgate) of other terms."""
        return terms.differentiate() if self.name == "dx" else self.add(self._replace(t=terms).shares)

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

    def vary_axes(self, make: Callable[[tuple[int, ...]], GradientTerms | None]) -> Iterator[Detailed]:
        """Yield the terms that `make` makes of each set of axes but the norm's own.

        Nothing with channel groups or running statistics.
        """
        axes, own = range(len(self.plan.grid.shape) if self.is_trained else 0), self.plan.grid.axes
        choices = (itertools.combinations(axes, count) for count in range(1, len(axes) + 1))
        others = (some for some in itertools.chain(*choices) if {*some} != {*own})
        yield from (((self.name_axes(some), self.name_axes(own)), make(some)) for some in others)


def slope_of(gate: Gated | None) -> Floats:
    """Return the derivative of a gate's activation at each value of the gate, which must not be None."""
    assert gate is not None
    return gate._replace(times=None, is_slope=True).activate()
