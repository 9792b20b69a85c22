"""Norms that are another computation than centring and dividing: a function of tiles that hold whole groups."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.inputs import COUNT, leave_counting
from normcli.engine.walk import Walk
from normcli.numerics.powers import LARGEST_P, normalize_by_large_powers
from normcli.numerics.rounding import store
from normcli.numerics.window import count_in_windows, normalize_windows
from normcli.tensors.pieces import forget

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.engine.geometry import Slices
    from normcli.engine.inputs import Marks
    from normcli.engine.passes import Run
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace

    Floats = NDArray[np.float64]
    Computation = Callable[[Plan, Floats, tuple[int, ...]], tuple[Floats, dict[str, Floats]]]

MOST_VALUES = 1 << 17
"""Values in a tile: a computation makes a dozen arrays of its size."""


def run_computation(run: Run, computation: Computation) -> dict[str, Floats]:
    """Apply a computation to every tile of a run's source, write the results, and return the statistics.

    They are of the shape of the kept runs, or of all runs where each value has its own.
    """
    plan, geometry, source, sink, counting = run.plan, run.geometry, run.source, run.sink, run.counting
    statistics: dict[str, Floats] = {}
    lock = threading.Lock()
    natural = tuple(range(len(geometry.dims)))
    told = natural if plan.spec.window is not None else geometry.kept_runs

    def work_on(tile: Slices, work: Workspace) -> None:
        raw = np.asarray(source.read(tile, natural, work), dtype=np.float64)
        marks = None if counting is None else counting.mark(raw, tile, natural)
        y, measured = computation(plan, leave_counting(raw, marks), geometry.reduced_runs)
        if marks is not None:
            measured[COUNT] = _count(plan, marks, geometry.reduced_runs)
        with lock:
            for name, values in measured.items():
                if name not in statistics:
                    shape = tuple(geometry.dims[run] for run in told)
                    statistics[name] = source.make_array(shape, np.dtype(np.float64))
                statistics[name][tuple(tile[run] for run in told)] = values
                forget(statistics[name])
        if sink is not None:
            place = sink.open(tile, work)
            store(place, y)
            if counting is not None and marks is not None:
                counting.fill(place, raw, marks)
            sink.put(tile, place, work)

    walk = Walk(geometry, source, run.walk.effort, min(run.walk.effort.block, MOST_VALUES))
    walk.expect(1)
    walk.each(work_on, whole=True, line=0)
    return statistics


def _count(plan: Plan, marks: Marks, axes: tuple[int, ...]) -> Floats:
    """Return how many values of each group, or of each window, count."""
    if plan.spec.window is not None:
        return count_in_windows(marks, plan.spec.window, axes[0])
    return np.asarray(np.add.reduce(marks, axis=axes, dtype=np.float64))


def find_computation(plan: Plan) -> Computation | None:
    """Return what is done to a tile of groups, where it is not centring and dividing."""
    if plan.spec.window is not None:
        return normalize_windows
    if plan.spec.p is not None and LARGEST_P < plan.spec.p < np.inf:
        return normalize_by_large_powers
    return None
