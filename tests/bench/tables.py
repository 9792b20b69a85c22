"""A table from CSV to CSV, beside what pandas, polars and pyarrow take to read it, or to read and write it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tests.bench.files import MIB, PEAK_AT_MOST
from tests.bench.pairs import (
    Row,
    Table,
    compare,
    judge,
    list_works,
    measure_peak,
    measure_row,
    run_process,
    take_turns,
)
from tests.bench.startup import NORMCLI, PYTHON

if TYPE_CHECKING:
    from argparse import Namespace

SHAPE = (1_000_000, 8)

WITHOUT = [*PYTHON, "import sys; sys.modules['pyarrow'] = None; from normcli.__main__ import main; main()"]
"""The command line as it is without the extra `tables`."""

READ = {
    "pyarrow": "for batch in pyarrow.csv.open_csv(sys.argv[1]): pass",
    "polars": "x = polars.read_csv(sys.argv[1]); x.mean(), x.std()",
    "pandas": "x = pandas.read_csv(sys.argv[1]); x.mean(), x.std()",
}
READ_AND_WRITE = {
    "pyarrow": (
        "source = pyarrow.csv.open_csv(sys.argv[1])\n"
        "with pyarrow.csv.CSVWriter(sys.argv[2], source.schema) as target:\n"
        "    for batch in source: target.write_batch(batch)"
    ),
    "polars": (
        "x = polars.read_csv(sys.argv[1]); every = polars.all()\n"
        "x.select((every - every.mean()) / every.std()).write_csv(sys.argv[2])"
    ),
    "pandas": "x = pandas.read_csv(sys.argv[1]); ((x - x.mean()) / x.std()).to_csv(sys.argv[2], index=False)",
}


class Case(NamedTuple):
    """What is done with a table, the same by others, and the largest ratio to pyarrow."""

    work: str
    arguments: list[str]
    others: dict[str, str]
    at_most: float


CASES = (
    Case("statistics", ["--print", "mean"], READ, 1.5),
    Case("to a file", ["-o", "y.csv"], READ_AND_WRITE, 2.0),
    Case("to a pipe", ["-o", "-", "-f", "csv"], READ_AND_WRITE, 2.0),
)


def measure(options: Namespace) -> list[Table]:
    """Measure a table of numbers, and one with other columns."""
    source, target = options.place / "x.csv", options.place / "y.csv"
    _write_table(source)
    rows = [_measure_case(case, source, target, options.runs) for case in CASES]
    columns = (
        "work", "normcli", "without the extra", *READ, ": pyarrow", "at most", "MiB", "without", "at most",
    )  # fmt: skip
    size = " × ".join(f"{length:,}" for length in SHAPE)
    title = f"`zscore` of a CSV file of {size} numbers: seconds, ratios and peak memory"
    return [Table(title, columns, rows), _measure_parquet(options.place, options.runs)]


def _write_table(path: Path) -> None:
    generator = np.random.default_rng(0)
    with path.open("w") as stream:
        stream.write(",".join("abcdefgh") + "\n")
        for _ in range(SHAPE[0] // 10_000):
            rows = generator.normal(3, 20, (10_000, SHAPE[1])).tolist()
            stream.writelines(",".join(f"{number:.6f}" for number in row) + "\n" for row in rows)


def _measure_case(case: Case, source: Path, target: Path, runs: int) -> Row:
    arguments = ["zscore", "-i", str(source), *case.arguments, "--quiet"]
    arguments = [str(target) if argument == target.name else argument for argument in arguments]
    commands = [[*NORMCLI, *arguments], [*WITHOUT, *arguments]]
    present = [name for name in case.others if find_spec(name) is not None]
    for name in present:
        module = "pyarrow.csv" if name == "pyarrow" else name
        script = f"import sys, {module}\n{case.others[name]}"
        commands.append([sys.executable, "-c", script, str(source), str(target)])
    times = take_turns(list_works(commands), runs)
    seconds = dict(zip(["normcli", "without", *present], times, strict=True))
    ratio, limit, ok = "–", "–", True
    if "pyarrow" in present:
        ratio, limit, ok = judge(compare(seconds["normcli"], seconds["pyarrow"]), case.at_most)
    medians = [
        f"{median(seconds[name]):.2f}" if name in seconds else "–"
        for name in ("normcli", "without", *case.others)
    ]
    peaks = [measure_peak(command) // MIB for command in commands[:2]]
    cells = (case.work, *medians, ratio, limit, *map(str, peaks), str(PEAK_AT_MOST))
    return Row(cells, ok and max(peaks) <= PEAK_AT_MOST)


ROWS = 200_000

BY_PYARROW = (
    "import sys, pyarrow.csv, pyarrow.parquet\n"
    "read = pyarrow.csv.read_csv if sys.argv[1].endswith('.csv') else pyarrow.parquet.read_table\n"
    "pyarrow.parquet.write_table(read(sys.argv[1]), sys.argv[2])"
)


def _measure_parquet(place: Path, runs: int) -> Table:
    """Measure a table with columns that are no numbers, from CSV and from Parquet to Parquet."""
    source, copy, target = (str(place / name) for name in ("x.csv", "x.parquet", "y.parquet"))
    generator = np.random.default_rng(0)
    with open(source, "w") as stream:
        stream.write("id,shop,day,a,b,c,note\n")
        for row, (a, b, c) in enumerate(generator.normal(100, 10, (ROWS, 3)).tolist()):
            others = f"s{row % 977:04d},shop {row % 50},2024-01-{row % 28 + 1:02d}"
            stream.write(f"{others},{a:.4f},{b:.4f},{c:.4f},note {row % 13}\n")
    by_pyarrow = [sys.executable, "-c", BY_PYARROW]
    run_process([*by_pyarrow, source, copy])
    rows = []
    for path in (source, copy):
        ours = [*NORMCLI, "zscore", "-i", path, "--columns", "a,b,c", "-o", target, "--quiet"]
        works = list_works([ours, [*by_pyarrow, path, target]])
        rows.append(measure_row(Path(path).suffix, works, runs, 1.5))
    title = f"`zscore` of 3 of 7 columns of {ROWS:,} rows to Parquet: seconds and ratio"
    return Table(title, ("from", "normcli", "pyarrow, read and write", "ratio", "at most"), rows)
