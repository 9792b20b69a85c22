"""Tiles of whole groups by the compiled kernel, and by NumPy those groups that it does not decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.numerics.kernel import Parameters, is_moderate
from normcli.numerics.solution import solve
from normcli.numerics.whole import is_plan_served, is_served, normalize_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.compiled import Kernel
    from normcli.dtypes import Floats
    from normcli.engine.geometry import Slices
    from normcli.engine.passes import Run
    from normcli.numerics.workspace import Workspace


class CompiledGroups:
    """Works on tiles of whole groups.

    Parameters
    ----------
    run : Run
        The run that they are of.
    kernel : Kernel
    """

    def __init__(self, run: Run, kernel: Kernel) -> None:
        self._run, self._kernel = run, kernel
        self._kept = len(run.geometry.kept_runs)
        self._order = run.geometry.kept_runs + run.geometry.reduced_runs

    def work_on(self, tile: Slices, work: Workspace) -> dict[str, Floats]:
        """Normalize a tile, and return the statistics of its groups."""
        run = self._run
        raw = run.source.read(tile, self._order, work)
        if not is_served(raw.dtype) or not raw.flags.aligned:
            raw = run.load(raw, work)
        place = None if run.sink is None else run.sink.open(tile, work)
        x, out = self._lay(raw, None if place is None else place.transpose(self._order))
        statistics = self._normalize(x, out, tile, work)
        if run.sink is not None and place is not None and out is not None:
            there = place.transpose(self._order)
            if not np.may_share_memory(out, there):
                there[...] = out.reshape(there.shape)
            run.sink.put(tile, place, work)
        return statistics

    def _normalize(
        self, x: NDArray[Any], out: NDArray[Any] | None, tile: Slices, work: Workspace
    ) -> dict[str, Floats]:
        """Normalize groups of shape (outer, inner, values), and return their statistics."""
        run = self._run
        gamma, beta = (None if values is None else values.lay_rows(tile) for values in (run.gamma, run.beta))
        statistics, left = normalize_groups(
            self._kernel, run.plan, x, out, (gamma, beta), work, exact=run.exact, exact_output=run.exact_output
        )
        if not left.size:
            return statistics
        index = np.unravel_index(left, x.shape[:2])
        rows = run.load(x[index], work)
        solution = solve(run.plan, run.measure_groups(rows, tile, work), exact=run.exact)
        for name, values in statistics.items():
            values[left] = solution.statistics[name]
        if out is not None:
            some = Parameters(*(None if p is None else p.spread(left, x.shape[2]) for p in (gamma, beta)))
            results = np.empty(rows.shape, out.dtype)
            run.normalize(rows, results, solution.take(lambda a: a[:, None]), some, work)
            out[index] = results
        return statistics

    def _lay(self, raw: NDArray[Any], out: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return a tile, and the place of its results, as two axes of groups and one of values; or copies."""
        arrays = [raw] if out is None else [raw, out]
        views = _join(arrays, self._kept)
        if views is None:
            views = _join(
                [np.ascontiguousarray(raw), *(np.empty(a.shape, a.dtype) for a in arrays[1:])], self._kept
            )
            assert views is not None  # of arrays without gaps
        return views[0], None if out is None else views[1]


def _join(arrays: list[NDArray[Any]], kept: int) -> list[NDArray[Any]] | None:
    """Return views of arrays of one shape, axes that lie behind each other as one; None if too many remain."""
    groups: list[tuple[int, ...]] = []
    values: list[tuple[int, ...]] = []
    steps = zip(arrays[0].shape, *(a.strides for a in arrays), strict=True)
    for axis, (length, *strides) in enumerate(steps):
        runs = groups if axis < kept else values
        if length == 1:
            continue
        if runs and all(outer == length * stride for outer, stride in zip(runs[-1][1:], strides, strict=True)):
            length *= runs.pop()[0]
        runs.append((length, *strides))
    most = 2
    if len(groups) > most or len(values) > 1:
        return None
    one = (1, *(a.itemsize for a in arrays))
    runs = [*[one] * (most - len(groups)), *groups, *(values or [one])]
    shape, *strides_of = zip(*runs, strict=True)
    return [
        np.lib.stride_tricks.as_strided(a, shape, strides, subok=True)
        for a, strides in zip(arrays, strides_of, strict=True)
    ]


def open_compiled(run: Run) -> CompiledGroups | None:
    """Return what works on a run's tiles of whole groups; None if NumPy has to."""
    kernel = find_kernel()
    parameters = [values for values in (run.gamma, run.beta) if values is not None]
    if (
        kernel is None
        or run.selection is not None
        or (parameters and run.plan.spec.rounds_before_gamma)
        or not is_plan_served(run.plan, run.geometry.count)
        or not is_served(run.native)
        or not (run.sink is None or is_served(run.sink.dtype))
        or any(values.span is None for values in parameters)
    ):
        return None
    if not run.exact_output and not all(is_moderate(values.flat) for values in parameters):
        return None
    return CompiledGroups(run, kernel)
