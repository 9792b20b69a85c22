"""The ways in which gamma and beta may have entered: rightly, exchanged, as 1 + gamma, alone, or neither."""

from __future__ import annotations

import itertools
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.errors import DataError
from normcli.numerics.rounding import store, widen
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.models.error_bounds import Level


ESTIMATED = "estimated"
"""The name of the way with an unknown gamma and beta, which are fitted."""

WAYS: Mapping[str, str] = MappingProxyType(
    {
        "gamma, beta": ", then gamma and beta",
        "gamma": ", then gamma",
        "beta": ", then beta",
        "1 + gamma, beta": ", then 1 + gamma and beta",
        "1 + gamma": ", then 1 + gamma",
        "swapped": ", with gamma and beta exchanged",
        "none": "",
        ESTIMATED: ", then a gamma and a beta that were fitted to the values",
    }
)
"""Every way in which gamma and beta may enter, with the words for it behind a norm's name; the likelier
first."""


class AffineStep(NamedTuple):
    """One way of the affine step y = scale · x̂ + shift, in which gamma and beta enter.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    scale, shift : ndarray or None
        Factor and addend, broadcastable to the tensor and of its rank; None for 1 and for 0.
    rounds_to : numpy.dtype or None
        The dtype to which x̂ is rounded before the scale multiplies it; None if x̂ is not rounded.
    """

    way: str
    scale: Floats | None = None
    shift: Floats | None = None
    rounds_to: np.dtype[Any] | None = None

    def map(self, function: Callable[[Floats], Floats]) -> AffineStep:
        """Return the step with a function applied to its scale and its shift; None stays None."""
        scale, shift = (None if values is None else function(values) for values in (self.scale, self.shift))
        return self._replace(scale=scale, shift=shift)

    def apply(self, standardized: Floats) -> Floats:
        """Return y = scale · x̂ + shift in float64, with x̂ rounded first if the step rounds it."""
        if self.rounds_to is not None:
            standardized = round_array(standardized, self.rounds_to).astype(np.float64)
        scaled = standardized if self.scale is None else standardized * self.scale
        return scaled if self.shift is None else scaled + self.shift

    def allow(self, values: Floats, dtype: np.dtype[Any], level: Level) -> Floats:
        """Return the bound on the error that the last rounding and the added beta cause in each value of y.

        Parameters
        ----------
        values : ndarray
            y, exactly or nearly.
        dtype : numpy.dtype
            The dtype to which y was rounded.
        level : Level
            The precision of the kernel.
        """
        values = np.where(np.isfinite(values), values, 0.0)
        return level.allow(values, dtype, 0.0 if self.shift is None else np.abs(self.shift))

    def undo(self, values: Floats, slack: Floats, before: Floats) -> tuple[Floats, Floats]:
        """Return x̂ = (y − shift) / scale, and the bound on its error at each value.

        Where the scale is 0, y does not depend on x̂: x̂ is returned as 0, with an infinite bound. Where no x̂
        leads to y, x̂ is NaN: the scale is 0 and y is not the shift, or no number of the dtype `rounds_to` is
        near enough.

        Parameters
        ----------
        values : ndarray
            y.
        slack : ndarray
            The bound on the error of this step.
        before : ndarray
            The bound on the error of x̂ before this step.
        """
        if self.shift is not None:
            values = values - self.shift
        if self.scale is None:
            return values, slack + before
        with np.errstate(all="ignore"):
            blind = self.scale == 0.0
            wrong = blind & (np.abs(values) > slack)  # a value that no x̂ gives
            restored = np.where(blind, 0.0, values / self.scale)
            allowed = np.where(blind, np.inf, slack / np.abs(self.scale))
        restored = np.where(wrong, np.nan, restored)
        if self.rounds_to is not None:
            restored, allowed = _undo_rounding(restored, allowed, self.rounds_to)
        return restored, allowed + before


def round_array(values: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a new array with values rounded to a dtype, each once."""
    rounded = np.empty(values.shape, dtype)
    with np.errstate(all="ignore"):
        store(rounded, values)
    return rounded


def _undo_rounding(values: Floats, slack: Floats, dtype: np.dtype[Any]) -> tuple[Floats, Floats]:
    """Return the numbers that may have been rounded to values: the middle and half the width of an interval.

    `values` are known to within `slack`, and were rounded to numbers of `dtype`. The middle is NaN where no
    such number is within the slack; where the slack is infinite, the middle is the value, and half the width
    infinite.
    """
    with np.errstate(all="ignore"):
        low, high = -_round_down(slack - values, dtype), _round_down(values + slack, dtype)
        least, most = (z - sign * measure_unit(z, dtype) / 2.0 for z, sign in ((low, 1.0), (high, -1.0)))
        middle = np.where(low <= high, (least + most) / 2.0, np.nan)
    blind = np.isinf(slack)
    return np.where(blind, values, middle), np.where(blind, slack, (most - least) / 2.0)


def _round_down(values: Floats, dtype: np.dtype[Any]) -> Floats:
    """Return the largest number of a dtype that is no larger than each value."""
    nearest = round_array(values, dtype).astype(np.float64)
    towards = np.where(
        nearest > 0.0, nearest * (1.0 - 2.0**-53), nearest
    )  # below a power of two, the unit is half
    return np.where(nearest > values, nearest - measure_unit(towards, dtype), nearest)


NO_AFFINE = AffineStep("none")


def enumerate_affine_steps(
    shape: tuple[int, ...], gamma: NDArray[Any] | None, beta: NDArray[Any] | None
) -> Iterator[AffineStep]:
    """Yield the ways in which given parameters may have entered: the right one first, last the one without any.

    Raises
    ------
    DataError
        If a parameter's shape fits no axes of the tensor.
    """
    gammas, betas = (_place(name, p, shape) for name, p in (("gamma", gamma), ("beta", beta)))
    both = [(g, b) for g in gammas for b in betas if g.shape == b.shape or 1 in (g.size, b.size)]
    for g, b in both:
        yield AffineStep("gamma, beta", g, b)
    for g in gammas:
        yield AffineStep("gamma", g)
    for b in betas:
        yield AffineStep("beta", None, b)
    for g, b in both:
        yield AffineStep("1 + gamma, beta", 1.0 + g, b)
        yield AffineStep("swapped", b, g)
    for g in gammas:
        yield AffineStep("1 + gamma", 1.0 + g)
    yield NO_AFFINE


def choose_usual(steps: Sequence[AffineStep]) -> list[AffineStep]:
    """Return the steps with the way of the first, along any axes, and the step without gamma and beta."""
    return [step for step in steps if step.way in (steps[0].way, NO_AFFINE.way)]


def _place(name: str, parameter: NDArray[Any] | None, shape: tuple[int, ...]) -> list[Floats]:
    """Return a parameter at the tensor's rank, once for each set of axes that has its lengths; empty for None.

    If no axes have these lengths, a flat parameter may have the size of several last axes together; or each of
    its numbers is repeated for a group of channels, along the second or the last axis.

    Raises
    ------
    DataError
        If its shape fits no axes of the tensor; `name` is its name in the message.
    """
    if parameter is None:
        return []
    values = widen(parameter)
    lengths = () if values.size == 1 else values.shape
    broadcast = (1,) * (len(shape) - len(lengths)) + lengths
    if 1 in lengths and all(n in (1, full) for n, full in zip(broadcast, shape, strict=False)):
        return [values.reshape(broadcast)]
    if len(lengths) == 2 and lengths[1] == 1:  # a column, as a CSV file has it
        lengths = lengths[:1]
    if not lengths:
        return [values.reshape((1,) * len(shape))]
    places = _find_places(lengths, shape)
    if len(lengths) == 1 and not places:  # flat, of the last axes together
        starts = (n for n in reversed(range(len(shape) - 1)) if math.prod(shape[n:]) == values.size)
        places = [tuple(range(n, len(shape))) for n in starts][:1]
        values = values.reshape([shape[axis] for axis in places[0]]) if places else values
    if places:
        return [_view(values, axes, len(shape)) for axes in places]
    grouped = [
        axis
        for axis in (1, len(shape) - 1)
        if len(shape) > 2 and values.size and shape[axis] % values.size == 0
    ]
    if len(lengths) > 1 or not grouped:
        raise DataError(f"{name} has the shape {values.shape}, which no axes of {shape} have")
    return [_view(np.repeat(values, shape[axis] // values.size), (axis,), len(shape)) for axis in grouped]


def _find_places(lengths: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the sets of ascending axes of a shape that have some lengths, neighbouring and late axes first.

    Axes that are not neighbours belong to a gamma of each sample or head: (B, D) for a tensor (B, L, D).
    """
    every = itertools.combinations(range(len(shape)), len(lengths))
    fitting = [axes for axes in every if tuple(shape[axis] for axis in axes) == lengths]
    return sorted(fitting, key=lambda axes: (axes[-1] - axes[0], -axes[0]))


def _view(values: Floats, axes: tuple[int, ...], rank: int) -> Floats:
    """Return a parameter at the tensor's rank, along some axes, with lengths of 1 elsewhere."""
    lengths = dict(zip(axes, values.reshape(-1).shape if len(axes) == 1 else values.shape, strict=True))
    return values.reshape([lengths.get(axis, 1) for axis in range(rank)])
