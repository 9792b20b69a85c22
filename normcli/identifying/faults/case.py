"""A tensor beside the result that a norm should give: what y shows instead, and how far rounding may go."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_terms import add_eps
from normcli.checking.ulp import measure_unit
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.variant import MOST, NOTHING, Found, Prediction, Used, Variant
from normcli.norms.rules import Centre, EpsMode
from normcli.numerics.statistics.divisor import find_freedom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.tensors.residual import Addends


_ROUNDINGS, _OF_A_GATE = 8.0, 3.0
"""Roundings, in the size of its terms, that a value may be off: of the arithmetic; of a half, with a gate."""

_LOST = 4.0
"""Roundings of a group's mean; as many for each doubling of its values. Sums in turn lose about their root."""


@dataclass(frozen=True, eq=False)
class Case:
    """A tensor beside the result that a norm should give; arrays have the rank of the plan's view.

    Parameters
    ----------
    plan : Plan
    x, y : ndarray of float64
        The input, and a kernel's output.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    gamma, beta : ndarray of float64
        With lengths of 1 where they repeat; 1 and 0 where `has_gamma` or `has_beta` says that none is given.
    stored : tuple of ndarray or None
        The running mean and variance, of evaluation.
    exact : ndarray or None
        What the norm makes; None where it follows from moments.
    saved : str or None
        The dtype of half precision whose numbers y holds, where it was saved as another.
    precision : str or None
        What the kernel calculates in; None for y's dtype, or float32 where that is of half precision.
    whole : int or None
        Values in a group, where x has only some of them.
    addends : Addends or None
        What x is the sum of, where a residual was added.
    gate : Gated or None
        What multiplies the result.
    gated_input : Gated or None
        The gate and the tensor that x is the product of, where a gate multiplies before the norm.
    step : int
        Of how many neighbours within a group x and y have one.
    """

    plan: Plan
    x: Floats
    y: Floats
    dtype: np.dtype[Any]
    gamma: Floats
    beta: Floats
    has_gamma: bool = False
    has_beta: bool = False
    stored: tuple[Floats, Floats] | None = None
    exact: Floats | None = None
    saved: str | None = None
    precision: str | None = None
    whole: int | None = None
    addends: Addends | None = None
    gate: Gated | None = None
    gated_input: Gated | None = None
    step: int = 1

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes of the view."""
        return self.plan.grid.view_axes

    @cached_property
    def parts(self) -> frozenset[str]:
        """The names of the norm's parts and of its given inputs, which rows of tables may need."""
        over = self.plan.request.over is not None
        has = {
            "mean": self.centres, "moments": self.has_moments, "eps": self.eps, "gamma": self.has_gamma,
            "beta": self.has_beta, "stored": self.stored is not None and not over, "addends": self.addends,
            "gate": self.gate, "gated-input": self.gated_input, "slice": over,
        }  # fmt: skip
        return frozenset(name for name, part in has.items() if part)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The kept axes of the view that are longer than 1."""
        return tuple(axis for axis, n in enumerate(self.x.shape) if axis not in self.axes and n > 1)

    @cached_property
    def count(self) -> int:
        """Values in a group."""
        return self.whole or math.prod(self.x.shape[axis] for axis in self.axes)

    def name_axis(self, axis: int) -> str:
        """Return the name of an axis of the view; a split axis has two: its groups, and places in a group."""
        grid = self.plan.grid
        if grid.split is None or axis < grid.split.axis:
            return grid.layout.name(axis)
        if axis > grid.split.axis + 1:
            return grid.layout.name(axis - 1)
        return "group" if axis not in self.axes else f"{grid.layout.name(grid.split.axis)} of a group"

    @property
    def centres(self) -> bool:
        """Whether a mean is subtracted."""
        return self.plan.norm.centre is Centre.MEAN

    @cached_property
    def has_moments(self) -> bool:
        """Whether groups are divided by what their moments say."""
        return self.exact is None

    @property
    def is_constant(self) -> bool:
        """Whether x shows nothing of a norm that subtracts its mean: every group is of one value."""
        is_own = self.centres and self.stored is None and self.has_moments
        return is_own and not np.ptp(self.x, self.axes).any()

    @property
    def freedom(self) -> float:
        """The number that divides a sum of squares: n − ddof."""
        return float(find_freedom(self.plan, self.count))

    @property
    def eps(self) -> float:
        """The eps of the plan."""
        return self.plan.spec.eps or 0.0

    def average(self, values: Floats) -> Floats:
        """Return the mean of each group; by `add.reduce`, which thousands of small arrays are quicker by."""
        count = math.prod(values.shape[axis] for axis in self.axes)
        mean: Floats = np.add.reduce(values, self.axes, keepdims=True) / count
        return mean

    @cached_property
    def own_mean(self) -> Floats:
        """The mean of each group of x, even if the norm subtracts none."""
        mean = self.average(self.x)
        return mean + self.average(self.x - mean)

    @cached_property
    def own_square(self) -> Floats:
        """The variance of each group, or the mean square where nothing is subtracted."""
        return self.average(self.deviations**2) * (self.count / self.freedom)

    def measure_square(self, mean: Floats) -> Floats:
        """Return the variance about another mean; the mean square where nothing is subtracted."""
        deviations = self.x - mean if self.centres else self.x
        return self.average(deviations**2) * (self.count / self.freedom)

    def replace_mean(self, mean: Floats) -> list[Variant]:
        """Return the variants of another mean: beside the norm's own divisor, and with the square about it."""
        return [Variant(mean), Variant(mean, square=self.measure_square(mean))]

    def replace_statistics(self, mean: Floats, square: Floats, names: Sequence[str]) -> list[Variant]:
        """Return variants with other statistics: with both, with the mean alone, with the square alone.

        A fault's words name them by `{what}`. For a norm without mean there is only the first variant.
        """
        every = Variant(mean, square=square), Variant(mean), Variant(square=square)
        some = every if self.centres else every[:1]
        return [one._replace(values={"what": name}) for one, name in zip(some, names, strict=False)]

    @property
    def square_name(self) -> str:
        """The name of the square: `variance` or `mean square`."""
        return "variance" if self.centres else "mean square"

    @cached_property
    def deviations(self) -> Floats:
        """The values less their mean, or as they are where nothing is subtracted."""
        return self.x - self.own_mean if self.centres else self.x

    @cached_property
    def centre(self) -> Floats:
        """The centre of each group; where statistics are stored, that of its own values."""
        return self.own_mean if self.centres else np.zeros_like(self.own_mean)

    @property
    def mean(self) -> Floats:
        """The number that is subtracted from each group."""
        return self.centre if self.stored is None else self.stored[0]

    @cached_property
    def square(self) -> Floats:
        """The number under the root, without eps: a variance or mean square of each group."""
        return self.own_square if self.stored is None else self.stored[1]

    def root(self, square: Floats, eps: float | Floats | None = None) -> Floats:
        """Return the divisor of a variance or mean square, with the plan's eps or another in its place."""
        return add_eps(square, self.eps if eps is None else eps, self.plan.spec.eps_mode)

    def unroot(self, divisor: Floats, square: Floats) -> Floats:
        """Return the eps that makes a divisor of a square, where eps is added."""
        outside = self.plan.spec.eps_mode is EpsMode.OUTSIDE
        return np.asarray(divisor - np.sqrt(square) if outside else divisor**2 - square)

    @cached_property
    def divisor(self) -> Floats:
        """The divisor of each group."""
        return self.root(self.square)

    def find_divisor(self, variant: Variant) -> Floats:
        """Return the divisor of a variant."""
        if variant.divisor is not None:
            return variant.divisor
        return self.divisor if variant.square is None else self.root(variant.square)

    @cached_property
    def standardized(self) -> Floats:
        """The values before gamma and beta."""
        if self.exact is not None:
            return np.asarray((self.exact - self.beta) / self.gamma)
        return np.asarray((self.x - self.mean) / self.divisor)

    @cached_property
    def right(self) -> Prediction:
        """The exact result of the norm."""
        return self.predict(NOTHING)

    @cached_property
    def differs(self) -> Selected:
        """The values of y that differ from the exact result."""
        return ~self.explains(self.right)

    @cached_property
    def factor(self) -> Floats | float:
        """The activated gate, which multiplies gamma and beta value by value."""
        return 1.0 if self.gate is None else self.gate.activate()

    @np.errstate(all="ignore")
    def predict(self, variant: Variant) -> Prediction:
        """Return the result of a kernel that used this variant."""
        gamma, beta = (
            (own if theirs is None else theirs) * self.factor
            for own, theirs in ((self.gamma, variant.gamma), (self.beta, variant.beta))
        )
        mean = self.mean if variant.mean is None else variant.mean
        divisor = self.find_divisor(variant)
        is_own = variant.mean is None and variant.divisor is None and variant.square is None
        standardized = self.standardized if is_own else (self.x - mean) / divisor
        if is_own and not self.has_moments:  # of about this size
            mean, divisor = np.zeros(()), np.abs(self.average(self.x)) + self.x.std()
        scaled = gamma * standardized
        values = scaled + beta if variant.result is None else variant.result
        terms = np.abs(scaled) + np.abs(beta) + np.abs(values)
        of_mean = 1.0 / math.sqrt(max(1, self.count)) if self.centres else 0.0  # its own, of deviations
        shared = np.abs(gamma) * ((np.abs(mean) + np.abs(self.x)) / np.abs(divisor) + of_mean)
        size = np.abs(gamma)
        if variant.result is not None:
            size = np.minimum(size, np.sqrt(np.mean(np.square(values))))
        unit = allowed = self._allow(values, terms, shared, size)
        if variant.slope is not None and is_half(self.dtype):
            first = measure_unit(np.nan_to_num(self.right.values), self.dtype)
            allowed = allowed + np.abs(variant.slope) * first
        if variant.noise is not None:
            unit = allowed = variant.noise + measure_unit(np.nan_to_num(values), self.dtype)
        elif self.gate is not None and is_half(self.dtype):
            allowed = _OF_A_GATE * allowed
        return Prediction(values, allowed, unit)

    def _allow(self, values: Floats, terms: Floats, shared: Floats, usual: Floats) -> Floats:
        """Return how far off values may be by rounding: of the result, its terms, and the mean.

        It is at most a part of the value, or of a usual value.
        """
        lost = max(_LOST * (2.0 + math.log2(max(1, self.count))), math.sqrt(self.count))
        noise = self.arithmetic * (_ROUNDINGS * terms + lost * shared)
        size = np.where(np.isfinite(values), values, 0.0)
        noise = np.minimum(noise, MOST * (usual + np.abs(size)))
        return np.asarray(measure_unit(size, self.dtype) + noise)

    @cached_property
    def arithmetic(self) -> float:
        """The machine epsilon of the kernel's arithmetic."""
        return get_eps(np.dtype(self.precision or ("float32" if is_half(self.dtype) else self.dtype)))

    @cached_property
    def used(self) -> Used:
        """The mean and the divisor of each group that y shows, with gamma and beta as they are."""
        return self.recover(self.gamma, self.beta)

    @np.errstate(all="ignore")
    def recover(self, gamma: Floats, beta: Floats) -> Used:
        """Return the mean and the divisor that y shows of each group: the line of least squares through it.

        With y − beta = gamma · (a · (x − m) + c), the divisor is 1 / a and the mean m − c / a.
        """
        given = gamma, beta
        gamma, beta = gamma * self.factor, beta * self.factor
        weight = np.where(np.isfinite(self.y), 1.0 / self.right.allowed**2, 0.0)
        weight = weight * (np.square(gamma) / self.average(weight * np.square(gamma)))
        y = np.where(np.isfinite(self.y), (self.y - beta) / gamma, 0.0)
        weight, y = np.where(gamma == 0.0, 0.0, weight), np.where(gamma == 0.0, 0.0, y)
        moved = self.x - self.own_mean
        centre_x, centre_y = (self.average(weight * values) for values in (moved, y))
        moved = moved - centre_x
        a = self.average(weight * moved * (y - centre_y)) / self.average(weight * moved**2)
        moved = np.where(a == 0.0, 0.0, centre_x - centre_y / a)
        line = Used(self.own_mean + moved, 1.0 / a)
        if self.centres:
            return line
        through_zero = self.average(weight * self.x**2) / self.average(weight * self.x * y)
        used = Used(np.zeros_like(line.mean), through_zero)
        fits = [
            self.explains(self.predict(Variant(*one, gamma=given[0], beta=given[1]))).mean()
            for one in (used, line)
        ]
        return used if fits[0] >= fits[1] else line

    @np.errstate(all="ignore")
    def recover_parameters(self) -> tuple[Floats, Floats]:
        """Return the gamma and beta that y shows of each feature: lines of least squares of y over x̂."""
        axes = tuple(axis for axis, n in enumerate(self.gamma.shape) if n == 1)
        x, y = (np.where(np.isfinite(self.y), values, 0.0) for values in (self.standardized, self.y))
        mean_x, mean_y = (values.mean(axes, keepdims=True) for values in (x, y))
        gamma = ((x - mean_x) * (y - mean_y)).sum(axes, keepdims=True)
        gamma = np.asarray(gamma / ((x - mean_x) ** 2).sum(axes, keepdims=True))
        return gamma, mean_y - gamma * mean_x

    @np.errstate(all="ignore")
    def explains(self, prediction: Prediction) -> Selected:
        """Return which values of y a prediction explains; NaN explains NaN."""
        near = np.abs(self.y - prediction.values) <= prediction.allowed
        both = np.isnan(self.y) & np.isnan(prediction.values)
        return np.asarray(near | both | (self.y == prediction.values))

    def hold(self, faults: tuple[Fault, ...], variants: tuple[Variant, ...]) -> Found:
        """Return faults and their variants as found, with the values of y that the first variant explains."""
        prediction = self.predict(variants[0])
        return Found(faults, variants, prediction, self.explains(prediction))
