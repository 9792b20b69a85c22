"""One run of the command line: its exit code, and the one place where errors become messages."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click

from normcli.cli.languages import find_language
from normcli.cli.main import commands
from normcli.errors import ExitCode, NormError
from normcli.language import choose_language, translate
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "normcli"

_NEEDED = ("numpy", "rich")
"""Packages that are imported late, for quick help texts, and may be missing: a zipapp installs none."""

_SIGNALLED = 128
"""The base of the exit code after a signal: the signal's number is added, as shells do."""


@NormError.name_options()
def run(arguments: Sequence[str]) -> int:
    """Run a command line, without the program's name, and return its exit code, one of `ExitCode`.

    Every error becomes one line on standard error. With `NORMCLI_DEBUG` in the environment, an unexpected error
    is raised. Signal handlers, the language and the error handling of the standard streams are set for the
    whole process.
    """
    if sys.stderr is None:  # closed by the caller: messages go nowhere
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115  # pathlib is slow to import
    if sys.stdout is None:
        return _report("standard output is closed", ExitCode.BAD_DATA)
    _Interrupts.catch()
    _take_written()  # by an earlier run in this process
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, _terminate)
    _tolerate_narrow_encodings()
    choose_language(find_language(arguments))
    try:
        if "_NORMCLI_COMPLETE" in os.environ:
            from normcli.cli.verbs.reference.completion import complete

            complete(commands, arguments)
            return ExitCode.DONE
        # Not `main`, which makes of a broken pipe an exit code of its own.
        with commands.make_context(PROGRAM, list(arguments)) as context:
            try:
                commands.invoke(context)
            except click.exceptions.Exit:  # of a verdict, which is an answer too
                _write_notes(context)
                raise
            _write_notes(context)
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # so that the interpreter's last flush finds no broken pipe
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # SIGTERM or SIGHUP, on its way up through every `finally`
        return int(stop.code or 0)
    except (click.Abort, KeyboardInterrupt):
        return _report(_INTERRUPTED, ExitCode.INTERRUPTED)
    except click.ClickException as error:
        return _report(_shorten(error), ExitCode.WRONG_USAGE)
    except NormError as error:
        return _report(str(error), error.exit_code)
    except MemoryError:
        return _report("this does not fit into memory", ExitCode.BAD_DATA)
    except OSError as error:
        return _report(f"I/O error: {error.strerror}", ExitCode.BAD_DATA)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in _NEEDED:
            remedy = f"{sys.executable} -m pip install {error.name}"
            return _report(f"{error.name}, which normcli needs, is not installed: {remedy}", ExitCode.BAD_DATA)
        if "NORMCLI_DEBUG" in os.environ:
            raise
        message = f"a fault of normcli's own, {type(error).__name__}: {error}"
        return _report(f"{message} (NORMCLI_DEBUG=1 shows where)", ExitCode.OWN_FAULT)
    return _report(_INTERRUPTED, ExitCode.INTERRUPTED) if _Interrupts.seen else ExitCode.DONE


def _write_notes(context: click.Context) -> None:
    from normcli.cli.parameters.settings import NOTES  # not for those who ask for help

    for write_note in context.meta.get(NOTES, ()):
        write_note()


class _Interrupts:
    """A record of whether Ctrl-C was pressed.

    Python may turn the `KeyboardInterrupt` into another error, or only print it; `seen` is True in any case.
    """

    seen: ClassVar = False
    _hook: ClassVar = sys.unraisablehook

    @classmethod
    def catch(cls) -> None:
        """Record each Ctrl-C from now on, in `seen`, unless SIGINT is ignored."""
        cls.seen = False
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as a run in the background has it
            signal.signal(signal.SIGINT, cls._raise)
        if sys.unraisablehook != cls._pass_over:
            cls._hook, sys.unraisablehook = sys.unraisablehook, cls._pass_over

    @classmethod
    def _raise(cls, signum: int, frame: object) -> NoReturn:
        cls.seen = True
        raise KeyboardInterrupt

    @classmethod
    def _pass_over(cls, error: sys.UnraisableHookArgs) -> None:
        if not issubclass(error.exc_type, KeyboardInterrupt):
            cls._hook(error)


_INTERRUPTED = "interrupted"


def _tell_written() -> str:
    """Return words on the files that were replaced before a Ctrl-C, of which one is named; "" without any."""
    written = _take_written()
    if len(written) > 1:
        return f"; {written[0]} and {format_count(len(written) - 1, 'more file')} are already written"
    return f"; {written[0]} is already written" if written else ""


def _take_written() -> list[str]:
    """Return the files that were written since the last call, without importing what writes them."""
    writing = sys.modules.get("normcli.tensors.written_whole")
    return [] if writing is None else writing.take_written()


def _report(message: str, code: int) -> int:
    if _Interrupts.seen:  # whatever became of it
        message, code = _INTERRUPTED, ExitCode.INTERRUPTED
    if code == ExitCode.INTERRUPTED:
        message += _tell_written()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"normcli: {make_printable(translate(' '.join(message.split())))}\n")
    return code


def _shorten(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    context: Any = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if isinstance(error, click.UsageError) and context else ""
    return f"{message}{where}"


def _terminate(signum: int, frame: object) -> NoReturn:
    sys.exit(_SIGNALLED + signum)


def _tolerate_narrow_encodings() -> None:
    """Have stdout and stderr write `?` for characters that their encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
