"""The shell rules, in real processes: pipes, terminals, signals."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.marks import costly, sampled, slowly
from tests.served import run_on_terminal

COMMAND = [sys.executable, "-m", "normcli"]


def start(*arguments, **settings):
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


@pytest.fixture
def on_a_terminal(served):
    """Run on a pseudo terminal of so many columns; return what it shows."""

    def run(*arguments, columns=80, **environment):
        plain = {k: v for k, v in served.items() if k not in ("NO_COLOR", "TERM", "COLORTERM")}
        shown = {"TERM": "xterm-256color", "COLUMNS": str(columns)} | environment
        return run_on_terminal(plain | shown, *arguments)[1]

    return run


def test_a_reader_that_stops_reading_ends_it_quietly():
    with start("bn", "--shape", "30,30,30", "-f", "csv") as process:
        assert process.stdout.readline() == b"n,c,l,input,mean,var,std,rstd,normalized\n"
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""


@pytest.mark.slow
def test_a_pipe_has_no_colour_and_a_terminal_has(served, on_a_terminal):
    command = ["normcli", "bn", "--shape", "2,3"]
    plain = subprocess.run(command, capture_output=True, check=True, env=served).stdout
    assert b"\x1b" not in plain
    assert "\x1b[" in on_a_terminal("bn", "--shape", "2,3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environment"), [(["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]
)
def test_a_terminal_without_colours(arguments, environment, on_a_terminal):
    assert "\x1b" not in on_a_terminal("bn", "--shape", "2,3", *arguments, **environment)


@pytest.mark.parametrize("term", ["dumb", *slowly(["xterm-256color"])])
def test_always_means_on_a_pipe_and_a_dumb_terminal_too(term, served):
    environment = {k: v for k, v in served.items() if k != "COLORTERM"} | {"TERM": term, "NO_COLOR": "1"}
    command = ["normcli", "bn", "--shape", "2,3", "--color", "always"]
    assert b"48;5;" in subprocess.run(command, capture_output=True, check=True, env=environment).stdout


@pytest.mark.slow
@costly
@sampled
@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("line", ["zscore --shape 3,40 --full", "norms", "ln --shape 8,64,32,32"])
def test_nothing_is_wider_than_the_terminal(line, columns, on_a_terminal):
    shown = re.sub(r"\x1b\[[0-9;]*m", "", on_a_terminal(*line.split(), columns=columns))
    widest = max(shown.splitlines(), key=len)
    assert len(widest) <= columns, widest


@pytest.mark.slow
def test_a_narrow_encoding_shows_question_marks_and_no_traceback():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ran = subprocess.run([*COMMAND, "bn", "--shape", "2,3"], capture_output=True, env=environment, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"?(var + eps)" in ran.stdout


@pytest.mark.slow
def test_a_file_whose_name_is_no_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.npy"
    with open(path, "wb") as stream:
        np.save(stream, np.eye(2))
    ran = subprocess.run([*map(os.fsencode, COMMAND), b"bn", b"-i", path], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("bn --shape 2,3 >&-", 3, "", "normcli: standard output is closed\n"),
        ("--help >&-", 3, "", "normcli: standard output is closed\n"),
        ("bn -i - <&-", 3, "", "normcli: standard input is closed\n"),
        ("bn --data '[[1,1]]' --print mean 2>&-", 0, "1.0\n1.0\n", ""),
        ("bn --nothing 2>&-", 2, "", ""),
        ("bn --shape 20,30 >/dev/full", 3, "", "normcli: I/O error: No space left on device\n"),
    ],
)
def test_closed_and_full_streams(line, code, out, err):
    ran = subprocess.run(
        f"{sys.executable} -m normcli {line}", shell=True, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, out, err)


def test_a_hangup_that_is_ignored_stays_so():
    """`nohup` ignores it, so that the terminal may close."""
    shown = "import signal; from normcli.cli.run import run; run(['bn', '--shape', '2,3', '--print', 'mean']); "
    shown += "print(signal.getsignal(signal.SIGHUP).name, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
    script = f"trap '' HUP; exec {sys.executable} -c \"{shown}\""
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "SIG_IGN False"


_INTERRUPT = (
    "import signal, sys; from normcli.__main__ import main; interrupt = lambda *_: signal.raise_signal(2); "
)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param("sys.meta_path.insert(0, type('', (), {'find_spec': interrupt})); main()", "", id="while it starts"),
        pytest.param("sys.argv[1:] = ['norms']; sys.setprofile(lambda frame, event, _: frame.f_code.co_name == '_report'"
                     " and event == 'call' and interrupt()); sys.stdout = None; main()", "", id="while it says why"),
    ],
)  # fmt: skip
def test_an_interrupt_is_quiet_before_and_behind_what_a_run_catches(code, said):
    process = subprocess.run(
        [sys.executable, "-c", _INTERRUPT + code], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", said)


@pytest.mark.slow
def test_without_numpy_one_line_says_how_to_install_it():
    code = "import sys; sys.modules['numpy'] = None; sys.argv[1:] = ['bn', '--data', '[1,2]']; from normcli.__main__ import main; main()"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = f"normcli: numpy, which normcli needs, is not installed: {sys.executable} -m pip install numpy\n"
    assert (process.returncode, process.stdout, process.stderr) == (3, "", expected)
