"""The exceptions that the library raises on purpose, and the exit code of the command line for each."""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExitCode(enum.IntEnum):
    """The number that the command line returns to the shell; `meaning` has the cases in words."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Return a code with its meaning as an attribute."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    DONE = 0, "done; also when the reader of a pipe stops reading"
    DIFFERENT = (
        1,
        "check found a difference, identify no norm without a fault, or restore did not get the input back",
    )
    WRONG_USAGE = 2, "wrong usage: unknown axes, groups that do not divide, two sources, no such output folder"
    BAD_DATA = (
        3,
        "bad data: unreadable, malformed, of an impossible shape or dtype; or no way to write",
    )
    DEGENERATE = 4, "under --strict: a group is empty, constant, of one value, or not finite"
    OWN_FAULT = 70, "a fault of normcli's own: please report it"
    HUNG_UP = 129, "the terminal hung up (SIGHUP)"
    INTERRUPTED = 130, "interrupted (SIGINT, Ctrl-C)"
    TERMINATED = 143, "terminated (SIGTERM)"


class NormError(Exception):
    """The base of all errors of normcli; the message is one line: what is wrong, why, and what would be right.

    Messages are written with the options of the command line, `--running-mean`. `str` of the exception has the
    names of Python's arguments, `running_mean`, and leaves out an option in parentheses: of `groups
    (--groups)`, only `groups` is left.
    """

    exit_code: ClassVar = ExitCode.WRONG_USAGE
    _names_options: ClassVar = False

    def __str__(self) -> str:
        message = super().__str__()
        if NormError._names_options or "--" not in message:
            return message
        import re  # on use: few messages are shown

        return re.sub(
            r" \(--[a-z-]+\)|(?<![^\s(])--([a-z]+(?:-[a-z]+)*)",
            lambda option: (option[1] or "").replace("-", "_"),
            message,
        )

    @classmethod
    @contextlib.contextmanager
    def name_options(cls) -> Iterator[None]:
        """Show messages of errors with the options of the command line within a block; a context manager."""
        before, NormError._names_options = NormError._names_options, True
        try:
            yield
        finally:
            NormError._names_options = before


@contextlib.contextmanager
def name_subject(subject: str) -> Iterator[None]:
    """Put a subject before the message of a `NormError` that the block raises; a context manager.

    The error keeps its class. A message that begins with the subject already is unchanged.
    """
    try:
        yield
    except NormError as error:
        message = str(error)
        raise type(error)(message if message.startswith(subject) else f"{subject}: {message}") from error


class UsageError(NormError):
    """The error for a request that makes no sense: unknown axes, groups that do not divide, two sources."""


class DataError(NormError):
    """The error for data that cannot be used: unreadable, malformed, of a wrong shape or dtype, unwritable."""

    exit_code = ExitCode.BAD_DATA


class MissingExtraError(DataError, ImportError):
    """The error for a missing library, which one of this package's extras installs."""

    @classmethod
    def of(cls, what: str, extra: str) -> MissingExtraError:
        """Return the error with the message that `what` needs the extra `extra`."""
        return cls(f"{what} needs the extra: pip install 'normcli[{extra}]'")


class DegenerateError(NormError):
    """The error, with `strict`, for a group that is empty, constant, of one value or not finite."""

    exit_code = ExitCode.DEGENERATE


class MissingStatisticError(NormError, AttributeError):
    """The error for a statistic that a norm does not have, such as the mean of one that does not centre."""
