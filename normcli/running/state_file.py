"""The state file: running statistics between calls, in an `.npz` that NumPy reads.

Its members are `schema` ("normcli-state/1"), `norm`, `mean` and `var` (float64, finite, one for each channel),
`eps` (float64) and `eps_mode` ("inside" or "outside" the root), as the last batch was normalized with, and
`batches` (int64).
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.norms.table import EpsMode
from normcli.numerics.solution import Given
from normcli.running.average import MOST_BATCHES, State
from normcli.tensors.members import Members
from normcli.tensors.npz import write_npz
from normcli.tensors.whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Iterator


SCHEMA = "normcli-state/1"

_EPS_MODES = (EpsMode.INSIDE.value, EpsMode.OUTSIDE.value)

_POLL = 0.02
"""Seconds between two attempts at a lock that another process holds."""


def read_state(path: str, norm: str) -> State | None:
    """Return the state that a file holds; None if there is no file.

    Raises
    ------
    UsageError
        If the path is a folder's, or does not end in .npz.
    DataError
        If the file cannot be read, is damaged, of another version, or of another norm.
    """
    require_state_path(path)
    try:
        members = Members(path, "state", SCHEMA)
    except FileNotFoundError:
        return None
    named = members.take_word("norm")
    if named != norm:
        raise DataError(f"{path} holds running statistics of {named}, not of {norm}")
    channels = members.get_shape("mean")
    mean, var = (members.take_floats(field, channels) for field in ("mean", "var"))
    for name, values in (("mean", mean), ("variance", var)):
        if not np.isfinite(values).all():
            bad = values[~np.isfinite(values)].reshape(-1)[0]
            raise DataError(f"{path} holds a running {name} of {bad}: no batch could ever mend that")
    members.require("var", np.asarray(var >= 0.0), var, "and no variance is negative")
    eps = members.take_floats("eps", ())
    members.require("eps", np.asarray((eps >= 0.0) & (eps < np.inf)), eps, "not a finite number ≥ 0")
    eps_mode = members.take_word("eps_mode", _EPS_MODES)
    batches = members.take_integer("batches", 0, MOST_BATCHES)
    return State(norm, Given(mean, var), float(eps), eps_mode, batches)


def require_state_path(path: str) -> None:
    """Raise `UsageError` unless a path can be that of a state file."""
    if os.path.isdir(path) or path.endswith(os.sep):  # noqa: PTH112
        raise UsageError(f"--state {path}: this is a folder; give a file's name")
    if not path.lower().endswith(".npz"):
        raise UsageError(f"--state {path}: a state file's name ends in .npz")


@contextlib.contextmanager
def replace_state(path: str, state: State) -> Iterator[None]:
    """Write a state file that replaces the old one when the block ends, or not at all if the block fails.

    The file is written and synced before the block begins: a full disk fails then.

    Raises
    ------
    DataError
        If writing fails; what stood there before still does.
    """
    with open_whole(path) as stream:
        write_npz(
            stream,
            {
                "schema": np.array(SCHEMA),
                "norm": np.array(state.norm),
                "mean": state.statistics.mean,
                "var": state.statistics.var,
                "eps": np.array(state.eps),
                "eps_mode": np.array(state.eps_mode),
                "batches": np.array(state.batches, dtype=np.int64),
            },
        )
        stream.flush()
        os.fsync(stream.fileno())
        yield


@contextlib.contextmanager
def hold(path: str) -> Iterator[None]:
    """Lock a state file for the block, which reads and then replaces it; other processes wait.

    The lock is on the folder, as the file itself is replaced, and leaves nothing behind.
    """
    folder = Path(path).resolve().parent
    try:
        import fcntl
    except ImportError:  # Windows: a file serves as the lock, as only one process can create it
        with _hold_by_file(folder / f".{Path(path).name}.lock"):
            yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"{path} cannot be locked: {folder}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _hold_by_file(lock: Path) -> Iterator[None]:
    while True:
        try:
            lock.touch(exist_ok=False)
            break
        except FileExistsError:
            time.sleep(_POLL)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
