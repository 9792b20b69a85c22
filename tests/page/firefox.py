"""Firefox without a window, told what to do by Marionette, the protocol that it brings along: JSON over a socket."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import time
from pathlib import Path

_SETTINGS = {
    "marionette.port": 0,  # any that is free
    "app.update.disabledForTesting": True,
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "ui.prefersReducedMotion": 1,
}


class Firefox:
    """A running browser with one page.

    Parameters
    ----------
    path : str
        The program.
    folder : Path
        For its profile: an empty one.
    """

    def __init__(self, path: str, folder: Path, width: int = 1280, height: int = 800) -> None:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _SETTINGS.items()]
        (folder / "user.js").write_text("\n".join(lines))
        self._process = subprocess.Popen(
            [path, "--headless", "--marionette", "--no-remote", "--profile", str(folder)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._numbers = itertools.count(1)
        self._socket = socket.create_connection(("127.0.0.1", self._wait_for_port(folder)), timeout=60)
        self._read()  # the greeting
        self._tell("WebDriver:NewSession", {"capabilities": {}})
        self._tell("WebDriver:SetWindowRect", {"width": width, "height": height})

    def open(self, address: str) -> None:
        """Load a page and wait until it is there."""
        self._tell("WebDriver:Navigate", {"url": address})

    def run(self, script: str, *arguments: object) -> object:
        """Return what a function's body returns in the page."""
        return self._tell("WebDriver:ExecuteScript", {"script": script, "args": list(arguments)})["value"]

    def quit(self) -> None:
        """End the browser."""
        self._tell("Marionette:Quit", {"flags": ["eForceQuit"]})
        self._socket.close()
        self._process.wait(20)

    def _wait_for_port(self, folder: Path) -> int:
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.poll() is None:
            port = folder / "MarionetteActivePort"
            if port.exists() and (text := port.read_text()):
                return int(text)
            time.sleep(0.05)
        self._process.kill()
        raise RuntimeError("Firefox did not start")

    def _tell(self, command: str, parameters: dict[str, object]) -> dict:
        message = json.dumps([0, next(self._numbers), command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        if error is not None:
            raise RuntimeError(f"{command}: {error}")
        return result

    def _read(self):
        head = b""
        while not head.endswith(b":"):
            head += self._socket.recv(1)
        body = b""
        while len(body) < int(head[:-1]):
            body += self._socket.recv(int(head[:-1]) - len(body))
        return json.loads(body)
