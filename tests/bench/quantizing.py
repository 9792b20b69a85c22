"""`ln --quantize` from file to file, beside `ln` of the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.files import MIB, write_random
from tests.bench.pairs import Row, Table, count_processor_seconds, list_works, measure_peak, measure_row
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

SIZE = 128 * MIB
AT_MOST = 2.0
FORMATS = ("fp8-e4m3", "int8", "mxfp8", "nvfp4")


def measure(options: Namespace) -> list[Table]:
    """Measure each format."""
    write_random(options.place / "x.npy", SIZE, (-1, 1024))
    rows = [_measure(format_name, options.place, options.runs) for format_name in FORMATS]
    columns = ("work", "normcli", "`ln`", "ratio", "at most", "MiB")
    title = "Codes of few bits, from file to file, float32, 128 MiB: processor seconds and ratios"
    return [Table(title, columns, rows)]


def _measure(name: str, place: Path, runs: int) -> Row:
    plain = [*NORMCLI, "ln", "-i", str(place / "x.npy"), "--quiet"]
    quantized = [*plain, "--quantize", name, "-o", str(place / "q.npz")]
    works = list_works((quantized, [*plain, "-o", str(place / "y.npy")]))
    row = measure_row(f"`ln --quantize {name}`", works, runs, AT_MOST, clock=count_processor_seconds)
    return Row((*row.cells, f"{measure_peak(quantized) // MIB}"), row.ok)
