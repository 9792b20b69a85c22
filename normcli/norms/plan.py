"""A request resolved against one shape: every choice made, every check done, nothing calculated.

`make_plan` turns a request, a shape and a dtype into a frozen `Plan`, which is all that a kernel reads. Plans
hold no data, so they are cached.
"""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type, is_float, require_few_axes
from normcli.errors import DataError, UsageError
from normcli.norms.axes import (
    ParameterShapes,
    choose_axes,
    choose_rows,
    choose_split,
    pad_shape,
    place_parameter,
    shape_parameters,
)
from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.grid import Grid, Reach
from normcli.norms.layout import CHANNEL_LAST_LAYOUTS, make_layout
from normcli.norms.request import Choices, Request
from normcli.norms.rules import ParameterRule
from normcli.norms.spec import NumericSpec, find_iteration, find_window, make_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.norms.norm import Norm

_EUCLIDEAN = 2.0
"""The p of Euclidean length."""

_MOST_OF_NOTHING = 1 << 20
"""The most groups of a tensor without values: its file is small whatever its shape, its statistics are not."""


@dataclass(frozen=True)
class Plan:
    """A norm with all its options, resolved against one shape.

    Parameters
    ----------
    request : Request
        The request that the plan was made of; it is not compared, so plans of different requests can be equal.
    norm : Norm
    spec : NumericSpec
    grid : Grid
        The groups of values that share a statistic.
    parameters : ParameterShapes
    tensor_dtype : dtype
        The dtype of the tensor.
    """

    request: Request = field(compare=False)
    norm: Norm
    spec: NumericSpec
    grid: Grid
    parameters: ParameterShapes
    tensor_dtype: np.dtype[Any]

    def __hash__(self) -> int:
        """Return a hash of the norm's name and the shape alone, as hashing all fields would be slow."""
        return hash((self.norm.name, self.grid.shape))

    @property
    def formula(self) -> str:
        """The norm's definition on one line, with this plan's options, such as `(x − mean) / √(var + eps)`."""
        return "".join(self.formula_pieces)

    @property
    def formula_pieces(self) -> tuple[str, ...]:
        """The pieces of this plan's `formula`, as `Norm.split_formula` returns them; some are empty."""
        window = self.spec.window
        divides_alpha = window is None or window.divisor == window.size
        return self.norm.split_formula(self.spec.eps_mode, divides_alpha=divides_alpha)

    @property
    def follows_from_sums(self) -> bool:
        """Whether the sum of a group's values and the sum of their squares determine its divisor."""
        measurement, p = self.norm.divisor.measurement, self.spec.p
        return measurement is Measurement.MOMENTS or (
            measurement is Measurement.LENGTH and p in (None, _EUCLIDEAN)
        )

    @property
    def groups_overlap(self) -> bool:
        """Whether groups are windows: each value has its own window, which overlaps the neighbours'."""
        return self.spec.window is not None

    @property
    def has_groups(self) -> bool:
        """Whether each value is in one group, without further structure; False for windows and matrices."""
        return self.spec.window is None and self.spec.rows is None

    @property
    def spreads_parameters(self) -> bool:
        """Whether gamma and beta broadcast against the tensor; False for one gamma for each channel group."""
        return bool(pad_shape(self.parameters.full_shape, self.grid.shape))

    def find_percents(self) -> dict[str, float]:
        """Return the quantile in per cent of each statistic that is a quantile, by name; others are left out.

        Examples
        --------
        >>> plan = make_plan(Request("robust", quantiles=(10.0, 90.0)), (4, 3), np.dtype("f8"))
        >>> plan.find_percents()
        {'median': 50.0, 'q_low': 10.0, 'q_high': 90.0}
        """
        rows = filter(None, map(ORDER_STATISTICS.get, self.norm.statistics))
        chosen = self.spec.quantiles or ()
        found = ((row.name, row.percent if row.chosen is None else chosen[row.chosen]) for row in rows)
        return {name: float(percent) for name, percent in found if percent is not None}

    def change_spec(self, **changes: Any) -> Plan:
        """Return this plan with other values for some fields of its `NumericSpec`, such as `eps=0.0`."""
        return replace(self, spec=self.spec._replace(**changes))

    def choose_output_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results for a tensor of a dtype: this plan's `spec.dtype`, if it is set.

        Otherwise a float dtype of up to 8 bytes stays, in the machine's byte order; all others become float64.
        """
        if self.spec.dtype is not None:
            asked: np.dtype[Any] = np.dtype(find_type(self.spec.dtype))
            return asked
        if is_float(dtype) and dtype.itemsize <= np.dtype(np.float64).itemsize:
            return dtype.newbyteorder("=")
        return np.dtype(np.float64)

    def restrict(self, lengths: tuple[int, ...]) -> Plan:
        """Return the plan of a block of the tensor, given its length along each axis of the grid's view.

        Its gamma and beta have the block's length along the axes that they vary along, else 1.
        """
        held = tuple(min(n, length) for n, length in zip(self.parameters.view_shape, lengths, strict=True))
        parameters = ParameterShapes(self.parameters.rule, tuple(range(len(held))), held, held, held)
        return replace(self, grid=self.grid.restrict(lengths), parameters=parameters)

    @property
    def fixed_parameters(self) -> dict[str, float]:
        """The gamma and beta that scale 0 … 1 to the option `range`; empty without that option."""
        if self.spec.range is None:
            return {}
        low, high = self.spec.range
        return {"gamma": high - low, "beta": low}

    def complete_parameters(
        self, given: Mapping[str, NDArray[np.generic] | None]
    ) -> Mapping[str, NDArray[np.generic] | None]:
        """Return gamma and beta by name: as given (None if not), or with the option `range` as it defines them.

        Raises
        ------
        UsageError
            If the option `range` is set and a given gamma or beta differs from the range's.
        """
        if self.spec.range is None:
            return given
        made = {name: np.asarray(value) for name, value in self.fixed_parameters.items()}
        if any(values is not None and not np.all(values == made[name]) for name, values in given.items()):
            raise UsageError("range says what gamma and beta are; leave them out")
        return made

    def adopt_parameters(self, given: Mapping[str, NDArray[np.generic] | None]) -> Plan:
        """Return the plan with the shapes of a given gamma and beta in place of the norm's own shapes.

        The plan is returned unchanged if the option `feature_axes` names the axes, if the given shapes lie
        along the norm's own axes, or if none fits (`fit_parameter` raises an error for these). Parameters that
        are None or a single number do not count.

        Parameters
        ----------
        given : mapping of str to ndarray or None
            The given arrays by name: `gamma`, `beta`.
        """
        own = self.parameters
        lengths = [values.shape for values in given.values() if values is not None and values.size != 1]
        if self.request.feature_axes is not None or all(shape == own.shape for shape in lengths):
            return self
        placed = [(shape, places[0]) for shape in lengths if (places := place_parameter(self.grid, own, shape))]
        found = {view for _, view in placed}
        # A gamma for channels that are last, where a guessed layout has the channel elsewhere, is left for
        # `fit_parameter` to refuse with advice: it is not meant for the last axis.
        is_doubtful = any(view != own.view_shape and self.advise_layout(shape) for shape, view in placed)
        if not found or found == {own.view_shape} or is_doubtful:
            return self
        view = np.broadcast_shapes(*found)
        full = self.grid.merge_shape(view)
        axes = tuple(axis for axis, length in enumerate(full) if length > 1)
        alike = len({*lengths}) == 1
        shape = lengths[0] if alike else full
        adopted = ParameterShapes(ParameterRule.GIVEN, axes, shape, full, view, own, alike)
        return replace(self, parameters=adopted)

    def fit_parameter(self, name: str, parameter: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return gamma or beta as a read-only array of the shape `parameters.shape`, a view if possible.

        Parameters
        ----------
        name : str
            The parameter's name, `gamma` or `beta`.
        parameter : ndarray
            An array of that shape, or one that fits along the tensor (`place_parameter`) and broadcasts to it.

        Raises
        ------
        UsageError
            If the norm has no such parameter.
        DataError
            If the shape does not fit.
        """
        if name not in self.norm.parameter_names:
            has = " and ".join(self.norm.parameter_names)
            raise UsageError(
                f"{self.norm.name} has no {name}" + (f", only {has}" if has else ": it has no affine step")
            )
        shapes = self.parameters
        if parameter.shape == shapes.shape:
            return _lock(parameter.view())
        for view in place_parameter(self.grid, shapes, parameter.shape):
            with contextlib.suppress(ValueError):
                # Maps stay maps.
                spread = np.broadcast_to(parameter.reshape(view), shapes.view_shape, subok=True)
                return _lock(spread.reshape(shapes.shape))
        raise self._refuse_shape(name, parameter.shape, shapes.shape)

    def fit_running(self, name: str, values: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return a running statistic as a float64 array: one value for each group of `Grid.running`.

        Parameters
        ----------
        name : str
            The statistic's name in messages.
        values : ndarray
            An array that broadcasts to the shape of statistics of `Grid.running`, with or without axes of
            length 1 for the reduced axes; or a column, shape (groups, 1).

        Raises
        ------
        UsageError
            If the norm has no running statistics.
        DataError
            If the shape does not fit.
        """
        if not self.norm.tracks:
            raise UsageError(f"{self.norm.name} has no {name}: no running statistics are kept of it")
        running = self.grid.running
        column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        given = ((values, running.stats_shape), (values, running.keepdims_shape), (column, running.stats_shape))
        for candidate, target in given:
            # A signalling NaN is one like any other.
            with contextlib.suppress(ValueError), np.errstate(invalid="ignore"):
                fitted = np.broadcast_to(candidate, target).reshape(running.stats_shape)
                return fitted.astype(np.float64, subok=False)
        raise self._refuse_shape(name, values.shape, running.stats_shape)

    def _refuse_shape(self, name: str, shape: tuple[int, ...], own: tuple[int, ...]) -> DataError:
        advice = self.advise_layout(shape)
        return DataError(
            f"{name} has the shape {shape}; {self.norm.name} of {self.grid.shape} takes {own}{advice}"
        )

    def advise_layout(self, shape: tuple[int, ...]) -> str:
        """Return advice to give a layout, if a refused shape would fit with the channel last; else ""."""
        layout, lengths = self.grid.layout, self.grid.shape
        other = CHANNEL_LAST_LAYOUTS.get(len(lengths))
        is_guessed = self.request.layout is None and other not in (None, layout.letters)
        if not is_guessed or layout.channel not in self.grid.kept or shape != lengths[-1:]:
            return ""
        return f"; --layout {other} where channels are last"


def _lock(values: NDArray[np.generic]) -> NDArray[np.generic]:
    values.flags.writeable = False
    return values


@functools.lru_cache(maxsize=512)
def make_plan(
    request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], columns: tuple[str, ...] | None = None
) -> Plan:
    """Return the plan of a request for a tensor's shape and dtype.

    Parameters
    ----------
    request : Request
    shape : tuple of int
        The tensor's shape.
    dtype : dtype
        The tensor's dtype, which eps may depend on.
    columns : tuple of str or None
        A name for each index of the tensor's last axis; None without names.

    Raises
    ------
    UsageError
        If an option is unknown to the norm, out of range, or contradicts another or the shape.
    DataError
        If the shape has too many axes, or very many groups and no values.

    Examples
    --------
    >>> plan = make_plan(Request("gn", groups=2), (4, 6, 5, 5), np.dtype("float32"))
    >>> plan.grid.group_count, plan.grid.group_size, plan.grid.keepdims_shape
    (8, 75, (4, 2, 1, 1))
    """
    require_few_axes(len(shape), "the tensor")
    chosen = Choices(request)
    norm = chosen.norm
    layout = make_layout(request.layout, len(shape), channel_last=chosen.pick("channel") == "last")
    axes = choose_axes(chosen, layout)
    split = choose_split(chosen, layout, axes, shape)
    window = find_window(chosen)
    reach = None if window is None else Reach(window.before, window.after)
    grid = Grid(shape, layout, axes, split, reach, columns)
    if 0 in shape and grid.group_count > _MOST_OF_NOTHING:
        raise DataError(
            f"the shape {shape} has {grid.group_count:,} groups and no values; "
            f"statistics of no values are given for {_MOST_OF_NOTHING:,} groups at most"
        )
    spec = make_spec(chosen, window, dtype, grid.group_size)
    rows = choose_rows(chosen, layout, axes)
    if rows is not None:
        height = math.prod(shape[axis] for axis in rows)
        width = math.prod(shape[axis] for axis in axes if axis not in rows)
        spec = spec._replace(rows=rows, iteration=find_iteration(chosen, height, width))
    rule = chosen.pick("parameters")
    if rule is ParameterRule.NONE:  # the caller may give a gamma even where the framework's own norm has none
        rule = norm.parameters
    chosen_axes = request.feature_axes
    features = None if chosen_axes is None else layout.resolve(chosen_axes, "feature_axes")
    return Plan(request, norm, spec, grid, shape_parameters(rule, grid, features), dtype)
