"""The table of conventions: where a framework departs from the row in `norms.py`. Data alone."""

from __future__ import annotations

import enum
from typing import NamedTuple

from normcli.errors import UsageError


class ExtraNeighbour(enum.StrEnum):
    """On which side an even window holds one channel more."""

    AFTER = "after"
    BEFORE = "before"


class Convention(NamedTuple):
    """What one framework does where a norm leaves a choice.

    Parameters
    ----------
    framework, norm : str
        The names that `--like` and the command line use.
    source : str
        Project, version and place where this was read.
    extra_neighbour : ExtraNeighbour
        The side of the longer half of an even window (`lrn` only).
    """

    framework: str
    norm: str
    source: str
    extra_neighbour: ExtraNeighbour = ExtraNeighbour.AFTER


CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        framework="onnx",
        norm="lrn",
        extra_neighbour=ExtraNeighbour.AFTER,
        source="ONNX operator LRN, opset 13: channels c − ⌊(size−1)/2⌋ … c + ⌈(size−1)/2⌉",
    ),
    Convention(
        framework="torch",
        norm="lrn",
        extra_neighbour=ExtraNeighbour.BEFORE,
        source="PyTorch 2.13, torch/nn/functional.py, local_response_norm: pads size // 2 before",
    ),
)


def list_frameworks(norm: str) -> tuple[str, ...]:
    """Return the frameworks that have a row for the norm of that short name.

    Examples
    --------
    >>> list_frameworks("lrn")
    ('onnx', 'torch')
    """
    return tuple(row.framework for row in CONVENTIONS if row.norm == norm)


def find_convention(framework: str, norm: str) -> Convention:
    """Return the row of a framework for a norm.

    Raises
    ------
    UsageError
        If the table has no such row.
    """
    for row in CONVENTIONS:
        if (row.framework, row.norm) == (framework.lower(), norm):
            return row
    known = list_frameworks(norm)
    remedy = f"{norm} knows {', '.join(known)}" if known else f"{norm} has no framework's convention yet"
    raise UsageError(f"like={framework!r}: {remedy}")
