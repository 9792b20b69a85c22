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
    pad,
    shard,
    shard_means,
    sum_part,
)
from normcli.checking.gradient_forms import (
    average_without_gamma,
    centre,
    change_activation,
    change_axes,
    change_eps,
    change_groups,
    change_means,
    divide_by_gate,
    exchange,
    keep_mean,
    leave_gate,
    move_eps,
    multiply_slope,
    permute,
    reorder,
    roll_gamma,
    round_sums,
    sum_otherwise,
    widen_sums,
)
from normcli.checking.gradient_terms import GradientTerms, add_up
from normcli.checking.wrong_gradient import GRADIENTS, LAYER_PARTS, WrongGradient
from normcli.dtypes import find_type, is_float

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.checking.gradient_bounds import GradientScales
    from normcli.dtypes import Floats
    from normcli.results.backward import Gradients


Wrong = tuple[Fault, tuple[str, ...], Any]
"""A fault, the values for its words, and the gradient of a kernel with the fault."""

ROWS: tuple[Row, ...] = (
    Row("sign", lambda c: -c.right),
    # -- dx: the mean(dy · gamma) term
    Row("mean-missing", lambda c: c.t.differentiate(a=0.0), "dx mean"),
    Row("mean-twice", lambda c: c.t.differentiate(a=2.0), "dx mean"),
    Row("mean-added", lambda c: c.t.differentiate(a=-1.0), "dx mean"),
    Row("means-added", lambda c: c.t.differentiate(a=-1.0, b=-1.0), "dx mean"),
    Row("means-freedom", lambda c: c.t.differentiate(a=c.t.excess, b=c.t.excess), "dx mean"),
    Row("means-count", count_means, "dx"),
    Row("means-summed", lambda c: c.t.differentiate(a=c.t.size, b=c.t.size), "dx mean"),
    # -- dx: the x̂ term
    Row("pull-missing", lambda c: c.t.differentiate(b=0.0), "dx"),
    Row("pull-twice", lambda c: c.t.differentiate(b=2.0), "dx"),
    Row("pull-added", lambda c: c.t.differentiate(b=-1.0), "dx"),
    Row("pull-freedom", lambda c: c.t.differentiate(b=c.t.excess), "dx"),
    Row("pull-summed", lambda c: c.t.differentiate(b=c.t.size), "dx"),
    Row("pull-x", lambda c: _replace_standardized(c, c.x), "dx statistics"),
    Row("pull-y", lambda c: _replace_standardized(c, c.y), "dx statistics gamma"),
    Row("constants", lambda c: c.t.differentiate(a=0.0, b=0.0), "dx"),
    # -- the gate
    Row("gate-missing", leave_gate, "norm gate"),
    Row("gate-order", lambda c: c.pass_gate(c.gate, is_first=c.exact.inputs.gated_input is None), "gate"),
    Row("slope-missing", lambda c: c.pass_gate(c.gate, slope=np.ones(())), "dgate"),
    Row("gate-activation", change_activation, "gate"),
    Row("gate-late", lambda c: c.pass_gate(None) * c.gate.activate(), "dx behind"),
    Row("gate-early", lambda c: c.t._replace(behind=1.0).differentiate(g=c.t.g * c.t.behind), "dx before"),
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
    Row("gamma-missing", lambda c: c.t.differentiate(g=c.t.dy), "dx gamma"),
    Row("gamma-late", lambda c: c.t.gamma * c.t.differentiate(g=c.t.dy), "dx gamma"),
    Row("gamma-twice", lambda c: c.t.differentiate(g=c.t.g * c.t.gamma), "dx gamma"),
    Row("gamma-pull", lambda c: c.t.differentiate(b=c.t.gamma), "dx gamma"),
    Row("gamma-inner",
        lambda c: c.t.differentiate() + c.t.differentiate(a=0.0, b=0.0, g=c.t.dy - c.t.g), "dx gamma"),
    Row("gamma-means", average_without_gamma, "dx gamma"),
    Row("gamma-rolled", roll_gamma, "dx gamma"),
    Row("gamma-one-missing", lambda c: c.t.differentiate(g=c.t.dy * (c.t.gamma - c.t.offset)), "dx gamma"),
    Row("gamma-one-added", lambda c: c.t.differentiate(g=c.t.dy * (c.t.gamma + 1.0)), "dx gamma"),
    # -- dx: the divisor, and what is beside it
    Row("divisor-missing", lambda c: c.t.differentiate() * c.t.divisor, "dx"),
    Row("divisor-twice", lambda c: c.t.differentiate() / c.t.divisor, "dx"),
    Row("divided", lambda c: c.t.differentiate() / c.t.size, "dx"),
    Row("residual", lambda c: c.right + c.exact.dy, "dx"),
    Row("means-axes", change_means, "dx"),
    Row("means-shard", shard_means, "dx"),
    Row("sums-axes", widen_sums, "dx"),
    # -- another norm's gradient
    Row("trained", lambda c: None if c.exact.inputs.given is None else c.vary(trained=True), "statistics"),
    Row("means-given", lambda c: None if c.exact.inputs.given is None else c.vary(constant=False), "dx"),
    Row("axes", change_axes, "statistics"),
    Row("groups", change_groups, "statistics"),
    Row("shard", shard, "statistics"),
    Row("eps", change_eps, "statistics"),
    Row("eps-mode", move_eps, "statistics"),
    Row("ddof", change_ddof, "statistics"),
    Row("count", lambda c: pad(c, "count"), "statistics"),
    Row("padded-variance", lambda c: pad(c, "variance"), "statistics mean"),
    Row("padded-mean", lambda c: pad(c, "mean"), "statistics mean"),
    Row("padded", lambda c: pad(c, "both"), "statistics mean"),
    Row("mean-left", keep_mean, "dx"),
    Row("centred", functools.partial(centre, centres=True), "statistics"),
    Row("uncentred", functools.partial(centre, centres=False), "statistics"),
    # -- dgamma and dbeta
    Row("exchanged", exchange, "parameter"),
    Row("mean", lambda c: c.right / math.prod(c.t.dy.shape[axis] for axis in c.along), "parameter"),
    Row("gamma", lambda c: c.right * c.gamma, "parameter gamma"),
    Row("y", lambda c: c.add(c.t.dy * c.y), "dgamma"),
    Row("x",
        lambda c: [((), c.add(c.t.dy * x.reshape(c.t.dy.shape))) for x in (np.asarray(c.exact.input), c.x)],
        "dgamma"),
    Row("undivided", lambda c: c.add(c.t.dy * c.t.w), "dgamma mean"),
    Row("sum-axes", sum_otherwise, "parameter"),
    Row("part", sum_part, "parameter"),
    Row("zeros", end_early, "parameter"),
    Row("rolled", lambda c: reorder(c, flip=False), "parameter"),
    Row("reversed", lambda c: reorder(c, flip=True), "parameter"),
    Row("permuted", permute, "parameter"),
    Row("rounded-sums", round_sums, "parameter"),
)  # fmt: skip
"""Every fault but those of the ids below, in the order in which they are tried."""

ZERO, OVERFLOW, FACTOR, VALUES = "zero", "overflow", "factor", "values"
"""The ids of the faults that are looked for apart from the table."""


def _replace_standardized(c: WrongGradient, values: Floats) -> Iterator[tuple[tuple[str, ...], Floats]]:
    """Yield dx with other values than x̂ in x̂ · mean(dy · gamma · x̂): for both x̂, the first, the second.

    Nothing with running statistics, of which dx has no such term.

    Parameters
    ----------
    c : WrongGradient
    values : ndarray
        What a kernel has in place of x̂, of as many values as x.
    """
    if c.exact.inputs.given is not None:
        return
    values, own = values.reshape(c.t.dy.shape), c.t.slope * c.t.divisor * c.t.size
    for first, second in ((values, values), (values, c.t.xhat), (own, values)):
        pull = (c.t.g * second).mean(c.t.axes, keepdims=True) * c.t.share
        yield (), c.t.differentiate(b=0.0) - first * pull / c.t.divisor * c.t.behind


def list_factors(actual: Floats, right: Floats, scales: GradientScales) -> Iterator[Wrong]:
    """Yield at most one fault: the given gradient is the exact one times a factor (that of least squares).

    Nothing is yielded if the factor, rounded to 3 digits, is 1 or −1 (a turned sign), if in any value more than
    a rounding error remains, or if all values but zeros have one size, which some factor always fits.
    """
    if np.unique(np.abs(right[right != 0.0])).size == 1:
        return
    usable = np.isfinite(actual) & np.isfinite(right)
    known, wide = (np.where(usable, values * scales.weight, 0.0) for values in (right, actual))
    factor = float(np.vdot(wide, known) / np.vdot(known, known))
    wrong = np.where(usable, factor * right, actual)
    if f"{abs(factor):.3g}" != "1" and not scales.exceeds(actual - wrong, -2, max(1.0, abs(factor))).any():
        yield find_fault(FACTOR), (f"{factor:.3g}",), wrong


def list_wrong(
    exact: Gradients, name: str, actual: Floats, right: Floats, terms: GradientTerms | None
) -> Iterator[Wrong]:
    """Yield each possible fault, the values for its words, and its gradient; without terms, the turned sign."""
    if terms is None:
        yield ROWS[0].fault, (), -right
        return
    case = WrongGradient(exact, name, actual, right, terms)
    for row in ROWS:
        for made in row.vary(case):
            details, wrong = made if type(made) is tuple else ((), made)
            if isinstance(wrong, GradientTerms):
                wrong = case.take(wrong)
            if wrong is not None:
                yield row.fault, details, add_up(wrong, exact.input.shape, right.shape)


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
    for row in (*ROWS, Row(ZERO), Row(OVERFLOW, needs="statistics"), Row(FACTOR), Row(VALUES)):
        of_norm = {*row.needs.split()} - LAYER_PARTS
        names = (name for name, parts in GRADIENTS.items() if of_norm <= parts)
        yield from (row.fault._replace(id=f"{name}-{row.fault.id}") for name in names)
