"""`python -m tests.bench`: measure everything and print a table; `--record` keeps it for README.

Exit code 1 if a figure is above what it may be.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.pairs import Measured, Pair, measure

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = Path(__file__).with_name("results.md")

PYTHON = [sys.executable, "-c"]
NORMCLI = [str(Path(sys.executable).with_name("normcli"))]

PAIRS = (
    Pair(
        "`normcli bn --shape 2,3,4,4`",
        '`python -c "import click, numpy, rich.console, rich.table"`',
        [*NORMCLI, "bn", "--shape", "2,3,4,4"],
        [*PYTHON, "import click, numpy, rich.console, rich.table"],
        1.25,
    ),
    Pair(
        "`normcli --help`",
        '`python -c "import click"`',
        [*NORMCLI, "--help"],
        [*PYTHON, "import click"],
        1.3,
    ),
)


def to_markdown(results: Iterable[Measured]) -> str:
    """Return the results as a table, with the machine they were measured on."""
    lines = ["| work | against | ratio | at most |", "| :--- | :--- | ---: | ---: |"]
    lines += [f"| {r.pair.work} | {r.pair.against} | {r.ratio:.2f} | {r.pair.at_most:g} |" for r in results]
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return "\n".join(
        [*lines, "", f"Medians of paired runs on {machine}; `python -m tests.bench` repeats them.", ""]
    )


def main() -> int:
    """Measure, print, record if asked; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21, help="pairs that count, after one that does not")
    parser.add_argument("--record", action="store_true", help="keep the table for README")
    options = parser.parse_args()
    results = [measure(pair, options.runs) for pair in PAIRS]
    table = to_markdown(results)
    print(table)
    if options.record:
        RECORD.write_text(table)
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
