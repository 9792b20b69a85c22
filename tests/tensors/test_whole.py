from __future__ import annotations

import errno
import os
import stat

import pytest

from normcli.errors import DataError
from normcli.tensors.whole import open_whole


def test_the_new_file_takes_the_place_of_the_old(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with open_whole(str(path)) as stream:
        stream.write(b"new")
        assert path.read_text() == "old"
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


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o640)
    with open_whole(str(path)) as stream:
        stream.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with open_whole(str(tmp_path / "link")) as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_is_written_to_directly():
    with open_whole("/dev/null") as stream:
        stream.write(b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
