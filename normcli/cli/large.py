"""Output that is written while it is calculated, for tensors that lie in files too large to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.run import choose_output_dtype
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    import contextlib

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan


def open_large_output(
    files: contextlib.ExitStack, path: str | None, plan: Plan, values: NDArray[Any]
) -> NDArray[Any] | None:
    """Return the array of an output file that is yet to be written, or None where that may wait.

    Parameters
    ----------
    files : ExitStack
        When it closes well, the file takes its place; when it does not, no trace is left.
    path : str or None
        Of the output; only some formats know the place of each value before there are any.
    plan : Plan
    values : ndarray
        The input: only one that lies in a file is worth the trouble.
    """
    if path is None or not isinstance(values, np.memmap):
        return None
    from normcli.tensors.files import OUTGOING, find_format
    from normcli.tensors.spool import open_outgoing
    from normcli.tensors.whole import open_whole

    leaves = path == STANDARD_STREAM
    start = (OUTGOING if leaves else find_format(path, "--output")).start
    if start is None:
        return None
    stream = files.enter_context(open_outgoing() if leaves else open_whole(path))
    return start(stream, plan.grid.shape, choose_output_dtype(plan, values.dtype))
