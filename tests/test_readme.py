"""README says what is true now."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_the_generated_parts_are_current():
    command = [
        sys.executable,
        "-m",
        "cogapp",
        "-I",
        ".",
        "--check",
        "--diff",
        "README.md",
        "samples/gallery.md",
    ]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_first_two_commands_set_up_run_and_test():
    first, second = re.findall(r"```sh\n(.*?)\n```", README, flags=re.S)[:2]
    assert first.endswith("normcli bn --shape 2,3,4,4")
    assert second.endswith("python -m pytest -q")
    assert all(line.startswith("python3 -m venv ") for line in (first, second))
    assert README.index(second) < 600


def test_no_measurement_is_typed_by_hand():
    results = (ROOT / "tests" / "bench" / "results.md").read_text()
    assert results.strip() in README
