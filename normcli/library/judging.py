"""Verdicts on a tensor that somebody made: whether it is the norm of another one, and which norm it is."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.answers.judging.check_verdict import Verdict
from normcli.checking.check import NORMALIZED, Checked, fit_actual
from normcli.checking.ulp import choose_tolerance
from normcli.errors import DataError, UsageError
from normcli.identifying.grouped_check import GroupedTable
from normcli.library.intake import group_rows, refuse_groups
from normcli.library.judgement import Judgement, ask, judge, judge_rows, judge_tensor
from normcli.norms.request import Choices, Request
from normcli.norms.table import find_norm
from normcli.results.arguments import read_addends, read_arguments, read_numbers
from normcli.results.arrays import find_lazy, take
from normcli.results.normalize import require_options
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from normcli.identifying.question import Identification
    from normcli.norms.rules import NormName


def check(
    actual: Any,
    x: Any,
    norm: NormName = "bn",
    *,
    max_ulp: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    by: Any | None = None,
    **options: Any,
) -> Judgement[Checked]:
    """Compare a tensor with the exact norm of another tensor.

    Parameters
    ----------
    actual : array_like
        The tensor to judge, of the shape of `x`: what somebody made of `x`. Ulp are of its dtype.
    x : array_like
        The input, as `normalize` takes it: tensors and tables of other libraries too.
    norm : str
        A name of the table `normcli.NORMS`, or an alias.
    max_ulp : float, optional
        The most units in the last place by which a value may differ; a value rounded once is within 0.5.
    rtol, atol : float, optional
        A value may differ by atol + rtol · |exact|, in place of `max_ulp`. Without any of the three, rtol and
        atol are those of torch's `assert_close` for the dtype.
    by : sequence, optional
        The group of each row of a table, or of each value of an array of one axis: rows are normalized with the
        statistics of their group, as `fit` has them. Groups of no more rows than ddof are not judged.
    **options
        Options of `normcli.normalize` without `out`; `gate`, `gate_act` and `gate_order` too.

    Returns
    -------
    Judgement
        True if every value agrees; otherwise its text says what made `actual` instead, if the data show it.

    Raises
    ------
    DataError
        If `actual` does not have the shape of `x`, a tensor does not hold real numbers, or no group of `by` has
        more rows than ddof.
    UsageError
        If an option makes no sense for the norm; if `by` is given for an `x` that a scheduler holds in blocks,
        or beside an option of the whole tensor, such as `mask`, `axes` or `gate`.

    Examples
    --------
    >>> judgement = check([[-1.0, 1.0]], [[1.0, 3.0]], "ln", eps=0)
    >>> judgement.ok, judgement.found.comparisons["normalized"].max_ulp
    (True, 0.0)
    >>> bool(check([[-1.0, 1.5]], [[1.0, 3.0]], "ln", eps=0))
    False
    """
    require_options("check", options, but=("out",), takes_gate=True)
    tolerate = functools.partial(choose_tolerance, rtol=rtol, atol=atol, max_ulp=max_ulp)
    lazy = find_lazy(x)
    if lazy is not None:
        refuse_groups(by)
        plan, parameters, found = lazy.work.check_array(actual, lazy.taken, norm, options, tolerate)
        hollow = Tensor(np.broadcast_to(np.zeros((), lazy.taken.values.dtype), plan.grid.shape), "x")
        return Judgement(found.ok, found, Verdict(plan, hollow, parameters, {NORMALIZED: "actual"}, found))
    if by is not None and (column := take(x, "x").values).ndim == 1:
        x = column[:, np.newaxis]
    asked = read_arguments(x, norm, options)
    theirs = Tensor(fit_actual(asked.plan, read_numbers(actual, "actual")), "actual")
    if theirs.values.shape != asked.plan.grid.shape:
        raise DataError(f"actual has the shape {theirs.values.shape}; x has {asked.plan.grid.shape}")
    if by is None:
        return judge(asked, {NORMALIZED: theirs}, tolerate)
    refused = next((name for name in _OF_WHOLE if options.get(name) is not None), None)
    if refused is not None:
        raise UsageError(f"{refused} is of the whole tensor: leave it out beside by")
    rule = Choices(asked.plan.request).pick_nan_rule(options.get("nan"))
    tensor = asked.tensor._replace(by=group_rows(by, asked.values))
    table = GroupedTable(tensor, theirs, asked.inputs.parameters, rule, tolerate, asked.effort)
    return judge_rows(table, asked.plan.request, asked.plan)


_OF_WHOLE = ("mask", "lengths", "fill", "gate", "residual", "clip", "axes", "keep", "layout")
"""The options that are refused beside `by`: they are of the whole tensor."""


def identify(
    actual: Any,
    x: Any,
    *,
    norm: NormName | None = None,
    gamma: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    layout: str | None = None,
    u: ArrayLike | None = None,
    v: ArrayLike | None = None,
    gate: ArrayLike | None = None,
    residual: ArrayLike | None = None,
) -> Judgement[Identification]:
    """Find the norm that made a tensor of another one: its axes, eps, ddof, gamma and beta.

    Parameters
    ----------
    actual : array_like
        The tensor whose norm is sought, of the shape of `x` or with its axes in another order.
    x : array_like
        The input.
    norm : str, optional
        The only norm to try; None: all of them.
    gamma, beta : array_like, optional
        The scale and the shift; without them, values that fit are sought channel by channel.
    layout : str, optional
        The names of the axes, one letter or word each, which tell the channel axis.
    u, v : array_like, optional
        The vector that power iterations of `sn` may have started from; give one of the two.
    gate : array_like, optional
        The gate z, of a shape that broadcasts to that of `x`: norm(x) · act(z) and norm(x · act(z)) are tried.
    residual : array_like, optional
        The tensor that is added to `x` before the norm, of its shape.

    Returns
    -------
    Judgement
        True if a norm reproduces `actual` without a fault; `found.matches` are the norms, the best first.

    Raises
    ------
    DataError
        If the shapes do not match, or a tensor does not hold real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(8, 6))
    >>> y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    >>> best = identify(y, x).found.matches[0]
    >>> best.norm, best.axes, best.eps
    ('ln', (1,), 1e-05)
    """
    taken = take(x, "x")
    addends = read_addends(taken, {"residual": residual})
    x = Tensor(taken.values if addends is None else addends.add(), "x", addends=addends)
    tensors = x, Tensor(read_numbers(actual, "actual"), "actual")
    given = {name: read_numbers(a, name) for name, a in (("gamma", gamma), ("beta", beta)) if a is not None}
    wanted = None if norm is None else find_norm(norm)[0].name
    question = ask(tensors, given, Request.collect("", {"layout": layout or taken.layout, "u": u, "v": v}))
    return judge_tensor(question, tensors, wanted, None if gate is None else read_numbers(gate, "gate"))
