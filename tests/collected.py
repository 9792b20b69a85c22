"""Tests that were collected once, and run again and again in forks of their process: what `tests.mutation` is quick by.

A fork puts the functions of a changed module in the place of those that everybody has imported, and runs the tests that it is told.
A change outside functions (of a constant, a default, a class) cannot be put in place so: it needs a process that imports it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import multiprocessing
import os
import resource
import signal
import sys
import time
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

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


def run_pytest(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], plugins: Sequence[object] = ()
) -> int:
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
    return pytest.main([*options, *ignored, *arguments], list(plugins))


def outside_functions(source: str) -> str:
    """Return the tree of a module without the bodies of its functions: equal for two, one can be put in place of the other."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = []
    return ast.dump(tree)


class Functions:
    """All functions that this process has, and all that keep what they returned."""

    def __init__(self):
        gc.unfreeze()  # what conftest.py hides
        everything = gc.get_objects()
        self.functions = [one for one in everything if isinstance(one, FunctionType)]
        self.keepers = [one for one in everything if isinstance(one, functools._lru_cache_wrapper)]

    def change(self, path: Path, after: str) -> None:
        """Give the functions of a module their code after a change; forget what they returned before."""
        changed = {_place(code): code for code in _codes(compile(after, str(path), "exec"))}
        for function in self.functions:
            if function.__code__.co_filename == str(path):
                with contextlib.suppress(KeyError):
                    function.__code__ = changed[_place(function.__code__)]
        for keeper in self.keepers:
            keeper.cache_clear()


def _place(code: CodeType) -> tuple[str, int, tuple[str, ...]]:
    return code.co_qualname, code.co_firstlineno, code.co_freevars


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


class Collected:
    """A process of its own that has the tests of some folders collected."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: dict[str, str]):
        self.connection, theirs = multiprocessing.Pipe()
        if os.fork() == 0:
            try:
                self.connection.close()
                run_pytest(arguments, folder, environment, [_Server(theirs)])
            finally:
                os._exit(1)
        theirs.close()

    def passes(
        self, names: Sequence[str], environment: dict[str, str], path: Path, after: str, seconds: int
    ) -> bool:
        """Whether tests pass, and the examples of a module, after a change of functions of this module."""
        self.connection.send((names, environment, path, after, seconds))
        return self.connection.recv()


class _Server:
    def __init__(self, connection: Connection):
        self.connection = connection

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        functions = Functions()
        with contextlib.suppress(EOFError):
            while True:
                names, environment, path, after, seconds = self.connection.recv()
                items = self._choose(session, names, path)

                def run(items=items, environment=environment, path=path, after=after) -> bool:
                    os.environ.update(environment)
                    functions.change(path, after)
                    return self._run(session, items)

                self.connection.send(forked(run, seconds))
        return True

    def _choose(self, session: pytest.Session, names: Sequence[str], path: Path) -> list[pytest.Item]:
        by_name = {item.nodeid: item for item in session.items}
        examples = [item for item in session.items if item.path == path]
        return [*examples, *(by_name[name] for name in names if name in by_name)]

    def _run(self, session: pytest.Session, items: Sequence[pytest.Item]) -> bool:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return False
        return True
