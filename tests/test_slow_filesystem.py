"""Files on a file system that answers late and fails halfway (FUSE, by fusepy): one line, exit code 3, nothing on stdout."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

LATE = 0.01
"""Seconds before each answer."""

READABLE = 4096
"""Bytes of a file called `bad…` that are read before the device fails."""


def serve(source: str, mounted: str) -> None:
    """Show a folder at another place, until it is unmounted."""
    import fuse

    class Late(fuse.Operations):
        def getattr(self, path, fh=None):
            with contextlib.suppress(OSError):
                status = os.lstat(source + path)
                return {name: getattr(status, name) for name in dir(status) if name in KEPT}
            raise fuse.FuseOSError(2)

        def readdir(self, path, fh):
            return [".", "..", *os.listdir(source + path)]

        def open(self, path, flags):
            return os.open(source + path, flags)

        def read(self, path, size, offset, fh):
            time.sleep(LATE)
            if "bad" in path and offset + size > READABLE:
                raise fuse.FuseOSError(5)
            return os.pread(fh, size, offset)

    fuse.FUSE(Late(), mounted, foreground=True, ro=True)


KEPT = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")


@pytest.fixture
def mounted(tmp_path):
    """A folder of a good and a bad file of each kind, seen through the slow file system."""
    pytest.importorskip("fuse", reason="fusepy is not installed")
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("there is no /dev/fuse")
    source, place = tmp_path / "source", tmp_path / "mounted"
    source.mkdir()
    place.mkdir()
    x = np.random.default_rng(0).normal(size=(2000, 4))
    for name in ("good", "bad"):
        np.save(source / f"{name}.npy", x)
        np.savetxt(source / f"{name}.csv", x, delimiter=",")
    with subprocess.Popen([sys.executable, __file__, source, place]) as server:
        deadline = time.monotonic() + 20
        while not os.path.ismount(place) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield place
        server.terminate()
    subprocess.run(["umount", "-l", place], check=False, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_what_is_late_is_waited_for_and_what_fails_is_said(suffix, mounted, normcli):
    assert normcli("zscore", "-i", mounted / f"good{suffix}", "--print", "mean").code == 0
    ran = normcli("zscore", "-i", mounted / f"bad{suffix}", "--print", "mean")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"normcli: {mounted}/bad{suffix} cannot be read: Input/output error\n"


if __name__ == "__main__":
    serve(str(Path(sys.argv[1])), sys.argv[2])
