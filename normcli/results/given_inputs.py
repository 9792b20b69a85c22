"""Gamma, beta, running statistics and a selection of values, as a caller gives them, fitted to a plan."""

from __future__ import annotations

import functools
import operator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.inputs import NO_INPUTS, Inputs, Selection
from normcli.errors import DataError, UsageError
from normcli.norms.request import Fill, NanRule
from normcli.numerics.statistics.solution import Given
from normcli.printable import agree, format_count, make_printable
from normcli.tensors.pieces import find_places, iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan

_SEQUENCES = "LTS"
"""The letters for axes of words or time steps: length, time, sequence."""


class SelectionRequest(NamedTuple):
    """The selection of the values over which statistics are taken, as a caller gives it.

    Parameters
    ----------
    mask : ndarray or None
        True, or 1, where a value is selected; of any shape that broadcasts to the tensor's.
    lengths : tuple of int or None
        The number of positions along the sequence axis that are selected, for each sample; the rest is padding.
    nan : {"propagate", "omit", "raise"} or None
        The rule for NaN: the statistics of its group are NaN ("propagate"), it is not selected ("omit"), or it
        is an error ("raise"). None: "omit" if the plan's convention omits NaN, else "propagate".
    fill : {"pass", "zero", "nan", "normalize"} or None
        The rule for values that are not selected: they are passed through ("pass"), replaced by 0 or by NaN, or
        normalized with the statistics of the others, as in Keras and Flax. None: "pass", or "normalize" if the
        plan has the option `over`.
    """

    mask: NDArray[Any] | None = None
    lengths: tuple[int, ...] | None = None
    nan: str | None = None
    fill: str | None = None


NO_PARAMETERS: Mapping[str, NDArray[Any] | None] = MappingProxyType({})

RUNNING_NAMES = ("running_mean", "running_var")
"""The names of running mean and variance in messages, unless the caller gives others."""


def fit_inputs(
    plan: Plan,
    values: NDArray[Any],
    parameters: Mapping[str, NDArray[Any] | None] = NO_PARAMETERS,
    running: Given | None = None,
    selection: SelectionRequest | None = None,
) -> Inputs:
    """Return gamma, beta, running statistics and the selection in the shapes that a plan has.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor.
    parameters : mapping of str to ndarray or None
        `gamma` and `beta`, of any shape that `Plan.fit_parameter` takes.
    running : Given or None
        Running mean and variance, of any shape that `Plan.fit_running` takes.
    selection : SelectionRequest or None
        The values over which statistics are taken; None: all, or all but NaN if the plan's convention omits it.

    Raises
    ------
    UsageError
        If the norm takes no such input, lengths have no sequence axis, or an option of the selection is unknown
        or has no effect.
    DataError
        If an array does not fit, a variance is negative, or there is a NaN with the rule "raise".
    """
    given = plan.complete_parameters(parameters).items()
    fitted = {name: plan.fit_parameter(name, a) for name, a in given if a is not None}
    known = None if running is None else fit_given(plan, running)
    chosen = select(plan, values, selection)
    if not fitted and known is None and chosen is None:
        return NO_INPUTS
    return Inputs(fitted.get("gamma"), fitted.get("beta"), known, chosen)


def fit_given(plan: Plan, running: Given, names: tuple[str, str] = RUNNING_NAMES) -> Given:
    """Return running statistics in the shape that the plan has for them.

    Parameters
    ----------
    plan : Plan
    running : Given
    names : tuple of str
        The names of mean and variance in messages.

    Raises
    ------
    UsageError
        If the norm has no running statistics.
    DataError
        If an array does not fit, or a variance is negative.
    """
    mean, var = (plan.fit_running(name, array) for name, array in zip(names, running, strict=True))
    if (var < 0).any():
        raise DataError(f"{names[1]} is negative: {var[var < 0][0]:g}")
    return Given(mean, var)


def select(plan: Plan, values: NDArray[Any], asked: SelectionRequest | None) -> Selection | None:
    """Return the selection of the values over which a tensor's statistics are taken; None: all values.

    Its mask, if it has one, has as many axes as the tensor. With `asked` None, the plan decides: its option
    `over` selects a slice, or its convention leaves NaN out.

    Raises
    ------
    UsageError
        If there are lengths and no sequence axis, an option is unknown, or `fill` is given and all values are
        selected.
    DataError
        If the mask or the lengths do not fit, or there is a NaN with the rule "raise".
    """
    if asked is None:
        if plan.request.over is None and not plan.spec.omits_nan:
            return None
        asked = SelectionRequest()
    for name, value, words in (("nan", asked.nan, NanRule), ("fill", asked.fill, Fill)):
        if value is not None and value not in tuple(words):
            raise UsageError(f"{name} {value!r} is none of {', '.join(words)}")
    if asked.nan == NanRule.RAISE:
        _refuse_nan(plan, values)
    masks = [] if asked.mask is None else [plan.grid.fit_mask(_to_booleans(asked.mask))]
    if asked.lengths is not None:
        masks.append(make_length_mask(plan, asked.lengths))
    if plan.request.over is not None:
        masks.append(_make_slice_mask(plan, plan.request.over))
    rule = asked.nan or (NanRule.OMIT if plan.spec.omits_nan else NanRule.PROPAGATE)
    if not masks and rule != NanRule.OMIT and asked.fill is not None:
        raise UsageError("fill is for values that do not count; all do without a mask, lengths or nan omit")
    omits_nan = rule == NanRule.OMIT and is_float(values.dtype)
    if not masks and not omits_nan:
        return None
    mask = functools.reduce(operator.and_, masks) if masks else None
    return Selection(
        mask, omits_nan, Fill(asked.fill or (Fill.PASS if plan.request.over is None else Fill.NORMALIZE))
    )


def _make_slice_mask(plan: Plan, places: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the mask that is True from start to stop along the last reduced axis, of length 1 on other axes.

    `places` is (start, stop).

    Raises
    ------
    UsageError
        If that axis is split into groups, there is none, or it is shorter than `stop`.
    """
    grid, (start, stop) = plan.grid, places
    if grid.split is not None or not grid.axes:
        raise UsageError("over is of a whole axis that is reduced; leave out groups")
    axis = grid.axes[-1]
    if stop > grid.shape[axis]:
        name = grid.layout.name(axis)
        raise UsageError(f"over {start}:{stop} is not within the axis {name} of {grid.shape[axis]}")
    inside = (np.arange(grid.shape[axis]) >= start) & (np.arange(grid.shape[axis]) < stop)
    return np.asarray(inside.reshape([-1 if at == axis else 1 for at in range(len(grid.shape))]))


def make_length_mask(plan: Plan, lengths: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the mask that is True at the first `lengths[i]` positions of sample i.

    It has the length 1 on all axes but the batch axis and the sequence axis.

    Raises
    ------
    UsageError
        If the layout has no sequence axis (L, T or S).
    DataError
        If there is not one length for each sample, or one is negative or beyond the axis.
    """
    batch, letters = plan.grid.layout.batch, plan.grid.layout.letters or ""
    along = next((letters.index(letter) for letter in _SEQUENCES if letter in letters), None)
    if along is None or batch is None or along == batch:
        raise UsageError("lengths are along a sequence axis, L, T or S; name it with a layout such as NLC")
    if len(lengths) != plan.grid.shape[batch]:
        verb, samples = agree(len(lengths), "is", "are"), format_count(plan.grid.shape[batch], "sample")
        raise DataError(f"there {verb} {format_count(len(lengths), 'length')} for {samples}")
    longest = plan.grid.shape[along]
    for sample, length in enumerate(lengths):
        if not 0 <= length <= longest:
            raise DataError(
                f"length {length} of sample {sample} is not within the axis {letters[along]} of {longest}"
            )
    shape = [1] * len(plan.grid.shape)
    shape[batch] = len(lengths)
    ends = np.asarray(lengths, dtype=np.int64).reshape(shape)
    shape[batch], shape[along] = 1, longest
    return np.asarray(np.arange(longest).reshape(shape) < ends)


def _to_booleans(mask: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of 0 and 1 as booleans; raise `DataError` for other values."""
    if mask.dtype == np.bool_:
        return mask
    for piece in iterate_pieces(mask):
        with np.errstate(invalid="ignore"):  # a signalling NaN
            strange = piece[(piece != 0) & (piece != 1)]
        if strange.size:
            raise DataError(
                f"the mask holds {strange[0]}; it says with 1 and 0, or true and false, what counts"
            )
    return mask.astype(np.bool_)


def _refuse_nan(plan: Plan, values: NDArray[Any]) -> None:
    """Raise `DataError`, with the index of the first NaN, if a tensor holds one."""
    for found in find_places(np.isnan, values) if is_float(values.dtype) else ():
        if found.size:
            index = np.unravel_index(int(found[0]), plan.grid.shape or (1,))
            place = " ".join(f"{name}={i}" for name, i in zip(plan.grid.layout.names, index, strict=False))
            columns = plan.grid.columns
            column = "" if columns is None else f", in the column {make_printable(columns[int(index[-1])])}"
            raise DataError(
                f"there is a NaN at {place or 'the only value'}{column}; --nan omit leaves such values out"
            )
