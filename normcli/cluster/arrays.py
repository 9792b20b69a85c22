"""Arrays of dask: fitted and normalized block by block, lazily where nothing has to be known first."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
import dask.array
import numpy as np

from normcli.cluster.blocks import BlockNorm, BlockUse, Whole, choose_block
from normcli.dtypes import require_real
from normcli.errors import DataError, UsageError
from normcli.fitting.statistics import round_stats, warn
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.arguments import name_dtype, read_array
from normcli.results.result import Result
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dask.delayed import Delayed
    from numpy.typing import NDArray

    from normcli.fitting.parts import Box
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.results.promises import Check


def is_dask(x: Any) -> bool:
    """Whether an argument is an array of dask."""
    return isinstance(x, dask.array.Array)


def require_known(x: Any) -> None:
    """Raise `DataError` unless an array of dask holds real numbers, and is of a shape that is known."""
    require_real(x.dtype, "x")
    if any(math.isnan(length) for length in x.shape):
        raise DataError("x has chunks of unknown lengths: x.compute_chunk_sizes() finds them")


def fit_array(x: Any, request: Request, nan: str) -> Stats:
    """Return the statistics of an array of dask, from one pass over its blocks.

    Raises
    ------
    NormError
        As `normcli.fit`.
    """
    require_known(x)
    whole = Whole.choose(request, x.shape, x.dtype, nan, "x")
    x = _join_channels(x, whole.subject.plan(1))
    roots = whole.build_tree(_list_blocks(x))
    return whole.join(dask.compute(*roots))


def use_array(block: BlockUse | BlockNorm, x: Any) -> Any:
    """Return an array of dask, normalized (or restored) block by block, lazily."""
    require_known(x)
    plan = block.plan(x.dtype)
    if isinstance(block, BlockNorm):
        x = x.rechunk(dict.fromkeys(plan.grid.axes, -1))
    x = _join_channels(x, plan)
    return _map(x, plan.choose_output_dtype(x.dtype), block.run)


@dataclass(frozen=True, repr=False, eq=False)
class LazyResult(Result):
    """What `normalize` returns of an array of dask: `normalized` is one, and nothing of it is calculated yet.

    Its chunks are those of the input unless groups need longer ones. Where groups extend over samples, the
    statistics were calculated first; otherwise there are none, and neither are there warnings or a check.

    Parameters
    ----------
    lazy : dask.array.Array or None
    stats : Stats or None
    """

    lazy: Any = None
    stats: Stats | None = None

    @property
    def normalized(self) -> Any:
        """An array of dask."""
        return self.lazy

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each kind of degenerate group, as far as statistics show it."""
        return () if self.stats is None else warn(self.stats, round_stats(self.stats))

    @functools.cached_property
    def check(self) -> tuple[Check, ...]:
        """Nothing: the values are yet to be calculated."""
        return ()

    def __repr__(self) -> str:
        return f"<LazyResult: {self.plan.norm.name} of {self.plan.grid.shape}>"


_IN_MEMORY = ("mask", "lengths", "fill", "running_mean", "running_var", "out", "threads")
"""Arguments of `normalize` that arrays of dask do not have."""


def normalize_array(x: Any, norm: str, **options: Any) -> LazyResult:
    """Normalize an array of dask: `normcli.normalize` calls this.

    Of a norm whose groups extend over samples the statistics are calculated now, in a pass over all blocks, and
    the rest is lazy: no graph ever holds the data.

    Raises
    ------
    NormError
        As `normcli.normalize`.
    """
    refused = next((name for name in _IN_MEMORY if options.get(name) is not None), None)
    if refused is not None:
        raise UsageError(f"{refused} is of arrays in memory, and x is one of dask")
    require_known(x)
    dtype = options.pop("dtype", None)
    request = Request.collect(norm, {**options, "dtype": None if dtype is None else name_dtype(dtype)})
    affine = {name: read_array(options[name], name) for name in ("gamma", "beta") if options[name] is not None}
    plan = make_plan(request, x.shape, x.dtype)
    block = choose_block(
        request, x.shape, x.dtype, affine, options.get("nan"), lambda asked, rule: fit_array(x, asked, rule)
    )
    if isinstance(block, BlockNorm):
        return LazyResult(plan, x, {}, lazy=use_array(block, x))
    stats = block.use.stats
    rounded = round_stats(stats)
    statistics = {name: rounded.fields[name].astype(np.float64) for name in plan.norm.statistics}
    return LazyResult(plan, x, statistics, lazy=use_array(block, x), stats=stats)


def _map(x: Any, dtype: np.dtype[Any], run: Any) -> Any:
    def work_on(values: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
        box = tuple(slice(start, stop) for start, stop in block_info[0]["array-location"])
        block: NDArray[Any] = run(box, values, __version__)
        return block

    return dask.array.map_blocks(work_on, x, dtype=dtype, meta=np.empty((0,) * x.ndim, dtype))


def _join_channels(x: Any, plan: Plan) -> Any:
    """Return an array whose blocks hold all channels, where channels are of groups."""
    return x if plan.grid.split is None else x.rechunk({plan.grid.split.axis: -1})


def _list_blocks(x: Any) -> Iterator[tuple[Box, Delayed]]:
    ends = [np.cumsum([0, *lengths]).tolist() for lengths in x.chunks]
    cuts = [[slice(a, b) for a, b in itertools.pairwise(some)] for some in ends]
    yield from zip(itertools.product(*cuts), x.to_delayed().ravel().tolist(), strict=True)
