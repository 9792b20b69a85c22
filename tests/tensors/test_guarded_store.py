"""Stores that hold what is no file, or lead elsewhere: refused at once, unless links are to be followed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.files import load
from normcli.tensors.formats import stores

pytestmark = pytest.mark.peers


def _make_socket(chunk):
    with contextlib.chdir(chunk.parent), socket.socket(socket.AF_UNIX) as made:  # a socket's path is short
        made.bind(chunk.name)


def _link_to(target):
    return lambda chunk: chunk.symlink_to(target)


@pytest.fixture
def store(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    zarr.create_array("x.zarr", shape=(4, 4), chunks=(2, 2), dtype="f8")[:] = np.arange(16.0).reshape(4, 4)
    shutil.copy("x.zarr/c/0/1", "elsewhere")
    return tmp_path / "x.zarr"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(os.mkfifo, "1 is a pipe, where only a file will do", id="pipe"),
        pytest.param(_make_socket, "1 is a socket, where only a file will do", id="socket"),
        pytest.param(_link_to("/dev/zero"), "1 is a link to /dev/zero; --follow-links", id="device"),
        pytest.param(_link_to("../../../elsewhere"), "1 is a link to .*elsewhere; --follow-links", id="link"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 26], ids=["mapped", "in memory"])
def test_a_chunk_that_is_no_file_is_refused_at_once(make, message, size, store, normcli, monkeypatch):
    monkeypatch.setattr(stores, "SMALLEST_MAPPED", size)
    (store / "c/0/1").unlink()
    make(store / "c/0/1")
    ran = normcli("zscore", "-i", "x.zarr", "-f", "json")
    assert (ran.code, ran.raw, ran.err.count("\n")) == (3, b"", 1)
    assert re.search(message, ran.err)


def test_links_are_followed_within_a_store_and_elsewhere_by_choice(store, normcli):
    (store / "c/0/1").unlink()
    (store / "c/0/1").symlink_to("0")
    inside = normcli("zscore", "-i", "x.zarr", "--print", "mean")
    assert (inside.code, inside.err) == (0, "")
    (store / "c/0/1").unlink()
    (store / "c/0/1").symlink_to("../../../elsewhere")
    assert normcli("fit", "zscore", "x.zarr").code == 3
    followed = normcli("fit", "zscore", "x.zarr", "--follow-links", "--print", "mean")
    assert followed.out.split() == ["6.0", "7.0", "8.0", "9.0"]
    assert normcli("fit", "zscore", "x.zarr").code == 3


def test_folders_that_link_round_in_circles_are_left_out(store, normcli, tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.open_group("g.zarr", mode="w").create_array("x", data=np.arange(4.0))
    for name in "ab":
        (tmp_path / "g.zarr" / name).symlink_to(".")
    assert normcli("zscore", "-i", "g.zarr", "--print", "mean").out == "1.5\n"


def test_chunks_of_no_length_are_damage(store):
    described = json.loads((store / "zarr.json").read_text())
    described["chunk_grid"]["configuration"]["chunk_shape"] = [0, 2]
    (store / "zarr.json").write_text(json.dumps(described))
    with pytest.raises(DataError, match=r"^x.zarr is damaged: its chunks have the shape \(0, 2\)$"):
        load("x.zarr")


@pytest.mark.parametrize("way", [(), ("--workers", "2")], ids=["here", "workers"])
def test_a_chunk_that_is_written_between_two_passes_is_an_error(way, store, normcli, monkeypatch):
    zarr = pytest.importorskip("zarr")
    if way:
        pytest.importorskip("distributed")
    monkeypatch.setattr(stores, "SMALLEST_MAPPED", 1)
    plain, changed = stores.StoreVersion.describe, []

    def describe_then_change(name, folder):
        version = plain(name, folder)
        if folder is not None and not changed:
            changed.append(zarr.open("x.zarr"))
            changed[0][2:] = 7.0
        return version

    monkeypatch.setattr(stores.StoreVersion, "describe", describe_then_change)
    ran = normcli("bn", "-i", "x.zarr", "-o", "y.zarr", *way)
    assert changed
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err == "normcli: x.zarr changed while it was read; run again once nothing writes to it\n"
    assert not os.path.exists("y.zarr")
