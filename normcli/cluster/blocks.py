"""A worker's task for a block, and the tree in which the sums of blocks are added up."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.delayed import delayed

from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.fitting.block_sums import Whole, cut_stats, list_ends
from normcli.fitting.subject import choose_subject, require_fittable
from normcli.fitting.use import Use, use_stats
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Choices
from normcli.results.calculate import calculate
from normcli.results.given_inputs import fit_inputs
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.fitting.block_sums import Box, Part
    from normcli.fitting.statistics import Stats
    from normcli.fitting.subject import Subject
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request

ALONE = Effort(threads=1)
"""One thread for each task: dask runs several tasks at once."""

FAN_IN = 16
"""The number of parts that one task adds up."""


def require_version(version: str) -> None:
    """Raise `DataError` if this process runs another version of normcli than `version`, the caller's."""
    if version != __version__:
        raise DataError(f"a worker runs normcli {__version__}, and the caller {version}: install one version")


def require_sums(subject: Subject) -> None:
    """Raise `UsageError` if statistics are quantiles, which do not follow from sums of blocks."""
    if subject.plan(1).norm.divisor.measurement is Measurement.QUANTILES:
        norm = subject.request.norm
        raise UsageError(f"{norm} has quantiles, which follow from no sums of blocks: fit it on one machine")


def choose_whole(request: Request, shape: tuple[int, ...], dtype: np.dtype[Any], nan: str, name: str) -> Whole:
    """Return the `Whole` for a request and a tensor's shape, dtype and name.

    Raises
    ------
    UsageError
        If `fit` has no statistics for the request (`require_fittable`), or they are quantiles.
    """
    subject = choose_subject(request, Tensor(make_hollow(shape, dtype), name))
    require_sums(subject)
    return Whole(subject, shape, nan, name)


def gather_block(whole: Whole, box: Box, values: NDArray[Any], version: str) -> Part:
    """Return the sums of a block; `version` is the caller's of normcli.

    Raises
    ------
    DataError
        If the worker runs another version, or the block holds a NaN that is refused.
    """
    require_version(version)
    return whole.gather(box, np.asarray(values), ALONE)


def build_tree(whole: Whole, blocks: Iterable[tuple[Box, Delayed]]) -> list[Delayed]:
    """Return the tasks that add up the sums of blocks: one for each set of groups that blocks share.

    Blocks with the same groups are added, at most `FAN_IN` in one task, until one task is left; `Whole.join`
    takes the results. If a statistic needs sums for each sample (`image_std`), blocks that hold parts of the
    same samples are added first.

    Parameters
    ----------
    whole : Whole
    blocks : iterable
        Pairs of a block's slices in the tensor and the task that gathers its sums (`gather_block`).
    """
    kept = whole.plan.grid.kept
    add, shared = delayed(Whole.add), delayed(whole)
    slabs: dict[tuple[Any, ...], list[Delayed]] = defaultdict(list)
    for box, gathered in blocks:
        slabs[list_ends(box, kept), whole.find_slab(box)].append(gathered)
    by_groups: dict[tuple[Any, ...], list[Delayed]] = defaultdict(list)
    for (groups, slab), parts in slabs.items():
        by_groups[groups] += [add(shared, parts)] if slab else parts
    roots = []
    for parts in by_groups.values():
        while len(parts) > 1:
            parts = [add(shared, parts[at : at + FAN_IN]) for at in range(0, len(parts), FAN_IN)]
        roots += parts
    return roots


class BlockUse(NamedTuple):
    """The task to normalize one block of a dask array with fitted statistics; workers call `run`, a block each.

    A block is a box of the array, given by a slice along each axis. `run` cuts from the statistics, gamma and
    beta those of the block's groups.

    Parameters
    ----------
    use : Use
        The statistics of the whole tensor, and gamma and beta in any shape that its plan takes.
    shape : tuple of int
        The shape of the whole tensor.
    inverts : bool
        Whether normalization is undone.
    """

    use: Use
    shape: tuple[int, ...]
    inverts: bool = False

    def plan(self, dtype: np.dtype[Any]) -> Plan:
        """Return the plan for the whole tensor, of this dtype.

        Raises
        ------
        DataError
            If the statistics are of other groups than the tensor has.
        """
        return self.use.plan("x", make_hollow(self.shape, dtype))

    def list_whole(self, plan: Plan) -> tuple[int, ...]:
        """Return the axes that no block may divide, besides an axis of grouped channels: none."""
        return ()

    def count_in(self, dtype: str | None) -> BlockUse:
        """Return a copy whose comparisons count ulp of `dtype`; None: of the compared tensor's dtype."""
        return self._replace(use=self.use._replace(dtype=dtype))

    def prepare(self, box: Box, block: NDArray[Any]) -> tuple[Plan, Inputs]:
        """Return the plan of a block, and the inputs for it: statistics, gamma and beta of its groups."""
        use = self._cut(box, block.dtype)
        plan = use.plan("the block", block)
        return plan, use.fit_inputs(plan)

    def run(self, box: Box, values: NDArray[Any], version: str) -> NDArray[Any]:
        """Return a block, normalized, or with `inverts` restored; `box` is its slice along each axis.

        Raises
        ------
        DataError
            If `version`, the caller's of normcli, is not the worker's.
        UsageError
            If `inverts` and a gamma is 0.
        """
        require_version(version)
        block = np.ascontiguousarray(values)
        use, tensor = self._cut(box, block.dtype), Tensor(block, "the block")
        return use_stats(use, tensor, None, ALONE, inverts=self.inverts)[0]

    def _cut(self, box: Box, dtype: np.dtype[Any]) -> Use:
        """Return the statistics, gamma and beta for the groups with values in a block."""
        whole = self.plan(dtype)
        gamma, beta = (cut_parameter(whole, name, box, getattr(self.use, name)) for name in ("gamma", "beta"))
        return self.use._replace(stats=cut_stats(self.use.stats, self.shape, box), gamma=gamma, beta=beta)


class BlockNorm(NamedTuple):
    """The work to normalize blocks that hold whole groups; a worker calls `run` for each block.

    Parameters
    ----------
    request : Request
    shape : tuple of int
        The shape of the whole tensor.
    affine : mapping of str to ndarray
        Gamma and beta by name, for the whole tensor; without one that was not given.
    """

    request: Request
    shape: tuple[int, ...]
    affine: Mapping[str, NDArray[Any]]

    def plan(self, dtype: np.dtype[Any]) -> Plan:
        """Return the plan for the whole tensor."""
        return make_plan(self.request, self.shape, dtype)

    def list_whole(self, plan: Plan) -> tuple[int, ...]:
        """Return the axes that no block may divide: those that the plan reduces."""
        return plan.grid.axes

    def count_in(self, dtype: str | None) -> BlockNorm:
        """Return a copy whose comparisons count ulp of `dtype`; None: of the compared tensor's dtype."""
        return self._replace(request=self.request._replace(dtype=dtype))

    def prepare(self, box: Box, block: NDArray[Any]) -> tuple[Plan, Inputs]:
        """Return the plan of a block, and the inputs for it: gamma and beta, cut to the block."""
        whole = self.plan(block.dtype)
        request = self.request._replace(axes=whole.grid.axes, keep=None, layout=whole.grid.layout.text)
        plan = make_plan(request, block.shape, block.dtype)
        cut = {name: cut_parameter(whole, name, box, array) for name, array in self.affine.items()}
        return plan, fit_inputs(plan, block, cut)

    def run(self, box: Box, values: NDArray[Any], version: str) -> NDArray[Any]:
        """Return the block at `box`, normalized; raise `DataError` if the caller's `version` is another."""
        require_version(version)
        block = np.ascontiguousarray(values)
        plan, inputs = self.prepare(box, block)
        normalized: NDArray[Any] = calculate(plan, block, inputs, effort=ALONE).normalized
        return normalized


def make_hollow(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros of a shape and dtype that takes no memory, from which a plan can be made."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def cut_parameter(plan: Plan, name: str, box: Box, values: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return gamma or beta cut to a block, with as many axes as x; None for None.

    Parameters
    ----------
    plan : Plan
        The plan of the whole tensor.
    name : {"gamma", "beta"}
    box : tuple of slice
        The block's slice along each axis of the tensor.
    values : ndarray or None
        Gamma or beta in any shape that the plan takes.
    """
    if values is None:
        return None
    full = plan.fit_parameter(name, values).reshape(plan.parameters.full_shape)
    lengths = zip(box, full.shape, plan.grid.shape, strict=True)
    return full[tuple(cut if mine == length else slice(None) for cut, mine, length in lengths)]


def choose_block(
    request: Request,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    affine: Mapping[str, NDArray[Any]],
    nan: str | None,
    fit: Callable[[Request, str], Stats],
) -> BlockUse | BlockNorm:
    """Return the work to do for each block of a tensor, to normalize it.

    It is a `BlockUse` (with statistics fitted to the whole tensor) if groups extend over samples, otherwise a
    `BlockNorm` (each block alone).

    Parameters
    ----------
    request : Request
    shape, dtype
        The shape and the dtype of the whole tensor.
    affine : mapping of str to ndarray
        Gamma and beta by name, for the whole tensor; without one that was not given.
    nan : {"propagate", "omit", "raise"} or None
        None: the rule of the request's convention, or "propagate".
    fit : callable
        Takes a request and a rule for NaN, and returns the statistics; called only for `BlockUse`.

    Raises
    ------
    UsageError
        If `nan` is given and groups do not extend over samples, or the request does not fit the shape.
    """
    plan = make_plan(request, shape, dtype)
    try:
        require_fittable(plan)
    except UsageError:
        if nan is not None:
            raise UsageError(
                "nan is of norms whose groups extend over samples, where blocks are normalized"
            ) from None
        return BlockNorm(request, shape, affine)
    stats = fit(request._replace(dtype=None), Choices(request).pick_nan_rule(nan))
    output = plan.choose_output_dtype(dtype).name
    return BlockUse(Use(stats, affine.get("gamma"), affine.get("beta"), dtype=output), shape)
