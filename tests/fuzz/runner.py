"""One damaged file through one command, in this process; what is wrong with what came of it."""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from normcli.cli.run import run
from tests.fuzz.mutations import mutate, replace
from tests.fuzz.samples import FORMATS, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_SECONDS = 3.0
"""Processor time that a damaged file of a few kilobytes may take."""

MOST_MEMORY = 100 << 20
"""Bytes by which it may raise the most memory that the process has held."""

_HANGS = 60
"""Seconds of the clock after which a case is given up."""

MOST_ADDRESSES = 8 << 30
"""Bytes that a process of the fuzzer may reserve: a case that asks for more is found, before it takes all memory."""

_OUT_OF_MEMORY = ("fit into memory", "Unable to allocate")

_DOCUMENTED = (0, 1, 2, 3, 4)


_REPLACED = 0.1
"""How often a part of a store is replaced by what is no file, or a link."""


class Finding(NamedTuple):
    """A case that went wrong; `python -m tests.fuzz FORMAT --case NUMBER` repeats it."""

    format_name: str
    number: int
    arguments: str
    problem: str


class _Hanging(BaseException):
    """A case takes longer than any may."""


class Fuzzer:
    """The cases of a format, each a function of its number alone.

    Parameters
    ----------
    format_name : str
    folder : Path
        An empty one; it is the current folder while a case runs.
    keep : Path or None
        A folder that damaged files are copied to.
    """

    def __init__(self, format_name: str, folder: Path, keep: Path | None = None) -> None:
        self.name, self.folder, self.keep = format_name, folder, keep
        self.format = FORMATS[format_name]
        with self._work():
            prepare(folder)
            self.samples = list(self.format.make())
            self.whole = f"whole{self.format.suffix}"
            Path(self.whole).write_bytes(self.samples[0])
            for command in self.format.commands:  # so that memory is measured with every module imported
                self._run(self._fill(command, self.whole))
                self._clear()
        self.seconds, self.memory = _measure()

    def try_cases(self, numbers: Sequence[int]) -> Iterator[Finding]:
        """Run cases; yield those that went wrong."""
        with self._work():
            yield from filter(None, map(self._try_case, numbers))

    def _try_case(self, number: int) -> Finding | None:
        """Run a case; return what went wrong, or None."""
        stream = random.Random(f"{self.name} {number}")
        damaged = Path(self.format.inside or f"damaged{self.format.suffix}")
        content = mutate(stream.choice(self.samples), stream.choice(self.samples), stream)
        _remove(damaged)  # which may be a pipe by now
        damaged.write_bytes(content)
        if self.format.is_part and stream.random() < _REPLACED:
            replace(damaged, stream)
        arguments = self._fill(stream.choice(self.format.commands), damaged.name)
        if self.keep is not None and damaged.is_file():
            shutil.copy(damaged, self.keep)
        try:
            code, out, err = self._run(arguments)
            problem = judge(code, out, err)
            if code == 0 and not self.format.believe(content, self.samples):
                problem = problem or "was believed"
        except Exception as error:  # the program translates every error of its own
            problem = f"{type(error).__name__} got out: {error}"
        except _Hanging:
            problem = f"was still running after {_HANGS} s"
        seconds, memory = _measure()
        if problem is None and seconds - self.seconds > MOST_SECONDS:
            problem = f"took {seconds - self.seconds:.1f} s"
        if problem is None and memory - self.memory > MOST_MEMORY:
            problem = f"took {memory - self.memory >> 20} MiB"
        self.seconds, self.memory = seconds, memory
        left = self._clear()
        if problem is None and left:
            problem = f"left {', '.join(left)} behind"
        return None if problem is None else Finding(self.name, number, " ".join(arguments), problem)

    def _fill(self, command: Sequence[str], file: str) -> list[str]:
        return [part.format(file=file, whole=self.whole, out="out") for part in command]

    def _run(self, arguments: Sequence[str]) -> tuple[int, bytes, str]:
        """Run a command line; return its exit code and what it wrote."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        before = signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(_HANGS)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(list(arguments))
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        out.flush()
        err.flush()
        return code, out.buffer.getvalue(), err.buffer.getvalue().decode()  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def _work(self) -> Iterator[None]:
        """Make the folder the current one, with nothing to read from standard input."""
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        before = Path.cwd()
        os.chdir(self.folder)
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
        try:
            yield
        finally:
            sys.stdin = stdin
            os.chdir(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _clear(self) -> list[str]:
        """Remove what a case wrote; return the names of what no command was asked to write."""
        strange = []
        for name in os.listdir():
            if name in ("x.npy", self.whole, *Path(self.format.inside or "").parts[:1]):
                continue
            if not name.startswith(("out.", "damaged.")):
                strange.append(name)
            _remove(Path(name))
        return strange


def _remove(path: Path) -> None:
    """Remove a file, a folder, or what else is there, if anything is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def judge(code: int, out: bytes, err: str) -> str | None:
    """Return what is wrong with how a command ended, or None."""
    lines = err.splitlines()
    if code not in _DOCUMENTED:
        return f"left with {code}: {err.strip()}"
    if any(words in err for words in _OUT_OF_MEMORY):
        return f"ran out of memory: {err.strip()}"
    strange = [line for line in lines if not line.startswith("normcli: ")]
    if strange:
        return f"wrote to standard error: {strange[0]}"
    if any(ord(character) < 32 or character in "\x7f\u202a\u202b\u202d\u202e" for character in "".join(lines)):
        return f"wrote control characters to standard error: {err!r}"
    if code in (2, 3):
        if out:
            return f"left with {code} and wrote to standard output"
        if len(lines) != 1:
            return f"left with {code} and {len(lines)} lines on standard error"
    return None


def limit_memory() -> None:
    """Let this process reserve no more than `MOST_ADDRESSES`, where the system can hold it to that."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _measure() -> tuple[float, int]:
    """Return the processor time of this process, in seconds, and the most memory that it has held, in bytes."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = used.ru_maxrss
    return used.ru_utime + used.ru_stime, most if sys.platform == "darwin" else most << 10


def _give_up(signum: int, frame: object) -> NoReturn:
    raise _Hanging
