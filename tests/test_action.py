"""What `.github/actions/check` and the hook for pre-commit do, where the services are played by folders."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
RUN = ROOT / ".github/actions/check/run.sh"


@pytest.fixture
def golden(normcli, tmp_path):
    """A golden folder of layer normalization, and a y that lacks its eps."""
    folder = tmp_path / "golden"
    assert normcli("golden", "ln", "--shape", "8,16", "--dtype", "float32", "-o", folder).code == 0
    x = np.load(folder / "input.npy").astype(np.float64)
    wrong = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + 1e-5)
    np.save(tmp_path / "wrong.npy", wrong.astype(np.float32))
    return folder


def act(command, tmp_path, environment):
    """Run the action's script; return its exit code, its output, its summary and what it sets."""
    summary, output = tmp_path / "summary.md", tmp_path / "output.txt"
    own = {
        "COMMAND": command, "FILE": "src/layer_norm.py", "LINE": "12", "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output),
    }  # fmt: skip
    ran = subprocess.run(
        ["bash", RUN], env=environment | own, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout, summary.read_text(), output.read_text()


@pytest.mark.slow
def test_what_differs_is_shown_at_its_line_with_the_cause(golden, tmp_path, served):
    code, said, summary, output = act("check ln -i golden/input.npy --actual wrong.npy", tmp_path, served)
    assert code == 1
    assert "::error file=src/layer_norm.py,line=12,title=normcli::✗ ln differs: ddof is 1, not 0" in said
    assert "ddof is 1, not 0" in summary
    assert output.startswith("cause=✗ ln differs: ddof is 1")
    assert "ddof is 1, not 0" in (tmp_path / "normcli" / "report.txt").read_text()
    assert "ddof is 1, not 0" in (tmp_path / "normcli" / "page.html").read_text()


@pytest.mark.usefixtures("golden")
@pytest.mark.parametrize(
    ("command", "code", "error"),
    [("check golden", 0, None), ("check nowhere", 2, "nowhere")],
    ids=["right", "no folder"],
)
def test_what_agrees_says_nothing_and_a_wrong_command_says_what(command, code, error, tmp_path, served):
    found, said, _, output = act(command, tmp_path, served)
    assert (found, "::error" in said) == (code, error is not None)
    assert (error or "cause=\n") in output


@pytest.mark.slow
def test_a_recorded_run_leaves_a_page_and_one_that_cannot_be_read_none(tmp_path, served):
    x = np.arange(12.0, dtype="f4").reshape(3, 4)
    np.savez(tmp_path / "run.npz", **{"a.input": x, "a.output": x})
    page = tmp_path / "normcli" / "page.html"
    assert act("audit run.npz --norm ln", tmp_path, served)[0] == 1
    assert "<html" in page.read_text()
    page.unlink()
    (tmp_path / "run.npz").write_bytes(b"PK")
    assert act("audit run.npz --norm ln", tmp_path, served)[0] == 3
    assert not page.exists()


def test_the_hook_holds_the_folder_of_each_manifest(golden, served):
    entry = re.search(r"^  entry: (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), flags=re.M)[1]
    command = [*shlex.split(entry), str(golden / "manifest.json")]
    assert subprocess.run(command, env=served, capture_output=True, check=False).returncode == 0
    np.save(golden / "normalized.npy", np.load(golden / "normalized.npy") * np.float32(1.5))
    assert subprocess.run(command, env=served, capture_output=True, check=False).returncode == 1
