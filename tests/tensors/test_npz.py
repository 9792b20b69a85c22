from __future__ import annotations

import io
import os
import tracemalloc
import zipfile

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


@pytest.mark.parametrize("compressed", [False, True])
def test_an_array_is_picked_by_its_key(compressed):
    stream = archive(compressed, a=np.arange(3), b=np.ones((2, 2)))
    np.testing.assert_array_equal(read_npz(stream, "x.npz", "b"), np.ones((2, 2)))


def test_the_only_array_needs_no_key():
    np.testing.assert_array_equal(read_npz(archive(a=np.arange(3)), "x.npz", None), np.arange(3))


def test_several_arrays_need_a_key():
    with pytest.raises(UsageError, match="x.npz holds 2 arrays; say which: x.npz:a, x.npz:b"):
        read_npz(archive(a=np.arange(3), b=np.arange(4)), "x.npz", None)


def test_an_array_with_an_empty_or_unprintable_name_is_offered_and_read_by_it(tmp_path):
    path = str(tmp_path / "x.npz")
    np.savez(path, **{"": np.ones(2), "it's\n": np.zeros(2)})
    with pytest.raises(UsageError) as refused:
        load(path)
    assert str(refused.value).endswith(rf"say which: {path}:, $'{path}:it\'s\x0a'")
    assert load(f"{path}:").values.tolist() == [1.0, 1.0]
    assert load(f"{path}:it's\n").values.tolist() == [0.0, 0.0]


def test_an_unknown_key_is_refused():
    with pytest.raises(UsageError, match="x.npz holds no array 'c'; it has x.npz:a"):
        read_npz(archive(a=np.arange(3)), "x.npz", "c")


def test_an_archive_without_arrays_is_refused():
    with pytest.raises(DataError, match="holds no arrays"):
        read_npz(archive(), "x.npz", None)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_archive_is_refused(compressed):
    data = bytearray(archive(compressed, a=np.arange(1000)).getvalue())
    for spoiled in (
        data[:-40],
        data[:200],
        b"PK\x03\x04" + bytes(300),
        data[:300] + b"\xff" * 200 + data[500:],
    ):
        with pytest.raises(DataError, match=r"x\.npz"):
            read_npz(io.BytesIO(spoiled), "x.npz", None)


def test_what_is_written_is_read_by_numpy():
    stream = io.BytesIO()
    write_npz(stream, {"mean": np.arange(3.0), "var": np.ones((2, 2))})
    stream.seek(0)
    with np.load(stream) as loaded:
        assert set(loaded) == {"mean", "var"}
        np.testing.assert_array_equal(loaded["mean"], np.arange(3.0))


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


@pytest.mark.slow
def test_what_a_header_does_not_claim_is_not_unpacked(tmp_path):
    path = pack(tmp_path / "x.npz", x=member(np.arange(3.0)) + bytes(1 << 25))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="its header says"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_member_is_unpacked_piece_by_piece(tmp_path):
    path = pack(tmp_path / "x.npz", x=member(np.zeros(1 << 23, "u1")))
    tracemalloc.start()
    try:
        assert load(path).values.size == 1 << 23
        assert tracemalloc.get_traced_memory()[1] < 14 << 20
    finally:
        tracemalloc.stop()


SCHEMA = "normcli/state/0"
STATE = FileKind("state", SCHEMA, "a run with --state writes one")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no array", id="no array"),
        pytest.param(member(np.array([1j])), id="complex"),
        pytest.param(member(np.array(["2020-01-01"], "M8[D]")), id="dates"),
        pytest.param(member(np.array("a")).replace(b"a\0\0\0", b"\xff\xff\xff\x7f"), id="no character"),
        pytest.param(
            member(np.array("a")).replace(b"<U", b">U").replace(b"a\0\0\0", b"\0\x11\0\0"),
            id="no character in the other byte order",
        ),
        pytest.param(member(np.array("a")).replace(b"<U1", b"<U0")[:-4], id="text of no length"),
        pytest.param(member(np.zeros(1 << 26, "u1")) + bytes(1), id="too much"),
        pytest.param(member(np.arange(3)) + bytes(1), id="more than the header says"),
    ],
)
def test_a_member_of_a_state_that_is_none(content, tmp_path):
    path = pack(tmp_path / "s.npz", schema=member(np.array(SCHEMA)), mean=content)
    with pytest.raises(
        DataError, match=r"^.*s\.npz is no readable state file: it is damaged, cut short, or none$"
    ):
        load_members(path, STATE)


def test_a_pipe_is_no_state(tmp_path):
    os.mkfifo(tmp_path / "s.npz")
    with pytest.raises(DataError, match="s.npz is a pipe, where only a file will do"):
        load_members(str(tmp_path / "s.npz"), STATE)


def test_a_state_may_have_been_packed_again(tmp_path):
    text = np.array("é", ">U1")
    path = pack(
        tmp_path / "s.npz", schema=member(np.array(SCHEMA)), mean=member(np.zeros(9)), name=member(text)
    )
    members = load_members(path, STATE)
    assert (members["mean"].shape, str(members["name"])) == ((9,), "é")


def test_a_stats_file_may_be_as_large_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.formats.npz._LEAST_UNPACKED", 1000)
    with (tmp_path / "s.npz").open("wb") as stream:
        write_npz(stream, {"schema": np.array(SCHEMA), "sums": np.zeros(1000)})
    assert load_members(str(tmp_path / "s.npz"), STATE)["sums"].size == 1000


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    path = tmp_path / "two.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in (1, 2):
            stream = io.BytesIO()
            np.save(stream, np.full(3, number))
            archive.writestr("x.npy", stream.getvalue())
    for name in (str(path), f"{path}:x"):
        with pytest.raises(DataError, match="damaged"):
            load(name)
