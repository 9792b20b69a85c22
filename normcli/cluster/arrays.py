"""Arrays of dask: fitted and normalized block by block, lazily where nothing has to be known first."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import dask
import dask.array
import numpy as np
from dask.delayed import delayed

from normcli.cluster.block_comparison import BlockCheck
from normcli.cluster.blocks import BlockNorm, BlockUse, build_tree, choose_block, choose_whole, gather_block
from normcli.dtypes import require_real
from normcli.errors import DataError, UsageError
from normcli.fitting.statistics import round_stats, warn
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.arguments import AROUND, read_dtype, read_given, read_numbers
from normcli.results.arrays import find_lazy
from normcli.results.result import Result
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from normcli.checking.check import Checked
    from normcli.checking.ulp import Tolerance
    from normcli.fitting.block_sums import Box
    from normcli.fitting.statistics import Stats
    from normcli.fitting.use import Use
    from normcli.norms.plan import Plan
    from normcli.results.arrays import Taken
    from normcli.results.promises import Check


def require_known(x: Any) -> None:
    """Raise `DataError` unless a dask array has a real dtype and a known shape."""
    require_real(x.dtype, "x")
    if any(math.isnan(length) for length in x.shape):
        raise DataError("x has chunks of unknown lengths: x.compute_chunk_sizes() finds them")


def fit_array(x: Any, request: Request, nan: str) -> Stats:
    """Return the statistics of a dask array; this calculates its blocks at once, in one pass.

    Parameters
    ----------
    x : dask.array.Array
    request : Request
    nan : {"propagate", "omit", "raise"}
        The rule for NaN: it makes its group's statistics NaN, is left out, or is an error.

    Raises
    ------
    NormError
        If the norm cannot be fitted, the request does not fit the array, or it holds a NaN that is refused.
    """
    require_known(x)
    whole = choose_whole(request, x.shape, x.dtype, nan, "x")
    x = _join_channels(x, whole.subject.plan(1))
    gather, shared = delayed(gather_block), delayed(whole)
    blocks = _list_blocks(x)
    roots = build_tree(whole, ((box, gather(shared, box, values, __version__)) for box, values in blocks))
    return whole.join(dask.compute(*roots))


def use_statistics(use: Use, x: Any, *, inverts: bool) -> Any:
    """Return a lazy dask array: x normalized with fitted statistics, or, with `inverts`, x restored.

    Raises
    ------
    DataError
        If x has an unknown shape, or other groups than the statistics.
    """
    require_known(x)
    return _use(BlockUse(use, x.shape, inverts), x)


def _use(block: BlockUse | BlockNorm, x: Any) -> Any:
    """Return a lazy dask array: the result of `block` for each block of x, rechunked to what it needs."""
    plan = block.plan(x.dtype)
    dtype = plan.choose_output_dtype(x.dtype)

    def run(values: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
        box = tuple(slice(start, stop) for start, stop in block_info[0]["array-location"])
        return block.run(box, values, __version__)

    joined, empty = _join_groups(block, x, plan), np.empty((0,) * x.ndim, dtype)
    return dask.array.map_blocks(run, joined, dtype=dtype, meta=empty)


class LazyResult(Result):
    """The result of `normalize` for a dask array: `normalized` is a dask array that is not calculated yet.

    Its chunks are those of the input, except that a group that is normalized by itself lies in one chunk.
    `check` is always empty.

    Parameters
    ----------
    lazy : dask.array.Array
        The normalized array, which `normalized` returns.
    stats : Stats or None
        The fitted statistics, calculated already, of a norm whose groups extend over samples (batch norm); None
        for other norms, which then have no warnings.
    """

    lazy: Any
    stats: Stats | None

    def __init__(self, *arguments: Any, lazy: Any = None, stats: Stats | None = None) -> None:
        super().__init__(*arguments)
        vars(self).update(lazy=lazy, stats=stats)

    @property
    def normalized(self) -> Any:
        """The normalized array, a dask array that is not calculated yet."""
        return self.lazy

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each kind of degenerate group in the fitted statistics; empty without statistics."""
        return () if self.stats is None else warn(self.stats)

    @functools.cached_property
    def check(self) -> tuple[Check, ...]:
        """An empty tuple, always: the values are not calculated yet."""
        return ()

    def __repr__(self) -> str:
        return f"<LazyResult: {self.plan.norm.name} of {self.plan.grid.shape}>"


_IN_MEMORY = (
    "residual",
    "residual_sum",
    *AROUND,
    "mask",
    "lengths",
    "fill",
    "running_mean",
    "running_var",
    "out",
    "threads",
    "strict",
)
"""Arguments of `normalize` that are refused for dask arrays."""


def _read_options(
    x: Taken, norm: str, options: Mapping[str, Any]
) -> tuple[Request, dict[str, NDArray[Any]], Plan, BlockUse | BlockNorm]:
    """Read the arguments of `normalize`; if groups extend over samples, this calculates the statistics at once.

    Returns
    -------
    request : Request
    affine : dict of str to ndarray
        Gamma and beta, if they were given.
    plan : Plan
        The plan of the whole array.
    block : BlockUse or BlockNorm
        The work on each block: to normalize it with fitted statistics (`BlockUse`) or by its own (`BlockNorm`).

    Raises
    ------
    NormError
        If an argument is not valid, or is one that dask arrays do not take.
    """
    options = read_given(options)
    refused = next((name for name in _IN_MEMORY if name in options), None)
    if refused is not None:
        raise UsageError(f"{refused} is of arrays in memory, and x is one of dask")
    array = x.values
    require_known(array)
    dtype = read_dtype("dtype", options.get("dtype"))
    request = Request.collect(norm, {**options, "dtype": dtype}).adopt_layout(x.layout)
    given = {name: options.get(name) for name in ("gamma", "beta")}
    affine = {name: read_numbers(values, name) for name, values in given.items() if values is not None}
    plan = make_plan(request, array.shape, array.dtype)
    block = choose_block(
        request, array.shape, array.dtype, affine, options.get("nan"), functools.partial(fit_array, array)
    )
    return request, affine, plan, block


def normalize_array(x: Taken, norm: str, **options: Any) -> LazyResult:
    """Return the lazy result of a norm of a dask array: `normcli.normalize` calls this.

    If groups extend over samples (batch norm), the statistics are calculated at once, in a pass over all
    blocks. Everything else is calculated when the caller computes `normalized`.

    Raises
    ------
    NormError
        If an argument is not valid, or is one that dask arrays do not take, as `mask`.
    """
    _, _, plan, block = _read_options(x, norm, options)
    normalized = x.give(_use(block, x.values))
    if isinstance(block, BlockNorm):
        return LazyResult(plan, x.values, {}, lazy=normalized)
    stats = block.use.stats
    rounded = round_stats(stats)
    statistics = {name: rounded.fields[name].astype(np.float64) for name in plan.norm.statistics}
    return LazyResult(plan, x.values, statistics, lazy=normalized, stats=stats)


def check_array(
    actual: Any, x: Taken, norm: str, options: Mapping[str, Any], tolerate: Callable[[np.dtype[Any]], Tolerance]
) -> tuple[Plan, Mapping[str, NDArray[Any] | None], Checked]:
    """Compare `actual` with the exact norm of a dask array x: `normcli.check` calls this.

    Parameters
    ----------
    actual : array_like
        An array of dask, or one in memory.
    x : Taken
    norm : str
    options : mapping of str to object
        The options of `normalize`.
    tolerate : callable
        Takes a dtype and returns the `Tolerance` for its values.

    Returns
    -------
    plan : Plan
    parameters : mapping of str to ndarray or None
        Gamma and beta in the plan's shape; None for one that was not given.
    checked : Checked

    Raises
    ------
    NormError
        If an argument is not valid, or `actual` has another shape than x.
    """
    request, affine, plan, block = _read_options(x, norm, options)
    check = BlockCheck(block.count_in(request.dtype), tolerate)
    lazy = find_lazy(actual)
    theirs: Any = dask.array.from_array(read_numbers(actual, "actual")) if lazy is None else lazy.taken.values
    require_known(theirs)
    check.require_shape(theirs.shape)
    array = _join_groups(block, x.values, plan)
    boxes, blocks = zip(*_list_blocks(array), strict=True)
    held = (values for _, values in _list_blocks(theirs.rechunk(array.chunks)))
    run = delayed(BlockCheck.run)
    tasks = [run(check, *of, __version__) for of in zip(boxes, blocks, held, strict=True)]
    found = check.join(plan, theirs.dtype, zip(boxes, dask.compute(*tasks), strict=True))
    return plan, {name: plan.fit_parameter(name, values) for name, values in affine.items()}, found


def _join_groups(block: BlockUse | BlockNorm, x: Any, plan: Plan) -> Any:
    """Return a dask array rechunked so that each block can be normalized alone.

    For `BlockNorm`, chunks are joined until each holds whole groups; for `BlockUse`, chunks stay. In both cases
    each holds all channels if the norm divides channels into groups (`gn`).
    """
    return _join_channels(x.rechunk(dict.fromkeys(block.list_whole(plan), -1)), plan)


def _join_channels(x: Any, plan: Plan) -> Any:
    """Return a dask array whose blocks hold all channels if channels are in groups; otherwise x as it is."""
    return x if plan.grid.split is None else x.rechunk({plan.grid.split.axis: -1})


def _list_blocks(x: Any) -> Iterator[tuple[Box, Delayed]]:
    """Yield, for each block of a dask array, its slices in the array and the task that makes its values."""
    ends = [np.cumsum([0, *lengths]).tolist() for lengths in x.chunks]
    cuts = [[slice(a, b) for a, b in itertools.pairwise(some)] for some in ends]
    yield from zip(itertools.product(*cuts), x.to_delayed().ravel().tolist(), strict=True)
