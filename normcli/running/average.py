"""Running averages of batch statistics, as training keeps them for evaluation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.run import measure, run
from normcli.errors import DataError, UsageError
from normcli.norms.conventions import RunningRule, find_convention
from normcli.numerics.statistics.solution import Given
from normcli.numerics.sums.fixed_point import Fixed, add_to, average, divide_total, mix, multiply_by_count
from normcli.printable import format_count
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.results.result import Result


MOST_BATCHES = 2**63 - 1
"""The most batches that the state file can count, in int64."""


class State(NamedTuple):
    """Running statistics of a norm, with its eps and the number of batches that were averaged.

    Parameters
    ----------
    norm : str
    statistics : Given
        The running mean and variance, one for each channel.
    eps : float
        The eps of training, which evaluation has to use too.
    eps_mode : str
        Where eps is added, `inside` or `outside` the root (a value of `EpsMode`).
    batches : int
        The number of batches that have entered the statistics.
    columns : tuple of str or None
        The names of the channels, where the batches were tables.
    totals : tuple of Fixed or None
        The exact sums of the batches' means and variances if running statistics are plain averages (momentum
        "none"); None if they are averaged with a momentum, or no batch has entered.
    """

    norm: str
    statistics: Given
    eps: float
    eps_mode: str
    batches: int = 0
    columns: tuple[str, ...] | None = None
    totals: tuple[Fixed, ...] | None = None

    def require_channels(self, plan: Plan, name: str) -> None:
        """Raise `DataError` unless the statistics have one number for each channel of a plan.

        `name` is the running mean's name in the message.
        """
        found, wanted = self.statistics.mean.shape, plan.grid.running.stats_shape
        if found != wanted:
            raise DataError(
                f"{name} has the shape {found}; {plan.norm.name} of {plan.grid.shape} takes "
                f"{wanted}{plan.advise_layout(found)}"
            )


class Update(NamedTuple):
    """The running statistics before and after one batch.

    Parameters
    ----------
    before, after : State
    batch : Given
        The batch's mean and variance; the variance has the rule's ddof.
    weights : tuple of float
        (w, 1 − w): the weights with which `before` and `batch` were averaged.
    """

    before: State
    after: State
    batch: Given
    weights: tuple[float, float]


def choose_rule(
    norm: str, like: str | None, momentum: float | str | None, weight_of: str | None, ddof: int | None
) -> RunningRule:
    """Return a framework's rule for running statistics, changed by the options that are not None.

    Parameters
    ----------
    norm : str
        The norm's name in the table.
    like : str or None
        The framework; None: torch, with the momentum 0.1 as the weight of the batch's, and ddof 1.
    momentum : float, "none" or None
        The weight from 0 to 1; "none" for the plain average of all batches.
    weight_of : {"new", "old"} or None
        Whether momentum is the weight of the batch's statistics ("new") or of the running ones ("old").
    ddof : int or None
        The ddof of the batch's variances.

    Raises
    ------
    UsageError
        If the momentum is not from 0 to 1, ddof is negative, or the framework keeps no running statistics.
    """
    rule = RunningRule() if like is None else find_convention(like, norm).running
    if rule is None:
        raise UsageError(f"{like} keeps no running statistics of {norm}")
    changes: dict[str, Any] = {"weight_of": weight_of, "ddof": ddof}
    if momentum not in (None, "none"):
        changes["momentum"] = value = float(momentum)
        if not 0.0 <= value <= 1.0:
            raise UsageError(f"momentum {value:g} is not from 0 to 1 (or none, for the cumulative average)")
    if (ddof or 0) < 0:
        raise UsageError(f"running ddof {ddof} is negative")
    rule = rule._replace(**{name: value for name, value in changes.items() if value is not None})
    return rule._replace(momentum=None) if momentum == "none" else rule


def begin(plan: Plan, statistics: Given | None = None) -> State:
    """Return the state before any batch: mean 0 and variance 1, as every framework begins.

    Parameters
    ----------
    plan : Plan
    statistics : Given or None
        The mean and variance to begin with in place of 0 and 1.

    Raises
    ------
    DataError
        If a statistic is not finite.
    """
    shape = plan.grid.running.stats_shape
    first = Given(np.zeros(shape), np.ones(shape)) if statistics is None else statistics
    _require_finite(plan, "running", first)
    return State(plan.norm.name, first, *_find_eps(plan), columns=plan.grid.running.group_columns)


def _find_eps(plan: Plan) -> tuple[float, str]:
    """Return eps, 0 for a plan without one, and its mode as a text."""
    return plan.spec.eps or 0.0, str(plan.spec.eps_mode)


def update(state: State, result: Result, rule: RunningRule) -> Update:
    """Return the running statistics before and after a batch, the batch's statistics, and the weights.

    For instance normalization, the statistics of a batch are the averages over its samples. `state` is left
    unchanged.

    Parameters
    ----------
    state : State
    result : Result
        The batch, normalized with its own statistics.
    rule : RunningRule

    Raises
    ------
    DataError
        If the state is of other channels, a group has too few values for the rule's ddof, a statistic is not
        finite (the running ones would stay so for good), or 2⁶³ − 1 batches have been counted.

    Notes
    -----
    The rules are those of torch 2.13's `batch_norm` and `instance_norm`, and of Keras's, Flax's and ONNX's
    batch normalization; here in float64, from exact batch statistics.
    """
    plan = result.plan
    if state.batches >= MOST_BATCHES:
        raise DataError(f"{state.batches} batches have been counted, and one more cannot be")
    kept = state.statistics
    state.require_channels(plan, "the running mean")
    _require_finite(plan, "running", kept)
    with np.errstate(all="ignore"):
        batch = measure_batch(result, rule.ddof)
    _require_finite(plan, "batch's", batch)
    with np.errstate(all="ignore"):
        totals = None if rule.momentum is not None else _add_to_totals(state, batch)
        averaged = _mix(rule, kept, batch) if totals is None else _divide(totals, state.batches + 1, batch)
    columns = state.columns or plan.grid.running.group_columns
    after = State(state.norm, averaged, *_find_eps(plan), state.batches + 1, columns, totals)
    return Update(state, after, batch, _weigh(rule, state.batches))


def _mix(rule: RunningRule, kept: Given, new: Given) -> Given:
    """Return the average of the running (`kept`) and a batch's (`new`) statistics, weighted by the momentum."""
    assert rule.momentum is not None
    pair = (kept, new) if rule.weight_of == "new" else (new, kept)
    return Given(*(mix(a, b, rule.momentum) for a, b in zip(*pair, strict=True)))


def _add_to_totals(state: State, batch: Given) -> tuple[Fixed, ...]:
    """Return the exact sums of the statistics of all batches, the new one included.

    For a state without sums, the sum so far is its average times its number of batches.
    """
    held = state.totals or [multiply_by_count(values, state.batches) for values in state.statistics]
    totals = tuple(Fixed(total.digits.copy(), total.low) for total in held)
    for total, values in zip(totals, batch, strict=True):
        add_to(total, values)
    return totals


def _divide(totals: tuple[Fixed, ...], batches: int, like: Given) -> Given:
    """Return the sums over the number of batches, rounded to float64, in the shape of `like`."""
    return Given(*(divide_total(total, batches).reshape(like.mean.shape) for total in totals))


def _weigh(rule: RunningRule, batches: int) -> tuple[float, float]:
    """Return the weights of the running and of a batch's statistics; `batches` counts the earlier batches."""
    if rule.momentum is None:
        return batches / (batches + 1), 1.0 / (batches + 1)
    if rule.weight_of == "new":
        return 1.0 - rule.momentum, rule.momentum
    return rule.momentum, 1.0 - rule.momentum


def _require_finite(plan: Plan, whose: str, statistics: Given) -> None:
    """Raise `DataError` if a mean or variance is not finite; `whose` is `running` or `batch's`."""
    for name, values in statistics._asdict().items():
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            where, value = plan.grid.running.group_name(int(wrong[0])), values.reshape(-1)[wrong[0]]
            more = f" (and {wrong.size - 1} more)" if wrong.size > 1 else ""
            raise DataError(
                f"the {whose} {name} of {where}{more} is {value}: nothing would ever mend the average"
            )


def measure_gap(result: Result, after: State) -> float:
    """Return the largest |y − y′|: y is a batch normalized with its own statistics, y′ with running ones.

    `after` has the running statistics. The result is NaN if a difference is NaN, as between two infinities, and
    0 for a batch without values. If a mask or the like selects values, differences that are NaN are passed
    over.
    """
    inputs = result.inputs._replace(given=after.statistics)
    evaluated, _ = run(result.plan, result.input, inputs, effort=result.effort)
    largest = 0.0
    take = np.maximum if result.selection is None else np.fmax  # values that do not count may be NaN in both
    for mine, theirs in zip(iterate_pieces(result.normalized), iterate_pieces(evaluated), strict=True):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
            largest = float(take.reduce(gaps, axis=None, initial=largest))
    return largest


def measure_batch(result: Result, ddof: int) -> Given:
    """Return the mean and the variance of a batch, for each channel; `ddof` is the variance's.

    For instance normalization they are averaged over the samples.

    Raises
    ------
    DataError
        If a group has at most `ddof` values.
    """
    plan = result.plan
    n: Floats | float = float(plan.grid.group_size) if result.counts is None else result.counts
    if np.less_equal(n, ddof).any():
        values = format_count(math.floor(np.min(n)), "value")
        raise DataError(
            f"a group of {values} has no variance with ddof {ddof}: running statistics need more (or "
            "--running-ddof 0)"
        )
    with np.errstate(all="ignore"):
        var = result.var
        if plan.spec.ddof != ddof:
            inputs = Inputs(selection=result.selection)
            var = measure(plan.change_spec(ddof=ddof), result.input, inputs, result.effort)["var"]
        samples = tuple(i for i, axis in enumerate(plan.grid.kept) if axis == plan.grid.layout.batch)
        return Given(*(_average(np.asarray(values, np.float64), samples) for values in (result.mean, var)))


def _average(values: Floats, axes: tuple[int, ...]) -> Floats:
    """Return the averages along some axes, each rounded once."""
    for axis in axes:
        values = average(list(np.moveaxis(values, axis, 0)))
    return values
