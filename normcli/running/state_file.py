"""The state file: running statistics between calls, in an `.npz` that NumPy reads.

Its members are `schema` ("normcli-state/1"), `norm`, `mean` and `var` (float64, finite, one for each channel),
`eps` (float64) and `eps_mode` ("inside" or "outside" the root) of the last batch's norm, and `batches` (int64).
Where the batches were tables with named columns, `columns` has the names. Where running statistics are plain
averages, `mean_sum` and `var_sum` are the exact sums of the batches' means and variances, as in stats files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.norms.rules import EpsMode
from normcli.numerics.statistics.solution import Given
from normcli.numerics.sums.fixed_point import divide_total
from normcli.running.average import MOST_BATCHES, State
from normcli.tensors.formats.npz import FileKind, Members, write_npz
from normcli.tensors.held_files import is_at, name_beside, try_lock
from normcli.tensors.written_whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SCHEMA = "normcli-state/1"

_KIND = FileKind("state", (SCHEMA,), "a run with --state FILE.npz writes one")

_EPS_MODES = (EpsMode.INSIDE.value, EpsMode.OUTSIDE.value)

_POLL = 0.02
"""Seconds between two attempts at a lock that another process holds."""

_SILENT = 2.0
"""Seconds of waiting before the user is told."""

_NEW_FILE = 0o666
"""The permissions of a new file, before the umask."""


def read_state(path: str, norm: str) -> State | None:
    """Return the state that a file holds for a norm; None if there is no file.

    Raises
    ------
    UsageError
        If the path is a folder, or does not end in .npz.
    DataError
        If the file cannot be read, is damaged, of another version, or of another norm.
    """
    require_state_path(path)
    try:
        members = Members(path, _KIND)
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
    columns = members.take_words("columns", *channels) if "columns" in members and len(channels) == 1 else None
    totals = None
    if "mean_sum" in members:
        from normcli.fitting.stored_sums import read_exact  # on use: few states have sums

        members.require("batches", np.asarray(batches > 0), np.asarray(batches), "too few for mean_sum")
        totals = tuple(read_exact(members, f"{name}_sum", channels) for name in ("mean", "var"))
        for name, total, shown in zip(("mean", "var"), totals, (mean, var), strict=True):
            right = divide_total(total, batches).reshape(channels) == shown
            members.require(name, right, shown, f"not {name}_sum over batches")
    return State(norm, Given(mean, var), float(eps), eps_mode, batches, columns, totals)


def require_state_path(path: str) -> None:
    """Raise `UsageError` unless a path can name a state file."""
    if os.path.isdir(path) or path.endswith(os.sep):  # noqa: PTH112
        raise UsageError(f"--state {path}: this is a folder; give a file's name")
    if not path.lower().endswith(".npz"):
        raise UsageError(f"--state {path}: a state file's name ends in .npz")


@contextlib.contextmanager
def replace_state(path: str, state: State) -> Iterator[None]:
    """Write a state file, as a context manager; it replaces the old file if the block ends without an error.

    The new file is written and synced before the block begins, so that a full disk shows before it. If the
    block raises, the new file is dropped and the old one stays.

    Raises
    ------
    DataError
        If writing fails; the old file is unchanged.
    """
    columns = {} if state.columns is None else {"columns": np.array(state.columns, dtype=np.str_)}
    sums: dict[str, Any] = {}
    for name, total in zip(("mean", "var"), state.totals or (), strict=False):
        sums |= total.describe(f"{name}_sum", state.statistics.mean.shape)
    members = {
        **columns,
        **sums,
        "schema": np.array(SCHEMA),
        "norm": np.array(state.norm),
        **state.statistics._asdict(),
        "eps": np.array(state.eps),
        "eps_mode": np.array(state.eps_mode),
        "batches": np.array(state.batches, dtype=np.int64),
    }
    with open_whole(path) as stream:
        write_npz(stream, members)
        stream.flush()
        os.fsync(stream.fileno())
        yield


@contextlib.contextmanager
def hold(path: str, timeout: float | None = None, notify: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Return a context manager that holds the lock of a state file, for a block that reads and replaces it.

    The lock is on the file itself; if there is no file yet, on another file in its folder. When the block ends,
    also by an error, the lock is released and that other file removed. Other processes that call `hold` wait.

    Parameters
    ----------
    path : str
    timeout : float or None
        The most seconds to wait; None waits for ever.
    notify : callable
        Called once, after two seconds of waiting.

    Raises
    ------
    DataError
        If another process still holds the lock after `timeout`, or the file cannot be locked.
    """
    target = Path(os.path.realpath(path))
    start, told = time.monotonic(), False
    while (release := _try_hold(path, target)) is None:
        waited = time.monotonic() - start
        if timeout is not None and waited >= timeout:
            raise DataError(
                f"--state {path}: another process still holds it after {timeout:g} s (--lock-timeout)"
            )
        if waited >= _SILENT and not told:
            notify()
            told = True
        time.sleep(_POLL)
    try:
        yield
    finally:
        release()


def _try_hold(path: str, target: Path) -> Callable[[], None] | None:
    """Try once to lock a state file; return the function that unlocks it, or None if it is not locked.

    None tells the caller to try again: another process has the lock, or the file was made or replaced
    meanwhile. If there is no file yet, and always on Windows, another file in its folder is locked in its
    place.

    Parameters
    ----------
    path : str
        The file's name in messages.
    target : Path
        The file's real path.

    Raises
    ------
    DataError
        If the file cannot be locked.
    """
    try:
        if os.name == "nt":  # Windows cannot replace an open file: a file that one process can make is the lock
            return _make_lock_file(target.with_name(f".{target.name}.lock"))
        lock = target
        try:
            descriptor = os.open(lock, os.O_RDWR)
        except FileNotFoundError:
            lock = name_beside(
                target, "lock", hashlib.blake2b(os.fsencode(target.name), digest_size=8).digest()
            )
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, _NEW_FILE)
    except OSError as error:
        raise DataError(f"{path} cannot be locked: {error.strerror or 'I/O error'}") from error

    def release() -> None:
        if lock != target:
            lock.unlink(missing_ok=True)
        os.close(descriptor)

    try:
        held = try_lock(descriptor)
    except OSError as error:
        release()
        raise DataError(f"{path} cannot be locked: {error.strerror or 'I/O error'}") from error
    if not held or not is_at(descriptor, lock):  # another process has the lock, or has replaced the file
        os.close(descriptor)
        return None
    if lock != target and target.exists():
        release()
        return None
    return release


def _make_lock_file(lock: Path) -> Callable[[], None] | None:
    """Make a lock file; return the function that removes it, or None if the file is there already."""
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return None
    return functools.partial(lock.unlink, missing_ok=True)
