"""Statistics over files, beside `cp` of the same bytes and scikit-learn's `partial_fit` over the same chunks."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.bench.files import MIB, PEAK_AT_MOST, SIZE, write_random
from tests.bench.pairs import Row, Table, compare, judge, measure_peak_of_all, run_process, take_turns
from tests.bench.startup import NORMCLI

FILES = 16
SHAPE = (-1, 64, 64, 64)
AT_MOST, FASTER = 0.5, 5.0

SCRIPT = """
import sys, numpy
from sklearn.preprocessing import StandardScaler
scaler = StandardScaler()
for name in sys.argv[1:]:
    scaler.partial_fit(numpy.moveaxis(numpy.load(name), 1, -1).reshape(-1, 64))
"""


def measure(runs: int, folder: str | None) -> Table:
    """Measure in a temporary folder on the disk of `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        names = [str(place / f"x{i:02}.npy") for i in range(FILES)]
        for path in names:
            write_random(Path(path), SIZE // FILES, SHAPE)
        copies = place / "copies"
        copies.mkdir()
        commands = [
            [*NORMCLI, "fit", "bn", *names, "-o", str(place / "stats.npz"), "--quiet"],
            ["cp", *names, str(copies)],
            [sys.executable, "-c", SCRIPT, *names],
        ]

        def run(command: list[str]) -> None:
            for path in copies.iterdir():
                path.unlink()
            run_process(command)

        times = take_turns([lambda c=c: run(c) for c in commands], runs)
        ratio, limit, ok = judge(compare(times[0], times[1]), AT_MOST)
        faster = compare(times[2], times[0])
        peak = measure_peak_of_all(commands[0]) // MIB
    cells = (
        "`fit bn`", *(f"{median(column):.2f}" for column in times), ratio, limit,
        f"{faster:.1f}", f"{FASTER:g}", f"{peak}", str(PEAK_AT_MOST),
    )  # fmt: skip
    columns = (
        "work", "normcli", "`cp`", "scikit-learn", ": `cp`", "at most", "scikit-learn : normcli", "at least",
        "MiB", "at most",
    )  # fmt: skip
    title = f"Statistics over {FILES} files, float32, 1 GiB: seconds, ratios and peak memory"
    return Table(title, columns, [Row(cells, ok and faster >= FASTER and peak <= PEAK_AT_MOST)])
