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

from normcli.cli.progress import ProgressBar
from normcli.engine.run import run
from normcli.engine.walk import Effort
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.marks import costly


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_short_work_has_no_bar():
    stream = Terminal()
    with ProgressBar(stream) as bar:
        bar.expect(100)
        bar.advance(50)
        bar.advance(50)
    assert stream.getvalue() == ""


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


def test_work_that_goes_on_after_the_bar_is_gone_draws_none(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with ProgressBar(stream, patience=0.0) as bar:
        bar.expect(2_000_000)
    bar.advance(1_000_000)
    assert stream.getvalue() == ""


class Counter:
    def __init__(self):
        self.expected = self.done = 0

    def expect(self, byte_count):
        self.expected += byte_count

    def advance(self, byte_count):
        self.done += byte_count


@pytest.mark.parametrize(
    ("norm", "values", "passes"),
    [
        pytest.param("ln", np.ones((40, 50)), 1, id="one pass"),
        pytest.param("bn", np.ones((40, 50)), 2, id="two passes"),
    ],
)
def test_what_is_expected_is_what_is_done(norm, values, passes):
    counter = Counter()
    run(
        make_plan(Request(norm), values.shape, values.dtype),
        values,
        effort=Effort(2, counter, block=100, whole=60),
    )
    assert counter.expected == counter.done == passes * values.nbytes


@costly
@pytest.mark.parametrize(("options", "drawn"), [((), True), (("--quiet",), False)])
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
