"""Small tensors in one call of the compiled kernel: a walk over a tile takes longer than the arithmetic."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.dtypes import is_short_float
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.tiling.blocks import open_parameter, widen_parameter
from normcli.engine.tiling.compiled import find_shape
from normcli.engine.tiling.geometry import find_geometry
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.numerics.elements.compiled_kernel import (
    Groups,
    RowParameter,
    is_plan_served,
    is_served,
    make_rule,
    name_statistics,
    normalize_groups,
)
from normcli.numerics.rounding import widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.compiled_kernel import Rule

MOST_VALUES = 1 << 14
"""The most values of a small tensor: for larger ones, a walk takes little of the arithmetic's time."""


class _Layout(NamedTuple):
    """The arguments of the kernel that are the same for all C-contiguous tensors of a plan and a dtype.

    Parameters
    ----------
    rule : Rule
    dtype : dtype
        The dtype of the results.
    names : tuple of str
        The names of the kernel's four statistics; empty for one that the norm does not have.
    places : RowParameter or None
        Gamma or beta of each group, with flat indices into the parameter in place of its numbers; None for
        tensors without gamma and beta.
    shape : tuple of int
        (outer, inner, parts, values): two axes of groups and two of their values.
    strides, out_strides : tuple of int
        The strides of that shape, in bytes, of the tensor and of the results.
    """

    rule: Rule
    dtype: np.dtype[Any]
    names: tuple[str, ...]
    places: RowParameter | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    out_strides: tuple[int, ...]

    def lay_parameter(self, values: NDArray[Any] | None, offset: int = 0) -> RowParameter | None:
        """Return gamma or beta, plus an offset, as a `RowParameter` of the groups; None for None."""
        if values is None or self.places is None:
            return None
        places, starts, span = self.places
        chosen = widen_parameter(values, offset).reshape(-1)[places]
        return RowParameter(chosen.astype(np.float64), starts, span)  # in no byte order that is named


def run_small(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs,
    out: NDArray[Any] | None,
    effort: Effort,
    *,
    writes: bool = True,
) -> tuple[Any, dict[str, Floats]] | None:
    """Normalize a small tensor in one call of the compiled kernel; return (result, statistics) or None.

    None means that nothing was calculated, and that the tensor has to be worked on tile by tile: it is too
    large, not contiguous or in a file, has inputs in addition to gamma and beta, or the compiled kernel does
    not serve it or does not decide a group.

    Parameters
    ----------
    plan : Plan
    values : ndarray
    inputs : Inputs
    out : ndarray or None
        The array that the result is written to; None for a new one.
    effort : Effort
    writes : bool
        False to measure only: then, if `out` is None, the result returned is None.
    """
    flags = values.flags
    if (
        not 0 < values.size <= MOST_VALUES
        or not (effort is DEFAULT_EFFORT or _keeps_whole(effort, values.size))
        or type(values) is not np.ndarray
        or not (flags.c_contiguous and flags.aligned)
        or not (inputs is NO_INPUTS or _is_affine_alone(inputs))
    ):
        return None
    values, rest = widen_exactly(values) if values.dtype.kind in "biu" else (values, None)
    kernel, is_affine = find_kernel(), inputs is not NO_INPUTS
    layout = None if kernel is None or rest is not None else _find_layout(plan, values.dtype, is_affine)
    if kernel is None or layout is None:
        return None
    result = np.empty(values.shape, layout.dtype) if out is None and writes else out
    groups = plan.grid.stats_shape
    statistics = {name: np.empty(groups) for name in plan.norm.statistics}
    # Made so, views take less time than by `transpose`.
    x = np.ndarray(layout.shape, values.dtype, values, 0, layout.strides)
    y = None if result is None else np.ndarray(layout.shape, layout.dtype, result, 0, layout.out_strides)
    gamma = layout.lay_parameter(inputs.gamma, plan.spec.gamma_offset) if is_affine else None
    tensor = Groups(x, y, gamma, layout.lay_parameter(inputs.beta) if is_affine else None)
    left = normalize_groups(kernel, layout.rule, tensor, tuple(map(statistics.get, layout.names)))
    return None if left.size else (result, statistics)


def _keeps_whole(effort: Effort, size: int) -> bool:
    """Whether statistics are kept, and groups of a tensor of `size` values are read once."""
    return effort.keeps_statistics and size <= min(effort.block, effort.whole)


def _is_affine_alone(inputs: Inputs) -> bool:
    """Whether there are no inputs but gamma and beta, in memory."""
    parameters = inputs[:2]
    return inputs[2:] == NO_INPUTS[2:] and not any(isinstance(values, np.memmap) for values in parameters)


@functools.lru_cache(maxsize=64)
def _find_layout(plan: Plan, dtype: np.dtype[Any], is_affine: bool) -> _Layout | None:
    """Return the layout of a plan's tensors of a dtype; None if the kernel does not take them.

    `is_affine` is False for tensors without gamma and beta.
    """
    geometry, output = find_geometry(plan), plan.choose_output_dtype(dtype)
    if (is_affine and plan.spec.rounds_before_gamma) or plan.request.over is not None:
        return None
    if not (is_served(dtype) and is_served(output) and is_plan_served(plan, geometry.count)):
        return None
    both = [np.empty(geometry.dims, kind).transpose(geometry.kept_first) for kind in (dtype, output)]
    shape = find_shape(both[0].shape, tuple([a.strides for a in both]), len(geometry.kept_runs))
    if shape is None:
        return None
    exact = not (is_short_float(dtype) and is_short_float(output))
    rule = make_rule(plan, geometry.count, exact=exact)
    strides, out_strides = [a.reshape(shape).strides for a in both]
    places = None
    if is_affine:
        count = math.prod(plan.parameters.shape)
        spread = open_parameter(plan, geometry, np.arange(float(count)).reshape(plan.parameters.shape))
        assert spread is not None
        found = spread.lay_rows(tuple([(0, length) for length in geometry.dims]), geometry.reduced_runs)
        places = found._replace(values=found.values.astype(np.intp))
    return _Layout(rule, output, name_statistics(plan), places, shape, strides, out_strides)
