"""Shared fixtures: the command line in this process, and the seed cases."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
import pytest
from _pytest.doctest import DoctestModule

from normcli.cli.run import run
from normcli.compiled import COMPILED, NUMPY, VARIABLE, find_kernel
from normcli.documents.document import View
from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.errors import NormError
from normcli.language import choose_language
from normcli.norms.plan import Plan, make_plan
from normcli.results.arguments import Problem
from normcli.tensors.tensor import Tensor
from normcli.writers import write
from tests.marks import EVERY_CASE, sample
from tests.served import serve

if TYPE_CHECKING:
    from normcli.norms.request import Request
    from normcli.tensors.residual import Addends

if sys.dont_write_bytecode:
    # Kept all the same, and apart: hundreds of processes that tests start would each compile all that they import.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parent.parent / ".pytest_cache" / "compiled")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

os.environ["LANGUAGE"] = "en"  # whatever the language of who runs them


def fsync(descriptor):
    """Stand for `os.fsync`, which waits for a disk, and changes nothing that a test sees."""


os.fsync = fsync

ASKED_FOR = ("peers", "browser")
"""Marks of tests that run only where `-m` names the mark: they need more than the [test] extra."""


class Examples:
    """Look for examples in the docstrings of modules that have one, and of no test."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path):
        found = yield
        if file_path.is_relative_to(DATA.parent) or (
            file_path.suffix == ".py" and b">>> " not in file_path.read_bytes()
        ):
            found = [collector for collector in found if not isinstance(collector, DoctestModule)]
        return found


def pytest_configure(config):
    """Draw 25 examples of a property, and 20 in the quick loop."""
    config.pluginmanager.register(Examples())
    quick = "not slow" in (config.getoption("-m") or "")
    hypothesis.settings.register_profile(
        "tests", hypothesis.settings(), max_examples=20 if quick else 25, deadline=None
    )
    hypothesis.settings.load_profile("tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage while thousands of tests are made, nor among them later: nothing of it is freed before the end.

    Later look for it seldom: tests make little, and each look costs more than what it finds.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """Make no test of a case that is not tried: of products, tens of thousands."""
    result = yield
    asked = metafunc.config.getoption("-m")
    cases = [
        case
        for case in metafunc._calls
        if not any(m.name in ASKED_FOR and m.name not in asked for m in case.marks)
    ]
    if cases:
        metafunc._calls = cases if EVERY_CASE else sample(cases, metafunc.definition)
    return result


def pytest_collection_modifyitems(config, items):
    asked = config.getoption("-m")
    left_out = [item for item in items if any(item.get_closest_marker(m) and m not in asked for m in ASKED_FOR)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
    mark_most_cases_slow(items)


KERNELS = [NUMPY] if find_kernel() is None else [NUMPY, COMPILED]
"""What there is of the kernels, by what `NORMCLI_KERNEL` calls them."""


def mark_most_cases_slow(items):
    """Mark as slow all cases of a test but the first and the last, and of a costly one all but the first.

    Of a test with the mark `all_quick` none is: each of its cases runs lines of its own, as refusals do.
    """
    cases = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not any(map(item.get_closest_marker, ("slow", "all_quick"))):
            cases[item.path, item.cls, item.originalname].append(item)
    for alike in cases.values():
        kept = alike[:1] if alike[0].get_closest_marker("costly") else {alike[0], alike[-1]}
        for item in alike:
            if item not in kept:
                item.add_marker(pytest.mark.slow)


collect_ignore = ["data/record_torch_stream.py", "data/record_conventions.py"]
collect_ignore += [f"bench/{name}.py" for name in ("merging", "plain", "stores")]
"""Scripts that need frameworks or dask."""

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parent.parent


def pose(
    plan: Plan, x: Any, inputs: Inputs = NO_INPUTS, dy: Any = None, addends: Addends | None = None
) -> Problem:
    """Return the problem of a plan's norm, applied to an array; with dy of its backward pass."""
    tensor = Tensor(np.asanyarray(x), "x", addends=addends)
    return Problem(plan, tensor, inputs, dy=None if dy is None else Tensor(np.asanyarray(dy), "dy"))


def plan_request(request: Request, x: Any) -> Plan:
    """Return the plan of a request for an array."""
    values = np.asarray(x)
    return make_plan(request, values.shape, values.dtype)


def save(folder: Path | str = ".", /, **tensors: Any) -> None:
    """Write tensors to files of a folder, each to the `.npy` of its name."""
    for name, values in tensors.items():
        np.save(Path(folder) / f"{name}.npy", values)


def render(document: Any, view: View | None = None, format_name: str = "table") -> str:
    """Return a document as text."""
    text = io.StringIO()
    write(document, format_name, text, view or View())
    return text.getvalue()


def hold_snapshot(name: str, text: str) -> None:
    """Assert that a text is the one that is kept in a file; with NORMCLI_UPDATE_SNAPSHOTS=1 keep this one."""
    path = DATA / "snapshots" / name
    if os.environ.get("NORMCLI_UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text()


def is_writing(process: subprocess.Popen[bytes], folder) -> bool:
    """Whether a process has a file without a name open in a folder."""
    opened = f"/proc/{process.pid}/fd"
    try:
        names = [os.readlink(f"{opened}/{number}") for number in os.listdir(opened)]
    except FileNotFoundError:
        return False
    return any(name.startswith(f"{folder}/") and name.endswith("(deleted)") for name in names)


@dataclass(frozen=True)
class Ran:
    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        assert self.raw, f"exit code {self.code}: {self.err}"
        return json.loads(self.raw)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def require_refusal(ran: Ran, code: int, told: str) -> None:
    """Assert that a command ended with an exit code, one line that tells why, and no answer."""
    assert (ran.code, ran.raw, len(ran.err.splitlines())) == (code, b"", 1), ran.err
    assert told in ran.err


@pytest.fixture(autouse=True)
def _options_as_they_are_written():
    """Show messages as the code has them, and as the command line does."""
    with NormError.name_options():
        yield


@pytest.fixture
def normcli(capsysbinary, monkeypatch):
    """Run a command line in this process."""

    def call(*arguments: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsysbinary.readouterr()
        code = run([str(argument) for argument in arguments])
        choose_language("en")
        captured = capsysbinary.readouterr()
        return Ran(code, captured.out, captured.err.decode())

    return call


@pytest.fixture(scope="session")
def served():
    """An environment whose `normcli` is forked from one that has imported the program, and starts at once."""
    with serve() as environment:
        yield environment


@pytest.fixture(scope="module", params=KERNELS)
def either_kernel(request):
    """Run tests by each kernel that is there: `usefixtures("either_kernel")`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, request.param)
        yield request.param


@pytest.fixture
def interruptible():
    """Let processes that a test starts be ended by signals that are ignored here: in the background, under nohup."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def truecolor(monkeypatch):
    """A terminal of 24-bit colours. rich keeps a style's codes from the first terminal that it meets: forget them."""
    from rich.style import Style

    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm")
    Style._add.cache_clear()
    yield
    Style._add.cache_clear()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty folder that the test works in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


@pytest.fixture
def frozen():
    """Make an array that cannot be written to, so that mutation of inputs is caught."""

    def freeze(values: Any) -> np.ndarray:
        array = np.array(values)
        array.setflags(write=False)
        return array

    return freeze


@pytest.fixture
def few_records(monkeypatch):
    """Fold every three records of a group, so that small tensors show what large ones do."""
    monkeypatch.setattr("normcli.engine.tiling.geometry.MOST_RECORDS", 3)
