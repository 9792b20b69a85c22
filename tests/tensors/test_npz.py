from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.files import load
from normcli.tensors.formats.npz import FileKind, load_members, read_npz, write_npz
from normcli.tensors.mapped import Mapped


def archive(compressed=False, **arrays) -> io.BytesIO:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    stream.seek(0)
    return stream


@pytest.mark.parametrize(
    ("key", "error", "told", "arrays"),
    [
        (None, UsageError, "x.npz holds 2 arrays; say which: x.npz:a, x.npz:b", "ab"),
        ("c", UsageError, "x.npz holds no array 'c'; it has x.npz:a", "a"),
        (None, DataError, "holds no arrays", ""),
    ],
    ids=["several", "another", "none"],
)
def test_an_array_that_is_not_named_is_refused(key, error, told, arrays):
    with pytest.raises(error, match=told):
        read_npz(archive(**{name: np.arange(3) for name in arrays}), "x.npz", key)


def test_an_array_with_an_empty_or_unprintable_name_is_offered_and_read_by_it(tmp_path):
    path = str(tmp_path / "x.npz")
    np.savez(path, **{"": np.ones(2), "it's\n": np.zeros(2)})
    with pytest.raises(UsageError) as refused:
        load(path)
    assert str(refused.value).endswith(rf"say which: {path}:, $'{path}:it\'s\x0a'")
    assert load(f"{path}:").values.tolist() == [1.0, 1.0]
    assert load(f"{path}:it's\n").values.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: data[:-40], id="cut at the end"),
        pytest.param(lambda data: data[:200], id="cut"),
        pytest.param(lambda data: b"PK\x03\x04" + bytes(300), id="no directory"),
        pytest.param(lambda data: data[:300] + b"\xff" * 200 + data[500:], id="overwritten"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_archive_is_refused(compressed, spoil):
    data = spoil(archive(compressed, a=np.arange(1000)).getvalue())
    with pytest.raises(DataError, match=r"x\.npz"):
        read_npz(io.BytesIO(data), "x.npz", None)


def member(array) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array)
    return stream.getvalue()


def pack(path, **members: bytes):
    """Write an archive of members, compressed, that need not be what their names say."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return str(path)


@pytest.fixture
def always_mapped(monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)


@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_large_member_is_not_read_into_memory(compressed, order, tmp_path):
    x = np.asarray(np.random.default_rng(0).normal(size=(7, 5)).astype(">f4"), order=order)
    path = tmp_path / "x.npz"
    path.write_bytes(archive(compressed, first=np.arange(3), x=x).getvalue())
    values = load(f"{path}:x").values
    assert isinstance(values, Mapped)
    assert values.temporary == compressed
    assert values.dtype == x.dtype
    np.testing.assert_array_equal(values, x)


@pytest.mark.usefixtures("always_mapped")
def test_a_large_member_of_a_stream_is_stored():
    np.testing.assert_array_equal(read_npz(archive(x=np.arange(9)), "standard input", None), np.arange(9))


@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("compressed", [False, True])
def test_the_checksum_of_a_large_member_is_held_against_it(compressed, tmp_path):
    data = bytearray(archive(compressed, x=np.arange(10_000)).getvalue())
    data[data.index(b"PK\x01\x02") + 16] ^= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"x\.npz is no readable \.npz archive: it is damaged or cut short"):
        load(str(tmp_path / "x.npz"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda data: data[:-8], "cut short: .* 80 bytes; 72 are there", id="less"),
        pytest.param(lambda data: data + bytes(8), "damaged: .* 80 bytes; 88 are there", id="more"),
    ],
)
def test_a_member_is_as_long_as_its_header_says(change, message, tmp_path):
    path = pack(tmp_path / "x.npz", x=change(member(np.arange(10.0))))
    with pytest.raises(DataError, match=f"x.npz:x is {message}"):
        load(path)


DAMAGED = pytest.raises(DataError, match="its header says")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "outcome", "most_bytes"),
    [
        pytest.param(member(np.zeros(1 << 23, "u1")), nullcontext(), 14 << 20, id="all"),
        pytest.param(member(np.ones(3)) + bytes(1 << 25), DAMAGED, 1 << 21, id="no more"),
    ],
)
def test_a_member_is_unpacked_piece_by_piece_as_far_as_its_header_says(content, outcome, most_bytes, tmp_path):
    path = pack(tmp_path / "x.npz", x=content)
    tracemalloc.start()
    try:
        with outcome:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()


SCHEMA = "normcli/state/0"
STATE = FileKind("state", SCHEMA, "a run with --state writes one")


TEXT = member(np.array("a"))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no array", id="no array"),
        pytest.param(member(np.array([1j])), id="complex"),
        pytest.param(member(np.array(["2020-01-01"], "M8[D]")), id="dates"),
        pytest.param(TEXT.replace(b"a\0\0\0", b"\xff\xff\xff\x7f"), id="no character"),
        pytest.param(TEXT.replace(b"<U", b">U").replace(b"a\0\0\0", b"\0\x11\0\0"), id="in the other order"),
        pytest.param(TEXT.replace(b"<U1", b"<U0")[:-4], id="text of no length"),
        pytest.param(member(np.zeros(1 << 26, "u1")) + bytes(1), id="too much"),
        pytest.param(member(np.arange(3)) + bytes(1), id="more than the header says"),
    ],
)
def test_a_member_of_a_state_that_is_none(content, tmp_path):
    path = pack(tmp_path / "s.npz", schema=member(np.array(SCHEMA)), mean=content)
    told = r"^.*s\.npz is no readable state file: it is damaged, cut short, or none$"
    with pytest.raises(DataError, match=told):
        load_members(path, STATE)


def test_a_pipe_is_no_state(tmp_path):
    os.mkfifo(tmp_path / "s.npz")
    with pytest.raises(DataError, match="s.npz is a pipe, where only a file will do"):
        load_members(str(tmp_path / "s.npz"), STATE)


def test_a_state_may_have_been_packed_again(tmp_path):
    parts = {"schema": np.array(SCHEMA), "mean": np.zeros(9), "name": np.array("é", ">U1")}
    members = load_members(
        pack(tmp_path / "s.npz", **{name: member(part) for name, part in parts.items()}), STATE
    )
    assert (members["mean"].shape, str(members["name"])) == ((9,), "é")


def test_a_stats_file_may_be_as_large_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.formats.npz._LEAST_UNPACKED", 1000)
    with (tmp_path / "s.npz").open("wb") as stream:
        write_npz(stream, {"schema": np.array(SCHEMA), "sums": np.zeros(1000)})
    assert load_members(str(tmp_path / "s.npz"), STATE)["sums"].size == 1000


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("key", ["", ":x"])
def test_two_members_of_one_name_are_refused(key, tmp_path):
    with zipfile.ZipFile(tmp_path / "two.npz", "w") as packed:
        for number in (1, 2):
            packed.writestr("x.npy", member(np.full(3, number)))
    with pytest.raises(DataError, match="damaged"):
        load(f"{tmp_path}/two.npz{key}")
