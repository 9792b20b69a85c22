"""The terms of the gradients of norms that divide by moments or ℓ2 lengths, as requested or with a fault.

With g = dy · gamma, A = mean(g), w = x − mean and B as in `normcli.numerics.gradients.coefficients`,
dx is (g − A − w · B) / D.
All numbers are in float64: faults differ from each other by far more than its rounding errors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import Centre, EpsMode
from normcli.numerics.gradients.coefficients import find_p
from normcli.numerics.statistics.divisor import find_freedom
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.results.backward import Gradients


class GradientTerms(NamedTuple):
    """The terms of a norm's gradients, as arrays that broadcast to the plan's view of x.

    The gradient is dx = (g − A − w · B) / D, with A = mean(g), B the factor on the deviations w, and D the
    divisor.

    Parameters
    ----------
    dy, gamma : ndarray
        The derivative with respect to y (times the activated gate, for a gate behind the norm), and gamma, the
        factor of x̂.
    offset : int
        1 for norms that multiply by 1 + gamma, else 0; `gamma` includes it.
    g : ndarray
        dy · gamma.
    mean : ndarray
        The mean of each group; 0 for a norm without mean.
    w : ndarray
        x − mean.
    divisor : ndarray
        The divisor D of each group.
    slope : ndarray
        w · B / Σ(g · w): multiply it by the sum Σ(g · w) of the group to get w · B. 0 if D does not depend on
        x.
    size : int
        The number n of values in a group.
    axes : tuple of int
        The axes of both means of the backward pass: the reduced axes.
    centres : bool
        True if dx has the term A: a mean is subtracted, and it depends on x.
    behind : ndarray or float
        The last factor of dx: the activation of a gate before the norm, or 1.
    share : float
        The factor on both means of the backward pass, A and B: 1, or n / m for a kernel that divides by m.
    a, b : ndarray or float
        Factors on the term A, and on the term w · B.
    """

    dy: Floats
    gamma: Floats
    offset: int
    g: Floats
    mean: Floats
    w: Floats
    divisor: Floats
    slope: Floats
    size: int
    axes: tuple[int, ...]
    centres: bool
    behind: Floats | float = 1.0
    share: float = 1.0
    a: Floats | float = 1.0
    b: Floats | float = 1.0

    @property
    def plain(self) -> GradientTerms:
        """The terms with w · B as x̂ · mean(g · x̂), as kernels write it whatever eps and ddof are."""
        return self._replace(slope=np.where(self.slope == 0.0, 0.0, self.w / (self.size * self.divisor**2)))

    @property
    def excess(self) -> float:
        """The factor n / (n − 1), by which a sum over n − 1 is larger than the mean."""
        return self.size / max(1, self.size - 1)

    @property
    def skew(self) -> Floats:
        """|mean| / divisor."""
        return np.abs(self.mean) / self.divisor

    @property
    def xhat(self) -> Floats:
        """x̂ = (x − mean) / D."""
        return self.w / self.divisor

    def scale(self, a: Floats | float = 1.0, b: Floats | float = 1.0) -> GradientTerms:
        """Return the terms with the term A times a factor, and the term w · B times another."""
        return self._replace(a=self.a * a, b=self.b * b)

    def widen(self, axes: tuple[int, ...]) -> GradientTerms | None:
        """Return the terms with sums over more axes, divided by the size of a group; None for other axes."""
        more = math.prod(self.g.shape[axis] for axis in axes) / self.size
        return self._replace(axes=axes).scale(more, more) if {*axes} > {*self.axes} else None

    def multiply(self, factor: Floats | float) -> GradientTerms:
        """Return the terms with all of dx times a factor."""
        return self._replace(behind=self.behind * factor)

    def standardize(self, first: Floats | float, second: Floats | float) -> GradientTerms:
        """Return the terms with other values for the first x̂ in x̂ · mean(g · x̂), and for the second."""
        return self._replace(slope=first / (self.size * self.divisor), w=second * self.divisor)

    def differentiate(self) -> Floats:
        """Return dx, at the view's rank."""
        share = self.share * self.size / math.prod(self.g.shape[axis] for axis in self.axes)
        mean = self.share * self.g.mean(self.axes, keepdims=True) if self.centres else 0.0
        pull = (self.g * self.xhat).sum(self.axes, keepdims=True) * share  # other axes have other divisors
        result: Floats = (self.g - self.a * mean - self.b * self.slope * self.divisor * pull) / self.divisor
        return result * self.behind


def make_terms(
    exact: Gradients,
    plan: Plan | None = None,
    *,
    centres: bool | None = None,
    trained: bool = False,
    constant: bool = True,
    moments: tuple[Floats | float, Floats] | None = None,
) -> GradientTerms | None:
    """Return the terms of a norm's gradients; None for sliding windows, and for divisors not made of squares.

    Parameters
    ----------
    exact : Gradients
        The exact gradients, with the tensors from which they were calculated.
    plan : Plan or None
        A plan with other options or groups; None for the plan of `exact`.
    centres : bool or None
        True if the mean is subtracted; None for the norm's own choice.
    trained : bool
        True to compute statistics from x, as in training, even if running statistics were given.
    constant : bool
        True to take running statistics, if they were given, as constants in the derivative.
    moments : pair of (ndarray or float, ndarray) or None
        A mean and a variance in place of those of x, broadcastable to its view; None for those of x.
    """
    plan = exact.plan if plan is None else plan
    if plan.groups_overlap or find_p(plan) != 2.0:
        return None
    grid, given = plan.grid, None if trained else exact.inputs.given
    gate, before = exact.inputs.gate, exact.inputs.gated_input
    factor = np.ones(()) if before is None else before._replace(times=None).activate()
    behind = np.broadcast_to(factor, grid.shape).reshape(grid.view_shape)
    upstream = exact.dy if gate is None else gate._replace(times=exact.dy).activate()
    x, dy = (np.asarray(a, np.float64).reshape(grid.view_shape) for a in (exact.input, upstream))
    axes = grid.view_axes
    centres = plan.norm.centre is Centre.MEAN if centres is None else centres
    count = math.prod(x.shape[axis] for axis in axes)
    offset = 0 if exact.inputs.gamma is None else plan.spec.gamma_offset
    gamma = spread_parameter(plan, exact.inputs.gamma, 1.0) + offset
    mean = x.mean(axes, keepdims=True) if centres else np.zeros((1,) * x.ndim)
    freedom = find_freedom(plan, count)
    if given is not None:
        lengths = [1 if axis in axes else n for axis, n in enumerate(grid.view_shape)]
        mean, var = (grid.spread_running(known).reshape(lengths) for known in given)
    if moments is not None:
        mean, var = np.broadcast_to(moments[0], mean.shape), moments[1]
    w = x - mean
    if given is None and moments is None:
        var = (w * w).sum(axes, keepdims=True) / freedom
    root, mode = np.sqrt(var), plan.spec.eps_mode
    divisor = add_eps(var, plan.spec.eps or 0.0, mode)
    beside = root if mode is EpsMode.OUTSIDE else divisor
    follows = (root >= divisor) | (mode in (EpsMode.INSIDE, EpsMode.OUTSIDE))
    is_constant = given is not None and constant
    slope = np.where(follows & (not is_constant), w / (freedom * divisor * beside), 0.0)
    return GradientTerms(
        dy, gamma, offset, dy * gamma, mean, w, divisor, slope, count, axes,
        centres and not is_constant, behind,
    )  # fmt: skip


MOVED_EPS: Mapping[EpsMode | None, EpsMode] = {EpsMode.INSIDE: EpsMode.OUTSIDE, EpsMode.OUTSIDE: EpsMode.INSIDE}
"""The eps mode that a kernel may use by mistake, by the right one."""


@np.errstate(all="ignore")
def add_eps(square: Floats, eps: float | Floats, mode: EpsMode | None) -> Floats:
    """Return the divisor made of a variance or mean square, `square`, and an eps.

    It is √(square + eps) for the mode INSIDE, √square + eps for OUTSIDE, √max(square, eps) for SQUARE_FLOOR,
    and max(√square, eps) for any other mode and for None.
    """
    match mode:
        case EpsMode.INSIDE:
            found = np.sqrt(square + eps)
        case EpsMode.OUTSIDE:
            found = np.sqrt(square) + eps
        case EpsMode.SQUARE_FLOOR:
            found = np.sqrt(np.maximum(square, eps))
        case _:
            found = np.maximum(np.sqrt(square), eps)
    return np.asarray(found)


def spread_parameter(plan: Plan, parameter: NDArray[Any] | None, otherwise: float) -> Floats:
    """Return gamma or beta in float64 at the view's rank; for None, one number, `otherwise`."""
    if parameter is None:
        return np.full((1,) * len(plan.grid.view_shape), otherwise)
    shapes = plan.parameters
    shape = plan.grid.split_shape(shapes.full_shape) if plan.spreads_parameters else shapes.view_shape
    return np.asarray(parameter, dtype=np.float64).reshape(shape)


def add_up(wrong: Floats, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Floats:
    """Return a gradient in the shape `wanted`; of a gate that broadcast to `shape`, repetitions are added."""
    if wrong.size != math.prod(wanted):
        lengths = (1,) * (len(shape) - len(wanted)) + wanted
        wrong = wrong.reshape(shape).sum(tuple(axis for axis, n in enumerate(lengths) if n == 1))
    return wrong.reshape(wanted)
