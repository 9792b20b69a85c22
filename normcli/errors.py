"""What can go wrong, as exceptions, and the exit code of each. The library raises no others."""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExitCode(enum.IntEnum):
    """What the command line returns to the shell; `meaning` says when."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Return a code that knows its meaning."""
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
    """Anything that normcli refuses, with one line that says what, why and what would be right.

    Messages are written with the options of the command line, `--running-mean`. Python shows its arguments,
    `running_mean`, and leaves out an option in parentheses, which is there to be typed: `groups (--groups)`.
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
        """Show options as the command line has them, until the block ends."""
        before, NormError._names_options = NormError._names_options, True
        try:
            yield
        finally:
            NormError._names_options = before


@contextlib.contextmanager
def name_subject(subject: str) -> Iterator[None]:
    """Put what an error of the block is about before its message, unless the message begins so."""
    try:
        yield
    except NormError as error:
        message = str(error)
        raise type(error)(message if message.startswith(subject) else f"{subject}: {message}") from error


class UsageError(NormError):
    """The request itself makes no sense: unknown axes, groups that do not divide, two sources."""


class DataError(NormError):
    """The data cannot be used: unreadable, malformed, of an impossible shape or dtype, or unwritable."""

    exit_code = ExitCode.BAD_DATA


class MissingExtraError(DataError, ImportError):
    """What is asked for needs a library that one of this package's extras brings."""

    @classmethod
    def of(cls, what: str, extra: str) -> MissingExtraError:
        """Return the error that says what needs which extra."""
        return cls(f"{what} needs the extra: pip install 'normcli[{extra}]'")


class DegenerateError(NormError):
    """Under `strict`: a group is empty, constant, of one value or not finite."""

    exit_code = ExitCode.DEGENERATE


class MissingStatisticError(NormError, AttributeError):
    """A norm was asked for a statistic that it does not have, such as the mean of one that does not centre."""
