"""A kernel's output y with the exact result of the norm that it should be, with bounds of rounding errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.gradient_terms import add_eps
from normcli.checking.ulp import measure_unit
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.variant import (
    NOTHING,
    Found,
    Prediction,
    Used,
    Variant,
    allow_rounding,
    divide_deviations,
    fit_used,
)
from normcli.norms.rules import Centre, EpsMode
from normcli.numerics.statistics.divisor import find_freedom

if TYPE_CHECKING:
    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.tensors.residual import Addends


_OF_A_GATE = 3.0
"""The factor on the bound of a value's error behind a gate, in half precision."""


@dataclass(frozen=True, eq=False)
class Case:
    """A kernel's input x and output y, with the exact result of the norm that y should be.

    A prediction (the result of a kernel with a fault) explains values of y that are within its rounding bounds.
    Arrays have the rank of the plan's view: the tensor, with a channel axis that is split into groups as two.

    Parameters
    ----------
    plan : Plan
    x, y : ndarray of float64
        The input, and a kernel's output.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    gamma, beta : ndarray of float64
        Scale (1 + gamma for norms that add 1) and shift, broadcastable to x; 1 and 0 if not given.
    has_gamma, has_beta : bool
        Whether gamma and beta were given.
    stored : tuple of ndarray or None
        Mean and variance (or mean square) of each group that x does not determine, such as running statistics;
        None if they are computed from x.
    exact : ndarray or None
        The norm's exact result; None for norms that mean and variance (or mean square) determine.
    precision : str or None
        The dtype of the kernel's arithmetic; None for that of y, or float32 if y is of half precision.
    whole : int or ndarray or None
        The number of values in each group that count, if x holds only some of them; None if x holds all.
    addends : Addends or None
        x before the residual was added, and the residual; None without a residual.
    gate : Gated or None
        The gate that multiplies the result; None without one.
    gated_input : Gated or None
        The gate and the tensor whose product x is; None if no gate multiplies before the norm.
    step : int
        x and y hold every step-th value along the longest axis of a group.
    counted : ndarray of bool or None
        True for the values that statistics are of, of the shape of x; None if they are of all. Where y of the
        others is not normalized, `x`, `y` and `exact` are NaN.
    unmasked : Case or None
        The case in which all values count; None if they do here.
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
    precision: str | None = None
    whole: int | Floats | None = None
    addends: Addends | None = None
    gate: Gated | None = None
    gated_input: Gated | None = None
    step: int = 1
    counted: Selected | None = None
    unmasked: Case | None = None

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes of the view."""
        return self.plan.grid.view_axes

    @cached_property
    def parts(self) -> frozenset[str]:
        """The names of what this case has, such as `mean`, `eps` or `gate`; a fault may need some."""
        over = self.plan.request.over is not None
        has = {
            "mean": self.centres, "moments": self.has_moments, "eps": self.eps, "gamma": self.has_gamma,
            "beta": self.has_beta, "stored": self.stored is not None, "addends": self.addends,
            "gate": self.gate, "gated-input": self.gated_input, "slice": over, "whole": self.counted is None,
            "mask": self.counted is not None and not over,
        }  # fmt: skip
        return frozenset(name for name, part in has.items() if part)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The kept axes of the view that are longer than 1."""
        return tuple(axis for axis, n in enumerate(self.x.shape) if axis not in self.axes and n > 1)

    @cached_property
    def judged(self) -> Selected:
        """True for values of y that should be the norm's result: all, or all that count."""
        if self.counted is None:
            return np.ones(self.x.shape, np.bool_)
        return self.counted | ~np.isnan(self.x)

    @cached_property
    def counts(self) -> Floats:
        """The number of values in each group that count; one number if it is the same in all groups."""
        if self.whole is not None:
            return np.asarray(self.whole, np.float64)
        if self.counted is None:
            return np.asarray(float(math.prod(self.x.shape[axis] for axis in self.axes)))
        counts = np.add.reduce(self.counted, self.axes, keepdims=True, dtype=np.float64)
        return counts if np.ptp(counts) else counts.reshape(-1)[0]

    @cached_property
    def count(self) -> int:
        """The number of values in a group that count, of the largest group."""
        return int(self.counts.max())

    def name_axis(self, axis: int) -> str:
        """Return the name of an axis of the view, such as `n`.

        A channel axis that is split is two axes in the view, named `group` and `c of a group`.
        """
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
        """Whether the divisor follows from the variance or mean square of each group."""
        return self.exact is None

    @property
    def is_constant(self) -> bool:
        """Whether every group of x has equal values, of which a norm that subtracts their mean makes only 0.

        False with running statistics, without a mean, and where no variance gives the divisor (`exact`).
        """
        is_own = self.centres and self.stored is None and self.has_moments
        return is_own and not self.spread.any()

    @cached_property
    def spread(self) -> Floats:
        """The largest value of x in each group less the smallest; the largest |x| for a norm without mean."""
        x, judged = (self.x if self.centres else np.abs(self.x)), self.judged
        most = np.max(x, self.axes, keepdims=True, where=judged, initial=-math.inf)
        least = np.min(x, self.axes, keepdims=True, where=judged, initial=math.inf) if self.centres else 0.0
        return np.asarray(most - least)

    @cached_property
    def shows_norm(self) -> Selected:
        """Whether each value of y tells one norm from another; all do with running statistics.

        False for a group of equal values (zeros, for a norm without mean), of which every norm makes 0, and for
        values that are not judged.
        """
        return ((self.spread > 0.0) | (self.stored is not None)) & self.judged

    @cached_property
    def freedom(self) -> Floats:
        """The number by which each group's sum of squares is divided: n − ddof."""
        return np.asarray(find_freedom(self.plan, self.counts), np.float64)

    @property
    def ddof(self) -> float:
        """The ddof of the plan; n − 1 for a norm that divides by a length."""
        return float(np.max(self.counts - self.freedom))

    @cached_property
    def unbiasing(self) -> Floats:
        """The factor n / (n − ddof) from a mean of squares to a variance; NaN for groups of ddof values."""
        return np.asarray(self.counts / np.where(self.freedom == 0.0, math.nan, self.freedom))

    @property
    def eps(self) -> float:
        """The eps of the plan."""
        return self.plan.spec.eps or 0.0

    def lay_rows(self, values: Floats) -> Floats:
        """Return an array of the view's shape with the kept axes first, and then the reduced ones."""
        return values.transpose(*(axis for axis in range(values.ndim) if axis not in self.axes), *self.axes)

    def average(self, values: Floats, axes: tuple[int, ...] | None = None) -> Floats:
        """Return the mean of each group's values that count, or of those along other axes, of length 1 then."""
        return average(values, self.axes if axes is None else axes, self.counted)

    def find_median(self, values: Floats) -> Floats:
        """Return the median of each group's values that count, with reduced axes of length 1."""
        if self.counted is None:
            return np.asarray(np.median(values, self.axes, keepdims=True))
        return np.asarray(np.nanmedian(np.where(self.counted, values, np.nan), self.axes, keepdims=True))

    def average_judged(self, values: Floats) -> Floats:
        """Return the mean of each group's values at which y is judged, with reduced axes of length 1."""
        return average(values, self.axes, None if self.counted is None else self.judged)

    @cached_property
    def own_mean(self) -> Floats:
        """The mean of each group of x, for norms without mean too."""
        mean = self.average(self.x)
        return mean + self.average(self.x - mean)

    @cached_property
    def own_square(self) -> Floats:
        """The variance of each group of x, or the mean square for a norm without mean."""
        return self.average(self.deviations**2) * self.unbiasing

    def measure_square(self, mean: Floats) -> Floats:
        """Return each group's variance about another mean; for a norm without mean, its mean square."""
        deviations = self.x - mean if self.centres else self.x
        return self.average(deviations**2) * self.unbiasing

    @property
    def square_name(self) -> str:
        """The name of the number under the root: `variance`, or `mean square` for a norm without mean."""
        return "variance" if self.centres else "mean square"

    @cached_property
    def deviations(self) -> Floats:
        """The differences x − mean of the group; x itself for a norm without mean."""
        return self.x - self.own_mean if self.centres else self.x

    @cached_property
    def centre(self) -> Floats:
        """The mean of each group's own values, even with running statistics; 0 for a norm without mean."""
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
        """Return the divisor for a variance or mean square, such as √(square + eps).

        The plan says where eps is added. If `eps` is None, it is the plan's.
        """
        return add_eps(square, self.eps if eps is None else eps, self.plan.spec.eps_mode)

    def unroot(self, divisor: Floats, square: Floats) -> Floats:
        """Return the eps that leads from a variance or mean square to a divisor, in each group.

        It is divisor − √square if the norm adds eps outside the root, else divisor² − square.
        """
        outside = self.plan.spec.eps_mode is EpsMode.OUTSIDE
        return np.asarray(divisor - np.sqrt(square) if outside else divisor**2 - square)

    @cached_property
    def divisor(self) -> Floats:
        """The norm's divisor of each group, of mean and variance alone: not for a case with `exact`."""
        return self.root(self.square)

    def find_divisor(self, variant: Variant) -> Floats:
        """Return a variant's divisor of each group: its own, else that of its `square`, else the norm's."""
        if variant.divisor is not None:
            return variant.divisor
        return self.divisor if variant.square is None else self.root(variant.square)

    @cached_property
    def standardized(self) -> Floats:
        """The norm's result before gamma and beta: (x − mean) / divisor."""
        if self.exact is not None:
            return np.asarray((self.exact - self.beta) / self.gamma)
        return divide_deviations(self, self.x - self.mean, self.divisor)

    @cached_property
    def right(self) -> Prediction:
        """The exact result of the norm, with the bounds of its rounding errors."""
        return self.predict(NOTHING)

    @cached_property
    def differs(self) -> Selected:
        """True for values of y that differ from the exact result by more than rounding."""
        return ~self.explains(self.right)

    @cached_property
    def factor(self) -> Floats | float:
        """The activated gate, which multiplies the result value by value; 1 without a gate behind the norm."""
        return 1.0 if self.gate is None else self.gate.activate()

    @np.errstate(all="ignore")
    def predict(self, variant: Variant) -> Prediction:
        """Return the result of a kernel that used a variant's numbers, with the bounds of its rounding errors.

        Numbers that the variant lacks are the norm's. The gate multiplies all but a `variant.result`, which has
        it.
        """
        gamma, beta, mean, divisor, scaled, values = self.calculate(variant)
        if variant.is_own and not self.has_moments:  # of about this size
            mean, divisor = np.zeros(()), np.abs(self.average(self.x)) + self.x.std(where=self.judged)
        terms = np.abs(scaled) + np.abs(beta) + np.abs(values)
        of_mean = 1.0 / math.sqrt(max(1, self.count)) if self.centres else 0.0  # its own, of deviations
        size = np.abs(gamma)
        shared = size * ((np.abs(mean) + np.abs(self.x)) / np.abs(divisor) + of_mean)
        if variant.result is not None:
            size = np.minimum(size, np.sqrt(np.mean(np.square(values), where=self.judged)))
        unit = allowed = allow_rounding(self, values, terms, shared, size)
        if variant.slope is not None and is_half(self.dtype):
            first = measure_unit(np.nan_to_num(self.right.values), self.dtype)
            allowed = allowed + np.abs(variant.slope) * first
        if variant.noise is not None:
            unit = allowed = variant.noise + measure_unit(np.nan_to_num(values), self.dtype)
        elif self.gate is not None and is_half(self.dtype):
            allowed = _OF_A_GATE * allowed
        return Prediction(values, allowed, unit)

    def calculate(self, variant: Variant) -> tuple[Floats, ...]:
        """Return a variant's gamma and beta, times the gate; mean; divisor; gamma · x̂; and its result."""
        gamma = self.gamma if variant.gamma is None else variant.gamma
        beta = self.beta if variant.beta is None else variant.beta
        if self.gate is not None:
            gamma, beta = gamma * self.factor, beta * self.factor
        mean = self.mean if variant.mean is None else variant.mean
        divisor = self.find_divisor(variant)
        scaled = gamma * (
            self.standardized if variant.is_own else divide_deviations(self, self.x - mean, divisor)
        )
        return gamma, beta, mean, divisor, scaled, scaled + beta if variant.result is None else variant.result

    @cached_property
    def arithmetic(self) -> float:
        """The machine epsilon of the kernel's arithmetic."""
        return get_eps(np.dtype(self.precision or ("float32" if is_half(self.dtype) else self.dtype)))

    @cached_property
    def used(self) -> Used:
        """The mean and the divisor of each group that fit y by least squares, with the given gamma and beta."""
        return fit_used(self)

    @np.errstate(all="ignore")
    def explains(self, prediction: Prediction) -> Selected:
        """Return True where a prediction explains y: within its bounds, equal to it, or NaN where it is NaN."""
        near = np.abs(self.y - prediction.values) <= prediction.allowed
        both = np.isnan(self.y) & np.isnan(prediction.values)
        return np.asarray(near | both | (self.y == prediction.values))

    def hold(self, faults: tuple[Fault, ...], variants: tuple[Variant, ...]) -> Found:
        """Return the finding of some faults, with True for values of y within rounding of the first variant."""
        prediction = self.predict(variants[0])
        return Found(faults, variants, prediction, self.explains(prediction))


def average(values: Floats, axes: tuple[int, ...], among: Selected | None) -> Floats:
    """Return means along some axes, which have length 1 then; of the values where `among` is True, if given."""
    if among is None:
        count = math.prod(values.shape[axis] for axis in axes)
        return np.asarray(np.add.reduce(values, axes, keepdims=True) / count)
    total = np.add.reduce(np.broadcast_to(values, among.shape), axes, keepdims=True, where=among)
    return np.asarray(total / np.add.reduce(among, axes, keepdims=True, dtype=np.float64))
