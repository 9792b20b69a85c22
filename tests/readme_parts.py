"""The generated parts of README, CONTRIBUTING and samples, for cog, which runs what stands between its marks (CONTRIBUTING)."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from normcli.answers.calculating.catalogue import Catalogue
from normcli.cli.run import run
from normcli.documents.document import View
from normcli.writers import write

ROOT = Path(__file__).parent.parent


SAMPLES = ROOT / "samples"


def show(*lines: str, language: str = "en", folder: Path | None = None) -> str:
    """Run shell lines from `samples/`, or a folder, and return them with what they print, as a console block."""
    shown: list[str] = []
    for line in lines:
        done = _run(line, language, folder or SAMPLES, check=False)
        shown += [f"$ {line}", *(done.stdout + done.stderr).rstrip("\n").splitlines(), ""]
    return "\n".join(["```console", *shown[:-1], "```"])


def picture(line: str, words: str, folder: str = "", language: str = "en") -> str:
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
    language : str
    """
    command, name = line.rsplit(" -o ", 1)
    place = SAMPLES / name
    with tempfile.TemporaryDirectory() as scratch:
        drawn = Path(scratch) / place.name
        _run(f"{command} -o {shlex.quote(str(drawn))}", language, SAMPLES, check=True)
        fresh = drawn.read_bytes()
    if os.environ.get("NORMCLI_UPDATE_PICTURES"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(fresh)
    if not place.exists() or place.read_bytes() != fresh:
        raise ValueError(f"samples/{name} is not what `{line}` draws; NORMCLI_UPDATE_PICTURES=1 renews it")
    return "\n".join(["```sh", line, "```", "", f"![{words}]({folder}{name})"])


def _run(line: str, language: str, folder: Path, *, check: bool) -> subprocess.CompletedProcess[str]:
    """Run a shell line in a folder, with the `normcli` of this Python and no colours."""
    os.environ["LANGUAGE"] = language
    if line.startswith("normcli ") and not set(line) & _OF_THE_SHELL:
        done = _run_here(shlex.split(line)[1:], folder)
        if check:
            done.check_returncode()
        return done
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "NO_COLOR": "1"}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, check=check, env=environment, text=True
    )


_OF_THE_SHELL = set("|&;<>$`*?~\\\n")
"""What a shell makes something of; a line without it and in quotes alone needs none."""


def _run_here(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line in this process, which takes a tenth of the time of another."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    os.environ["NO_COLOR"] = "1"
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    printed, told = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, code, printed, told)


def norm_table() -> str:
    """Return the table of norms as Markdown, without that of presets behind it."""
    stream = io.StringIO()
    write(Catalogue(), "markdown", stream, View())
    return stream.getvalue().partition("\n### ")[0].rstrip("\n")


def python(code: str) -> str:
    """Run Python lines and return them with what they print."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=ROOT)
    comments = "\n".join(f"# {line}" for line in done.stdout.splitlines())
    return f"```python\n{code.strip()}\n{comments}\n```"


def file_index() -> str:
    """Return each folder of `normcli/` with its files: what each holds, and its public functions and classes."""
    shown: list[str] = []
    for init in sorted((ROOT / "normcli").rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(init.read_text())) or ""
        lines = re.findall(r"^\* `(\w+)`: (.*(?:\n\w.*)*)", text, flags=re.M)
        files = [(init.parent / f"{name}.py", words.replace("\n", " ")) for name, words in lines]
        if _list_names(init):
            files.insert(0, (init, text.split("\n")[0]))
        listed = [f"- `{path.name}`: {words}{_list_names(path)}" for path, words in files if path.exists()]
        if listed:
            shown += ["", f"`{init.parent.relative_to(ROOT)}/`", "", *listed]
    return "\n".join(shown[1:])


def _list_names(path: Path) -> str:
    """Return the public functions and classes of a file as code in brackets; empty without any."""
    kinds = ast.FunctionDef | ast.ClassDef
    names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)]
    public = [f"`{name}`" for name in names if not name.startswith("_")]
    return f" ({', '.join(public)})" if public else ""
