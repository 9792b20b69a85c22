"""The sample scripts run, and print the numbers of their documents."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from fractions import Fraction

import pytest

from tests.conftest import ROOT
from tests.marks import costly

SAMPLES = ROOT / "samples"
SCRIPTS = sorted(SAMPLES.glob("*.sh"))

PRINTED = {
    "000": ["4.65625", "6.100586", "9.045898", "0.5440419", "-1.885168", "0.1391735", "8.609375", "11.609375"],
    "001": ["bnd → 11d", "bchw → 1c11", "bchw → b111", "19.5", "23.5", "27.5", "181.25", "1.2288", "-1.9468"],
    "002": ["-0.18335136892609", "0.98096834388834", "0.15872828", "0.999999998956058", "0.9999999988190323"],
    "003": ["2.5", "1.25", "1.118", "-1.342", "-0.447"],
    "004": ["1.5410", "0.66135", "0.4756", "-1.6033", "1.5120", "-0.03918", "6.4684", "1.8740", "-2.8528"],
}
"""Numbers that each document prints, as normcli rounds them."""


@costly
@pytest.mark.slow
@pytest.mark.parametrize("document", PRINTED)
def test_a_script_prints_the_numbers_of_its_document(document, served):
    (script,) = SAMPLES.glob(f"{document}*.sh")
    ran = subprocess.run(["bash", script], capture_output=True, env=served, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    printed = ran.stdout.decode()
    assert [number for number in PRINTED[document] if number not in printed] == []


KERNEL = SAMPLES / "kernel"
UNMASKED = ("np.where(mask, load(x, lanes, mask) - mean, np.float32(0.0))", "load(x, lanes, mask) - mean")
"""A line of the kernel, and what it is where the lanes beyond a row are forgotten."""


@pytest.fixture(params=[False, True], ids=["as it is", "with a bug"])
def kernel(request, tmp_path):
    """A copy of the kernel's folder, and whether a bug was put into it."""
    for path in KERNEL.glob("*.*"):
        text = path.read_text()
        if request.param and path.name == "layer_norm.py":
            assert text.count(UNMASKED[0]) == 1
            text = text.replace(*UNMASKED)
        (tmp_path / path.name).write_text(text)
    return tmp_path, request.param


def run_in(folder, served, *command):
    environment = served | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def run_tests(folder, served, *options):
    places = ("-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder)
    return run_in(folder, served, sys.executable, "-m", "pytest", "-q", *places, *options)


@pytest.mark.slow
def test_the_tests_of_a_kernel_find_a_bug_and_name_it(kernel, served):
    folder, is_wrong = kernel
    ran = run_tests(folder, served, "-k", "float32 and (33 or rank)")
    assert ran.returncode == int(is_wrong), ran.stdout[-2000:]
    assert ("31 zeros of padding" in " ".join(ran.stdout.split()).replace("E ", "")) == is_wrong


@pytest.mark.slow
def test_the_check_of_a_pull_request_ends_with_its_verdict(kernel, served):
    folder, is_wrong = kernel
    ran = run_in(folder, served, "bash", "check.sh")
    assert (ran.returncode, ran.stderr) == (int(is_wrong), "")
    assert ("✗ normalized" in ran.stdout) == is_wrong


MEASURED = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def read_penguins() -> list[list[float]]:
    """Return the measurements of the penguins that were measured."""
    with (SAMPLES / "penguins.csv").open() as stream:
        rows = [[row[name] for name in MEASURED] for row in csv.DictReader(stream)]
    return [[float(cell) for cell in row] for row in rows if "NA" not in row]


def measure_penguins(normcli) -> dict[str, list[float]]:
    line = ["zscore", "-i", SAMPLES / "penguins.csv", "--columns", ",".join(MEASURED), "--nan", "omit"]
    ran = normcli(*line, "-f", "json").json
    assert ran["columns"] == MEASURED
    return ran["stats"]


def test_the_statistics_of_the_penguins_are_exact_and_rounded_once(normcli):
    stats = measure_penguins(normcli)
    columns = [[Fraction(value) for value in column] for column in zip(*read_penguins(), strict=True)]
    means = [sum(column) / len(column) for column in columns]
    assert len(columns[0]) == 342
    assert stats["mean"] == [float(mean) for mean in means]
    assert stats["var"] == [
        float(sum((value - mean) ** 2 for value in column) / len(column))
        for column, mean in zip(columns, means, strict=True)
    ]


def test_the_commands_of_the_readme_run(normcli, monkeypatch):
    monkeypatch.chdir(SAMPLES)
    blocks = re.findall(r"```sh\n(.*?)```", (SAMPLES / "README.md").read_text(), flags=re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("normcli ")]
    assert len(commands) >= 10
    for command in commands:
        assert normcli(*command.split()[1:]).code == 0, command


@pytest.mark.peers
def test_the_test_of_a_model_passes_and_names_a_bug(tmp_path, served):
    text = (SAMPLES / "model" / "test_model.py").read_text()
    line = "h = self.before_attention(x)"
    assert text.count(line) == 1
    bug = "self.before_attention.forward = lambda x: nn.functional.rms_norm(x, (32,), eps=0.1)"
    (tmp_path / "test_right.py").write_text(text)
    (tmp_path / "test_wrong.py").write_text(text.replace(line, f"{bug}; {line}"))
    ran = run_tests(tmp_path, served, "-rA")
    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) (test_\w+)\.py::test_every_norm", ran.stdout, flags=re.M)
    assert set(outcomes) == {("PASSED", "test_right"), ("FAILED", "test_wrong")}, ran.stdout[-2000:]
    assert "PASSED test_wrong.py::test_both_runs_agree" in ran.stdout
    assert "eps is 0.1" in ran.stdout
