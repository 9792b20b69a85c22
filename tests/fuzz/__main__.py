"""`python -m tests.fuzz`: damaged files, for as long as it is told; a line for each finding, then a table.

    python -m tests.fuzz --seconds 600
    python -m tests.fuzz csv json --cases 100000 --first 2000
    python -m tests.fuzz csv --case 4711        one case again; the damaged file stays in the current folder

Exit code 1 if anything was found.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.runner import Fuzzer, limit_memory
from tests.fuzz.samples import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AT_ONCE = 500
"""Cases that a process runs before it ends: memory and open files cannot add up, and a crash loses these alone."""


def _run_cases(name: str, numbers: Sequence[int], keep: Path | None = None) -> Iterator[str]:
    """Run cases in this process; yield a line for each that went wrong."""
    limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        for found in Fuzzer(name, Path(folder), keep).try_cases(numbers):
            yield f"{name} --case {found.number}: {found.arguments}: {found.problem}"


def _run_apart(name: str, first: int) -> list[str]:
    """Run cases in a process of their own; return a line for each that went wrong."""
    command = [sys.executable, "-m", "tests.fuzz", name, "--first", str(first), "--here"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode:
        last = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        lines.append(f"{name} --first {first} --here: the process crashed: {last[-1]}")
    return lines


def _run_all(chunks: Iterator[tuple[str, int]], until: float, workers: int) -> int:
    """Run chunks until they or the time are over; print findings as they come, then a table; return how many."""
    counts: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        while time.monotonic() < until and (batch := list(itertools.islice(chunks, 4 * workers))):
            for (name, _), lines in zip(batch, pool.map(lambda chunk: _run_apart(*chunk), batch), strict=True):
                counts[name] += _AT_ONCE
                findings[name] += len(lines)
                print(*lines, sep="\n", end="\n" * bool(lines), flush=True)
    print("\n| format | damaged files | findings |\n| :--- | ---: | ---: |")
    for name, count in counts.items():
        print(f"| {name} | {count:,} | {findings[name]} |")
    print(f"| all | {counts.total():,} | {findings.total()} |")
    return findings.total()


def main() -> int:
    """Run the cases; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(FORMATS)} [default: all]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new cases after so long")
    parser.add_argument("--cases", type=int, help="of each format, in steps of 500 [default: no end]")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument(
        "--here", action="store_true", help="the first 500 cases of one format, in this process"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="[default: one a processor]")
    options = parser.parse_args()
    formats = options.formats or list(FORMATS)
    if options.case is not None:
        lines = list(_run_cases(formats[0], [options.case], keep=Path.cwd()))
        print(*lines or ["nothing is wrong with it"], sep="\n")
        return bool(lines)
    if options.here:
        for line in _run_cases(formats[0], range(options.first, options.first + _AT_ONCE)):
            print(line, flush=True)
        return 0
    starts = itertools.count(options.first, _AT_ONCE)
    if options.cases is not None:
        starts = itertools.takewhile(lambda start: start < options.first + options.cases, starts)
    chunks = ((name, first) for first in starts for name in formats)
    return bool(_run_all(chunks, time.monotonic() + options.seconds, options.processes))


if __name__ == "__main__":
    sys.exit(main())
