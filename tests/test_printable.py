"""Text for a terminal: nothing in a name moves its cursor or turns its lines round."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import printable
from normcli.printable import make_printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\x1b[2Jb\n", "a\\x1b[2Jb\\x0a", id="control characters"),
        pytest.param("\x7f\x9b", "\\x7f\\x9b", id="later control characters"),
        pytest.param("\u202egnp.exe\u202c", "\\u202egnp.exe\\u202c", id="right to left"),
        pytest.param("\u2066\u2069\u200f\u061c", "\\u2066\\u2069\\u200f\\u061c", id="isolates and marks"),
        pytest.param("a\u2028b", "a\\u2028b", id="separators of lines"),
        pytest.param("\udcff", "\\udcff", id="no text"),
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


def test_the_name_of_a_golden_folder_is_printable_in_its_help(normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g\u202e").mkdir()
    shown = normcli("check", "g\u202e", "--help").out
    assert "\u202e" not in shown
    assert shown.count("g\\u202e") == 3


@pytest.mark.parametrize("text", ["(x − mean) / √(var + eps)", "“x̂” … · größe"])
def test_patterns_of_wide_characters_are_made_for_such_alone(text, monkeypatch):
    """Compiling them takes a twentieth of a small calculation."""
    monkeypatch.setattr(printable, "_find_patterns", None)
    assert printable.spread_wide(text) == text
