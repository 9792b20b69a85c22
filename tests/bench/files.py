"""From file to file, beside two floors and a torch script that loads, normalizes and saves.

The floors are `cp` of the same bytes, synced, and a bare copy by positioned calls that begins and ends as an output of
normcli does: room is reserved, for two that write to a growing file wait for each other; it is flushed to the disk and
put in place.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tests.bench.pairs import (
    Row,
    Table,
    compare,
    format_seconds,
    judge,
    list_works,
    measure_peak,
    run_process,
    take_turns,
    touch_memory,
)
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

MIB = 1 << 20
SIZE = 1024 * MIB
PEAK_AT_MOST = 150
GROWTH_AT_MOST = 1.05
READING_AT_MOST = 1.5

SCRIPT = """
import sys, numpy, torch
import torch.nn.functional as f
x = torch.from_numpy(numpy.load(sys.argv[1]))
numpy.save(sys.argv[2], ({}).numpy())
"""


BARE = """
import os, sys, threading
size, step, threads = os.path.getsize(sys.argv[1]), 1 << 20, 2
x, y = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2] + ".part", os.O_WRONLY | os.O_CREAT)
os.posix_fallocate(y, 0, size)
def copy(first):
    buffer = memoryview(bytearray(step))
    for start in range(first * step, size, threads * step):
        os.pwrite(y, buffer[: os.preadv(x, [buffer], start)], start)
workers = [threading.Thread(target=copy, args=(first,)) for first in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
os.fsync(y)
os.rename(sys.argv[2] + ".part", sys.argv[2])
"""


class Case(NamedTuple):
    """A norm of a file of `SIZE`, the same in torch, and the largest ratios to the bare copy and to `cp` and sync."""

    arguments: str
    shape: tuple[int, ...]
    torch: str
    at_most: float | None = 1.15
    synced_at_most: float = 1.1


ROWS, IMAGES = (-1, 1024), (-1, 64, 32, 32)
CASES = (
    Case("ln", ROWS, "f.layer_norm(x, (1024,))"),
    Case("rms", ROWS, "f.rms_norm(x, (1024,), eps=1e-5)"),
    Case("in", IMAGES, "f.instance_norm(x)"),
    Case("gn --groups 8", IMAGES, "f.group_norm(x, 8)"),
    Case("bn", IMAGES, "f.batch_norm(x, None, None, training=True)", None, 1.5),
)
GROWING = ("ln", "bn")


def measure(options: Namespace) -> list[Table]:
    """Measure speed."""
    touch_memory()
    return [_measure_speed(options.place, options.runs), _measure_reading(options.place, options.runs)]


def write_random(path: Path, size: int, shape: tuple[int, ...]) -> None:
    """Write a float32 tensor of so many bytes, a piece at a time."""
    rows = size // 4 // int(np.prod(shape[1:]))
    array = np.lib.format.open_memmap(path, "w+", "f4", (rows, *shape[1:]))
    generator = np.random.default_rng(0)
    step = max(1, rows * MIB // size)
    for start in range(0, rows, step):
        part = array[start : start + step]
        part[...] = generator.standard_normal(part.shape, dtype="f4")
    array.flush()


def _measure_speed(place: Path, runs: int) -> Table:
    rows = []
    x, y = place / "x.npy", place / "y.npy"
    for case in CASES:
        write_random(x, SIZE, case.shape)
        commands = [
            [*NORMCLI, *case.arguments.split(), "-i", str(x), "-o", str(y), "--quiet"],
            [sys.executable, "-c", BARE, str(x), str(y)],
            ["sh", "-c", f"cp '{x}' '{y}' && sync '{y}'"],
            [sys.executable, "-c", SCRIPT.format(case.torch), str(x), str(y)],
        ]

        def run(command: list[str]) -> None:
            y.unlink(missing_ok=True)
            run_process(command)

        *ours, script = [partial(run, command) for command in commands]
        times = [*take_turns(ours, runs), *take_turns([script], 1)]
        bare = judge(compare(times[0], times[1]), case.at_most)
        synced = judge(compare(times[0], times[2]), case.synced_at_most)
        peak = measure_peak(commands[0]) // MIB
        slower = f"{times[3][0] / median(times[0]):.1f}"
        cells = (*format_seconds(times), *bare[:2], *synced[:2], slower, f"{peak}", str(PEAK_AT_MOST))
        rows.append(Row((f"`{case.arguments}`", *cells), bare[2] and synced[2] and peak <= PEAK_AT_MOST))
    columns = (
        "work", "normcli", "bare copy", "`cp`, synced", "torch, once", ": bare copy", "at most", ": `cp`, synced", "at most",
        "torch : normcli", "MiB", "at most",
    )  # fmt: skip
    return Table("From file to file, float32, 1 GiB: seconds, ratios and peak memory", columns, rows)


def _measure_reading(place: Path, runs: int) -> Table:
    """Measure what is read and not written, beside `cat` of the same bytes; what a small file takes aside."""
    x = place / "x.npy"
    write_random(x, SIZE, IMAGES)
    row = compare_with_cat("`bn --print var`", ["bn", "--print", "var", "-i"], [x], runs)
    return Table("Statistics of a file, float32, 1 GiB: seconds", READING_COLUMNS, [row])


READING_COLUMNS = ("work", "normcli", "`cat`", "start-up", "(normcli − start-up) : `cat`", "at most")


def compare_with_cat(name: str, arguments: list[str], paths: list[Path], runs: int) -> Row:
    """Return the time of a command that reads files, beside `cat` of them and the same command on a small file."""
    small = paths[0].with_name("small.npy")
    write_random(small, MIB, np.load(paths[0], mmap_mode="r").shape)
    command = [*NORMCLI, *arguments]
    commands = ([*command, *paths], ["cat", *paths], [*command, small])
    times = take_turns(list_works([[*map(str, words)] for words in commands]), runs)
    ours = [a - b for a, b in zip(times[0], times[2], strict=True)]
    ratio, limit, ok = judge(compare(ours, times[1]), READING_AT_MOST)
    return Row((name, *format_seconds(times), ratio, limit), ok)


def measure_growth(options: Namespace) -> list[Table]:
    """Measure peak memory of files of two sizes."""
    rows = []
    x, y = options.place / "x.npy", options.place / "y.npy"
    for name in GROWING:
        case = next(case for case in CASES if case.arguments == name)
        peaks = []
        for size in (SIZE, 8 * SIZE):
            write_random(x, size, case.shape)
            command = [*NORMCLI, name, "-i", str(x), "-o", str(y), "--quiet"]
            peaks.append(median(measure_peak(command) for _ in range(3)))
        growth, limit, ok = judge(peaks[1] / peaks[0], GROWTH_AT_MOST)
        rows.append(Row((f"`{name}`", *(f"{peak / MIB:.0f}" for peak in peaks), growth, limit), ok))
    columns = ("work", "1 GiB", "8 GiB", "ratio", "at most")
    return [Table("Peak memory as the file grows, MiB", columns, rows)]
