"""A normalized tensor brought back to the scale of another tensor, as RevIN does with forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.engine.invert import Loss, invert_by
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.arguments import read_numbers
from normcli.results.arrays import take
from normcli.results.given_inputs import fit_inputs
from normcli.results.normalize import require_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.library.statistics import Statistics

_SOLVED = (Measurement.MOMENTS, Measurement.LENGTH, Measurement.EXTREMES)


def restore_by(
    request: Request,
    y: NDArray[Any],
    of: NDArray[Any],
    affine: Mapping[str, NDArray[Any] | None],
    effort: Effort | None = None,
) -> tuple[NDArray[Any], Loss]:
    """Return (y − beta) / gamma · divisor + mean, with the divisor and mean of another tensor, and the loss.

    Parameters
    ----------
    request : Request
        The norm by which `y` was normalized; its statistics are taken from `of`.
    y : ndarray
        Normalized values, in the groups of the other tensor; the reduced axes may have other lengths.
    of : ndarray
        The other tensor, not normalized.
    affine : mapping of str to ndarray or None
        `gamma` and `beta`; None for one that is not applied.
    effort : Effort or None
        The number of threads; None: one for each processor.

    Returns
    -------
    restored : ndarray
        The result, in the shape of `y`; each value is exact, rounded once.
    loss : Loss
        The accuracy that values may have lost, as `y` was rounded.

    Raises
    ------
    UsageError
        If the norm has windows, matrices or quantiles, which are not undone so, or gamma is 0 somewhere.
    DataError
        If the groups of the two tensors differ.
    """
    fitted = make_plan(request, of.shape, of.dtype)
    eps = fitted.spec.eps  # which may depend on the size of the other tensor's groups
    plan = make_plan(request._replace(eps=eps), y.shape, y.dtype).adopt_parameters(affine)
    if fitted.norm.divisor.measurement not in _SOLVED:
        raise UsageError(f"{fitted.norm.name} of another tensor is not undone: only means, variances, lengths")
    if plan.grid.stats_shape != fitted.grid.stats_shape:
        raise DataError(
            f"{y.shape} has {plan.grid.stats_shape} groups, and the other tensor {of.shape} has "
            f"{fitted.grid.stats_shape}"
        )
    inputs = fit_inputs(plan, y, affine)
    if inputs.gamma is not None and (inputs.gamma + plan.spec.gamma_offset == 0.0).any():
        raise UsageError("gamma is 0 somewhere: what it multiplied is lost")
    return invert_by(fitted, of, plan, y, inputs, effort or Effort())


def invert(stats: Statistics | str, y: Any, *, of: Any = None, **options: Any) -> Any:
    """Undo a normalization with fitted statistics, or with the statistics of another tensor.

    Parameters
    ----------
    stats : Statistics or str
        Fitted statistics: the result is `stats.invert(y, **options)`, and `of` is ignored. Or the name of a
        norm: its statistics are those of `of`.
    y : array_like
        Normalized values.
    of : array_like, optional
        The tensor whose statistics undo the norm, such as the input of a model whose forecast is `y` (RevIN).
        It has the groups of `y`; the reduced axes may have other lengths. Required with the name of a norm.
    **options
        gamma, beta and, with the name of a norm, its options as in `normalize`.

    Returns
    -------
    ndarray, or a tensor of the library of `y`

    Raises
    ------
    UsageError
        If `stats` is neither, `of` is missing, the norm is not undone (windows, matrices, quantiles), or gamma
        is 0 somewhere.
    DataError
        If `y` and `of` do not have the same groups.

    Examples
    --------
    >>> invert("ln", [[-1.0, 0.0]], of=[[2.0, 4.0, 6.0]], eps=0, ddof=1)
    array([[2., 4.]])
    """
    if not isinstance(stats, str):
        from normcli.library.statistics import Statistics  # on use: the name of a norm needs none

        if not isinstance(stats, Statistics):
            raise UsageError("invert takes fitted statistics or the name of a norm first, then the tensor")
        return stats.invert(y, **options)
    if of is None:
        raise UsageError("a norm is undone by the statistics of a tensor: give of, or fitted statistics")
    affine = {name: options.pop(name, None) for name in ("gamma", "beta")}
    require_options("invert", options)
    taken, request = take(y, "y"), Request.collect(stats, options)
    arrays = {name: None if a is None else read_numbers(a, name) for name, a in affine.items()}
    request = request.adopt_layout(taken.layout)
    return taken.give(restore_by(request, taken.values, read_numbers(of, "of"), arrays)[0])
