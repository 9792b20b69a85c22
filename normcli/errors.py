"""What can go wrong, as exceptions. The library raises these and nothing of Python's or NumPy's own."""

from __future__ import annotations


class NormError(Exception):
    """Anything that normcli refuses, with one line that says what, why and what would be right."""


class UsageError(NormError):
    """The request itself makes no sense: unknown axes, groups that do not divide, two sources."""


class DataError(NormError):
    """The data cannot be used: unreadable, malformed, of an impossible shape or dtype, or unwritable."""


class MissingExtraError(DataError):
    """What is asked for needs a library that one of this package's extras brings."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra: pip install 'normcli[{extra}]'")


class DegenerateError(NormError):
    """Under `strict`: a group is empty, constant, of one value or not finite."""


class MissingStatisticError(NormError, AttributeError):
    """A norm was asked for a statistic that it does not have, such as the mean of one that does not centre."""
