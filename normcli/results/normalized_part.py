"""Normalized values of a part of a tensor: only their groups are calculated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine import single as engine
from normcli.engine.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.results.result import Result

SMALL = 1 << 20
"""The most values of a tensor that is normalized as a whole, and kept for the next part."""


def normalize_part(result: Result, positions: Sequence[Sequence[int]]) -> NDArray[Any]:
    """Return the normalized values at some positions along each axis; only their groups are calculated.

    Parameters
    ----------
    result : Result
    positions : sequence of sequences of int
        For each axis the positions, in ascending order.

    Returns
    -------
    ndarray, shape (len(positions[0]), len(positions[1]), …)
        `result.normalized[np.ix_(*positions)]`, to the bit.

    Examples
    --------
    >>> from normcli import normalize
    >>> normalize_part(normalize([[1.0, 2, 3, 4], [2, 4, 6, 8]], "ln", eps=0), [[1], [0, 3]]).round(2)
    array([[-1.34,  1.34]])
    """
    plan = result.plan
    wanted = np.ix_(*positions)
    if _has_whole(result):
        return np.asarray(result.normalized[wanted])
    places = plan.grid.view_indices(wanted)
    picks = [
        np.arange(length) if axis in plan.grid.view_axes else np.unique(there)
        for axis, (length, there) in enumerate(zip(plan.grid.view_shape, places, strict=True))
    ]
    values = _normalize_picked(result, picks)
    return values[tuple(np.searchsorted(pick, there) for pick, there in zip(picks, places, strict=True))]


def normalize_one_group(result: Result, group: int) -> NDArray[Any]:
    """Return the normalized values of a group, flat, in the order of `Grid.view_shape` (C order).

    Parameters
    ----------
    result : Result
        The result of a norm with groups, not with windows.
    group : int
        The index of the group, in C order of the kept axes.
    """
    plan = result.plan
    selection = plan.grid.select_group(group)
    if _has_whole(result):
        return np.asarray(result.normalized).reshape(plan.grid.view_shape)[selection].reshape(-1)
    every = range(plan.grid.group_size)
    inputs, effort = result.inputs, result.effort
    return engine.normalize_group(plan, result.input, group, every, inputs, effort).values


def _has_whole(result: Result) -> bool:
    """Whether the whole tensor is normalized although only some of its values are needed.

    True if it is normalized already, if it has at most 2²⁰ values, or if there are inputs other than gamma,
    beta and bounds (such as a mask), which cannot be cut to a part.
    """
    uncut = result.inputs._replace(gamma=None, beta=None, clip=None)  # inputs of which no part can be cut out
    return result.is_normalized or result.input.size <= SMALL or any(given is not None for given in uncut)


def _normalize_picked(result: Result, picks: Sequence[NDArray[np.intp]]) -> NDArray[Any]:
    """Return the normalized values at some positions along each axis of `Grid.view_shape`.

    In that shape an axis that is split into groups counts as two. `picks` has an array of positions for each
    axis; along reduced axes, all positions, so that groups are complete.
    """
    plan = result.plan
    part = result.input.reshape(plan.grid.view_shape)[np.ix_(*picks)]

    def take(parameter: NDArray[Any] | None) -> NDArray[Any] | None:
        if parameter is None:
            return None
        spread = parameter.reshape(plan.parameters.view_shape)
        return spread[np.ix_(*(p if n > 1 else p[:1] * 0 for p, n in zip(picks, spread.shape, strict=True)))]

    inputs = result.inputs._replace(gamma=take(result.gamma), beta=take(result.beta))
    return run(plan.restrict(part.shape), part, inputs, effort=result.effort)[0]
