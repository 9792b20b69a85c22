"""`normcli` for scripts of a shell: each call is forked from a server that has imported the program, and starts at once."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pkgutil
import pty
import resource
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normcli.__main__ import main
from tests.forked import FORKED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CLIENT = """\
import json, os, resource, socket, sys

def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False

numbers = list(filter(is_open, range(64)))
call = {"arguments": sys.argv[2:], "numbers": numbers, "folder": os.getcwd(), "environment": dict(os.environ)}
call["largest"] = resource.getrlimit(resource.RLIMIT_FSIZE)
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
socket.send_fds(server, [b"-"], numbers)
server.sendall(json.dumps(call).encode() + b"\\n")
sys.exit(server.recv(1)[0])
"""
_FREE = 100
"""Descriptors from here on are none of those that a shell passes on."""


@contextlib.contextmanager
def serve(settings: Mapping[str, Any] | None = None) -> Iterator[dict[str, str]]:
    """Start a server; yield an environment whose `normcli` is answered by it.

    `settings` are values of modules that hold in the server alone: a module and a name, with a colon between.
    """
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/socket"
        Path(folder, "client.py").write_text(_CLIENT)
        command = Path(folder, "normcli")
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{folder}/client.py" "{address}" "$@"\n')
        command.chmod(0o755)
        server = FORKED.Process(target=_serve, args=(address, settings or {}), daemon=True)
        server.start()
        try:
            while not os.path.exists(address):
                assert server.is_alive()
                time.sleep(0.002)
            yield os.environ | {
                "PATH": os.pathsep.join([folder, str(Path(sys.executable).parent), os.environ["PATH"]])
            }
        finally:
            server.kill()
            server.join()


def run_on_terminal(environment: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Run a command with a terminal for everything; return its exit code and what the terminal was sent."""
    child, terminal = pty.fork()
    if not child:
        os.execvpe("normcli", ["normcli", *arguments], environment)
    sent = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the end, on Linux
            piece = b""
        if not piece:
            break
        sent += piece
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sent.decode()


def _serve(address: str, settings: Mapping[str, Any]) -> None:
    for place, value in settings.items():
        module, name = place.split(":")
        setattr(pkgutil.resolve_name(module), name, value)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{address}-")
    listening.listen()
    os.rename(f"{address}-", address)  # there, and listening
    while True:
        client, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(client)
        client.close()


def _answer(client: socket.socket) -> None:
    """Run one call in a process of its own, and tell its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, received, _, _ = socket.recv_fds(client, 1, 64)
    with client.makefile("rb") as stream:
        call = json.loads(stream.readline())
    process = os.fork()
    if process == 0:
        client.close()
        _run(call, received)
    for descriptor in received:
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    client.sendall(bytes([code % 256]))
    os._exit(0)


def _run(call: dict[str, Any], received: list[int]) -> None:
    kept = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _FREE) for descriptor in received]
    os.closerange(0, _FREE)
    for descriptor, number in zip(kept, call["numbers"], strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate(("r", "w", "w")))
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    resource.setrlimit(resource.RLIMIT_FSIZE, call["largest"])
    sys.argv = ["normcli", *call["arguments"]]
    main()
