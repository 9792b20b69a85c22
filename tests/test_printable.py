"""Text for a terminal: nothing in a name moves its cursor or turns its lines round."""

from __future__ import annotations

import io
import json
from xml.dom import minidom

import numpy as np
import pytest

from normcli import printable
from normcli.printable import make_printable
from tests.marks import costly
from tests.served import run_on_terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\x1b[2Jb\n", "a\\x1b[2Jb\\x0a", id="control characters"),
        pytest.param("\x7f\x9b", "\\x7f\\x9b", id="later control characters"),
        pytest.param("\u202egnp.exe\u202c", "\\u202egnp.exe\\u202c", id="right to left"),
        pytest.param("\u2066\u2069\u200f\u061c", "\\u2066\\u2069\\u200f\\u061c", id="isolates and marks"),
        pytest.param("a\u2028b", "a\\u2028b", id="separators of lines"),
        pytest.param("\udcff", "\\udcff", id="no text"),
        pytest.param("\ufffe\uffff", "\\ufffe\\uffff", id="no characters"),
        pytest.param("größe שלום 😀", "größe שלום 😀", id="letters"),
    ],
)
def test_what_no_terminal_should_be_sent_is_escaped(text, shown):
    assert make_printable(text) == shown


def test_names_in_warnings_are_printable(normcli, tmp_path):
    path = tmp_path / "x\u202e\x1b.npy"
    np.save(path, np.ones((3, 2)))
    ran = normcli("bn", "-i", path, "--state", tmp_path / "s\u202e.npz")
    assert ran.code == 0
    assert "\\u202e" in ran.err
    assert "\u202e" not in ran.err + ran.out
    assert "\x1b" not in ran.err + ran.out


def test_the_name_of_a_golden_folder_is_printable_in_its_help(normcli, here):
    (here / "g\u202e").mkdir()
    shown = normcli("check", "g\u202e", "--help").out
    assert "\u202e" not in shown
    assert shown.count("g\\u202e") == 3


@pytest.mark.parametrize("text", ["(x − mean) / √(var + eps)", "“x̂” … · größe"])
def test_patterns_of_wide_characters_are_made_for_such_alone(text, monkeypatch):
    """Compiling them takes a twentieth of a small calculation."""
    monkeypatch.setattr(printable, "_find_patterns", None)
    assert printable.spread_wide(text) == text


NAMES = ["c\x1b[31m", "d\u202e", "e\u2028丁", "f\uffff"]


@pytest.fixture
def names_file(here):
    (here / "x.json").write_text(json.dumps([dict.fromkeys(NAMES, k**2) for k in range(3)]))
    return "x.json"


@costly
@pytest.mark.parametrize("options", ["-o - -f csv", "-o - -f jsonl", "-f csv", "-f tsv", "-f markdown", ""])
def test_names_of_columns_do_nothing_to_a_terminal_and_reach_a_pipe_as_they_are(
    options, names_file, normcli, served
):
    command = ["zscore", "-i", names_file, "--color", "never", *options.split()]
    code, sent = run_on_terminal(served, *command)
    assert code == 0
    assert not {"\x1b", "\u202e", "\u2028", "\uffff"} & set(sent)
    assert options == "-o - -f jsonl" or "e\\u2028丁" in sent
    if "csv" in options:
        assert all(name in normcli(*command).out for name in NAMES)


def test_a_terminal_is_sent_whole_characters():
    text = io.StringIO()
    terminal = printable.TerminalBytes(text)
    for byte in "丁\t\u202e\n".encode():
        terminal.write(bytes([byte]))
    assert text.getvalue() == "丁\t\\u202e\n"


@pytest.mark.parametrize("command", ["draw zscore", "compare zscore minmax"])
def test_a_picture_of_any_names_is_xml(command, names_file, normcli):
    ran = normcli(*command.split(), "-i", names_file, "-o", "x.svg")
    assert ran.code == 0
    assert "f\\uffff" in minidom.parse("x.svg").toxml()
