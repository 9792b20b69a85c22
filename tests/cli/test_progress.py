"""The progress bar: for long work, on a terminal, and gone when it is done."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest

from normcli.cli.progress import Forecast, ProgressBar
from tests.marks import costly


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_long_work_has_one_that_says_bytes_speed_and_time(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with ProgressBar(stream, patience=0.0) as bar:
        bar.expect(2_000_000)
        bar.advance(1_000_000)
        bar.advance(500_000)
    text = stream.getvalue()
    assert "1.0/2.0 MB" in text
    assert re.search(r"\?|B/s", text)
    assert re.search(r"\d:\d\d:\d\d|-:--:--", text)


def test_work_on_no_file_has_one_without_bytes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with ProgressBar(stream, patience=0.0, shows_bytes=False) as bar:
        bar.expect(2_000_000)
        bar.advance(1_000_000)
    assert "50%" in stream.getvalue()
    assert "B" not in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", stream.getvalue())


def test_work_that_goes_on_after_the_bar_is_gone_draws_none(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with ProgressBar(stream, patience=0.0) as bar:
        bar.expect(2_000_000)
    bar.advance(1_000_000)
    assert stream.getvalue() == ""


def test_long_work_without_a_terminal_is_forecast_in_one_line(monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    said = []
    with Forecast(said.append) as watcher:
        watcher.expect(1000)
        for number in range(1, 10):
            seconds[0] = 4.0 * number
            watcher.advance(100)
    assert said == ["30% done after 12 s, about 28 s to go"]


def test_work_that_is_nearly_done_is_not_forecast(monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    said = []
    with Forecast(said.append) as watcher:
        watcher.expect(1000)
        watcher.advance(950)
        seconds[0] = 11.0
        watcher.advance(40)
        watcher.advance(10)
    watcher.expect(10**9)
    watcher.advance(1)
    assert said == []


@pytest.mark.parametrize(("options", "said"), [((), True), (("-q",), False)])
def test_a_run_of_many_batches_without_a_terminal_is_forecast(options, said, normcli, monkeypatch):
    monkeypatch.setattr(Forecast.__init__, "__defaults__", (0.0,))
    monkeypatch.setattr("normcli.cli.progress.SHORTEST", 0.0)
    ran = normcli("simulate", "training", "--runs", "3", "--steps", "2", "--shape", "64,3", *options)
    assert ran.code == 0
    assert bool(re.fullmatch(r"normcli: progress: \d+% done after 0 s, about 0 s to go\n", ran.err)) is said


@costly
@pytest.mark.parametrize(("options", "drawn"), [((), True), (("--quiet",), False)])
@pytest.mark.slow
def test_it_is_drawn_on_a_terminal_unless_quiet(options, drawn, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(1500, 1000)))
    code = (
        "import sys, normcli.cli.progress as p\n"
        "p.ProgressBar.__init__.__defaults__ = (0.0,)\n"
        "from normcli.cli.run import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code, "ln", "-i", str(tmp_path / "x.npy"), "--print", "axes", *options]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=environment, check=True)
    os.write(theirs, b"end")
    seen = b""
    while not seen.endswith(b"end"):
        seen += os.read(ours, 65536)
    os.close(ours)
    os.close(theirs)
    assert ran.stdout == b"1\n"
    assert (b"MB" in seen) is drawn
