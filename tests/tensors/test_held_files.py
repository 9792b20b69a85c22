from __future__ import annotations

import os

import pytest

from normcli.errors import DataError
from normcli.tensors.held_files import Opened


def rewrite(path):
    path.write_bytes(b"longer than before")


def rewrite_as_long(path):
    os.utime(path, ns=(0, 0))


def replace(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    other.replace(path)


def remove(path):
    path.unlink()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(b"values")
    return path


@pytest.mark.parametrize("change", [rewrite, rewrite_as_long, replace, remove])
def test_a_change_of_the_file_is_an_error(change, path):
    with path.open("rb") as stream:
        opened = Opened.describe(stream, "x.npy", path)
        opened.require_unchanged()
        change(path)
        with pytest.raises(DataError, match=r"^x\.npy changed while it was read"):
            opened.require_unchanged()


@pytest.mark.parametrize(("change", "is_one"), [(rewrite, True), (rewrite_as_long, True), (replace, False)])
def test_of_a_file_without_a_name_the_content_counts(change, is_one, path):
    with path.open("rb") as stream:
        opened = Opened.describe(stream, "standard input")
        change(path)
        if is_one:
            with pytest.raises(DataError, match="standard input changed"):
                opened.require_unchanged()
        else:
            opened.require_unchanged()


def test_the_current_folder_may_change(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(path.parent)
    with path.open("rb") as stream:
        opened = Opened.describe(stream, "x.npy", path.relative_to(path.parent))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    opened.require_unchanged()


def test_a_time_that_was_set_back_hides_no_change(path):
    before = path.stat().st_mtime_ns
    with path.open("rb") as stream:
        opened = Opened.describe(stream, "x.npy", path)
        path.write_bytes(b"others")
        os.utime(path, ns=(before, before))
        with pytest.raises(DataError, match=r"x\.npy changed while it was read"):
            opened.require_unchanged()
