"""`ln --quantize` from file to file, beside `ln` of the same file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from tests.bench.files import MIB, write_random
from tests.bench.pairs import (
    Row,
    Table,
    compare,
    count_processor_seconds,
    judge,
    measure_peak,
    run_process,
    take_turns,
)
from tests.bench.startup import NORMCLI

SIZE = 128 * MIB
AT_MOST = 2.0
FORMATS = ("fp8-e4m3", "int8", "mxfp8", "nvfp4")


def measure(runs: int, folder: str | None) -> Table:
    """Measure each format in a temporary folder on the disk of `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write_random(place / "x.npy", SIZE, (-1, 1024))
        rows = [_measure(format_name, place, runs) for format_name in FORMATS]
    columns = ("work", "normcli", "`ln`", "ratio", "at most", "MiB")
    return Table(
        "Codes of few bits, from file to file, float32, 128 MiB: processor seconds and ratios", columns, rows
    )


def _measure(name: str, place: Path, runs: int) -> Row:
    plain = [*NORMCLI, "ln", "-i", str(place / "x.npy"), "--quiet"]
    quantized = [*plain, "--quantize", name, "-o", str(place / "q.npz")]
    commands = (quantized, [*plain, "-o", str(place / "y.npy")])
    times = take_turns([lambda c=c: run_process(c) for c in commands], runs, clock=count_processor_seconds)
    ratio, limit, ok = judge(compare(*times), AT_MOST)
    peak = measure_peak(quantized) // MIB
    cells = (f"`ln --quantize {name}`", *(f"{median(column):.2f}" for column in times), ratio, limit, f"{peak}")
    return Row(cells, ok)
