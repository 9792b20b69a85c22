"""`--print FIELD`: one number a line, in full precision, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from normcli.tensors.delimited import to_cell
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LINES_AT_ONCE = 8192


def write_field(values: NDArray[Any], stream: TextIO) -> None:
    """Write values in C order, each on a line, so that they read back to the same bits."""
    for piece in iterate_pieces(values, _LINES_AT_ONCE):
        stream.write("\n".join(map(to_cell, piece.tolist())) + "\n")
