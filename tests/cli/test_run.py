"""What ends a run, as an exit code and a line."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
import pytest

from normcli.cli.run import run

INSTALL, FAULT = f"{sys.executable} -m pip install", "a fault of normcli's own,"


@pytest.fixture
def failing(monkeypatch):
    """Make every command fail so."""

    def fail(error):
        def invoke(context):
            raise error

        monkeypatch.setattr("normcli.cli.run.commands.invoke", invoke)

    return fail


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (MemoryError(), 3, "this does not fit into memory"),
        (OSError(28, "No space left on device"), 3, "I/O error: No space left on device"),
        (
            ModuleNotFoundError("No", name="rich"),
            3,
            f"rich, which normcli needs, is not installed: {INSTALL} rich",
        ),
        (
            ModuleNotFoundError("No", name="other"),
            70,
            f"{FAULT} ModuleNotFoundError: No (NORMCLI_DEBUG=1 shows where)",
        ),
        (ValueError("odd"), 70, f"{FAULT} ValueError: odd (NORMCLI_DEBUG=1 shows where)"),
    ],
)
@pytest.mark.all_quick
def test_a_failure_is_a_line_and_an_exit_code(normcli, failing, error, code, said):
    failing(error)
    ran = normcli("norms")
    assert (ran.code, ran.out, ran.err) == (code, "", f"normcli: {said}\n")


def _interrupt_as_another_error(context):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as error:  # as Python does it where a class is made
        raise RuntimeError("Error calling __set_name__") from error


class _Owner:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def _interrupt_where_nothing_is_raised(context):
    owner = _Owner()
    del owner


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("invoke", [_interrupt_as_another_error, _interrupt_where_nothing_is_raised])
def test_an_interrupt_is_one_whatever_python_makes_of_it(invoke, normcli, monkeypatch):
    monkeypatch.setattr("normcli.cli.run.commands.invoke", invoke)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    ran = normcli("norms")
    assert (ran.code, ran.out, ran.err) == (130, "", "normcli: interrupted\n")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_behind_a_replaced_file_says_so(normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    replace = Path.replace

    def replace_and_interrupt(draft, target):
        replace(draft, target)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "replace", replace_and_interrupt)
    ran = normcli("ln", "-i", "x.csv", "-o", "x.csv")
    assert (ran.code, ran.out, ran.err) == (130, "", "normcli: interrupted; x.csv is already written\n")
    assert (tmp_path / "x.csv").read_text() != "1,2\n3,4\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [(BrokenPipeError(), 0), (SystemExit(143), 143)],
)
def test_who_ends_a_run_is_told_nothing(normcli, failing, monkeypatch, error, code):
    monkeypatch.setattr("os.dup2", lambda *descriptors: None)  # of the tests' own output
    failing(error)
    ran = normcli("norms")
    assert (ran.code, ran.out, ran.err) == (code, "", "")


def test_a_fault_is_shown_to_those_who_ask(failing, monkeypatch):
    monkeypatch.setenv("NORMCLI_DEBUG", "1")
    failing(ValueError("odd"))
    with pytest.raises(ValueError, match="odd"):
        run(["norms"])


def test_where_output_is_closed_that_is_said_and_where_messages_are_they_go_nowhere(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout", None)
    assert run(["norms"]) == 3
    assert capsys.readouterr().err == "normcli: standard output is closed\n"
    monkeypatch.setattr("sys.stderr", None)
    assert run(["norms"]) == 3
    assert sys.stderr.name == "/dev/null"
    sys.stderr.close()
