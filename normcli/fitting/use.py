"""Tensors normalized with fitted statistics, and that undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.invert import Loss, invert
from normcli.errors import DataError, UsageError
from normcli.fitting.statistics import find_moments
from normcli.norms.plan import make_plan
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan


class Use(NamedTuple):
    """Statistics, and the parameters and options to normalize with beside them.

    Parameters
    ----------
    stats : Stats
    gamma, beta : ndarray or None
    eps : float or None
        Instead of the fitted one.
    dtype : str or None
        Of the output; the input's by default.
    range : tuple of float or None
        Instead of the fitted one.
    """

    stats: Stats
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    eps: float | None = None
    dtype: str | None = None
    range: tuple[float, float] | None = None

    @property
    def wanted(self) -> tuple[str, ...] | None:
        """The names of the columns that a tensor must have; None where they make no difference."""
        grid = self.stats.subject.plan(self.stats.samples).grid
        return self.stats.subject.columns if len(grid.shape) - 1 in grid.kept else None

    def plan(self, name: str, values: NDArray[Any]) -> Plan:
        """Return the plan for a tensor, whose positions and samples may be others than those fitted.

        Raises
        ------
        DataError
            If its groups are not those that there are statistics of.
        """
        subject = self.stats.subject
        if values.ndim != len(subject.shape):
            axes = format_count(values.ndim, "axis", "axes")
            raise DataError(f"{name} has {axes}; the statistics are of tensors of {len(subject.shape)}")
        fitted = subject.plan(self.stats.samples)
        eps = fitted.spec.eps if self.eps is None else self.eps  # which may depend on all that was fitted
        request = subject.request._replace(dtype=self.dtype, eps=eps, range=self.range or fitted.spec.range)
        plan = make_plan(request, values.shape, values.dtype, self.wanted)
        if plan.grid.stats_shape != fitted.grid.stats_shape:
            kept = " ".join(plan.grid.kept_names)
            raise DataError(
                f"{name} of the shape {values.shape} has {plan.grid.stats_shape} groups along {kept}; the "
                f"statistics are of {fitted.grid.stats_shape}"
            )
        return plan

    def fit_inputs(self, plan: Plan) -> Inputs:
        """Return gamma, beta and the statistics in the shapes that the plan has for them."""
        given = plan.complete_parameters({"gamma": self.gamma, "beta": self.beta})
        gamma, beta = (None if a is None else plan.fit_parameter(name, a) for name, a in given.items())
        return Inputs(gamma, beta, measured=find_moments(plan, self.stats))


def invert_stats(
    use: Use, plan: Plan, values: NDArray[Any], out: NDArray[Any] | None, effort: Effort
) -> tuple[NDArray[Any], Loss]:
    """Undo a normalization by `Use.fit_inputs`, each result rounded once; also return what rounding y has cost.

    Raises
    ------
    UsageError
        If gamma is 0 somewhere: what it multiplied is lost.
    """
    inputs = use.fit_inputs(plan)
    gamma = inputs.gamma
    if gamma is not None and (np.asarray(gamma, dtype=np.float64) + plan.spec.gamma_offset == 0.0).any():
        raise UsageError("gamma is 0 somewhere: what it multiplied is lost")
    return invert(plan, values, inputs, out, effort)
