"""A tensor compared with the exact values block by block, and the comparisons of blocks joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED, Checked, check
from normcli.checking.tally import Comparison, GroupTally
from normcli.checking.ulp import choose_counting_dtype
from normcli.cluster.blocks import ALONE, BlockUse, require_version
from normcli.errors import DataError
from normcli.fitting.block_sums import locate_groups
from normcli.fitting.statistics import round_stats
from normcli.results.arguments import Problem
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.cluster.blocks import BlockNorm
    from normcli.fitting.block_sums import Box
    from normcli.norms.plan import Plan


class BlockCheck(NamedTuple):
    """The comparison of a tensor with the exact values, block by block; a worker calls `run` for each block.

    Parameters
    ----------
    block : BlockUse or BlockNorm
        The exact normalization of a block. Its output dtype, if it has one, is the dtype whose ulp are counted.
    tolerate : callable
        Takes a dtype and returns the `Tolerance` for its values.
    """

    block: BlockUse | BlockNorm
    tolerate: Callable[[np.dtype[Any]], Tolerance]

    def run(self, box: Box, values: NDArray[Any], actual: NDArray[Any], version: str) -> Comparison:
        """Return the comparison of a block of `actual` with the exact one; its indices count in the block.

        Parameters
        ----------
        box : tuple of slice
            The block's slice along each axis of the tensor.
        values, actual : ndarray
            The block of x, and the block to compare.
        version : str
            The caller's version of normcli.

        Raises
        ------
        DataError
            If the worker runs another version.
        """
        require_version(version)
        block, theirs = (np.ascontiguousarray(array) for array in (values, actual))
        plan, inputs = self.block.prepare(box, block)
        problem = Problem(plan, Tensor(block, "the block"), inputs, ALONE)
        return check(problem, {NORMALIZED: theirs}, self.tolerate).comparisons[NORMALIZED]

    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `DataError` unless `shape`, the compared tensor's, is the shape of x."""
        if shape != self.block.shape:
            raise DataError(f"actual has the shape {shape}; x has {self.block.shape}")

    def join(self, plan: Plan, dtype: np.dtype[Any], found: Iterable[tuple[Box, Comparison]]) -> Checked:
        """Return the comparison of the whole tensor, joined from the comparisons of its blocks.

        Parameters
        ----------
        plan : Plan
            The plan of the whole tensor.
        dtype : numpy.dtype
            The dtype of the compared tensor.
        found : iterable
            Pairs of a block's slices and its comparison. In each comparison, the flat index of the worst value
            in the block is replaced, in place, by that in the whole tensor.
        """
        tolerance = self.tolerate(choose_counting_dtype(plan.choose_output_dtype(dtype)))
        groups = None if plan.groups_overlap else GroupTally(plan.grid.stats_shape)
        total = Comparison(tolerance, groups)
        for box, one in found:
            if one.worst is not None:
                one.worst = one.worst._replace(place=_locate(plan.grid.shape, box, one.worst.place))
            total.merge(one)
            if groups is not None and one.groups is not None:
                groups.merge(one.groups, locate_groups(plan, box))
        statistics = {}
        if isinstance(self.block, BlockUse):
            fields = round_stats(self.block.use.stats).fields
            statistics = {name: fields[name].astype(np.float64) for name in plan.norm.statistics}
        return Checked({NORMALIZED: total}, statistics)


def _locate(shape: tuple[int, ...], box: Box, place: int) -> int:
    """Return the flat index in the whole tensor of the value with flat index `place` in the block at `box`."""
    inside = np.unravel_index(place, [cut.stop - cut.start for cut in box])
    index = tuple(int(i) + cut.start for i, cut in zip(inside, box, strict=True))
    return int(np.ravel_multi_index(index, shape))
