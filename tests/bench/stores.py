"""Statistics over a Zarr store on clusters of dask, beside dask.array's own mean and variance on the same ones."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.files import MIB
from tests.bench.pairs import Row, Table, compare, measure_peak_of_all, run_process, take_turns
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIZE = 1 << 32
CHANNELS, SIDE, PER_CHUNK = 16, 64, 16
"""A chunk has so many samples: 4 MiB of float32."""

SCALES = 1.7
"""How many times as fast two workers are to be as one, where chunks are compressed."""

THEIRS = """
import sys, dask, dask.array, distributed
client = distributed.Client(sys.argv[1])
x = dask.array.from_zarr(sys.argv[2])
dask.compute(x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3)))
"""


def measure(runs: int, folder: str | None) -> list[Table]:
    """Measure in a temporary folder on the disk of `folder`."""
    tables = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for kind in ("uncompressed", "zstd"):
            store = write(Path(name, f"{kind}.zarr"), kind)
            tables += [measure_fit(store, kind, runs), measure_apply(store, kind, runs)]
            shutil.rmtree(store)
    return tables


def measure_fit(store: str, kind: str, runs: int) -> Table:
    """Return what it takes to fit a store, beside dask.array's own mean and variance."""
    folder = Path(store).parent
    fit = [*NORMCLI, "fit", "bn", store, "-o", str(folder / "stats.npz"), "--quiet"]
    with start(folder) as (one, two):
        times = _take_turns(
            runs,
            fit,
            [*fit, "--scheduler", one],
            [*fit, "--scheduler", two],
            [sys.executable, "-c", THEIRS, two, store],
        )
    names = ("`fit bn`, no cluster", "1 worker", "2 workers", "dask.array's mean and var, 2 workers")
    scales, peak = compare(times[1], times[2]), f"{measure_peak_of_all(fit) // MIB}"
    rows = []
    for place, name in enumerate(names):
        over = compare(times[place], times[3])
        ok = (over <= 1.0 or place == 3) and (place != 2 or _scales(kind, scales))
        cells = (
            name,
            f"{float(np.median(times[place])):.1f}",
            f"{over:.2f}",
            f"{scales:.2f}" if place == 2 else "–",
        )
        rows.append(Row((*cells, peak if place == 0 else "–"), ok))
    columns = ("work", "s", "over dask.array's (1)", f"1 worker : 2 ({SCALES:g}, zstd)", "MiB")
    return Table(f"Fitting a {_describe(kind)}", columns, rows)


def measure_apply(store: str, kind: str, runs: int) -> Table:
    """Return what it takes to normalize a store with its statistics."""
    folder = Path(store).parent
    stats, out = str(folder / "stats.npz"), folder / "y.zarr"
    run_process([*NORMCLI, "fit", "bn", store, "-o", stats, "--quiet"])
    apply = [*NORMCLI, "apply", stats, store, "-o", str(out), "--overwrite", "--quiet"]
    with start(folder) as (one, two):
        times = _take_turns(runs, apply, [*apply, "--scheduler", one], [*apply, "--scheduler", two])
    shutil.rmtree(out)
    scales = compare(times[1], times[2])
    rows = []
    for place, name in enumerate(("`apply`, no cluster", "1 worker", "2 workers")):
        cells = name, f"{float(np.median(times[place])):.1f}", f"{scales:.2f}" if place == 2 else "–"
        rows.append(Row(cells, place != 2 or _scales(kind, scales)))
    return Table(f"Normalizing a {_describe(kind)}", ("work", "s", f"1 worker : 2 ({SCALES:g}, zstd)"), rows)


def _take_turns(runs: int, *commands: Sequence[str]) -> list[list[float]]:
    return take_turns([partial(run_process, command) for command in commands], runs)


def _scales(kind: str, ratio: float) -> bool:
    """Whether two workers are as much faster as is asked, where that is asked."""
    return kind != "zstd" or ratio >= SCALES


def _describe(kind: str) -> str:
    return f"Zarr store of {SIZE >> 20} MiB float32, {kind}, on dask: workers of one processor each, seconds and ratios"


def write(path: Path, kind: str) -> str:
    """Write a store of readings in a few digits, and return its path."""
    import zarr

    samples = SIZE // (4 * CHANNELS * SIDE * SIDE)
    array = zarr.create_array(
        str(path),
        shape=(samples, CHANNELS, SIDE, SIDE),
        chunks=(PER_CHUNK, CHANNELS, SIDE, SIDE),
        dtype="float32",
        compressors=None if kind == "uncompressed" else "auto",
    )
    draw = np.random.default_rng(0)
    for start in range(0, samples, PER_CHUNK):
        block = draw.standard_normal((PER_CHUNK, CHANNELS, SIDE, SIDE), dtype=np.float32)
        array[start : start + PER_CHUNK] = np.round(block, 2)  # readings have few digits, and compress
    return str(path)


@contextmanager
def start(folder: Path) -> Iterator[tuple[str, str]]:
    """Start clusters of one and of two workers; yield their addresses."""
    with ExitStack() as clusters:
        one, two = (clusters.enter_context(_start(workers, folder)) for workers in (1, 2))
        yield one, two


@contextmanager
def _start(workers: int, folder: Path) -> Iterator[str]:
    """Start a scheduler and workers of one thread, on one processor each; yield the address.

    A worker would decode chunks in threads on all processors otherwise, and one do the work of two.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "distributed.cli"]
    scheduler = [f"{dask[2]}.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = [f"{dask[2]}.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started = [subprocess.Popen([*dask[:2], *scheduler], **quiet)]
    for number in range(workers):
        started.append(subprocess.Popen([*dask[:2], *worker, "--local-directory", str(folder)], **quiet))
        os.sched_setaffinity(started[-1].pid, {number % (os.cpu_count() or 1)})
    time.sleep(5.0)  # until they know each other
    try:
        yield address
    finally:
        for process in started:
            process.kill()
            process.wait()
