from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.written_whole import open_folder, open_whole, require_new_folder, require_writable


@pytest.fixture(autouse=True, params=["nameless", "named"])
def way(request, monkeypatch):
    """Both ways of keeping a draft: as Linux can, and as other systems must."""
    if request.param == "named":
        monkeypatch.setattr("normcli.tensors.written_whole._OPEN_FILES", "/nowhere")
    return request.param


def test_the_new_file_takes_the_place_of_the_old(tmp_path, way):
    path = tmp_path / "x"
    path.write_text("old")
    with open_whole(str(path)) as stream:
        stream.write(b"new")
        assert path.read_text() == "old"
        assert len(os.listdir(tmp_path)) == (1 if way == "nameless" else 2)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path, error):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(error), open_whole(str(path)) as stream:
        stream.write(b"half")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_full_disk_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be written: No space left"), open_whole(str(tmp_path / "x")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_permissions_are_kept_or_are_those_that_new_files_get(tmp_path):
    for name in ("old", "usual"):
        (tmp_path / name).touch()
    (tmp_path / "old").chmod(0o640)
    for name in ("old", "new"):
        with open_whole(str(tmp_path / name)) as stream:
            stream.write(b"new")
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.written_whole._open_descriptor", lambda folder: None)
    with open_whole(str(tmp_path / "x")) as stream:
        stream.write(b"new")
    assert (tmp_path / "x").read_text() == "new"


def test_all_is_on_the_disk_before_and_after_the_renaming(tmp_path, monkeypatch):
    steps = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(
        "os.fsync", lambda number: (steps.append(stat.S_IFMT(os.fstat(number).st_mode)), sync(number))
    )
    monkeypatch.setattr(Path, "replace", lambda *paths: (steps.append("rename"), replace(*paths)))
    with open_whole(str(tmp_path / "x")) as stream:
        stream.write(b"new")
    assert steps == [stat.S_IFREG, "rename", stat.S_IFDIR]


def test_a_failed_renaming_leaves_no_litter(tmp_path, monkeypatch):
    def fail(*paths):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(DataError, match="Input/output error"), open_whole(str(tmp_path / "x")) as stream:
        stream.write(b"new")
    assert os.listdir(tmp_path) == []


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with open_whole(str(tmp_path / "link")) as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_links_that_lead_back_to_themselves_are_left_alone(tmp_path):
    (tmp_path / "a.npy").symlink_to("b.npy")
    (tmp_path / "b.npy").symlink_to("a.npy")
    with pytest.raises(UsageError, match=r"-o .*a.npy: this is a symbolic link that leads back to itself"):
        require_writable(str(tmp_path / "a.npy"), "-o")
    with (
        pytest.raises(DataError, match="a.npy cannot be written: Too many levels"),
        open_whole(str(tmp_path / "a.npy")),
    ):
        pass
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy"]
    assert (tmp_path / "a.npy").is_symlink()


def test_a_device_is_written_to_directly():
    with open_whole("/dev/null") as stream:
        stream.write(b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.fixture
def pipe(tmp_path):
    """A pipe x, and a descriptor of its reader."""
    os.mkfifo(tmp_path / "x")
    reader = os.open(tmp_path / "x", os.O_RDONLY | os.O_NONBLOCK)
    yield reader
    os.close(reader)


def test_what_seeks_is_stored_before_it_goes_to_a_pipe(tmp_path, pipe):
    with open_whole(str(tmp_path / "x"), seeks=True) as stream:
        stream.write(b"___ second")
        stream.seek(0)
        stream.write(b"one")
        with pytest.raises(BlockingIOError):
            os.read(pipe, 100)
    assert os.read(pipe, 100) == b"one second"
    assert os.listdir(tmp_path) == ["x"]


def test_nothing_reaches_a_pipe_after_a_failure(tmp_path, pipe):
    with pytest.raises(RuntimeError), open_whole(str(tmp_path / "x"), seeks=True) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert os.read(pipe, 100) == b""


@pytest.mark.parametrize("swaps", [True, False], ids=["at once", "where the system cannot"])
def test_a_folder_takes_the_place_of_another_and_leaves_no_litter(tmp_path, monkeypatch, swaps):
    target = tmp_path / "target"
    target.mkdir()
    (target / "old").write_text("old")
    if not swaps:
        monkeypatch.setattr("ctypes.CDLL", lambda *arguments, **options: object())
    with open_folder(str(target), replaces=True) as draft:
        (draft / "new").write_text("new")
        assert [file.name for file in target.iterdir()] == ["old"]
    assert [file.name for file in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


def test_what_no_new_folder_may_be(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for path, told in (
        ("file", "this is no folder"),
        ("file/", "this is no folder"),
        (".", "not empty"),
        ("no/more", f"no folder {tmp_path}/no"),
    ):
        with pytest.raises(UsageError, match=told):
            require_new_folder(f"{tmp_path}/{path}", "-o")
    require_new_folder(str(tmp_path), "-o", replaces=True)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(DataError, match="-o .*/new: no permission to write there"):
        require_new_folder(f"{tmp_path}/new", "-o")
    with pytest.raises(DataError, match="-o .*/new.npy: no permission to write there"):
        require_writable(f"{tmp_path}/new.npy", "-o")


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "an empty folder"])
def test_what_another_process_wrote_meanwhile_stays(tmp_path, is_there):
    target = tmp_path / "y.zarr"
    if is_there:
        target.mkdir()

    def write_meanwhile():
        with open_folder(str(target)) as folder:
            (folder / "zarr.json").write_text("mine")
            target.mkdir(exist_ok=True)
            (target / "zarr.json").write_text("theirs")

    with pytest.raises(DataError, match=r"y.zarr cannot be written: another process has written it meanwhile"):
        write_meanwhile()
    assert (target / "zarr.json").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["y.zarr"]
