"""What processes that were killed left in a folder is removed; nothing of a living one is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from normcli.tensors.held_files import remove_leftovers
from normcli.tensors.written_whole import open_folder, open_whole

DEAD = ".normcli-0123456789abcdef.part"


def test_what_nobody_holds_is_removed(tmp_path):
    (tmp_path / DEAD).mkdir()
    (tmp_path / DEAD / "input.npy").write_bytes(b"x")
    for name in (".normcli-0123456789abcde0.part", ".normcli-0123456789abcdef.lock"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == []


def test_files_of_other_names_stay(tmp_path):
    names = {".normcli-0123.part", DEAD[1:], f"{DEAD}.npy", "x.part"}
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / DEAD).symlink_to(tmp_path / "x.part")
    remove_leftovers(tmp_path)
    assert set(os.listdir(tmp_path)) == {*names, DEAD}


def test_the_draft_of_a_living_process_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.written_whole._OPEN_FILES", "/nowhere")  # so that the draft has a name
    with open_folder(str(tmp_path / "g")) as draft, open_whole(str(tmp_path / "x")) as stream:
        (draft / "a").write_text("a")
        stream.write(b"new")
        remove_leftovers(tmp_path)
        assert len(os.listdir(tmp_path)) == 2
    assert sorted(os.listdir(tmp_path)) == ["g", "x"]
    assert os.listdir(tmp_path / "g") == ["a"]


def test_a_draft_stays_when_it_has_a_name_and_not_yet_its_place(tmp_path, monkeypatch):
    def replace(path, target, replace=Path.replace):
        remove_leftovers(tmp_path)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with open_whole(str(tmp_path / "x")) as stream:
        stream.write(b"new")
    assert (tmp_path / "x").read_bytes() == b"new"


@pytest.mark.parametrize("write", [open_folder, open_whole])
def test_a_draft_that_was_taken_for_left_behind_is_made_anew(write, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.written_whole._OPEN_FILES", "/nowhere")
    found = iter([False, True])
    monkeypatch.setattr("normcli.tensors.written_whole.is_at", lambda descriptor, path: next(found))
    with write(str(tmp_path / "x")):
        pass
    assert (tmp_path / "x").exists()


def test_where_there_are_no_locks_nothing_is_removed(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("normcli.tensors.held_files.try_lock", fail)
    monkeypatch.setattr("normcli.tensors.written_whole.try_lock", fail)
    (tmp_path / DEAD).mkdir()
    with open_whole(str(tmp_path / "x")) as stream:
        stream.write(b"new")
    assert sorted(os.listdir(tmp_path)) == [DEAD, "x"]
