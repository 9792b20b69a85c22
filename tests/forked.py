"""Command lines in processes of their own, forked from one that has imported the program: each starts at once."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import sys
from typing import TYPE_CHECKING

import normcli
from normcli.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

FORKED = multiprocessing.get_context("forkserver")
_OF_EXTRAS = ("normcli.cluster.", "normcli.sklearn")
"""Modules that cannot be imported where an extra is missing."""

FORKED.set_forkserver_preload(
    [
        __name__,
        *(
            module.name
            for module in pkgutil.walk_packages(normcli.__path__, "normcli.")
            if not module.name.startswith(_OF_EXTRAS)
        ),
    ]
)


def start(arguments: Sequence[str], folder: Path) -> ForkServerProcess:
    """Start a command line in a folder; what it prints goes nowhere."""
    process = FORKED.Process(target=_run, args=(arguments, folder))
    process.start()
    return process


def wait(process: ForkServerProcess) -> int | None:
    """Wait for the end of a process; return its exit code."""
    process.join()
    return process.exitcode


def _run(arguments: Sequence[str], folder: Path) -> None:
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    sys.argv = ["normcli", *arguments]
    main()
