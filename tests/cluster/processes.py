"""A scheduler and workers as processes, started by their command lines."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest


def start(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Cluster:
    """A scheduler and workers on loopback."""

    def __init__(self, folder):
        pytest.importorskip("distributed")
        port = str(find_port())
        self.address, self.folder = f"tcp://127.0.0.1:{port}", folder
        line = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        self.scheduler = start(*line)
        self.workers = []

    def add_workers(self, count, **options):
        """Start workers; options are those of `subprocess.Popen`."""
        line = ("distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        more = ("--death-timeout", "60", "--local-directory", str(self.folder))
        self.workers += [start(*line, *more, **options) for _ in range(count)]

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait()


def run(*words, timeout=120):
    return subprocess.run(
        [sys.executable, "-m", "normcli", *words], capture_output=True, text=True, timeout=timeout, check=False
    )


def read(path):
    import zarr

    return zarr.open(path, mode="r")[:]
