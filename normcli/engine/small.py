"""Small tensors in one call of the compiled kernel: a walk over a tile takes longer than the arithmetic."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.dtypes import is_short_float
from normcli.engine.compiled import find_shape
from normcli.engine.geometry import find_geometry
from normcli.numerics.whole import (
    Groups,
    is_plan_served,
    is_served,
    make_rule,
    name_statistics,
    normalize_groups,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.whole import Rule

MOST_VALUES = 1 << 14
"""Of larger tensors, what a walk takes is little beside the arithmetic."""


class _Layout(NamedTuple):
    """How tensors in C order are given to the kernel: what does not change from call to call.

    Parameters
    ----------
    rule : Rule
    names : tuple of str or None
        Of the four statistics of the kernel, as `name_statistics` returns them.
    runs, order : tuple of int
        The lengths of the runs of kept and reduced axes, and those that are kept first.
    shape : tuple of int
        Two axes of groups and two of their values.
    """

    rule: Rule
    names: tuple[str | None, ...]
    runs: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]

    def lay(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a view of an array in C order as groups."""
        return values.reshape(self.runs).transpose(self.order).reshape(self.shape)


def run_small(
    plan: Plan, values: NDArray[Any], inputs: Inputs, out: NDArray[Any] | None, effort: Effort
) -> tuple[NDArray[Any], dict[str, Floats]] | None:
    """Normalize a small tensor as `run` does; return None where tiles have to be walked over.

    Parameters are those of `run`; the plan has groups, and they have values.
    """
    if (
        values.size > min(MOST_VALUES, effort.block, effort.whole)
        or any(given is not None for given in inputs)
        or effort.observer is not None
        or not effort.keeps_statistics
        or type(values) is not np.ndarray
        or not (values.flags.c_contiguous and values.flags.aligned)
    ):
        return None
    kernel, dtype = find_kernel(), plan.choose_output_dtype(values.dtype)
    layout = None if kernel is None else _find_layout(plan, values.dtype, dtype)
    if kernel is None or layout is None:
        return None
    result = np.empty(plan.grid.shape, dtype) if out is None else out
    groups = layout.shape[0] * layout.shape[1]
    statistics = {name: np.empty(groups) for name in plan.norm.statistics}
    places = tuple([None if name is None else statistics[name] for name in layout.names])
    with np.errstate(all="ignore"):
        left = normalize_groups(kernel, layout.rule, Groups(layout.lay(values), layout.lay(result)), places)
    if left.size:
        return None
    shape = plan.grid.stats_shape
    return result, {name: array.reshape(shape) for name, array in statistics.items()}


@functools.lru_cache(maxsize=64)
def _find_layout(plan: Plan, dtype: np.dtype[Any], output: np.dtype[Any]) -> _Layout | None:
    """Return how a plan's tensors are given to the kernel; None if they cannot be."""
    geometry = find_geometry(plan)
    if not (is_served(dtype) and is_served(output) and is_plan_served(plan, geometry.count)):
        return None
    order = geometry.kept_runs + geometry.reduced_runs
    both = [np.empty(geometry.dims, kind).transpose(order) for kind in (dtype, output)]
    shape = find_shape(both[0].shape, tuple([a.strides for a in both]), len(geometry.kept_runs))
    if shape is None:
        return None
    exact = not (is_short_float(dtype) and is_short_float(output))
    rule = make_rule(plan, geometry.count, exact=exact, exact_results=exact)
    return _Layout(rule, name_statistics(plan), geometry.dims, order, shape)
