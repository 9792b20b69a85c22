"""Running statistics, batch by batch, as a layer keeps them in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from normcli.errors import UsageError
from normcli.norms.table import NORMS
from normcli.results.arguments import pair_running, read_arguments
from normcli.results.calculate import calculate
from normcli.results.given_inputs import fit_given
from normcli.results.normalize import require_options
from normcli.running.average import begin, choose_rule, update
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from normcli.norms.rules import NormName
    from normcli.results.result import Result


class Tracked(NamedTuple):
    """The result of `track`: a batch normalized as in training, and the running statistics after it.

    Parameters
    ----------
    result : Result
        The batch, normalized with its own statistics.
    running_mean, running_var : array of float64, shape (C)
        The running statistics, as arrays of the batch's library; in the unit of x, and in its square.
    batches : int
        The number of batches that have entered the running statistics.
    """

    result: Result
    running_mean: Any
    running_var: Any
    batches: int


def track(
    x: Any,
    norm: NormName = "bn",
    *,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    momentum: float | Literal["none"] | None = None,
    momentum_of: Literal["new", "old"] | None = None,
    running_ddof: int | None = None,
    batches: int = 0,
    **options: Any,
) -> Tracked:
    """Normalize a batch as training does, and average its statistics into the running ones.

    running = (1 − momentum) · running + momentum · batch; `normalize(x, running_mean=…, running_var=…)` then
    evaluates with them.

    Parameters
    ----------
    x : array_like
        The batch, as `normalize` takes it.
    norm : str
        `bn` or `in`, or an alias.
    running_mean, running_var : array_like, shape (C), optional
        The running statistics before the batch; give both or neither. Default: 0 and 1.
    momentum : float or "none", optional
        The weight of the batch, 0.1 by default. `"none"`: 1/n for the nth batch, so that all count equally, as
        with torch's `momentum=None`.
    momentum_of : {"new", "old"}, optional
        The statistics that `momentum` is the weight of: the batch's (`"new"`, the default), or the running
        ones before it (`"old"`), as in Keras and Flax.
    running_ddof : int, optional
        The ddof of the batch variance that is averaged; 1 by default, as in torch.
    batches : int, optional
        The number of batches that have entered the running statistics before.
    **options
        Options of `normalize`; `like` also sets a framework's momentum and ddof.

    Raises
    ------
    UsageError
        If the norm keeps no running statistics, or an option makes no sense.
    DataError
        If the shape of the running statistics does not fit, a statistic is not finite, or `normalize` would
        refuse `x`.

    Examples
    --------
    >>> step = track([[1.0, 2.0], [3.0, 6.0]], "bn", momentum=0.5)
    >>> step.running_mean, step.running_var
    (array([1., 2.]), array([1.5, 4.5]))
    >>> track([[1.0, 2.0], [3.0, 6.0]], running_mean=step.running_mean, running_var=step.running_var).batches
    1
    """
    require_options("track", options)
    asked = read_arguments(x, norm, options)
    plan = asked.plan
    if not plan.norm.tracks:
        tracking = " and ".join(name for name, row in NORMS.items() if row.tracks)
        raise UsageError(f"{plan.norm.name} keeps no running statistics; {tracking} do")
    rule = choose_rule(plan.norm.name, options.get("like"), momentum, momentum_of, running_ddof)
    given = pair_running(running_mean, running_var)
    before = begin(plan, None if given is None else fit_given(plan, given))._replace(batches=batches)
    result = calculate(plan, asked.values, asked.inputs, effort=asked.effort, give=asked.give)
    after = update(before, result, rule).after
    mean, var = map(asked.give_other, after.statistics)
    return Tracked(result, mean, var, after.batches)
