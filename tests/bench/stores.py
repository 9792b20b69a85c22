"""Statistics over a Zarr store on clusters of dask, beside dask.array's own mean and variance on the same ones."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.cluster.stores import open_source
from normcli.tensors.formats.stores import create_array
from tests.bench.files import MIB
from tests.bench.pairs import Row, Table, compare, measure_peak, run_process, take_turns
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

SIZE = 1 << 32
CHANNELS, SIDE, PER_CHUNK = 16, 64, 16
"""A chunk has so many samples: 4 MiB of float32."""

SCALES = 1.7
"""How many times as fast two workers are to be as one, where chunks are compressed."""

THEIR_FIT = """
import sys, dask, dask.array, distributed
client = distributed.Client(sys.argv[1])
x = dask.array.from_zarr(sys.argv[2])
dask.compute(x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3)))
"""

THEIR_SCALING = """
import sys, dask.array, distributed, numpy, zarr
client = distributed.Client(sys.argv[1])
source, stats = zarr.open(sys.argv[2], mode="r"), numpy.load(sys.argv[3])
mean, scale = (a.astype("float32").reshape(1, -1, 1, 1) for a in (stats["mean"], stats["var"] ** 0.5))
target = zarr.create_array(sys.argv[4], shape=source.shape, chunks=source.chunks, dtype=source.dtype,
                           compressors=source.compressors, overwrite=True)
((dask.array.from_zarr(source) - mean) / scale).to_zarr(target)
"""
"""As dask-ml's `StandardScaler` transforms."""

KINDS, WRITTEN = ("uncompressed", "zstd"), ("y.zarr", "z.zarr", "p.zarr")


def measure(options: Namespace) -> list[Table]:
    """Measure what is asked for ("zstd, fit"), or all of it.

    The stores are written to a temporary folder; or to `options.folder`, where they stay, and are found the next time.
    """
    place = Path(options.folder or options.place)
    return [
        _measure(prepare(write(place / f"{kind}.zarr", kind), kind), kind, options.runs)
        for kind in KINDS
        for work, prepare in (("fit", _prepare_fit), ("apply", _prepare_apply))
        if not options.cell or f"{kind}, {work}" in options.cell
    ]


def _prepare_fit(store: str, kind: str) -> _Work:
    """Return a fit beside dask.array's own mean and variance; fit once, for what the plain processes are told."""
    stats = str(Path(store).with_name("stats.npz"))
    fit = [*NORMCLI, "fit", "bn", store, "-o", stats, "--quiet"]
    run_process(fit)
    theirs = [sys.executable, "-c", THEIR_FIT, _ADDRESS, store]
    return _Work(
        f"Fitting a {_describe(kind)}", "`fit bn`", "dask.array's mean and var", fit, theirs, [store, stats]
    )


def _prepare_apply(store: str, kind: str) -> _Work:
    """Return what normalizes a store with its statistics, beside arithmetic of dask.array."""
    *_, stats = _prepare_fit(store, kind).plain
    ours, other, plain = (str(Path(store).with_name(name)) for name in WRITTEN)
    apply = [*NORMCLI, "apply", stats, store, "-o", ours, "--overwrite", "--quiet"]
    theirs = [sys.executable, "-c", THEIR_SCALING, _ADDRESS, store, stats, other]
    title = f"Normalizing a {_describe(kind)}"
    return _Work(title, "`apply`", "dask.array's scaling", apply, theirs, [store, stats, plain])


_ADDRESS = "ADDRESS"
"""Stands for that of a cluster."""


class _Work(NamedTuple):
    """A verb beside dask's own arithmetic.

    Parameters
    ----------
    title, name, their_name : str
    ours, theirs : list of str
        The commands.
    plain : list of str
        A store, a stats file, and perhaps a store to be written, of `tests.bench.plain`.
    """

    title: str
    name: str
    their_name: str
    ours: list[str]
    theirs: list[str]
    plain: list[str]


def _measure(work: _Work, kind: str, runs: int) -> Table:
    """Return the seconds of a verb without a cluster and on two, and of dask's own work, and what workers had.

    In the same rounds, one and two plain processes do the work of one and two workers: how much faster two are is
    what the machine gives, whoever else works on it.
    """
    folder = Path(work.plain[0]).parent
    with ExitStack() as clusters:
        one, two, other = (clusters.enter_context(_start(workers, folder)) for workers in (1, 2, 2))
        peaks: list[list[int]] = [[], [], [], []]
        scheduled = [*work.ours, "--scheduler", _ADDRESS]
        works = [
            lambda: peaks[0].append(measure_peak(work.ours)),
            lambda: peaks[1].append(one.run(scheduled)),
            lambda: peaks[2].append(two.run(scheduled)),
            lambda: peaks[3].append(other.run(work.theirs)),
            lambda: _run_plain(1, work.plain),
            lambda: _run_plain(2, work.plain),
        ]
        times = take_turns(works, runs, unmeasured=0)
    for name in WRITTEN:
        shutil.rmtree(folder / name, ignore_errors=True)
    scales, control = compare(times[1], times[2]), compare(times[4], times[5])
    names = [f"{work.name}, {where}" for where in ("no cluster", "1 worker", "2 workers")]
    names += [f"{work.their_name}, 2 workers", *(f"the same blocks, {n} without dask" for n in _PROCESSES)]
    rows = []
    for place, name in enumerate(names):
        over = compare(times[place], times[3])
        scaling = {2: f"{scales:.2f}", 5: f"{control:.2f}"}.get(place, "–")
        peak = f"{max(peaks[place]) // MIB}" if place < len(peaks) else "–"
        cells = (name, f"{median(times[place]):.1f}", f"{over:.2f}", scaling, peak)
        scaled = kind != "zstd" or scales >= min(SCALES, control)
        rows.append(Row(cells, place != 2 or (over <= 1.0 and scaled)))
    scaling = f"one : two ({SCALES:g} of zstd, or what two processes have)"
    columns = ("work", "s", "over dask's (2 workers: 1)", scaling, "MiB of a process")
    return Table(work.title, columns, rows)


_PROCESSES = ("1 process", "2 processes")


def _run_plain(count: int, words: Sequence[str]) -> None:
    """Run the processes that share nothing, to their ends."""
    store, _, *target = words
    if target:
        shutil.rmtree(target[0], ignore_errors=True)
        stored = open_source(store)
        create_array(Path(target[0]), None, tuple(stored.array.shape), stored.array.dtype, stored)
    command = [sys.executable, "-m", "tests.bench.plain"]
    started = [subprocess.Popen([*command, str(number), str(count), *words]) for number in range(count)]
    codes = [process.wait() for process in started]
    if any(codes):
        raise RuntimeError("a plain process failed")


def _describe(kind: str) -> str:
    return f"Zarr store of {SIZE >> 20} MiB float32, {kind}, on dask: workers of one processor each, seconds and ratios"


def write(path: Path, kind: str) -> str:
    """Write a store of readings in a few digits, unless it is there, and return its path."""
    import zarr

    if path.exists():
        return str(path)
    samples, sample = SIZE // (4 * CHANNELS * SIDE * SIDE), (CHANNELS, SIDE, SIDE)
    compressors = None if kind == "uncompressed" else "auto"
    chunks = (PER_CHUNK, *sample)
    array = zarr.create_array(
        str(path), shape=(samples, *sample), chunks=chunks, dtype="float32", compressors=compressors
    )
    draw = np.random.default_rng(0)
    for start in range(0, samples, PER_CHUNK):
        block = draw.standard_normal(chunks, dtype=np.float32)
        array[start : start + PER_CHUNK] = np.round(block, 2)  # readings have few digits, and compress
    return str(path)


class _Cluster(NamedTuple):
    """A scheduler and workers that run.

    Parameters
    ----------
    address : str
    workers : tuple of int
        The numbers of their processes.
    """

    address: str
    workers: tuple[int, ...]

    def run(self, command: Sequence[str]) -> int:
        """Run a command, and return the most memory that one of the workers had meanwhile, in bytes."""
        for number in self.workers:
            Path(f"/proc/{number}/clear_refs").write_text("5")  # the peak starts anew
        run_process([self.address if word == _ADDRESS else word for word in command])
        return max(map(_read_peak, self.workers))


def _read_peak(number: int) -> int:
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@contextmanager
def _start(workers: int, folder: Path) -> Iterator[_Cluster]:
    """Start a scheduler and workers of one thread, on one processor each.

    A worker of dask's own work would unpack chunks in threads on all processors otherwise, and do the work of two.
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
        yield _Cluster(address, tuple(process.pid for process in started[1:]))
    finally:
        for process in started:
            process.kill()
            process.wait()
