"""Output that is written while it is calculated, for tensors that lie in files too large to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine import choose_output_dtype

if TYPE_CHECKING:
    import contextlib

    from numpy.typing import NDArray

    from normcli.plan import Plan

SUFFIX = ".npy"
"""The one format whose place of each value is known before any is."""


def open_large_output(
    files: contextlib.ExitStack, path: str | None, plan: Plan, values: NDArray[Any]
) -> NDArray[Any] | None:
    """Return the array of an output file that is yet to be written, or None where that may wait.

    Parameters
    ----------
    files : ExitStack
        When it closes well, the file takes its place; when it does not, no trace is left.
    path : str or None
        Of the output.
    plan : Plan
    values : ndarray
        The input: only one that lies in a file is worth the trouble.
    """
    if path is None or not path.lower().endswith(SUFFIX) or not isinstance(values, np.memmap):
        return None
    from normcli.tensors.npy import start_npy
    from normcli.tensors.whole import open_whole

    return start_npy(files.enter_context(open_whole(path)), plan.shape, choose_output_dtype(plan, values.dtype))
