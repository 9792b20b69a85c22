"""Small tensors in one call of the compiled kernel: a walk over a tile takes longer than the arithmetic."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.dtypes import is_short_float
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.tiling.blocks import open_parameter
from normcli.engine.tiling.compiled import find_shape
from normcli.engine.tiling.geometry import find_geometry
from normcli.numerics.elements.compiled_kernel import (
    Groups,
    is_plan_served,
    is_served,
    make_rule,
    name_statistics,
    normalize_groups,
)
from normcli.numerics.rounding import widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.geometry import Geometry
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.compiled_kernel import RowParameter, Rule

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
    geometry : Geometry
    shape : tuple of int
        (outer, inner, parts, values): two axes of groups and two of their values.
    strides : tuple of int
        The strides of that shape, in values.
    """

    rule: Rule
    dtype: np.dtype[Any]
    names: tuple[str, ...]
    geometry: Geometry
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def lay(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a view, of the layout's shape, of a C-contiguous tensor."""
        size = values.itemsize
        outer, inner, parts, each = self.strides
        strides = outer * size, inner * size, parts * size, each * size
        return np.ndarray(self.shape, values.dtype, values, 0, strides)  # sooner than `transpose`

    def lay_parameters(self, plan: Plan, inputs: Inputs) -> Iterator[RowParameter | None]:
        """Yield gamma, then beta, as a `RowParameter` of the groups; None for one that is not given."""
        ends = tuple([(0, length) for length in self.geometry.dims])
        for values, offset in ((inputs.gamma, plan.spec.gamma_offset), (inputs.beta, 0)):
            spread = open_parameter(plan, self.geometry, values, offset)
            yield None if spread is None else spread.lay_rows(ends, self.geometry.reduced_runs)


def run_small(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs,
    out: NDArray[Any] | None,
    effort: Effort,
    *,
    writes: bool = True,
) -> tuple[Any, dict[str, Floats]] | None:
    """Normalize a small tensor in one call of the compiled kernel; return the result and its statistics.

    None means that nothing was calculated, and that tiles have to be walked over: the tensor is too large, is
    not contiguous or in a file, has inputs in addition to gamma and beta, or the compiled kernel does not serve
    it or does not decide a group.

    Parameters
    ----------
    plan : Plan
        It has a group, and each group has a value.
    values : ndarray
    inputs : Inputs
    out : ndarray or None
        The array that the result is written to; None for a new one.
    effort : Effort
    writes : bool
        Whether the tensor is normalized. If not, and `out` is None, the result returned is None.
    """
    flags = values.flags
    if (
        values.size > min(MOST_VALUES, effort.block, effort.whole)
        or not effort.keeps_statistics
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
    statistics = {name: np.empty(plan.grid.stats_shape) for name in plan.norm.statistics}
    parameters = layout.lay_parameters(plan, inputs) if is_affine else ()
    tensor = Groups(layout.lay(values), None if result is None else layout.lay(result), *parameters)
    left = normalize_groups(kernel, layout.rule, tensor, tuple(map(statistics.get, layout.names)))
    return None if left.size else (result, statistics)


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
    if is_affine and plan.spec.rounds_before_gamma:
        return None
    if not (is_served(dtype) and is_served(output) and is_plan_served(plan, geometry.count)):
        return None
    both = [np.empty(geometry.dims, kind).transpose(geometry.kept_first) for kind in (dtype, output)]
    shape = find_shape(both[0].shape, tuple([a.strides for a in both]), len(geometry.kept_runs))
    if shape is None:
        return None
    exact = not (is_short_float(dtype) and is_short_float(output))
    rule = make_rule(plan, geometry.count, exact=exact)
    strides = tuple([step // dtype.itemsize for step in both[0].reshape(shape).strides])
    return _Layout(rule, output, name_statistics(plan), geometry, shape, strides)
