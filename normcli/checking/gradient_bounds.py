"""Bounds on the rounding errors of right gradients: of terms, of the mean, and of a variance by squares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Fault, find_fault
from normcli.checking.gradient_terms import add_up, spread_parameter
from normcli.checking.ulp import bound_lost
from normcli.dtypes import get_eps, get_smallest, is_float, is_half, is_short_float
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.checking.gradient_terms import GradientTerms
    from normcli.dtypes import Floats
    from normcli.results.backward import Gradients

_Bounds = tuple["Floats", "Floats", "Floats"]
"""Bounds on a gradient's errors by roundings of its terms, of the mean, and of squares (`_bound`)."""


_LEAST_ROUNDINGS = 4.0
"""The error of a right gradient, in roundings of its terms; for n terms, √n if this is more."""

CLEARLY, _FEW, _MORE_CLEARLY = 8.0, 16, 32.0
"""A gradient has a fault if it is 8 times nearer to that with the fault than to the exact one; with fewer than
16 values or 4 groups 32 times, as 8 times may be by chance."""


class Rounding(NamedTuple):
    """A source of rounding errors, and the bound on the error that it causes in each value of a gradient.

    Parameters
    ----------
    source : {"terms", "mean", "variance"}
        `terms`: a gradient's terms are rounded. `mean`: the mean of x has an error too, which grows with |mean|
        / divisor. `variance`: the variance is mean(x²) − mean², whose error grows with (mean / divisor)².
    precision : str
        The dtype of the calculation.
    bound : ndarray
        The largest error of each value, with the errors from the sources before this one added.
    """

    source: str
    precision: str
    bound: Floats


class GradientScales(NamedTuple):
    """The weight of each value of a gradient in comparisons, and bounds on its rounding error.

    Parameters
    ----------
    weight : ndarray
        The factor on each value's error. With it every group counts alike, although the gradients of groups
        with large x are small.
    roundings : tuple of Rounding
        Sources of rounding errors, from small to large: terms in the precision of the calculation, terms in
        half precision if the gradient has it, the mean, a variance as mean(x²) − mean².
    known : ndarray of bool or None
        True where the bounds are finite; None if they are finite everywhere.
    clearly : float
        A fault is named only if its gradient is nearer to the given one, by this factor, than the exact
        gradient.
    skew : float
        The largest |mean| / divisor of a group.
    lost : float
        The largest bound on the error of a group's mean, divided by the divisor.
    dtype : dtype
        The dtype of the given gradient.
    """

    weight: Any
    roundings: tuple[Rounding, ...]
    known: Any
    clearly: float
    skew: float = 0.0
    lost: float = 0.0
    dtype: np.dtype[Any] = np.dtype(np.float64)

    @classmethod
    def of(
        cls, exact: Gradients, name: str, dtype: np.dtype[Any], right: Floats, terms: GradientTerms | None
    ) -> GradientScales:
        """Return the weights and the bounds of rounding errors for a gradient.

        Parameters
        ----------
        exact : Gradients
            All exact gradients of the backward pass, with its inputs.
        name : {"dx", "dgamma", "dbeta", "dgate"}
        dtype : dtype
            The dtype of the given gradient.
        right : ndarray
            The exact gradient.
        terms : GradientTerms or None
            The terms of the exact gradients. If None, bounds are taken from the exact gradient alone, and all
            weights are 1.
        """
        short = is_short_float(dtype) or is_short_float(exact.input.dtype)
        precision, stored, least = "float32" if short else "float64", 0.0, 0.0
        if is_float(dtype):
            stored, least = get_eps(dtype) / 2, get_smallest(dtype.name)
        weight, none, skew, lost = np.ones(right.shape), np.zeros(right.shape), np.zeros(()), np.zeros(())
        errors, count = (np.abs(right), none, none), exact.input.size // max(1, right.size)
        if terms is not None:
            along = tuple(axis for axis, n in enumerate(exact.plan.parameters.view_shape) if n == 1)
            skew = terms.skew
            lost = bound_lost(skew, terms.size, precision)
            is_of_gate = name == "dgate"
            errors = _bound_gate(exact, terms, lost) if is_of_gate else _bound(terms, name, along, lost)
            if name in ("dgamma", "dbeta"):
                weight = 1.0 / _find_length(terms.dy, along)
            elif name == "dx":
                length = _find_length(terms.dy, terms.axes)
                count, weight = terms.size, np.broadcast_to(terms.divisor / length, terms.dy.shape)
        rounding = max(_LEAST_ROUNDINGS, math.sqrt(count)) * get_eps(np.dtype(precision)) / 2
        weight = np.where(np.isfinite(weight), weight, 0.0).reshape(right.shape)
        size, moved, squared = (one.reshape(right.shape) for one in errors)
        bound = np.abs(right) * stored + least / 2 + size * rounding
        roundings = [Rounding("terms", precision, bound)]
        if is_half(dtype):
            bound = bound + size * (stored * _LEAST_ROUNDINGS)
            roundings.append(Rounding("terms", dtype.name, bound))
        roundings.append(Rounding("mean", precision, bound + moved))
        roundings.append(Rounding("variance", precision, bound + moved + squared * rounding))
        known = np.isfinite(roundings[-1].bound)
        is_few = right.size < _FEW or exact.plan.grid.group_count < _FEW // 4
        most, farthest = (float(np.nanmax(one, initial=0.0)) for one in (skew, lost))
        clearly = _MORE_CLEARLY if is_few else CLEARLY
        unknown = None if known.all() else known
        return cls(weight, tuple(roundings), unknown, clearly, most, farthest, dtype)

    def measure(self, values: Floats) -> float:
        """Return the root of the sum of (weight · value)², without values whose bounds are not finite."""
        weighed = values * self.weight
        return float(np.linalg.norm(weighed if self.known is None else weighed[self.known]))

    def find_level(self, error: Floats) -> int:
        """Return the index of the first of `roundings` within which an error is, in root mean square.

        It is the length of `roundings` if the error is within none.
        """
        size = self.measure(error)
        within = (i for i, one in enumerate(self.roundings) if size <= self.measure(one.bound))
        return next(within, len(self.roundings))

    def blame(self, level: int) -> tuple[Fault, str]:
        """Return words for the difference that `roundings[level]` may explain; and its source."""
        found = self.roundings[level]
        *_, terms, mean, _ = self.roundings
        source = found.source
        if source == "terms" and self.measure(mean.bound - terms.bound) > self.measure(found.bound):
            source = "both"
        is_half_terms = source == "terms" and level > 0
        cause = find_fault("rounded-half" if is_half_terms else f"rounded-{source}")
        return cause.fill((found.precision,))._replace(id=""), source

    def exceeds(self, error: Floats, level: int, factor: float = 1.0) -> NDArray[np.bool_]:
        """Return True for each value whose error is above the bound of `roundings[level]` times a factor."""
        beyond: NDArray[np.bool_] = ~(np.abs(error) <= factor * self.roundings[level].bound)
        return beyond if self.known is None else beyond & self.known


def _bound_gate(exact: Gradients, terms: GradientTerms, lost: Floats) -> _Bounds:
    """Return bounds on the errors of dgate, as three arrays of its shape.

    The first is the sum of the terms' absolute values, to be multiplied by the number and size of roundings.
    The second is the error that a wrong mean causes: `lost` is the mean's error divided by the divisor, for
    each group. The third is the error of a variance as mean(x²) − mean², also to be multiplied by roundings.
    """
    behind, before = exact.inputs.gate, exact.inputs.gated_input
    gate = before if behind is None else behind
    assert gate is not None  # where there is a dgate
    slope = 1.0 + np.abs(gate._replace(times=None, is_slope=True).activate())
    if before is not None:
        sizes, factor = _bound(terms._replace(behind=1.0), "dx", (), lost), slope * np.abs(before.times)
    else:
        xhat, gamma, skew = np.abs(terms.xhat), np.abs(terms.gamma), terms.skew
        beta = np.abs(spread_parameter(exact.plan, exact.inputs.beta, 0.0))
        sizes = gamma * xhat + beta, gamma * lost * (1.0 + xhat), gamma * (xhat * skew**2 + skew)
        factor = slope * np.abs(exact.dy)
    shape = exact.input.shape
    size, moved, squared = (
        add_up(np.broadcast_to(one, terms.dy.shape).reshape(shape) * factor, shape, gate.values.shape)
        for one in sizes
    )
    return size, moved, squared


def _find_length(values: Floats, axes: tuple[int, ...]) -> Floats:
    lengths: Floats = np.sqrt((values * values).sum(axes, keepdims=True))
    return lengths


def _measure_dx(terms: GradientTerms, lost: Floats | float = 0.0) -> Floats:
    """Return Σ |term| for each value of dx, where a mean is off by `lost` · divisor.

    The divisor is then off by the factor 1 + lost, and x̂ by lost · (1 + |x̂|).
    """
    size, xhat = np.abs(terms.g), np.abs(terms.xhat)
    pulled, squares = np.abs(terms.slope * terms.divisor) * xhat, xhat * xhat
    share = np.nan_to_num(pulled.sum(terms.axes, keepdims=True) / squares.sum(terms.axes, keepdims=True))
    moved = xhat + lost * (1.0 + xhat)
    mean = size.mean(terms.axes, keepdims=True) * np.abs(terms.a * terms.share) if terms.centres else 0.0
    pull = share * moved * (size * moved).sum(terms.axes, keepdims=True) * np.abs(terms.b * terms.share)
    result: Floats = (size + mean + pull) * (1.0 + lost) / terms.divisor
    return result


def _bound(terms: GradientTerms, name: str, along: tuple[int, ...], lost: Floats) -> _Bounds:
    """Return bounds on the errors of a gradient, as three arrays.

    The first is the sum of the terms' absolute values, to be multiplied by the number and size of roundings.
    The second is the error that a wrong mean causes. The third is the error of a variance as mean(x²) − mean²,
    also to be multiplied by roundings.

    Parameters
    ----------
    terms : GradientTerms
    name : {"dx", "dgamma", "dbeta"}
    along : tuple of int
        The axes that a parameter's gradient is summed over.
    lost : ndarray
        The error of each group's mean, divided by the divisor.
    """
    dy, squared = np.abs(terms.dy), np.square(terms.skew)
    if name == "dx":
        behind = np.abs(terms.behind)
        size, moved = _measure_dx(terms) * behind, _measure_dx(terms, lost) * behind
        return size, moved - size, size * squared
    shares, none = dy * np.abs(terms.xhat), np.zeros(dy.shape)
    parts = (shares, lost * (dy + shares), shares * squared + dy * terms.skew)
    size, moved, odd = (one.sum(along) for one in (parts if name == "dgamma" else (dy, none, none)))
    return size, moved, odd
