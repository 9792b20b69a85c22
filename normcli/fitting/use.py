"""Tensors normalized with fitted statistics, and normalized tensors restored."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.invert import Loss, invert
from normcli.engine.run import run
from normcli.errors import DataError, UsageError
from normcli.fitting.by_column import find_groups, number_groups_of
from normcli.fitting.statistics import find_moments
from normcli.norms.plan import make_plan
from normcli.numerics.statistics.solution import solve
from normcli.printable import format_count
from normcli.tensors.mapped import Mapped, fetch
from normcli.tensors.pieces import forget
from normcli.tensors.spool import make_scratch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor


class Use(NamedTuple):
    """Fitted statistics, with the parameters and options for normalizing with them.

    Parameters
    ----------
    stats : Stats
    gamma, beta : ndarray or None
    eps : float or None
        The eps to use; None for the eps of the fit.
    dtype : str or None
        The dtype of the output; None: the input's.
    range : tuple of float or None
        The range of `minmax` to use; None for the range of the fit.
    """

    stats: Stats
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    eps: float | None = None
    dtype: str | None = None
    range: tuple[float, float] | None = None

    @property
    def wanted(self) -> tuple[str, ...] | None:
        """The names of the columns that a tensor must have; None if the statistics do not depend on columns."""
        grid = self.stats.subject.plan(self.stats.samples).grid
        return self.stats.subject.columns if len(grid.shape) - 1 in grid.kept else None

    def plan(self, name: str, values: NDArray[Any]) -> Plan:
        """Return the plan for normalizing a tensor, whose reduced axes may have other lengths than in the fit.

        If the statistics are of rows grouped by columns, the plan has an axis of length 1 before the tensor's
        own.

        Parameters
        ----------
        name : str
            The tensor's name in messages.
        values : ndarray

        Raises
        ------
        DataError
            If the tensor has another number of axes, or other groups than the statistics.
        """
        subject = self.stats.subject
        if values.ndim != len(subject.shape):
            axes = format_count(values.ndim, "axis", "axes")
            raise DataError(f"{name} has {axes}; the statistics are of tensors of {len(subject.shape)}")
        fitted = subject.plan(self.stats.samples)
        eps = fitted.spec.eps if self.eps is None else self.eps  # the fit's own may depend on its size
        request = fitted.request._replace(dtype=self.dtype, eps=eps, range=self.range or fitted.spec.range)
        first = 0 if subject.by is None else 1  # for grouped rows, an axis of length 1 comes before x
        plan = make_plan(request, (*(1,) * first, *values.shape), values.dtype, self.wanted)
        found, wanted = (one.grid.stats_shape[first:] for one in (plan, fitted))
        if found != wanted:
            kept = " ".join(plan.grid.kept_names[first:])
            raise DataError(
                f"{name} of the shape {values.shape} has {found} groups along {kept}; the statistics are of "
                f"{wanted}"
            )
        return plan

    def fit_inputs(self, plan: Plan) -> Inputs:
        """Return gamma, beta and the fitted statistics in the shapes of a plan, as inputs of a calculation."""
        given = plan.complete_parameters({"gamma": self.gamma, "beta": self.beta})
        gamma, beta = (None if a is None else plan.fit_parameter(name, a) for name, a in given.items())
        return Inputs(gamma, beta, measured=find_moments(plan, self.stats))


def use_stats(
    use: Use, tensor: Tensor, out: NDArray[Any] | None, effort: Effort, *, inverts: bool
) -> tuple[NDArray[Any], Loss]:
    """Return a tensor normalized with fitted statistics; or with `inverts` the tensor before it was normalized.

    Parameters
    ----------
    use : Use
    tensor : Tensor
        The tensor, with `by` if the statistics are of grouped rows.
    out : ndarray or None
        The array into which the result is written, and which is returned; None: a new one.
    effort : Effort
    inverts : bool
        Whether the tensor is a normalized one that is restored.

    Returns
    -------
    ndarray
        The exact values, each rounded once.
    Loss
        The precision that the rounding of the normalized tensor has cost; nothing unless `inverts`.

    Raises
    ------
    DataError
        If the tensor does not fit the statistics (`Use.plan`), there are no statistics of a row's group, or the
        file has changed since it was read.
    UsageError
        If `inverts` and a gamma is 0: the values that it multiplied are lost.
    """
    values = tensor.values
    plan = use.plan(tensor.source, values)
    inputs, work = use.fit_inputs(plan), invert if inverts else _normalize
    gamma = inputs.gamma
    if inverts and gamma is not None and (gamma.astype(np.float64) + plan.spec.gamma_offset == 0.0).any():
        raise UsageError("gamma is 0 somewhere: what it multiplied is lost")
    if use.stats.subject.by is None:
        return work(plan, values, inputs, out, effort)
    assert inputs.measured is not None
    with np.errstate(all="ignore"):
        solution = solve(plan, inputs.measured)
    if out is None:
        make = make_scratch if isinstance(values, Mapped) else np.empty
        out = make(values.shape, plan.choose_output_dtype(values.dtype))
    total = Loss()
    for rows, places in find_groups(tensor, use.stats.subject).iterate_rows(values):
        part = fetch(values[rows])
        own = inputs._replace(measured=solution.take(itemgetter(number_groups_of(places, part.shape[1]))))
        here = use.plan(tensor.source, part)
        total = total.add(work(here, part[np.newaxis], own, out[rows][np.newaxis], effort)[1])
        forget(out)
    return out, total


def _normalize(
    plan: Plan, values: NDArray[Any], inputs: Inputs, out: NDArray[Any] | None, effort: Effort
) -> tuple[NDArray[Any], Loss]:
    """Return values normalized by the statistics in `inputs.measured`, with a loss of nothing."""
    return run(plan, values, inputs, out, effort)[0], Loss()
