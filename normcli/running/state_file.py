"""The state file: running statistics between calls, in an `.npz` that NumPy reads.

Its members are `schema` ("normcli-state/1"), `norm`, `mean` and `var` (float64, one for each channel) and
`batches` (int64).
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.numerics.solution import Given
from normcli.running.average import State
from normcli.tensors.npz import write_npz
from normcli.tensors.whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SCHEMA = "normcli-state/1"

_POLL = 0.02
"""Seconds between two looks at a lock that somebody else holds."""


def read_state(path: str, norm: str) -> State | None:
    """Return the state that a file holds; None if there is no file.

    Raises
    ------
    DataError
        If the file is damaged, of another version, or of another norm.
    """
    if not Path(path).exists():
        return None
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged archive raises whatever its bytes happen to break
        raise DataError(f"{path} is no readable state file: it is damaged or cut short") from error
    schema = _read_text(members, "schema")
    if schema != SCHEMA:
        told = "no state file of normcli" if schema is None else f"of the version {schema}, not {SCHEMA}"
        raise DataError(f"{path} is {told}")
    named = _read_text(members, "norm")
    if named != norm:
        raise DataError(f"{path} holds running statistics of {named}, not of {norm}")
    mean, var, batches = (members.get(name) for name in ("mean", "var", "batches"))
    if mean is None or var is None or batches is None or not _fits(mean, var, batches):
        raise DataError(f"{path} is no state file of normcli: its statistics are not what they should be")
    return State(norm, Given(mean, var), int(batches))


def write_state(path: str, state: State) -> None:
    """Write a state file, whole or not at all.

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
                "batches": np.array(state.batches, dtype=np.int64),
            },
        )


@contextlib.contextmanager
def hold(path: str) -> Iterator[None]:
    """Keep a state file to this process, from reading it to having written it: others wait.

    The lock is on the folder, since the file itself is replaced; so it leaves nothing behind.
    """
    folder = Path(path).resolve().parent
    try:
        import fcntl
    except ImportError:  # Windows has no locks of this kind: a file that must be new stands for one
        with _hold_by_file(folder / f".{Path(path).name}.lock"):
            yield
        return
    import os

    descriptor = os.open(folder, os.O_RDONLY)
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


def _read_text(members: dict[str, NDArray[Any]], name: str) -> str | None:
    member = members.get(name)
    return str(member) if member is not None and member.dtype.kind == "U" and member.ndim == 0 else None


def _fits(mean: NDArray[Any], var: NDArray[Any], batches: NDArray[Any]) -> bool:
    return (
        mean.dtype == var.dtype == np.float64
        and mean.shape == var.shape
        and batches.dtype.kind == "i"
        and batches.ndim == 0
        and int(batches) >= 0
        and not (var < 0.0).any()
    )
