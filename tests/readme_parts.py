"""The generated parts of README, for cog: `python -m cogapp -r README.md` renews them, `--check` compares."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

from normcli.render import write
from normcli.render.catalogue import Catalogue
from normcli.render.document import View

ROOT = Path(__file__).parent.parent


def show(*lines: str, most: int | None = None) -> str:
    """Run shell lines from `samples/` and return them with what they print, as a console block.

    Parameters
    ----------
    lines : str
    most : int or None
        Lines of output to keep of each; the rest becomes an ellipsis.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "NO_COLOR": "1"}
    shown: list[str] = []
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=ROOT / "samples",
            capture_output=True,
            check=False,
            env=environment,
            text=True,
        )
        output = (done.stdout + done.stderr).rstrip("\n").splitlines()
        if most is not None and len(output) > most:
            output = [*output[:most], "…"]
        shown += [f"$ {line}", *output, ""]
    return "\n".join(["```console", *shown[:-1], "```"])


def norm_table() -> str:
    """Return the table of norms as Markdown."""
    stream = io.StringIO()
    write(Catalogue(), "markdown", stream, View())
    return stream.getvalue().rstrip("\n")


def python(code: str) -> str:
    """Run Python lines and return them with what they print."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=ROOT)
    comments = "\n".join(f"# {line}" for line in done.stdout.splitlines())
    return f"```python\n{code.strip()}\n{comments}\n```"


def measurements() -> str:
    """Return the recorded measurements."""
    return (ROOT / "tests" / "bench" / "results.md").read_text().rstrip("\n")


def help_text(command: str) -> str:
    """Return what `COMMAND --help` prints, 100 columns wide."""
    arguments = [sys.executable, "-m", *shlex.split(command), "--help"]
    environment = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(arguments, capture_output=True, check=True, text=True, env=environment)
    return "\n".join(["```text", done.stdout.rstrip("\n"), "```"])
