"""`python -m tests.bench`: measure everything and print tables; `--record` keeps them in results.md.

Exit code 1 if a figure is above what it may be: such a line is marked. torch is needed (the extra [peers]), and room
for 18 GiB in the folder that `--folder` names; tables are measured beside those of pandas, polars and pyarrow that are
installed (the extra [bench]). `judge` asks `identify` of what the frameworks of [peers] make. `search --seconds 3600` looks for results that are less exact than is specified.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.bench.pairs import Table

RECORD = Path(__file__).with_name("results.md")

SECTIONS = {
    "startup": "startup.measure",
    "memory": "in_memory.measure",
    "files": "files.measure",
    "growth": "files.measure_growth",
    "quantizing": "quantizing.measure",
    "fit": "fitting.measure",
    "tables": "tables.measure",
    "stores": "stores.measure",
    "merging": "merging.measure",
    "models": "models.measure",
    "planted": "planted.measure",
    "search": "search.measure",
    "judge": "judge.measure",
}
"""The function that measures each, of the options; its module may need zarr, dask, torch or other peers."""


def to_markdown(tables: Iterable[Table]) -> str:
    """Return the results as tables, with the machine they were measured on."""
    lines: list[str] = []
    for table in tables:
        columns = [*table.columns, ""]
        lines += [f"**{table.title}**", "", f"| {' | '.join(columns)} |"]
        lines.append(f"|{' :--- |'}{' ---: |' * (len(columns) - 1)}")
        lines += [f"| {' | '.join([*row.cells, '' if row.ok else '✗'])} |" for row in table.rows]
        lines.append("")
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    note = f"Medians of paired runs on {machine}, a shared machine; `python -m tests.bench` repeats them. ✗: above what was aimed at."
    return "\n".join([*lines, note, ""])


def put_in_place(new: str, old: str) -> str:
    """Return the old results with the new tables in the place of those with the same titles, or behind them."""
    *before, _ = _split(old)
    *tables, note = _split(new)
    return "".join([*{part.split("\n", 1)[0]: part for part in (*before, *tables)}.values(), note])


def _split(text: str) -> list[str]:
    """Return the tables of results, each from its title on, and the note behind them."""
    return re.split(r"^(?=\*\*|Medians of)", text, flags=re.MULTILINE)


def main() -> int:
    """Measure, print, record if asked; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--runs", type=int, default=7, help="rounds that count, after one that does not")
    add("--record", action="store_true", help="keep the tables in results.md, in the place of those before")
    add("--folder", help="where the files are written, and stores stay [default: the temporary folder]")
    add("--seconds", type=float, default=600, help="how long to search [default: 600]")
    cells = 'search cells of this name alone: "ln, float64" or "ln, float64, rows"; of stores: "zstd, fit"'
    add("--cell", action="append", default=[], help=cells)
    add("--verdicts", type=Path, help="a file of what `judge` found so far, which it goes on from")
    only = 'judge plants of this kind, or of faults whose id begins so: "a fault, checked", "stats-padded"'
    add("--only", action="append", default=[], help=only)
    add("--every", type=int, default=1, metavar="N", help="judge every N-th plant [default: 1]")
    add("sections", nargs="*", help=f"of {', '.join(SECTIONS)} [default: all]")
    options = parser.parse_args()
    chosen = options.sections or SECTIONS
    if unknown := [name for name in chosen if name not in SECTIONS]:
        filtered = "; plants are chosen by --only" if "judge" in chosen else ""
        parser.error(f"no section is {', '.join(unknown)}; sections: {', '.join(SECTIONS)}{filtered}")
    is_good = True
    for section in (name for name in SECTIONS if name in chosen):
        try:
            measured = _measure(section, options)
        except ValueError as error:
            parser.error(f"--only: {error}")
        text = to_markdown(measured)
        print(text, flush=True)
        if options.record:  # section by section, since later ones may be interrupted
            RECORD.write_text(put_in_place(text, RECORD.read_text()))
        is_good = is_good and all(row.ok for table in measured for row in table.rows)
    return 0 if is_good else 1


def _measure(section: str, options: argparse.Namespace) -> list[Table]:
    """Return the tables of a section, measured in a temporary folder on the disk of `options.folder`."""
    module, function = SECTIONS[section].split(".")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        options.place = Path(name)
        return getattr(import_module(f"tests.bench.{module}"), function)(options)


if __name__ == "__main__":
    sys.exit(main())
