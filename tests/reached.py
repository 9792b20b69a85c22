"""`python -m tests.reached FILE ROOM ...`: which tests run which lines of a room, and how long each takes, kept in a file: by each kernel.

`python -m tests.mutation --reached FILE` then tries a change by the tests that run the changed lines alone. Needs the extra
[coverage]. Lines that run while modules are imported, or in processes that tests start, are no test's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from normcli.compiled import COMPILED, NUMPY, VARIABLE, find_kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parent.parent


@dataclass
class Reached:
    seconds: dict[str, float] = field(default_factory=dict)
    """Processor time that each test took, by its name in pytest; tests are numbered in this order."""
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Numbers of the tests that ran a line, by path of the module and number of the line."""

    @classmethod
    def read(cls, path: Path) -> Reached:
        return cls(**json.loads(path.read_text()))

    def by(self, folder: str, module: str, lines: Iterable[int]) -> list[str]:
        """Return the tests of a folder that ran any of some lines of a module, the quickest first."""
        names, of_module = list(self.seconds), self.lines.get(module, {})
        reaching = {names[test] for line in lines for test in of_module.get(str(line), [])}
        return sorted((name for name in reaching if name.startswith(folder)), key=self.seconds.__getitem__)

    def join(self, other: Reached) -> None:
        """Add the lines that the tests ran in another way."""
        numbers, others = {name: number for number, name in enumerate(self.seconds)}, list(other.seconds)
        for module, lines in other.lines.items():
            of_module = self.lines.setdefault(module, {})
            for line, tests in lines.items():
                ran = {numbers[others[test]] for test in tests if others[test] in numbers}
                of_module[line] = sorted(ran.union(of_module.get(line, [])))

    def within(self, names: Sequence[str], seconds: float) -> list[str]:
        """Return as many of some tests, from the first, as run in a time."""
        ends = accumulate(self.seconds[name] for name in names)
        return [name for name, end in zip(names, ends, strict=True) if end <= seconds]


class Recorder:
    """Tells coverage which test runs."""

    def __init__(self, measured):
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.measured.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - start, 3)
            self.measured.switch_context("")


def record(rooms: Iterable[str]) -> Reached:
    """Run all tests of some rooms, by the kernel that is chosen."""
    from coverage import Coverage

    measured = Coverage(
        data_file=None, config_file=False, include=[f"{ROOT}/normcli/{room}/*" for room in rooms]
    )
    recorder = Recorder(measured)
    measured.start()
    try:
        pytest.main(["-q", "-n0", "-p", "no:cacheprovider", *(f"tests/{room}" for room in rooms)], [recorder])
    finally:
        measured.stop()
    data, numbers = measured.get_data(), {name: number for number, name in enumerate(recorder.seconds)}
    lines = {
        str(Path(module).relative_to(ROOT)): {
            str(line): [numbers[name] for name in names if name]
            for line, names in sorted(data.contexts_by_lineno(module).items())
        }
        for module in sorted(data.measured_files())
    }
    return Reached(recorder.seconds, lines)


def record_by_each_kernel(file: Path, rooms: list[str]) -> None:
    """Record in a process for each kernel, and write what was recorded together."""
    whole: Reached | None = None
    for kernel in [NUMPY, *([] if find_kernel() is None else [COMPILED])]:
        command = [sys.executable, "-m", "tests.reached", "--one", str(file), *rooms]
        subprocess.run(command, cwd=ROOT, env={**os.environ, VARIABLE: kernel}, check=True)
        found = Reached.read(file)
        if whole is not None:
            found.join(whole)
        whole = found
    file.write_text(json.dumps(asdict(whole)))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        Path(sys.argv[2]).write_text(json.dumps(asdict(record(sys.argv[3:]))))
    else:
        record_by_each_kernel(Path(sys.argv[1]).resolve(), sys.argv[2:])
