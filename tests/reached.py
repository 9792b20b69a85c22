"""`python -m tests.reached FILE ROOM ...`: which tests run which lines of a room, and how long each takes, kept in a file.

`python -m tests.mutation --reached FILE` then tries a change by the tests that run the changed lines alone. Needs the extra
[coverage]. Lines that run while modules are imported, or in processes that tests start, are no test's.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
    """Run all tests of some rooms."""
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


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asdict(record(sys.argv[2:]))))
