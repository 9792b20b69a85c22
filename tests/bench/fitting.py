"""Statistics over files, beside `cat` of the same bytes and scikit-learn's `partial_fit` over the same chunks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.bench.files import MIB, PEAK_AT_MOST, READING_COLUMNS, SIZE, compare_with_cat, write_random
from tests.bench.pairs import Row, Table, compare, list_works, measure_peak_of_all, take_turns
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from argparse import Namespace

FILES = 16
SHAPE = (-1, 64, 64, 64)
FASTER = 5.0

SCRIPT = """
import sys, numpy
from sklearn.preprocessing import StandardScaler
scaler = StandardScaler()
for name in sys.argv[1:]:
    scaler.partial_fit(numpy.moveaxis(numpy.load(name), 1, -1).reshape(-1, 64))
"""


def measure(options: Namespace) -> list[Table]:
    """Measure 16 files."""
    paths = [options.place / f"x{i:02}.npy" for i in range(FILES)]
    for path in paths:
        write_random(path, SIZE // FILES, SHAPE)
    arguments, names = ["fit", "bn", "-o", str(options.place / "stats.npz"), "--quiet"], [*map(str, paths)]
    fit = [*NORMCLI, *arguments, *names]
    row = compare_with_cat("`fit bn`", arguments, paths, options.runs)
    ours, theirs = take_turns(list_works((fit, [sys.executable, "-c", SCRIPT, *names])), options.runs)
    faster, peak = compare(theirs, ours), measure_peak_of_all(fit) // MIB
    cells = (*row.cells, f"{faster:.1f}", f"{FASTER:g}", f"{peak}", str(PEAK_AT_MOST))
    columns = (*READING_COLUMNS, "scikit-learn : normcli", "at least", "MiB", "at most")
    title = f"Statistics over {FILES} files, float32, 1 GiB: seconds, ratios and peak memory"
    return [Table(title, columns, [Row(cells, row.ok and faster >= FASTER and peak <= PEAK_AT_MOST)])]
