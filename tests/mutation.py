"""`python -m tests.mutation --sample 400 --seed 1`: change the program at random places and see whether its own tests fail.

Each change (a mutant: another operator, another number, a negated condition, a loop that never runs, a decorator less) is made
in a copy of the checkout, by the operators of cosmic-ray (the extra [mutation]). Then the tests run in a process of their own,
those nearest to the change first: `tests/ROOM/test_MODULE.py`, the quick tests of the room, all tests of the room. What none of them
notices has survived, and is printed with its place. Places are drawn with equal chances, then what is changed there.

`--results FILE` keeps what was found, and goes on from there; `--seconds` ends a run in time. `mutation.md` in `tests/bench`
has what the last long run found, and why what survived did.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from normcli.compiled import COMPILED, VARIABLE, find_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

ROOT = Path(__file__).parent.parent

ROOMS = ("norms", "numerics", "fitting", "checking", "identifying", "doctor", "golden")

IGNORED = (".*", "build", "*.egg-info", "__pycache__", "samples")
"""What the copy goes without."""


@dataclass(frozen=True)
class Mutant:
    module: str
    """Path of the changed file, from the root."""
    line: int
    """Line of the change, from 1."""
    column: int
    operator: str
    """Which change, by its name in cosmic-ray."""
    occurrence: int
    """Number of the place among those of the operator in the file."""

    @property
    def room(self) -> str:
        return Path(self.module).parts[1]

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line}:{self.column} {self.operator} {self.occurrence}"


@dataclass(frozen=True)
class Found:
    """What came of a mutant: `by` names the tests that noticed it, or says that none did."""

    name: str
    room: str
    place: str
    before: str
    after: str
    by: str


SURVIVED, ROOM = "none", "room"

SAME = ("core/ReplaceComparisonOperator_Is_Eq", "core/ReplaceComparisonOperator_IsNot_NotEq")
"""Changes that mean nothing: what is compared by `is` is None, or of an enumeration."""

UNCHANGED = "unchanged"
"""Said of tests that ran without a change, and of changes that mean nothing."""

COMPILED_KERNEL = {VARIABLE: COMPILED}
NUMPY = {VARIABLE: "numpy"}
"""Environment of most tests: beside the compiled kernel, what is changed may not run."""


def find_mutants(rooms: Iterable[str]) -> Iterator[list[Mutant]]:
    """Yield, for each place that can be changed, the changes that can be made there."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    operators = [(name, get_operator(name)) for name in operator_names()]
    operators = [(name, operator()) for name, operator in operators if not operator.arguments()]
    for path in sorted(path for room in rooms for path in (ROOT / "normcli" / room).glob("*.py")):
        places: dict[tuple[int, int], list[Mutant]] = {}
        nodes = list(ast_nodes(get_ast(path.read_text())))
        for name, operator in operators:
            positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, (line, column) in enumerate(positions):
                mutant = Mutant(str(path.relative_to(ROOT)), line, column, name, occurrence)
                places.setdefault((line, column), []).append(mutant)
        yield from places.values()


def change(mutant: Mutant) -> tuple[str, str]:
    """Return a module before and after the change; equal if the change means nothing: of annotations, or no Python."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    before = (ROOT / mutant.module).read_text()
    after = mutate_code(before, get_operator(mutant.operator)(), mutant.occurrence) or before
    try:
        same = _meaning(after) == _meaning(before)
    except SyntaxError:
        same = True
    return before, before if same or mutant.operator in SAME else after


def _meaning(source: str) -> str:
    """Return the tree of a module without its annotations, what is imported for them, and the `strict` of `zip`: nothing follows of them."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.test = ast.Constant(value=False)
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def draw(rooms: Iterable[str], seed: int) -> Iterator[Mutant]:
    """Yield mutants at random places, the same for the same seed."""
    drawn, places = random.Random(seed), list(find_mutants(rooms))
    drawn.shuffle(places)
    for mutants in places:
        yield drawn.choice(mutants)


def stages(mutant: Mutant) -> Iterator[tuple[str, list[str], dict[str, str], int]]:
    """Yield the tests that may notice a mutant: their name, the arguments of pytest, their environment, seconds of processor time."""
    room = mutant.room
    nearest = f"tests/{room}/test_{Path(mutant.module).name}"
    quick = [f"tests/{room}", f"normcli/{room}", "-m", "not slow"]
    if (ROOT / nearest).exists():
        yield "module", [nearest, mutant.module], NUMPY, 60
    yield "quick tests of the room", quick, NUMPY, 120
    if find_kernel() is not None:
        yield "compiled kernel", quick, COMPILED_KERNEL, 120
    yield ROOM, [f"tests/{room}"], NUMPY, 400


def try_mutant(mutant: Mutant, copy: Path, clock: Iterator[int]) -> Found:
    """Change the copy, run the tests until some fail, change the copy back."""
    before, after = change(mutant)
    if before == after:
        return Found(mutant.name, mutant.room, f"{mutant.module}:{mutant.line}", "", "", UNCHANGED)
    path = copy / mutant.module
    _write(path, after, clock)
    try:
        runs = ((name, passes(arguments, copy, *how)) for name, arguments, *how in stages(mutant))
        found = next((name for name, passed in runs if not passed), SURVIVED)
    finally:
        _write(path, before, clock)
    lines = [
        line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith(("-", "+"))
    ]
    old, new = (" ".join(line[2:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return Found(mutant.name, mutant.room, f"{mutant.module}:{mutant.line}", old, new, found)


def try_unchanged(room: str, copy: Path) -> Found:
    """Run the tests of a room as it is: only then do tests that fail say anything."""
    if not passes([f"tests/{room}", f"normcli/{room}"], copy, NUMPY, 900):
        sys.exit(f"tests of {room} fail without any change")
    return Found(f"{UNCHANGED} {room}", room, UNCHANGED, "", "", UNCHANGED)


def _write(path: Path, text: str, clock: Iterator[int]) -> None:
    """Write a file with a time of its own, by which Python knows that what it compiled before is of another one."""
    path.write_text(text)
    now = next(clock)
    os.utime(path, (now, now))


def passes(arguments: list[str], folder: Path, environment: dict[str, str], seconds: int) -> bool:
    """Whether tests pass in a process that is forked from this one, so that pytest and NumPy need not be imported again."""
    no_tests = pytest.ExitCode.NO_TESTS_COLLECTED
    return forked(lambda: run_pytest(arguments, folder, environment) in (0, no_tests), seconds)


MEMORY = 8 << 30
"""Bytes that the tests of a fork may take: a changed size may be any."""


def forked(run: Callable[[], bool], seconds: int) -> bool:
    """Whether something comes out true in a fork of this process, in so many seconds of processor time."""
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            os._exit(0 if run() else 1)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 10 * seconds  # the machine may have other work
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # and what the tests started
    if not done:
        os.waitpid(process, 0)
    return bool(done) and status == 0


def run_pytest(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> int:
    """Run pytest on a copy of the checkout, silently and with the same examples each time; return its exit code."""
    hypothesis.settings.register_profile(
        "mutation",
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        database=None,
        derandomize=True,
    )
    hypothesis.settings.load_profile("mutation")
    os.chdir(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "normcli")]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    os.environ.update(environment, PYTHONPATH=str(folder))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=--doctest-modules --import-mode=importlib"]
    ignored = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before
    return pytest.main([*options, *ignored, *arguments])


def report(found: Iterable[Found]) -> str:
    """Return a table by room, and one of what survived, in Markdown."""
    found = sorted((one for one in found if one.by != UNCHANGED), key=lambda one: one.place)
    by_room: dict[str, Counter[str]] = {}
    for one in found:
        by_room.setdefault(one.room, Counter())[one.by] += 1
    lines = [
        "| room | mutants | by the module's tests | by others of the room | survived | killed |",
        "| :--- | ---: | ---: | ---: | ---: | ---: |",
    ]
    total = sum(by_room.values(), Counter())
    for room, counts in [*sorted(by_room.items()), ("all", total)]:
        size, left = counts.total(), counts[SURVIVED]
        of_module = counts["module"]
        share = (size - left) / size if size else 1
        lines.append(
            f"| {room} | {size} | {of_module} | {size - left - of_module} | {left} | {100 * share:.1f} % |"
        )
    lines += ["", "| survivor | before | after |", "| :--- | :--- | :--- |"]
    for one in found:
        if one.by == SURVIVED:
            before, after = (f"`{text.replace('|', chr(92) + '|')}`" for text in (one.before, one.after))
            lines.append(f"| {one.place} | {before} | {after} |")
    return "\n".join(lines)


def keep(found: Found, results: Path | None) -> None:
    """Write what was found to the end of a file."""
    if results:
        with results.open("a") as file:
            file.write(json.dumps(asdict(found), ensure_ascii=False) + "\n")


def main() -> int:
    """Draw, try what was not tried yet, print; return the exit code: 1 if any survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=400, help="how many mutants [default: 400]")
    parser.add_argument("--seed", type=int, default=1, help="of the sample [default: 1]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long to go on")
    parser.add_argument(
        "--results", type=Path, help="a file of what was found so far, which the run goes on from"
    )
    parser.add_argument("--again", action="store_true", help="try what survived once more, as after a new test")
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)} [default: all]")
    options = parser.parse_args()
    known: dict[str, Found] = {}
    if options.results and options.results.exists():
        for line in options.results.read_text().splitlines():
            one = Found(**json.loads(line))
            known[one.name] = one
    until, clock = time.monotonic() + options.seconds, iter(range(int(time.time()), 1 << 40))
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*IGNORED))
        for room in options.rooms:
            if f"{UNCHANGED} {room}" not in known:
                one = try_unchanged(room, copy)
                known[one.name] = one
                keep(one, options.results)
        mutants, left = draw(options.rooms, options.seed), options.sample
        while left and time.monotonic() < until:
            mutant = next(mutants)
            one = known.get(mutant.name)
            if not one or (options.again and one.by == SURVIVED):
                known[mutant.name] = one = try_mutant(mutant, copy, clock)
                print(f"{one.by:30} {one.place}  {one.before}  →  {one.after}", file=sys.stderr, flush=True)
                keep(one, options.results)
            left -= one.by != UNCHANGED
    print(report(known.values()))
    return int(any(one.by == SURVIVED for one in known.values()))


if __name__ == "__main__":
    sys.exit(main())
