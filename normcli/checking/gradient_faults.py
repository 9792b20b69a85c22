"""The table of faults of backward passes; each is tried on the data of a wrong gradient.

A fault leaves out a term, takes it twice, sums over other values, or takes the gradient of another norm.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Fault, Row, find_fault
from normcli.checking.gradient_counts import (
    change_ddof,
    count_means,
    end_early,
    find_multiple,
    fit_factor,
    pad,
    shard,
    shard_means,
    sum_part,
)
from normcli.checking.gradient_forms import (
    average_without_gamma,
    centre,
    change_activation,
    change_eps,
    change_groups,
    divide_by_gate,
    exchange,
    leave_gate,
    move_eps,
    multiply_slope,
    permute,
    reorder,
    roll_gamma,
    round_statistics,
    round_sums,
    sum_otherwise,
    turn_gamma,
)
from normcli.checking.gradient_terms import GradientTerms, add_up
from normcli.checking.wrong_gradient import GRADIENTS, LAYER_PARTS, WrongGradient
from normcli.dtypes import find_type, is_float
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from normcli.checking.gradient_bounds import GradientScales
    from normcli.checking.wrong_gradient import Detailed
    from normcli.dtypes import Floats
    from normcli.results.backward import Gradients


class Wrong(NamedTuple):
    """The gradient of a kernel with a fault.

    Parameters
    ----------
    fault : Fault
    details : tuple of str
        The values for the braces in its words.
    gradient : ndarray
    terms : GradientTerms or None
        The terms that the gradient is made of; None if it is made otherwise.
    """

    fault: Fault
    details: tuple[str, ...]
    gradient: Floats
    terms: GradientTerms | None = None

    @property
    def said(self) -> Fault:
        """The fault, with values in its words."""
        return self.fault.fill(self.details)


ROWS: tuple[Row, ...] = (
    Row("sign", lambda c: -c.right),
    # -- dx: the mean(dy · gamma) term
    Row("mean-missing", lambda c: c.t.scale(a=0.0), "dx mean"),
    Row("mean-twice", lambda c: c.t.scale(a=2.0), "dx mean"),
    Row("mean-added", lambda c: c.t.scale(a=-1.0), "dx mean"),
    Row("means-added", lambda c: c.t.scale(-1.0, -1.0), "dx mean"),
    Row("means-freedom", lambda c: c.t.scale(c.t.excess, c.t.excess), "dx mean"),
    Row("means-count", count_means, "dx own"),
    Row("means-summed", lambda c: c.t.scale(c.t.size, c.t.size), "dx mean"),
    # -- dx: the x̂ term
    Row("pull-missing", lambda c: c.t.scale(b=0.0), "dx"),
    Row("pull-twice", lambda c: c.t.scale(b=2.0), "dx"),
    Row("pull-added", lambda c: c.t.scale(b=-1.0), "dx"),
    Row("pull-freedom", lambda c: c.t.scale(b=c.t.excess), "dx"),
    Row("pull-summed", lambda c: c.t.scale(b=c.t.size), "dx"),
    Row("pull-x", lambda c: _replace_standardized(c.t, c.x), "dx own"),
    Row("pull-y", lambda c: _replace_standardized(c.t, c.y), "dx own gamma"),
    Row("pull-bare", lambda c: c.t.standardize(np.ones_like(c.t.w), c.t.xhat), "dx own"),
    Row("pull-power",
        lambda c: [((str(power),), c.t.scale(b=c.t.divisor**power)) for power in (-3, -2, -1, 1, 2)], "dx own"),
    Row("constants", lambda c: c.t.scale(0.0, 0.0), "dx"),
    # -- the gate
    Row("gate-missing", leave_gate, "norm gate"),
    Row("gate-order", lambda c: c.pass_gate(c.gate, is_first=c.exact.inputs.gated_input is None), "gate"),
    Row("slope-missing", lambda c: c.pass_gate(c.gate, slope=np.ones(())), "dgate"),
    Row("gate-activation", change_activation, "gate"),
    Row("gate-late", lambda c: c.pass_gate(None) * c.gate.activate(), "dx behind"),
    Row("gate-early", lambda c: c.t._replace(g=c.t.g * c.t.behind, behind=1.0), "dx before"),
    Row("norm-skipped", lambda c: c.exact.dy * c.t.behind.reshape(c.right.shape), "dx before"),
    Row("norm-skipped", lambda c: multiply_slope(c, c.exact.dy * c.x), "dgate before"),
    # -- dgate
    Row("slope-activation",
        lambda c: c.pass_gate(c.gate, slope=c.gate._replace(times=None).activate()), "dgate"),
    Row("slope-factor", divide_by_gate, "dgate"),
    Row("result-missing", lambda c: multiply_slope(c, c.exact.dy), "dgate behind"),
    Row("result-bare", lambda c: multiply_slope(c, c.exact.dy * c.t.xhat.reshape(c.x.shape)), "dgate behind"),
    Row("x-taken", lambda c: multiply_slope(c, c.exact.dy * c.x), "dgate behind"),
    Row("x-missing", lambda c: multiply_slope(c, c.t._replace(behind=1.0).differentiate()), "dgate before"),
    # -- dx: gamma
    Row("gamma-missing", lambda c: c.t._replace(g=c.t.dy), "dx gamma"),
    Row("gamma-late", lambda c: c.t._replace(g=c.t.dy).multiply(c.t.gamma), "dx gamma"),
    Row("gamma-twice", lambda c: c.t._replace(g=c.t.g * c.t.gamma), "dx gamma"),
    Row("gamma-pull", lambda c: c.t.scale(b=c.t.gamma), "dx gamma"),
    Row("gamma-inner",
        lambda c: c.t.differentiate() + c.t._replace(g=c.t.dy - c.t.g).scale(0.0, 0.0).differentiate(),
        "dx gamma"),
    Row("gamma-means", average_without_gamma, "dx gamma"),
    Row("gamma-rolled", roll_gamma, "dx gamma"),
    Row("gamma-reversed", lambda c: c.t._replace(g=c.t.dy * np.flip(c.t.gamma)), "dx gamma"),
    Row("gamma-axis", turn_gamma, "dx gamma"),
    Row("gamma-one-missing", lambda c: c.t._replace(g=c.t.dy * (c.t.gamma - c.t.offset)), "dx gamma"),
    Row("gamma-one-added", lambda c: c.t._replace(g=c.t.dy * (c.t.gamma + 1.0)), "dx gamma"),
    # -- dx: the divisor, and what is beside it
    Row("divisor-missing", lambda c: c.t.multiply(c.t.divisor), "dx"),
    Row("divisor-twice", lambda c: c.t.multiply(1.0 / c.t.divisor), "dx"),
    Row("divisor-cubed", lambda c: c.t.multiply(c.t.divisor**-2.0), "dx"),
    Row("root-missing", lambda c: c.t._replace(divisor=c.t.divisor**2).plain, "statistics"),
    Row("divided", lambda c: c.t.multiply(1.0 / c.t.size), "dx"),
    Row("residual", lambda c: c.right + c.exact.dy, "dx"),
    Row("x-added", lambda c: c.right + c.x, "dx"),
    Row("relu", lambda c: c.t._replace(dy=c.t.dy * (c.y > 0.0), g=c.t.g * (c.y > 0.0)), "norm"),
    Row("means-axes", lambda c: c.vary_axes(lambda axes: c.t._replace(axes=axes)), "dx"),
    Row("means-shard", shard_means, "dx statistics"),
    Row("sums-axes", lambda c: c.vary_axes(c.t.widen), "dx"),
    # -- another norm's gradient
    Row("trained", lambda c: c.vary(trained=True), "statistics given"),
    Row("means-given", lambda c: c.vary(constant=False), "dx given"),
    Row("axes", lambda c: c.vary_axes(lambda axes: c.regroup(axes=axes)), "statistics"),
    Row("groups", change_groups, "statistics"),
    Row("shard", shard, "statistics"),
    Row("eps", change_eps, "statistics"),
    Row("eps-mode", move_eps, "statistics"),
    Row("ddof", change_ddof, "statistics"),
    Row("rounded-statistics", round_statistics, "statistics"),
    Row("count", lambda c: pad(c, "count"), "statistics own"),
    Row("padded-variance", lambda c: pad(c, "variance"), "statistics own mean"),
    Row("padded-mean", lambda c: pad(c, "mean"), "statistics own mean"),
    Row("padded", lambda c: pad(c, "both"), "statistics own mean"),
    Row("mean-left", lambda c: None if c.t.centres else c.t._replace(centres=True), "dx own"),
    Row("centred", functools.partial(centre, centres=True), "statistics"),
    Row("uncentred", functools.partial(centre, centres=False), "statistics"),
    # -- dgamma and dbeta
    Row("exchanged", exchange, "parameter"),
    Row("mean", lambda c: c.right / math.prod(c.t.dy.shape[axis] for axis in c.along), "parameter"),
    Row("gamma", lambda c: c.t._replace(dy=c.t.g), "parameter gamma"),
    Row("summed-dx", lambda c: c.t._replace(dy=c.t.differentiate()), "parameter"),
    Row("y", lambda c: c.t._replace(w=c.y * c.t.divisor), "dgamma"),
    Row("x",
        lambda c: [((), c.t._replace(w=x.reshape(c.t.dy.shape) * c.t.divisor))
                   for x in (np.asarray(c.exact.input, np.float64), c.x)],
        "dgamma"),
    Row("undivided", lambda c: c.t._replace(w=c.t.w * c.t.divisor), "dgamma mean"),
    Row("sum-axes", sum_otherwise, "parameter"),
    Row("part", lambda c: sum_part(c, 0), "parameter"),
    Row("left-out", lambda c: sum_part(c, -1), "parameter"),
    Row("twice", lambda c: sum_part(c, 1), "parameter"),
    Row("zeros", end_early, "parameter"),
    Row("rolled", lambda c: reorder(c, flip=False), "parameter"),
    Row("reversed", lambda c: reorder(c, flip=True), "parameter"),
    Row("permuted", permute, "parameter"),
    Row("rounded-sums", round_sums, "parameter"),
)  # fmt: skip
"""Every fault but the ones below, in the order in which they are tried."""

FITS = (
    Row("mean-factor", lambda c: fit_factor(c, a=0.0), "dx mean"),
    Row("pull-factor", lambda c: fit_factor(c, b=0.0), "dx own"),
)
"""The faults with any factor on a term of dx, which are tried where no other fault explains it."""

BESIDE = (*(row for row in ROWS if "statistics" not in row.needs.split()), *FITS)
"""The faults that may be beside another: those that do not take the gradient of another norm."""

_MOST_PAIRED = 1 << 19
"""The most values of x, times the number of faults beside which another is looked for."""

ZERO, OVERFLOW, FACTOR, VALUES = "zero", "overflow", "factor", "values"
"""The ids of the faults that are looked for apart from the table."""

ANY_FACTOR = frozenset((FACTOR, *(row.id for row in FITS)))
"""The faults of one number, which may be any: none is named where another fault explains the gradient."""


def _replace_standardized(t: GradientTerms, values: Floats) -> Iterator[Detailed]:
    """Yield the terms with values in place of x̂ in x̂ · mean(dy · gamma · x̂): both x̂, the first, the second."""
    values, own = values.reshape(t.dy.shape), t.slope * t.divisor * t.size
    yield from (((), t.standardize(*pair)) for pair in ((values, values), (values, t.xhat), (own, values)))


def count_factors(id_: str) -> int:
    """Return the number of fitted factors in a fault, or in two whose ids `+` joins."""
    return len(ANY_FACTOR.intersection(id_.split("+")))


def list_factors(c: WrongGradient, scales: GradientScales) -> Iterator[Wrong]:
    """Yield at most one fault: the given gradient is the exact one times a factor (that of least squares).

    Nothing is yielded if the factor, rounded to 3 digits, is 1 or −1 (a turned sign), if in any value more than
    a rounding error remains, or if all values but zeros have one size, which some factor always fits.
    """
    actual, right = c.actual, c.right
    if np.unique(np.abs(right[right != 0.0])).size == 1:
        return
    factor = find_multiple(actual * scales.weight, right * scales.weight)
    wrong = np.where(np.isfinite(actual) & np.isfinite(right), factor * right, actual)
    larger = max(1.0, scales.measure(wrong) / scales.measure(np.asarray(c.exact.field(c.name))))
    if f"{abs(factor):.3g}" != "1" and not scales.exceeds(actual - wrong, -2, larger).any():
        yield Wrong(find_fault(FACTOR), (f"{factor:.3g}",), wrong)


def list_wrong(c: WrongGradient, rows: Sequence[Row] = ROWS) -> Iterator[Wrong]:
    """Yield the gradient of each possible fault; of norms without known terms, of the turned sign alone."""
    for row in rows if c.is_known else rows[:1]:
        for made in row.vary(c):
            details, wrong = made if type(made) is tuple else ((), made)
            terms = wrong if isinstance(wrong, GradientTerms) else None
            wrong = wrong if terms is None else c.take(terms)
            if wrong is not None:
                wrong = add_up(np.asarray(wrong), c.exact.input.shape, c.right.shape)
                yield Wrong(row.fault, details, wrong, terms)


def list_pairs(c: WrongGradient, faults: Iterable[Wrong], scales: GradientScales) -> Iterator[Wrong]:
    """Yield the gradients with two faults: one of those given, and another in the gradient that it makes.

    The nearest are taken first, and as many as are quickly tried: x times their number has 2¹⁹ values.
    """
    first = [(one, t) for one in faults if (t := one.terms) is not None and t.w.shape == c.t.w.shape]
    first.sort(key=lambda one: scales.measure(c.actual - one[0].gradient))
    for one, terms in first[: _MOST_PAIRED // c.t.w.size]:
        after = c._replace(right=one.gradient, t=terms)
        for other in (*list_wrong(after, BESIDE), *list_factors(after, scales)):
            a, b = sorted((one.said, other.said))
            both = Fault(f"{a.id}+{b.id}", f"{a.words}, and {b.words}", f"{a.remedy}; {b.remedy}", "")
            yield Wrong(both, (), other.gradient, other.terms)


def find_overflow(
    exact: Gradients, name: str, dtype: np.dtype[Any], terms: GradientTerms | None
) -> tuple[str, ...]:
    """Return words for squares that overflow a dtype in every group, so that x̂ and dx are 0; else ().

    The words are what overflows, such as `x · x`, the name of the dtype, and a dtype that is wide enough.
    """
    if terms is None or exact.inputs.given is not None or name not in ("dx", "dgamma") or not is_float(dtype):
        return ()
    what, squares = "(x − mean)²" if terms.centres else "x · x", terms.w * terms.w
    for words, combine in ((what, np.max), (f"the sum of {what}", np.sum)):
        most = combine(squares, axis=terms.axes).astype(find_type(dtype.name))
        if most.size and np.isposinf(most).all():
            return words, dtype.name, "float64" if dtype.name == "float32" else "float32"
    return ()


def list_faults() -> Iterator[Fault]:
    """Yield every fault, once for each gradient that may have it, with the gradient's name in its id."""
    for row in (*ROWS, *FITS, Row(ZERO), Row(OVERFLOW, needs="statistics"), Row(FACTOR), Row(VALUES)):
        of_norm = {*row.needs.split()} - LAYER_PARTS
        names = (name for name, parts in GRADIENTS.items() if of_norm <= parts)
        yield from (row.fault._replace(id=f"{name}-{row.fault.id}") for name in names)
