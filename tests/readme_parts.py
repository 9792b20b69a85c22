"""The generated parts of README, for cog: `python -m cogapp -r README.md` renews them, `--check` compares."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from normcli.answers.catalogue import Catalogue
from normcli.documents.document import View
from normcli.writers import write

ROOT = Path(__file__).parent.parent


def show(*lines: str, most: int | None = None) -> str:
    """Run shell lines from `samples/` and return them with what they print, as a console block.

    Parameters
    ----------
    lines : str
    most : int or None
        Lines of output to keep of each; the rest becomes an ellipsis.
    """
    shown: list[str] = []
    for line in lines:
        done = _run(line, check=False)
        output = (done.stdout + done.stderr).rstrip("\n").splitlines()
        if most is not None and len(output) > most:
            output = [*output[:most], "…"]
        shown += [f"$ {line}", *output, ""]
    return "\n".join(["```console", *shown[:-1], "```"])


def picture(line: str, words: str, folder: str = "") -> str:
    """Return a picture in Markdown, with the line that draws it; it is drawn again, and must be what lies there.

    Parameters
    ----------
    line : str
        `normcli … -o pictures/NAME.svg`, to be run in `samples/`. With NORMCLI_UPDATE_PICTURES=1 the file is
        replaced.
    words : str
        What it shows, for those who do not see it.
    folder : str
        Of the samples, as seen from the page.
    """
    command, name = line.rsplit(" -o ", 1)
    place = ROOT / "samples" / name
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch) / place.name
        _run(f"{command} -o {shlex.quote(str(drawn))}", check=True)
        fresh = drawn.read_bytes()
    if os.environ.get("NORMCLI_UPDATE_PICTURES"):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(fresh)
    if not place.exists() or place.read_bytes() != fresh:
        raise ValueError(f"samples/{name} is not what `{line}` draws; NORMCLI_UPDATE_PICTURES=1 renews it")
    return "\n".join(["```sh", line, "```", "", f"![{words}]({folder}{name})"])


def _run(line: str, *, check: bool) -> subprocess.CompletedProcess[str]:
    """Run a shell line in `samples/`, with the `normcli` of this Python and no colours."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "NO_COLOR": "1"}
    return subprocess.run(
        ["bash", "-c", line], cwd=ROOT / "samples", capture_output=True, check=check, env=environment, text=True
    )


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
