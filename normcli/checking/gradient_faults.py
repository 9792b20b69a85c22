"""The table of faults of backward passes; each is tried on the data of a wrong gradient.

A fault leaves out a term, takes it twice, sums over other values, or takes the gradient of another norm.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Fault, Row
from normcli.checking.gradient_counts import change_ddof, count_means, pad, shard, sum_part
from normcli.checking.gradient_forms import (
    GRADIENTS,
    LAYER_PARTS,
    WrongGradient,
    centre,
    change_activation,
    change_axes,
    change_eps,
    change_groups,
    change_means,
    exchange,
    leave_gate,
    move_eps,
    multiply_slope,
    permute,
    reorder,
    round_sums,
    sum_otherwise,
    widen_sums,
)
from normcli.checking.gradient_terms import GradientTerms, add_up
from normcli.dtypes import find_type, is_float

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.checking.gradient_bounds import GradientScales
    from normcli.dtypes import Floats
    from normcli.results.backward import Gradients


Wrong = tuple[Fault, tuple[str, ...], Any]
"""A fault, the values for its words, and the gradient of a kernel with the fault."""

_PULL = "the x̂ · mean(dy · gamma · x̂) term"
_END = "- xhat * mean(g * xhat)) / std"
_SYNC = "add up the sums of all parts before they are divided"
_SKIPPED = Fault("norm-skipped", "dy does not go through the norm", "take the derivative by the norm's input",
                 "dz = dy * x * slope(silu, z)")  # fmt: skip

ROWS: tuple[Row, ...] = (
    Row(Fault("sign", "its sign is turned", "turn the sign", "dx = -right"), lambda c: -c.right),
    # -- dx: the mean(dy · gamma) term
    Row(Fault("mean-missing", "the mean(dy · gamma) term is left out", "subtract mean(dy · gamma)",
              f"dx = (g {_END}"), lambda c: c.t.differentiate(a=0.0), "dx mean"),
    Row(Fault("mean-twice", "mean(dy · gamma) is subtracted twice", "subtract it once",
              f"dx = (g - 2 * mean(g) {_END}"), lambda c: c.t.differentiate(a=2.0), "dx mean"),
    Row(Fault("mean-added", "mean(dy · gamma) is added, not subtracted", "subtract it",
              f"dx = (g + mean(g) {_END}"), lambda c: c.t.differentiate(a=-1.0), "dx mean"),
    Row(Fault("means-added", "both means are added, not subtracted", "subtract them",
              "dx = (g + mean(g) + xhat * mean(g * xhat)) / std"),
        lambda c: c.t.differentiate(a=-1.0, b=-1.0), "dx mean"),
    Row(Fault("means-freedom", "both means are divided by n − 1, not n", "divide both by n",
              "dx = (g - (mean(g) + xhat * mean(g * xhat)) * n / (n - 1)) / std"),
        lambda c: c.t.differentiate(a=c.t.excess, b=c.t.excess), "dx mean"),
    Row(Fault("means-count", "its means are divided by {0}, not {1}",
              "divide by the number of values in a group",
              "dx = (g - (mean(g) + xhat * mean(g * xhat)) * n / (n + 8)) / std",
              ("M", "N")), count_means, "dx"),
    Row(Fault("means-summed", "both means are sums: they are not divided by n", "divide both by n",
              "dx = (g - n * mean(g) - n * xhat * mean(g * xhat)) / std"),
        lambda c: c.t.differentiate(a=c.t.size, b=c.t.size), "dx mean"),
    # -- dx: the x̂ term
    Row(Fault("pull-missing", "the x̂ · mean(dy · gamma · x̂) term is left out",
              "subtract x̂ · mean(dy · gamma · x̂)", "dx = (g - mean(g)) / std"),
        lambda c: c.t.differentiate(b=0.0), "dx"),
    Row(Fault("pull-twice", f"{_PULL} is subtracted twice", "subtract it once",
              "dx = (g - mean(g) - 2 * xhat * mean(g * xhat)) / std"),
        lambda c: c.t.differentiate(b=2.0), "dx"),
    Row(Fault("pull-added", f"{_PULL} is added, not subtracted", "subtract it",
              "dx = (g - mean(g) + xhat * mean(g * xhat)) / std"), lambda c: c.t.differentiate(b=-1.0), "dx"),
    Row(Fault("pull-freedom", "the mean of the x̂ term is divided by n − 1, not n", "divide it by n",
              "dx = (g - mean(g) - xhat * mean(g * xhat) * n / (n - 1)) / std"),
        lambda c: c.t.differentiate(b=c.t.excess), "dx"),
    Row(Fault("pull-summed", "the mean of the x̂ term is a sum: it is not divided by n", "divide it by n",
              "dx = (g - mean(g) - n * xhat * mean(g * xhat)) / std"),
        lambda c: c.t.differentiate(b=c.t.size), "dx"),
    Row(Fault("constants", "the statistics are taken as constants: it is dy · gamma / divisor",
              "differentiate mean and variance too: only in evaluation are they constants", "dx = g / std"),
        lambda c: c.t.differentiate(a=0.0, b=0.0), "dx"),
    # -- the gate
    Row(Fault("gate-missing", "the gate is left out", "multiply with the gate's activation",
              "g = dy * gamma"), leave_gate, "norm gate"),
    Row(Fault("gate-order", "gate and norm are taken in the other order",
              "give the backward pass the order of the forward pass", "g = dy * gamma * silu(z)"),
        lambda c: c.pass_gate(c.gate, is_first=c.exact.inputs.gated_input is None), "gate"),
    Row(Fault("slope-missing", "the derivative of the activation is left out", "multiply by it", "dz = dy * y"),
        lambda c: c.pass_gate(c.gate, slope=np.ones(())), "dgate"),
    Row(Fault("gate-activation", "the gate's activation is {0}, not {1}",
              "give the backward pass the activation of the forward pass", "dz = dy * y * slope(sigmoid, z)",
              ("sigmoid", "silu")), change_activation, "gate"),
    Row(Fault("gate-late", "the gate multiplies dx at the end, not dy before it is averaged",
              "multiply dy by the gate before the means are taken", "dz = dy * y; g = dy * gamma"),
        lambda c: c.pass_gate(None) * c.gate.activate(), "dx behind"),
    Row(Fault("gate-early", "the gate multiplies dy, not dx at the end", "multiply dx by the gate at the end",
              "g = dy * gamma * silu(z)"),
        lambda c: c.t._replace(behind=1.0).differentiate(g=c.t.g * c.t.behind), "dx before"),
    Row(_SKIPPED, lambda c: c.exact.dy * c.t.behind.reshape(c.right.shape), "dx before"),
    Row(_SKIPPED, lambda c: multiply_slope(c, c.exact.dy * c.x), "dgate before"),
    # -- dgate
    Row(Fault("slope-activation", "the activation multiplies, not its derivative",
              "multiply by the activation's derivative", "dz = dy * y * silu(z)"),
        lambda c: c.pass_gate(c.gate, slope=c.gate._replace(times=None).activate()), "dgate"),
    Row(Fault("result-missing", "the norm's result is left out", "multiply by it", "dz = dy * slope(silu, z)"),
        lambda c: multiply_slope(c, c.exact.dy), "dgate behind"),
    Row(Fault("result-bare", "x̂ multiplies, without gamma and beta", "multiply by the norm's result",
              "dz = dy * xhat * slope(silu, z)"),
        lambda c: multiply_slope(c, c.exact.dy * c.t.xhat.reshape(c.x.shape)), "dgate behind"),
    Row(Fault("x-taken", "x multiplies, not the norm's result", "multiply by the norm's result",
              "dz = dy * x * slope(silu, z)"), lambda c: multiply_slope(c, c.exact.dy * c.x), "dgate behind"),
    Row(Fault("x-missing", "x is left out", "multiply by x", "dz = dp * slope(silu, z)"),
        lambda c: multiply_slope(c, c.t._replace(behind=1.0).differentiate()), "dgate before"),
    # -- dx: gamma
    Row(Fault("gamma-missing", "gamma is left out", "multiply dy by gamma",
              "dx = (dy - mean(dy) - xhat * mean(dy * xhat)) / std"),
        lambda c: c.t.differentiate(g=c.t.dy), "dx gamma"),
    Row(Fault("gamma-late", "gamma multiplies dx at the end, not dy before it is averaged",
              "multiply dy by gamma before the means are taken",
              "dx = gamma * (dy - mean(dy) - xhat * mean(dy * xhat)) / std"),
        lambda c: c.t.gamma * c.t.differentiate(g=c.t.dy), "dx gamma"),
    Row(Fault("gamma-twice", "gamma multiplies twice", "multiply by gamma once", "g = g * gamma"),
        lambda c: c.t.differentiate(g=c.t.g * c.t.gamma), "dx gamma"),
    Row(Fault("gamma-pull", f"gamma multiplies {_PULL} once more", "multiply by gamma once",
              "dx = (g - mean(g) - gamma * xhat * mean(g * xhat)) / std"),
        lambda c: c.t.differentiate(b=c.t.gamma), "dx gamma"),
    Row(Fault("gamma-inner", "gamma is left out of dy itself, though not of what is averaged",
              "multiply every dy by gamma", f"dx = (dy - mean(g) {_END}"),
        lambda c: c.t.differentiate() + c.t.differentiate(a=0.0, b=0.0, g=c.t.dy - c.t.g), "dx gamma"),
    Row(Fault("gamma-one-missing", "gamma multiplies, not 1 + gamma", "multiply by 1 + gamma",
              "g = dy * gamma"), lambda c: c.t.differentiate(g=c.t.dy * (c.t.gamma - c.t.offset)), "dx gamma"),
    Row(Fault("gamma-one-added", "1 is added to gamma once more", "add 1 in one place", "g = dy * (1 + gamma)"),
        lambda c: c.t.differentiate(g=c.t.dy * (c.t.gamma + 1.0)), "dx gamma"),
    # -- dx: the divisor, and what is beside it
    Row(Fault("divisor-missing", "it is not divided by the divisor", "divide by the divisor",
              f"dx = (g - mean(g) {_END} * std"), lambda c: c.t.differentiate() * c.t.divisor, "dx"),
    Row(Fault("divisor-twice", "it is divided by the divisor twice", "divide by it once",
              f"dx = (g - mean(g) {_END} / std"), lambda c: c.t.differentiate() / c.t.divisor, "dx"),
    Row(Fault("divided", "it is divided by n besides", "leave the division by n out",
              f"dx = (g - mean(g) {_END} / n"), lambda c: c.t.differentiate() / c.t.size, "dx"),
    Row(Fault("residual", "dy is added to it, as of a residual", "compare what is behind the norm alone",
              "dx = right + dy"), lambda c: c.right + c.exact.dy, "dx"),
    Row(Fault("means-axes", "its means are over {0}, not over the axes of the norm",
              "take the means of the backward pass over {1}",
              "dx = (g - g.mean(0) - xhat * (g * xhat).mean(0)) / std", ("AXES", "the axes of the norm")),
        change_means, "dx"),
    Row(Fault("sums-axes", "its sums are over {0}, and divided by the number of values in a group",
              "sum over the axes of the norm", "dx = (g - g.sum() / n - xhat * (g * xhat).sum() / n) / std",
              ("AXES",)), widen_sums, "dx"),
    # -- another norm's gradient
    Row(Fault("trained", "the statistics are those of the batch, as in training",
              "take the running statistics in evaluation", "mean, var = x.mean(axes), x.var(axes)"),
        lambda c: None if c.exact.inputs.given is None else c.vary(trained=True), "statistics"),
    Row(Fault("means-given", "means are subtracted as in training: given statistics are constants",
              "return dy · gamma / divisor", f"dx = (g - mean(g) {_END}"),
        lambda c: None if c.exact.inputs.given is None else c.vary(constant=False), "dx"),
    Row(Fault("axes", "its statistics are over {0}, not {1}", "take the statistics over {1}",
              "mean, var = x.mean(0), x.var(0)", ("AXES", "the axes of the norm")), change_axes, "statistics"),
    Row(Fault("groups", "there are {0} groups of channels, not {1}",
              "give forward and backward pass the same number of groups", "groups = 32", ("N", "M")),
        change_groups, "statistics"),
    Row(Fault("shard", "each of {0} parts of {1} has its own statistics", _SYNC,
              "mean, var = x[:half].mean(axes), x[:half].var(axes)", ("N", "AXIS")), shard, "statistics"),
    Row(Fault("eps", "eps is {0}, not {1}", "give the backward pass the eps of the forward pass",
              "std = np.sqrt(var + 1e-6)", ("A", "B")), change_eps, "statistics"),
    Row(Fault("eps-mode", "eps is {0} the root, not {1}", "add eps where the forward pass adds it",
              "std = np.sqrt(var) + eps", ("outside", "inside")), move_eps, "statistics"),
    Row(Fault("ddof", "its variance is divided by {0}, not {1}",
              "give the backward pass the ddof of the forward pass", "var = x.var(axes, ddof=1)",
              ("n − 1", "n")), change_ddof, "statistics"),
    Row(Fault("count", "the sum of the squares is divided by {0}, not {1}",
              "divide by the number of values in a group", "var = ((x - mean(x)) ** 2).sum(axes) / 128",
              ("M", "N")), lambda c: pad(c, "count"), "statistics"),
    Row(Fault("padded-variance", "the variance counts {0} zeros of padding",
              "mask the padded lanes before squaring", "var = (np.where(lane < n, x, 0) - mean(x)) ** 2",
              ("N",)), lambda c: pad(c, "variance"), "statistics mean"),
    Row(Fault("padded-mean", "the mean counts {0} zeros of padding",
              "divide the sum by the values without padding", "mean = x.sum(axes) / 128", ("N",)),
        lambda c: pad(c, "mean"), "statistics mean"),
    Row(Fault("padded", "mean and variance count {0} zeros of padding", "leave the padded lanes out of both",
              "var = np.pad(x, pad).var(axes)", ("N",)), lambda c: pad(c, "both"), "statistics mean"),
    Row(Fault("centred", "a mean is subtracted, as in layer norm", "take x / divisor for x̂",
              "xhat = (x - mean(x)) / np.sqrt(var + eps)"), functools.partial(centre, centres=True),
        "statistics"),
    Row(Fault("uncentred", "no mean is subtracted, as in RMS norm", "take (x − mean) / divisor for x̂",
              "xhat = x / np.sqrt(mean(x * x) + eps)"), functools.partial(centre, centres=False),
        "statistics"),
    # -- dgamma and dbeta
    Row(Fault("exchanged", "it and {0} are exchanged", "return them in the other order",
              "dgamma, dbeta = dy.sum(axes), (dy * xhat).sum(axes)", ("the other parameter's",)),
        exchange, "parameter"),
    Row(Fault("mean", "it is a mean, not a sum", "leave the division out", "dgamma = (dy * xhat).mean(axes)"),
        lambda c: c.right / math.prod(c.t.dy.shape[axis] for axis in c.along), "parameter"),
    Row(Fault("gamma", "gamma multiplies it", "sum dy before gamma multiplies it",
              "dgamma = (g * xhat).sum(axes)"), lambda c: c.right * c.gamma, "parameter gamma"),
    Row(Fault("y", "it is summed with y, not x̂", "take x̂", "dgamma = (dy * y).sum(axes)"),
        lambda c: c.add(c.t.dy * c.y), "dgamma"),
    Row(Fault("x", "it is summed with x, not x̂", "take x̂", "dgamma = (dy * x).sum(axes)"),
        lambda c: [((), c.add(c.t.dy * x.reshape(c.t.dy.shape))) for x in (np.asarray(c.exact.input), c.x)],
        "dgamma"),
    Row(Fault("undivided", "it is summed with x − mean, not divided", "divide by the divisor",
              "dgamma = (dy * (x - mean(x))).sum(axes)"), lambda c: c.add(c.t.dy * c.t.w), "dgamma mean"),
    Row(Fault("sum-axes", "it is summed over {0}, not over {1}", "sum over {1}",
              "dgamma = (dy * xhat).sum(-1)", ("AXES", "every axis but the features'")),
        sum_otherwise, "parameter"),
    Row(Fault("part", "it is summed over {0} alone", "add up the sums of all blocks and processes",
              "dgamma = (dy * xhat)[:half].sum(axes)", ("a part of AXIS",)), sum_part, "parameter"),
    Row(Fault("rolled", "its values are rolled by {0} along {1}", "index it from 0",
              "dgamma = np.roll(right, 1)", ("N", "AXIS")), lambda c: reorder(c, flip=False), "parameter"),
    Row(Fault("reversed", "its values are in reversed order", "index it forwards", "dgamma = right[::-1]"),
        lambda c: reorder(c, flip=True), "parameter"),
    Row(Fault("permuted", "its values are right, but in another order", "index it in order",
              "dgamma = right[order]"), permute, "parameter"),
    Row(Fault("rounded-sums", "it is summed in {0}, {1}", "accumulate in float32",
              "for row in dy * xhat: dgamma = (dgamma + row).astype('bfloat16')", ("bfloat16", "row by row")),
        round_sums, "parameter"),
)  # fmt: skip
"""Every fault but `ZERO`, `OVERFLOW`, `FACTOR` and `VALUES`, in the order in which they are tried."""

ZERO = Fault("zero", "every value is 0: it is not calculated, or not written", "calculate it, and write it",
             "dx = np.zeros_like(x)")  # fmt: skip
OVERFLOW = Fault("overflow", "{0} overflows {1}", "square and add in {2}",
                 "x * x  # of float16: ∞ beyond 65504", ("the sum of x · x", "float16", "float32"))  # fmt: skip
VALUES = Fault("values", "it is right, except for {0}", "look at what these values have in common",
               "dx[3] = 0.0", ("a few values",))  # fmt: skip
FACTOR = Fault("factor", "every value is {0} times what it should be", "leave the factor out", "dx = 2 * right",
               ("C",))  # fmt: skip


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
        yield FACTOR, (f"{factor:.3g}",), wrong


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
