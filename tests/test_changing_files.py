"""Files that somebody writes to while they are read: an error, and never an answer of two versions or of neither."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors import files
from normcli.tensors import written_whole as whole
from normcli.tensors.formats import file_formats, npz
from tests.conftest import require_refusal
from tests.marks import costly, slowly

CHANGED = "x{suffix} changed while it was read; run again once nothing writes to it"

WRITER = """
import os, sys, time
path, size, way, *units = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
head, versions = open(path, "rb").read()[:-size], [bytes.fromhex(unit) * (size * 2 // len(unit)) for unit in units]
sys.stdout.write("ready\\n")
sys.stdout.flush()
while True:
    for content in versions:
        time.sleep(0.005)
        if way == "truncate":
            with open(path, "r+b") as file:
                file.truncate(len(head) + size // 2)
                time.sleep(0.002)
                file.seek(len(head))
                file.write(content)
        else:
            with open(f"{path}.new", "wb") as file:
                file.write(head + content)
            os.replace(f"{path}.new", path)
"""


@pytest.fixture
def folder(here, normcli):
    x = np.random.default_rng(1).normal(3, 2, (4, 3))
    for name in ("x.npy", "a.npy"):
        np.save(name, x)
    np.savez("x.npz", x=x)
    np.save("mask.npy", x > 0)
    np.save("gamma.npy", x[0])
    np.savetxt("x.csv", x, delimiter=",", header="x,y,z", comments="")
    assert normcli("fit", "zscore", "a.npy", "-o", "stats.npz").code == 0
    return here


COMMANDS = [
    pytest.param("bn -i x.npy", id="print"),
    pytest.param("ln -i x.npy -o y.npy", id="to a file"),
    pytest.param("fit zscore a.npy x.npy -o y.npz", id="fit"),
    pytest.param("check ln -i a.npy --actual x.npy", id="check"),
    *slowly(
        [
            pytest.param("ln -i x.npz -o y.csv", id="from an archive"),
            pytest.param("identify -i a.npy --actual x.npy", id="identify"),
            pytest.param("robust -i x.npy --print median", id="robust"),
            pytest.param("bn -i x.npy --state y.npz", id="state"),
            pytest.param("apply stats.npz a.npy x.npy -o out/", id="apply"),
            pytest.param("invert stats.npz x.npy -o y.npy", id="invert"),
            pytest.param("golden ln -i x.npy -o y", id="golden"),
        ]
    ),
]


def _touch(path):
    os.utime(path, ns=(0, os.stat(path).st_mtime_ns + 1))


def _touch_after(monkeypatch, owner, name, path):
    """Let every call of a function change a file."""
    plain = getattr(owner, name)

    def call(*arguments, **options):
        result = plain(*arguments, **options)
        _touch(path)
        return result

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize(
    "mapped", [False, True], ids=["while it is loaded", "while it is worked on where it lies"]
)
@pytest.mark.parametrize("line", COMMANDS)
def test_a_file_that_changes(line, mapped, folder, normcli, monkeypatch):
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    suffix = ".npz" if "x.npz" in line else ".npy"
    _touch_after(monkeypatch, files, "_hold_to" if mapped else "_load_whole", f"x{suffix}")
    ran = normcli(*line.split())
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err.endswith(CHANGED.format(suffix=suffix) + "\n")
    assert not list(folder.glob("y*"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["mask", *slowly(["gamma"])])
def test_other_files_of_a_calculation_that_change(name, normcli, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    _touch_after(monkeypatch, files, "_hold_to", f"{name}.npy")
    require_refusal(
        normcli("ln", "-i", "a.npy", f"--{name}", f"{name}.npy"), 3, f"{name}.npy changed while it was read"
    )


@pytest.mark.usefixtures("folder")
def test_standard_input_that_is_a_file(monkeypatch):
    _touch_after(monkeypatch, files, "_load_whole", "x.npy")
    with open("x.npy", encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(DataError, match="standard input changed while it was read"):
            files.load("-")


@pytest.mark.parametrize("change", ["touched", "shorter"])
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_a_table_that_changes_before_its_other_columns_are_copied(name, change, folder, normcli, monkeypatch):
    if name == "x.jsonl":
        (folder / name).write_text('{"x": 1, "y": 2}\n{"x": 3, "y": 5}\n')

    def damage():
        if change == "shorter":
            lines = (folder / name).read_text().splitlines(keepends=True)
            (folder / name).write_text("".join(lines[:-1]))
        _touch(name)

    plain = whole.open_whole
    monkeypatch.setattr(
        "normcli.tensors.written_whole.open_whole",
        lambda *arguments, **options: (damage(), plain(*arguments, **options))[1],
    )
    ran = normcli("zscore", "-i", name, "--columns", "x", "-o", f"y{name[1:]}")
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err == f"normcli: {name} changed while it was read; run again once nothing writes to it\n"
    assert not list(folder.glob("y*"))


def test_stats_that_change_while_they_are_read(folder, normcli, monkeypatch):
    _touch_after(monkeypatch, npz, "_read_members", "stats.npz")
    require_refusal(normcli("merge", "stats.npz"), 3, "stats.npz changed while it was read")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mapped", [False, True])
def test_a_result_may_take_the_place_of_its_input(mapped, normcli, monkeypatch):
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    for line in (
        "ln -i x.npy -o x.npy --show input,stats,normalized,check",
        "ln -i x.npz -o x.npz",
        "zscore -i x.csv --columns x -o x.csv -f json",
        "apply stats.npz a.npy -o a.npy",
    ):
        ran = normcli(*line.split())
        assert ran.code == 0, (line, ran.err)


@costly
@pytest.mark.parametrize("way", ["truncate", pytest.param("replace", marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [1 << 16, pytest.param(1 << 22, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", [".npy", *slowly([".safetensors", ".csv"])])
def test_no_answer_is_of_half_a_file_or_of_two(way, size, suffix, tmp_path, normcli):
    path, units = tmp_path / f"x{suffix}", (b"\0", b"\1")
    if suffix == ".csv":
        units = b"0\n", b"1\n"
        path.write_bytes(b"x\n" + units[0] * (size // 2))
    else:
        with path.open("wb") as stream:
            file_formats.FORMATS[suffix].write(stream, file_formats.Saved(np.zeros(size, "u1"), "x"))
    command = [sys.executable, "-c", WRITER, str(path), str(size), way, *(unit.hex() for unit in units)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            ran = [normcli("bn", "-i", path, "--keep", "()", "--print", "mean", "-q") for _ in range(15)]
        finally:
            writer.kill()
    assert {one.code for one in ran} <= {0, 3}
    assert {one.raw for one in ran if one.code == 0} <= {b"0.0\n", b"1.0\n"}
    problems = [one.err for one in ran if one.code == 3]
    told = [problem for problem in problems if "changed while" not in problem and "cut short" not in problem]
    assert told == []
