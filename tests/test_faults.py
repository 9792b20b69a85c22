"""A disk that fails at any call of a run: what stood there before still does, or what was asked for stands there."""

from __future__ import annotations

import errno
import io
import os
import shutil

import numpy as np
import pytest

from tests.marks import costly, sampled, slowly

_PATCHED = (
    "open", "fdopen", "read", "pread", "preadv", "write", "pwrite", "pwritev", "fsync", "link", "replace", "rename",
    "mkdir", "fchmod", "posix_fallocate", "truncate", "ftruncate",
)  # fmt: skip


class Disk:
    """Counts the calls that reach the disk, and lets one of them fail, or carry less than it was asked to.

    Parameters
    ----------
    fault : int, "short" or None
        An error number; "short" lets every call that carries data carry a part of it.
    at : int
        The number of the call that fails, from 1.
    """

    def __init__(self, fault=None, at=0):
        self.fault, self.at, self.names = fault, at, []

    @property
    def failed(self):
        """The name of the call that failed, or of the last one."""
        return self.names[self.at - 1]

    def call(self, function, *arguments, **options):
        self.names.append(function.__name__)
        if function.__name__ == "fsync" and len(self.names) != self.at:
            return None  # waits for a disk, and changes nothing that a test sees
        if len(self.names) == self.at and self.fault != "short":
            raise OSError(self.fault, os.strerror(self.fault))
        if self.fault == "short":
            arguments = _shorten(function.__name__, arguments)
        return function(*arguments, **options)

    def patch(self, monkeypatch):
        """Put this disk under `os`, and under every file that Python opens."""
        for name in _PATCHED:
            if hasattr(os, name):
                monkeypatch.setattr(os, name, self._wrap(getattr(os, name)))
        monkeypatch.setattr(os, "fdopen", lambda number, mode="r": self.call(self._buffer, number, mode))
        plain = io.open

        def open_file(file, mode="r", *arguments, **options):
            if "b" not in mode:
                return plain(file, mode, *arguments, **options)
            return self.call(self._buffer, file, mode)

        monkeypatch.setattr(io, "open", open_file)

    def _wrap(self, function):
        return lambda *arguments, **options: self.call(function, *arguments, **options)

    def _buffer(self, file, mode):
        raw = _File(file, mode.replace("b", ""), self)
        kind = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
        return kind(raw)


class _File(io.FileIO):
    def __init__(self, file, mode, disk):
        super().__init__(file, mode)
        self._disk = disk

    def write(self, data):
        return self._disk.call(super().write, data)

    def readinto(self, buffer):
        return self._disk.call(super().readinto, buffer)


def _shorten(name, arguments):
    """Return the arguments of a call with less data in them."""
    if name in ("write", "readinto"):
        data = memoryview(arguments[-1]).cast("B")
        return (*arguments[:-1], data[: (len(data) + 1) // 2])
    if name in ("preadv", "pwritev"):
        descriptor, (buffer, *_), place, *flags = arguments
        return (descriptor, [memoryview(buffer)[: (len(memoryview(buffer)) + 1) // 2]], place, *flags)
    if name == "pwrite":
        descriptor, data, place = arguments
        return (descriptor, memoryview(data)[: (len(memoryview(data)) + 1) // 2], place)
    return arguments


COMMANDS = [  # tests/test_kills.py kills the same
    pytest.param("ln -i x.npy -o y.npy", "y.npy", id="npy"),
    pytest.param("ln -i x.npy -o y.csv", "y.csv", id="csv"),
    pytest.param("bn -i x.npy --state y.npz -q", "y.npz", id="state"),
    *slowly(
        [
            pytest.param("fit zscore x.npy -o y.npz", "y.npz", id="fit"),
            pytest.param("ln -i x.npy -o y.npz", "y.npz", id="npz"),
            pytest.param("ln -i x.npy -o y.json", "y.json", id="json"),
            pytest.param("ln -i x.npy -o y.safetensors", "y.safetensors", id="safetensors"),
            pytest.param("ln -i x.npy --stats-output y.npz", "y.npz", id="statistics"),
            pytest.param("ln -i x.npy -o y.html", "y.html", id="page"),
            pytest.param("draw ln -i x.npy -o y.svg", "y.svg", id="picture"),
            pytest.param("merge stats.npz -o y.npz", "y.npz", id="merge"),
            pytest.param("apply stats.npz x.npy -o y.npy", "y.npy", id="apply"),
            pytest.param("generate --shape 4,3 -o y.npy", "y.npy", id="generate"),
            pytest.param(
                "fold --conv-weight x.npy --running-mean 0 --running-var 1 -o y.npz", "y.npz", id="fold"
            ),
        ]
    ),
]

STORES = [
    pytest.param("ln -i x.zarr -o y.npy", "y.npy", id="a store is read"),
    pytest.param("fit zscore x.h5 -o y.npz", "y.npz", id="HDF5 is read"),
    pytest.param("zscore -i x.csv -o y.csv", "y.csv", id="a table is read"),
]

FAULTS = (errno.EIO, errno.ENOSPC, errno.EINTR)


@pytest.fixture
def folder(here, normcli):
    np.save("x.npy", np.random.default_rng(1).normal(3, 2, (4, 3)))
    assert normcli("fit", "zscore", "x.npy", "-o", "stats.npz").code == 0
    return here


@pytest.fixture(params=[pytest.param(False, id="in memory"), pytest.param(True, id="from disk to disk")])
def mapped(request, monkeypatch):
    """Whether the files are large enough to be worked on where they lie."""
    if request.param:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)


def _run(normcli, line, disk, old, target):
    """Run a command over a disk, with an old file in the place of its output; return how it ended."""
    if target.exists():
        target.unlink()
    if old is not None:
        target.write_bytes(old)
    with pytest.MonkeyPatch.context() as patched:
        disk.patch(patched)
        return normcli(*line.split())


def _learn(normcli, line, target):
    """Return the old file of a command, what it makes of it, and the names of the calls that that takes."""
    if "--state" in line:
        _run(normcli, line, Disk(), None, target)
        old = target.read_bytes()
    else:
        old = b"old"
    disk = Disk()
    assert _run(normcli, line, disk, old, target).code == 0
    assert len(disk.names) > 2
    return old, target.read_bytes(), disk.names


@costly
@pytest.mark.slow
@pytest.mark.usefixtures("mapped")
@pytest.mark.parametrize(("line", "name"), STORES)
def test_one_call_that_fails_where_stores_are_read(line, name, folder, normcli):
    x = np.load("x.npy")
    pytest.importorskip("zarr").create_array("x.zarr", data=x, chunks=(2, 3))
    with pytest.importorskip("h5py").File("x.h5", "w") as file:
        file.create_dataset("x", data=x, chunks=(2, 3))
    np.savetxt("x.csv", x, delimiter=",")
    try_faults(normcli, line, folder / name)


@costly
@sampled
@pytest.mark.slow
@pytest.mark.usefixtures("mapped")
@pytest.mark.parametrize(("line", "name"), COMMANDS)
def test_one_call_that_fails_in_any_way(line, name, folder, normcli):
    try_faults(normcli, line, folder / name)


def try_faults(normcli, line, target):
    """Let each call fail: the first and the last of a name by every fault, those between, all alike, in turn."""
    folder = target.parent
    old, new, names = _learn(normcli, line, target)
    before = set(os.listdir(folder))
    refused = 0
    for fault, at in choose_faults(names):
        disk = Disk(fault, at)
        ran = _run(normcli, line, disk, old, target)
        if ran.code:
            refused += 1
            assert ran.code == 3, (fault, at, ran)
            assert ran.out == "" or "--state" in line, (fault, at, ran)  # replaced after the answer is read
            assert len(ran.err.splitlines()) == 1, (fault, at, ran)
            left = target.read_bytes()  # the answer is written last, and shows values of the input
            assert left == old or (left == new and disk.failed == "preadv"), (fault, at, ran)
        else:  # a call that the program can do without
            assert target.read_bytes() == new, (fault, at, ran)
        assert set(os.listdir(folder)) == before, (fault, at, ran)
    assert refused > 1


def choose_faults(names):
    """Yield faults, each with the number of the call that fails by it."""
    for number, name in enumerate(names):
        rank, count = names[:number].count(name), names.count(name)
        is_between = 0 < rank < count - 1
        for fault in (FAULTS[number % len(FAULTS)],) if is_between else FAULTS:
            yield fault, number + 1


@pytest.mark.usefixtures("mapped")
@pytest.mark.parametrize(("line", "name"), COMMANDS)
def test_calls_that_carry_a_part_of_what_they_were_asked_to(line, name, folder, normcli):
    old, new, _ = _learn(normcli, line, folder / name)
    assert _run(normcli, line, Disk("short"), old, folder / name).code == 0
    assert (folder / name).read_bytes() == new


@pytest.mark.parametrize("name", ["x.npy", "x.csv"])
def test_a_file_whose_disk_fails_is_named(name, folder, normcli):
    np.savetxt("x.csv", np.load("x.npy"), delimiter=",")
    line, plain, target = f"zscore -i {name} --print mean", Disk(), folder / "none"
    _run(normcli, line, plain, None, target)
    ran = _run(normcli, line, Disk(errno.EIO, plain.names.index("readinto") + 1), None, target)
    assert (ran.code, ran.err) == (3, f"normcli: {name} cannot be read: Input/output error\n")


@costly
@pytest.mark.parametrize("fault", [pytest.param(fault, id=errno.errorcode[fault]) for fault in FAULTS])
@pytest.mark.slow
def test_a_golden_folder_is_whole_or_not_there(fault, folder, normcli):
    line = ["golden", "ln", "-i", "x.npy", "-o", "g"]
    disk = Disk()
    with pytest.MonkeyPatch.context() as patched:
        disk.patch(patched)
        assert normcli(*line).code == 0
    names = sorted(os.listdir("g"))
    shutil.rmtree("g")
    before, refused = set(os.listdir(folder)), 0
    for at in range(1, len(disk.names) + 1):
        with pytest.MonkeyPatch.context() as patched:
            Disk(fault, at).patch(patched)
            ran = normcli(*line)
        if ran.code:
            refused += 1
            assert (ran.code, len(ran.err.splitlines())) == (3, 1), (at, ran)
        else:
            assert sorted(os.listdir("g")) == names
            shutil.rmtree("g")
        assert set(os.listdir(folder)) == before, (at, ran)
    assert refused > 1
