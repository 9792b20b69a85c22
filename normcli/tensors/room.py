"""Room on disks, and how much of it is said."""

from __future__ import annotations

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def describe_bytes(count: int) -> str:
    """Return a size as people say it, in powers of a thousand.

    Examples
    --------
    >>> describe_bytes(512), describe_bytes(1_073_741_952), describe_bytes(999_950)
    ('512 bytes', '1.07 GB', '1 MB')
    """
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000.0, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"
