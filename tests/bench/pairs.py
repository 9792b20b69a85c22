"""Times taken in pairs: A, B, A, B, … so that a machine's drift falls on both alike."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""As users have it: modules are compiled once and not at every start."""


class Row(NamedTuple):
    """A line of a table of measurements.

    Parameters
    ----------
    cells : sequence of str
    ok : bool
        Whether what is measured is within what is allowed.
    """

    cells: Sequence[str]
    ok: bool


class Table(NamedTuple):
    """Measurements of one kind."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]


def take_turns(
    works: Sequence[Callable[[], Any]],
    runs: int,
    unmeasured: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Return the seconds of each work in each of `runs` rounds, after some that do not count."""
    rounds = [[_time(work, clock) for work in works] for _ in range(runs + unmeasured)]
    return [list(column) for column in zip(*rounds[unmeasured:], strict=True)]


def compare(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios, round by round."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def judge(ratio: float, at_most: float | None) -> tuple[str, str, bool]:
    """Return a ratio and its limit as cells, and whether it is kept."""
    return f"{ratio:.2f}", "–" if at_most is None else f"{at_most:g}", at_most is None or ratio <= at_most


def measure_row(
    name: str,
    works: Sequence[Callable[[], Any]],
    runs: int,
    at_most: float | None,
    against: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    digits: int = 2,
) -> Row:
    """Return a name, the median seconds of each work, and the ratio of the first to another, with its limit."""
    times = take_turns(works, runs, clock=clock)
    ratio, limit, ok = judge(compare(times[0], times[against]), at_most)
    return Row((name, *format_seconds(times, digits), ratio, limit), ok)


def format_seconds(times: Sequence[Sequence[float]], digits: int = 2) -> list[str]:
    """Return the median of each work's seconds as a cell."""
    return [f"{median(column):.{digits}f}" for column in times]


def list_works(commands: Sequence[Sequence[str]]) -> list[Callable[[], None]]:
    """Return the run of each command, from start to end."""
    return [functools.partial(run_process, command) for command in commands]


def run_process(command: Sequence[str]) -> None:
    """Run a command to its end."""
    quiet = subprocess.DEVNULL
    subprocess.run(command, stdout=quiet, stderr=quiet, env=_ENVIRONMENT, check=True)


def touch_memory() -> None:
    """Write to most of the free memory once: pages that a virtual machine has not had yet cost more than a copy."""
    code = "import os, numpy; numpy.ones(int(os.sysconf('SC_AVPHYS_PAGES') * 0.7) * 512)"
    run_process([sys.executable, "-c", code])


def measure_peak(command: Sequence[str]) -> int:
    """Run a command and return the most memory that it had, in bytes.

    Through a small process: Linux counts what the one that starts another had by then as the other's.
    """
    run = "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)"
    code = f"import resource, subprocess, sys; {run}; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    words = [sys.executable, "-c", code, *command]
    ran = subprocess.run(words, capture_output=True, env=_ENVIRONMENT, check=True, text=True)
    return int(ran.stdout) * 1024


def measure_peak_of_all(command: Sequence[str]) -> int:
    """Run a command and return the most memory that it and its workers had together, in bytes.

    What they share counts once (the proportional set size); looked at all the time, so a short peak may be missed.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_ENVIRONMENT, start_new_session=True
    )
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(_measure_share, _list_session(process.pid))))
    return most


def _list_session(number: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == number:
                found.append(int(entry.name))
    return found


def _measure_share(number: int) -> int:
    with contextlib.suppress(OSError):
        found = re.search(r"^Pss: +(\d+)", Path(f"/proc/{number}/smaps_rollup").read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
    return 0


def count_processor_seconds() -> float:
    """Return the processor's seconds of all processes that were run: a machine's other work adds little to them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _time(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start
