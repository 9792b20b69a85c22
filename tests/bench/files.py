"""From file to file, beside `cp` of the same bytes and a torch script that loads, normalizes and saves."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from tests.bench.pairs import Row, Table, compare, judge, measure_peak, run_process, take_turns
from tests.bench.startup import NORMCLI

MIB = 1 << 20
SIZE = 1024 * MIB
PEAK_AT_MOST = 150
GROWTH_AT_MOST = 1.05

SCRIPT = """
import sys, numpy, torch
import torch.nn.functional as f
x = torch.from_numpy(numpy.load(sys.argv[1]))
numpy.save(sys.argv[2], ({}).numpy())
"""


class Case(NamedTuple):
    """A norm of a file of `SIZE`, the same in torch, and the largest ratios to `cp` and of torch to ours."""

    arguments: str
    shape: tuple[int, ...]
    torch: str
    at_most: float
    faster: float


ROWS, IMAGES = (-1, 1024), (-1, 64, 32, 32)
CASES = (
    Case("ln", ROWS, "f.layer_norm(x, (1024,))", 1.3, 3.0),
    Case("rms", ROWS, "f.rms_norm(x, (1024,), eps=1e-5)", 1.3, 3.0),
    Case("in", IMAGES, "f.instance_norm(x)", 1.3, 3.0),
    Case("gn --groups 8", IMAGES, "f.group_norm(x, 8)", 1.3, 3.0),
    Case("bn", IMAGES, "f.batch_norm(x, None, None, training=True)", 2.2, 2.5),
)
GROWING = ("ln", "bn")


def measure(runs: int, folder: str | None) -> list[Table]:
    """Measure in a temporary folder on the disk of `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        return [_measure_speed(place, runs), _measure_growth(place)]


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
            ["cp", str(x), str(y)],
            ["sh", "-c", f"cp '{x}' '{y}' && sync '{y}'"],
            [sys.executable, "-c", SCRIPT.format(case.torch), str(x), str(y)],
        ]

        def run(command: list[str]) -> None:
            y.unlink(missing_ok=True)
            run_process(command)

        times = take_turns([lambda c=c: run(c) for c in commands], runs)
        ratio, limit, ok = judge(compare(times[0], times[1]), case.at_most)
        faster = compare(times[3], times[0])
        peak = measure_peak(commands[0]) // MIB
        cells = (
            f"`{case.arguments}`", *(f"{median(column):.2f}" for column in times), ratio, limit,
            f"{compare(times[0], times[2]):.2f}", f"{faster:.1f}", f"{case.faster:g}", f"{peak}", str(PEAK_AT_MOST),
        )  # fmt: skip
        rows.append(Row(cells, ok and faster >= case.faster and peak <= PEAK_AT_MOST))
    columns = (
        "work", "normcli", "`cp`", "`cp`, synced", "torch", ": `cp`", "at most", ": `cp`, synced",
        "torch : normcli", "at least", "MiB", "at most",
    )  # fmt: skip
    return Table("From file to file, float32, 1 GiB: seconds, ratios and peak memory", columns, rows)


def _measure_growth(place: Path) -> Table:
    rows = []
    x, y = place / "x.npy", place / "y.npy"
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
    return Table("Peak memory as the file grows, MiB", columns, rows)
