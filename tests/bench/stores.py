"""Statistics over a Zarr store on clusters of dask, beside dask.array's own mean and variance on the same ones."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.files import MIB
from tests.bench.pairs import Row, Table, compare, measure_peak_of_all, run_process, take_turns
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 1 << 30
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
    with tempfile.TemporaryDirectory(dir=folder) as name:
        return [_measure_store(Path(name), kind, runs) for kind in ("uncompressed", "zstd")]


def _measure_store(folder: Path, kind: str, runs: int) -> Table:
    store = _write(folder / f"{kind}.zarr", kind)
    with ExitStack() as clusters:
        one, two = (clusters.enter_context(_start(workers, folder)) for workers in (1, 2))
        stats = str(folder / "stats.npz")
        fit = [*NORMCLI, "fit", "bn", store, "-o", stats, "--quiet"]
        apply = [*NORMCLI, "apply", stats, store, "-o", str(folder / "y.zarr"), "--overwrite", "--quiet"]
        commands = {
            "`fit bn`, no cluster": fit,
            "1 worker": [*fit, "--scheduler", one],
            "2 workers": [*fit, "--scheduler", two],
            "dask.array's mean and var, 2 workers": [sys.executable, "-c", THEIRS, two, store],
            "`apply`, no cluster": apply,
            "1 worker ": [*apply, "--scheduler", one],
            "2 workers ": [*apply, "--scheduler", two],
        }
        names = list(commands)
        times = dict(
            zip(names, take_turns([lambda c=c: run_process(c) for c in commands.values()], runs), strict=True)
        )
    rows = []
    for name in names:
        over_theirs = compare(times[name], times[names[3]]) if names.index(name) < 3 else None
        scales = compare(times["1 worker"], times[name]) if name == "2 workers" else None
        scales = compare(times["1 worker "], times[name]) if name == "2 workers " else scales
        ok = not (name == "2 workers" and over_theirs is not None and over_theirs > 1.0)
        ok = ok and (scales is None or kind != "zstd" or scales >= SCALES)
        cells = (
            name.strip(),
            f"{float(np.median(times[name])):.1f}",
            "–" if over_theirs is None else f"{over_theirs:.2f}",
            "–" if scales is None else f"{scales:.2f}",
            f"{measure_peak_of_all(fit) // MIB}" if name == names[0] else "–",
        )
        rows.append(Row(cells, ok))
    columns = ("work", "s", "over dask.array's (1)", f"1 worker : 2 ({SCALES:g}, zstd)", "MiB")
    return Table(
        f"A Zarr store of {SIZE >> 20} MiB float32, {kind}, on dask: seconds and ratios", columns, rows
    )


def _write(path: Path, kind: str) -> str:
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
def _start(workers: int, folder: Path) -> Iterator[str]:
    """Start a scheduler and workers of one thread each; yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "distributed.cli"]
    scheduler = [f"{dask[2]}.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = [f"{dask[2]}.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started = [subprocess.Popen([*dask[:2], *scheduler], **quiet)]
    started += [
        subprocess.Popen([*dask[:2], *worker, "--local-directory", str(folder)], **quiet)
        for _ in range(workers)
    ]
    time.sleep(5.0)  # until they know each other
    try:
        yield address
    finally:
        for process in started:
            process.kill()
            process.wait()
