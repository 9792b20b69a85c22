"""Runs command lines one after the other in a Python without what Windows has not, where open files cannot be replaced.

Run as a script with a command line an argument. The last line of standard output holds their exit codes, as JSON.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path

MISSING = {
    os: "fork preadv pwritev posix_fadvise posix_fallocate geteuid fchmod fstatvfs statvfs sched_getaffinity sysconf "
    "O_TMPFILE O_NONBLOCK register_at_fork",
    signal: "SIGHUP SIGPIPE",
    select: "poll",
}
"""What Python lacks there, by module; `fcntl` lacks wholly."""


class _WindowsOs:
    """The module `os` with another name of the system."""

    name = "nt"

    def __getattr__(self, name):
        return getattr(os, name)


def is_in_use(path) -> bool:
    """Whether this process has a file open, or mapped into memory."""
    real, opened = os.path.realpath(path), Path("/proc/self/fd")
    names = [os.readlink(entry) for entry in opened.iterdir() if entry.is_symlink()]
    return real in names or f" {real}\n" in Path("/proc/self/maps").read_text()


def guard(function):
    """Return a function that renames or removes files as Windows does: none that is in use."""

    def guarded(*paths, **options):
        for path in paths:
            if isinstance(path, str | os.PathLike) and is_in_use(path):
                raise PermissionError(13, "the file is in use", str(path))
        return function(*paths, **options)

    return guarded


def open_file(path, *arguments, opens=os.open):
    """Open a file as Windows does: no folder."""
    if os.path.isdir(path):
        raise PermissionError(13, "this is a folder", str(path))
    return opens(path, *arguments)


def main() -> None:
    from normcli.cli.run import run
    from normcli.running import state_file
    from normcli.tensors import held_files, mapped, written_whole

    for module, names in MISSING.items():
        for name in names.split():
            delattr(module, name)
    for name in ("replace", "rename", "unlink", "remove"):
        setattr(os, name, guard(getattr(os, name)))
    os.open = open_file
    sys.modules["fcntl"] = None
    state_file.os = written_whole.os = _WindowsOs()
    held_files.REPLACES_MAPPED = False
    mapped.SMALLEST_MAPPED = 1 << 10
    print(json.dumps([run(line.split()) for line in sys.argv[1:]]))


if __name__ == "__main__":
    main()
