"""Zarr stores and HDF5 files: read where they lie, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.files import load
from normcli.tensors.formats import stored_array as stored
from normcli.tensors.formats import stores
from normcli.tensors.formats.stored_array import Chunked
from normcli.tensors.mapped import fetch
from normcli.tensors.tensor import find_place

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.peers

SHAPE = (6, 5, 7)
LAYOUTS = {
    "rows": {"chunks": (2, 5, 7)},
    "cubes": {"chunks": (4, 2, 3)},
    "sharded": {"chunks": (2, 1, 3), "shards": (4, 5, 6)},
    "one": {"chunks": SHAPE},
}


@pytest.fixture
def x(rng):
    return rng.normal(size=SHAPE).astype("float32")


@pytest.fixture
def zarr():
    return pytest.importorskip("zarr")


@pytest.fixture
def store(tmp_path, zarr, x, monkeypatch):
    """A store with an array in each layout; all of them count as large."""
    monkeypatch.setattr(stores, "SMALLEST_MAPPED", 1)
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w")
    for name, layout in LAYOUTS.items():
        group.create_array(f"g/{name}", shape=SHAPE, dtype="float32", **layout)[:] = x
    return str(tmp_path / "s.zarr")


@pytest.mark.parametrize("cache", [1 << 20, 1], ids=["kept", "written to a file"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_large_array_is_made_as_it_is_read(name, cache, store, x, monkeypatch):
    monkeypatch.setattr(stored, "CACHE", cache)
    values = load(f"{store}:g/{name}").values
    assert isinstance(values, Chunked)
    for view, expected in (
        (values, x),
        (values[1:5, :, 2:], x[1:5, :, 2:]),
        (values.transpose(2, 0, 1), x.transpose(2, 0, 1)),
        (values.reshape(30, 7)[3:17], x.reshape(30, 7)[3:17]),
        (values[:, 3], x[:, 3]),
    ):
        assert fetch(view).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert values[3, 2, 1] == x[3, 2, 1]
    assert (values[np.array([1, 5]), np.array([0, 4]), np.array([6, 6])] == x[[1, 5], [0, 4], [6, 6]]).all()


def test_several_threads_read_one_array(store, x):
    values = load(f"{store}:g/cubes").values
    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(lambda at: fetch(values[at]).tolist(), range(6))]
    assert found == x.tolist()


@pytest.mark.parametrize("version", [2, 3])
def test_both_formats_are_read(version, tmp_path, zarr, x):
    path = str(tmp_path / "a.zarr")
    zarr.create_array(path, data=x, chunks=(2, 2, 2), zarr_format=version)
    assert (load(path).values == x).all()
    assert (load(path + "/").values == x).all()


def test_chunks_that_were_never_written_are_the_fill_value(tmp_path, zarr):
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(4, 4), chunks=(2, 2), dtype="f8", fill_value=7.0)
    array[:2] = 1.0
    assert load(str(tmp_path / "a.zarr")).values.tolist() == [[1.0] * 4] * 2 + [[7.0] * 4] * 2


def make_sparse(path, shape):
    """Write a store of which the first chunks alone are there; the others are 3."""
    if path.suffix == ".zarr":
        made = pytest.importorskip("zarr").create_array(
            path, shape=shape, chunks=(2, 2), dtype="f8", fill_value=3.0
        )
        made[:4] = 1.0
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", shape, "f8", chunks=(2, 2), fillvalue=3.0)[:4] = 1.0


@pytest.mark.parametrize("shape", [(2**31, 3), (40_000, 2)], ids=["gibibytes", "many small chunks"])
@pytest.mark.parametrize("suffix", [".zarr", ".h5"])
def test_a_shape_whose_chunks_are_not_there_is_refused(shape, suffix, tmp_path, normcli):
    make_sparse(tmp_path / f"a{suffix}", shape)
    ran = normcli("fit", "zscore", tmp_path / f"a{suffix}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert re.search(r"but the store holds \d of its [\d,]+ chunks: it is damaged, or not filled yet", ran.err)


@pytest.mark.parametrize("suffix", [".zarr", ".h5"])
def test_it_is_read_as_its_fill_value_where_that_is_asked_for(suffix, tmp_path, normcli):
    path = tmp_path / f"a{suffix}"
    make_sparse(path, (40_004, 2))
    ran = normcli("fit", "zscore", path, "--fill-missing", "--print", "mean")
    mean = (3.0 * 40_000 + 4.0) / 40_004
    assert (ran.code, ran.err, ran.lines) == (0, "", [repr(mean)] * 2)
    assert normcli("fit", "zscore", path).code == 3


def test_a_contiguous_dataset_that_was_never_written_is_refused_if_it_is_large(tmp_path, normcli):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (2**24, 1), "f8")
    assert "the store holds 0 of its 1 chunks" in normcli("zscore", "-i", tmp_path / "a.h5").err


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        pytest.param("none.zarr", "there is no such store", id="no store"),
        pytest.param("none.h5", "there is no such file", id="no file"),
        pytest.param("s.zarr", r"s.zarr holds 4 arrays; say which", id="several arrays"),
        pytest.param("s.zarr:nothing", "holds no array 'nothing'", id="no such array"),
        pytest.param("empty.zarr", "cannot be read|no such store|no arrays", id="an empty folder"),
        pytest.param("text.zarr", "s of complex|holds <U|complex64", id="no numbers"),
    ],
)
def test_what_cannot_be_read(specification, message, store, tmp_path, zarr, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.zarr").mkdir()
    zarr.create_array("text.zarr", shape=(2,), dtype="complex64")
    with pytest.raises((DataError, UsageError), match=message):
        load(specification)


def test_an_axis_too_long_for_python_is_damage(tmp_path, zarr):
    """Case 3005213 of the fuzzer: the first axis is empty, so that the shape holds no values."""
    zarr.create_array(str(tmp_path / "a.zarr"), shape=(1, 2), chunks=(1, 2), dtype="f8", zarr_format=2)
    described = tmp_path / "a.zarr" / ".zarray"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"shape": [False, 10**30]}))
    with pytest.raises(DataError, match=rf"a.zarr is damaged: it has the shape \(0, {10**30}\)"):
        load(str(tmp_path / "a.zarr"))


def test_folders_that_are_no_part_of_a_store_are_passed_over(tmp_path, zarr, x, recwarn):
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("x", data=x)
    (tmp_path / "a.zarr" / "c" / "0").mkdir(parents=True)
    assert (load(f"{tmp_path}/a.zarr").values == x).all()
    assert not recwarn.list


def test_a_damaged_chunk_is_named(tmp_path, zarr, x):
    path = tmp_path / "a.zarr"
    zarr.create_array(str(path), data=x, chunks=(2, 5, 7))
    (path / "c" / "1" / "0" / "0").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"a.zarr: the chunk at \(2, 0, 0\) cannot be read"):
        load(str(path))


def test_a_chunk_that_goes_missing_is_no_fill_value(store):
    values = load(f"{store}:g/rows").values
    os.remove(f"{store}/g/rows/c/2/0/0")
    with pytest.raises(DataError, match="changed while it was read"):
        values.opened.require_unchanged()


@pytest.mark.parametrize("layout", [{"chunks": (2, 3, 4)}, {"chunks": (2, 3, 4), "compression": "gzip"}, {}])
def test_hdf5(layout, tmp_path, x, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/x", data=x, **layout)
    assert (load(f"{tmp_path}/a.h5:g/x").values == x).all()
    monkeypatch.setattr(stores, "SMALLEST_MAPPED", 1)
    values = load(f"{tmp_path}/a.h5").values
    assert isinstance(values, Chunked)
    assert (fetch(values[1:, 2:]) == x[1:, 2:]).all()


MISSING = "but the store holds 0 of its"
EXTERNAL = [("others.bin", 0, 32)]


def _make_virtual(file):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("others.h5", "x", (4,))
    file.create_virtual_dataset("x", layout)


HUGE = {"dtype": "f8", "chunks": (1024, 1024)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda f: f.create_dataset("x", data=h5py.Empty("f8")), "is a dataset without a shape", id="null"),
        pytest.param(lambda f: f.create_dataset("x", (2**40, 2**20), **HUGE), f"{MISSING} 1,099,511,627,776", id="huge"),
        pytest.param(lambda f: f.create_dataset("x", (2**42, 2**20), **HUGE), f"{MISSING} 4,398,046,511,104", id="more"),
        pytest.param(lambda f: f.create_dataset("x", (4,), "f8", external=EXTERNAL), "lies in others.bin", id="other"),
        pytest.param(_make_virtual, "lies in others.h5, another file; --follow-links reads", id="virtual"),
    ],
)  # fmt: skip
def test_datasets_of_hdf5_that_hold_nothing_or_too_much_or_lie_elsewhere(
    make, message, tmp_path, normcli, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "others.bin").write_bytes(np.arange(4.0).tobytes())
    with h5py.File("others.h5", "w") as file:
        file["x"] = np.arange(4.0)
    with h5py.File("x.h5", "w") as file:
        make(file)
    ran = normcli("fit", "zscore", "x.h5", "--print", "mean")
    assert (ran.code, ran.raw, ran.err.count("\n")) == (3, b"", 1)
    assert message in ran.err
    ran = normcli("fit", "zscore", "x.h5", "--print", "mean", "--follow-links")
    assert (ran.code, ran.out) == ((0, "1.5\n") if "lies in" in message else (3, ""))


def test_a_chunk_of_hdf5_that_is_shorter_than_its_checksum(tmp_path):
    """HDF5 2.0 reads on before the chunk, and the process ends by a signal."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        x = file.create_dataset("x", (4, 3), "f8", chunks=(2, 3), fletcher32=True)
        x.id.write_direct_chunk((2, 0), b"123")
    with pytest.raises(DataError, match="x.h5 is damaged: a chunk is shorter than its checksum$"):
        load(str(tmp_path / "x.h5"))


@pytest.mark.parametrize("source", ["pipe.h5", "first.h5:group/x", "second.h5:x", "first.h5:raw"])
def test_what_links_of_hdf5_lead_to_is_a_file(source, tmp_path, normcli, monkeypatch):
    """HDF5 waits for a writer of a pipe, and no signal but SIGKILL ends it."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.h5")
    with h5py.File("second.h5", "w") as file:
        file["x"] = h5py.ExternalLink("pipe.h5", "/x")
    with h5py.File("first.h5", "w") as file:
        file["group/x"] = h5py.ExternalLink("second.h5", "/x")
        file.create_dataset("raw", (4,), "f8", external=[("pipe.h5", 0, 32)])
    ran = normcli("ln", "-i", source, "--follow-links")
    assert (ran.code, ran.raw, ran.err) == (3, b"", "normcli: pipe.h5 is a pipe, where only a file will do\n")


def test_where_an_array_lies():
    assert find_place("a.zarr:g/x").key == "g/x"
    assert find_place("s3://b/a.ZARR/") == ("s3://b/a.ZARR", ".zarr", None)
    assert find_place("a.npz:x") is None


# -- on the command line


@pytest.mark.parametrize("name", LAYOUTS)
def test_from_store_to_store(name, store, normcli, tmp_path, zarr, x):
    np.save(tmp_path / "x.npy", x)
    assert normcli("bn", "-i", tmp_path / "x.npy", "-o", tmp_path / "y.npy", "-q").code == 0
    target = tmp_path / "out.zarr"
    assert normcli("bn", "-i", f"{store}:g/{name}", "-o", f"{target}:y", "-q").code == 0
    made = zarr.open(str(target), mode="r")["y"]
    assert made[:].tobytes() == np.load(tmp_path / "y.npy").tobytes()
    assert (made.chunks, made.shards) == (LAYOUTS[name]["chunks"], LAYOUTS[name].get("shards"))


def test_a_store_that_is_there_is_kept(store, normcli, tmp_path, zarr):
    target = tmp_path / "out.zarr"
    assert normcli("bn", "-i", f"{store}:g/one", "-o", target, "-q").code == 0
    refused = normcli("ln", "-i", f"{store}:g/one", "-o", target)
    assert (refused.code, refused.out) == (2, "")
    assert "there is a store already; --overwrite replaces it" in refused.err
    before = zarr.open(str(target), mode="r")[:]
    assert normcli("ln", "-i", f"{store}:g/one", "-o", target, "--overwrite", "-q").code == 0
    assert (zarr.open(str(target), mode="r")[:] != before).any()
    assert sorted(os.listdir(tmp_path)) == ["out.zarr", "s.zarr"]


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param("-o y.h5", "HDF5 is read, and not written", id="hdf5"),
        pytest.param("-o s3://b/y.zarr", "a URL is read, and not written", id="url"),
        pytest.param("-o none/y.zarr", "there is no folder", id="no folder"),
        pytest.param("-o y.npy --overwrite", "--overwrite is of stores", id="no store"),
        pytest.param("-o y.zarr --dtype bfloat16", "holds no bfloat16; .safetensors does", id="dtype"),
        pytest.param("-o mine.zarr --overwrite", "notes.txt", id="no store there"),
    ],
)
def test_where_no_store_is_written(words, message, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "notes.txt").write_text("mine")
    refused = normcli("bn", "--shape", "2,3", *words.split())
    assert (refused.code, os.listdir()) == (2, ["mine.zarr"])
    assert message in refused.err


def test_other_arrays_of_a_store_are_never_lost(store, normcli, zarr):
    for output in (f"{store}:g/rows", f"{store}:new", store):
        refused = normcli("bn", "-i", f"{store}:g/one", "-o", output, "--overwrite")
        assert (refused.code, refused.out) == (2, "")
        assert "of this store would be lost: name a new store" in refused.err
    assert len(dict(zarr.open(store, mode="r").members(max_depth=None))) == 1 + len(LAYOUTS)


def test_a_store_replaces_what_it_is_made_from(normcli, tmp_path, zarr):
    path = str(tmp_path / "x.zarr")
    zarr.create_array(path, data=np.array([[1.0, 2.0], [3.0, 6.0]]))
    assert normcli("zscore", "-i", path, "-o", path, "--overwrite", "-q").code == 0
    assert zarr.open(path, mode="r")[:].tolist() == [[-1.0, -1.0], [1.0, 1.0]]


def write_named(path, x, dims, **options):
    """Write a Zarr store of an array with names of its axes, in format 2 as xarray does."""
    is_old = options.get("zarr_format") == 2
    named = {"attributes": {"_ARRAY_DIMENSIONS": dims}} if is_old else {"dimension_names": dims}
    pytest.importorskip("zarr").create_array(path, data=x, **options, **named)


def write_labelled(path, x, dims):
    """Write an HDF5 file of an array with names of its axes."""
    with h5py.File(path, "w") as file:
        file["x"] = x
        for axis, name in enumerate(dims):
            file["x"].dims[axis].label = name


@pytest.mark.parametrize(
    ("path", "write"),
    [
        pytest.param("x.zarr", write_named, id="format 3"),
        pytest.param("x.zarr", partial(write_named, zarr_format=2), id="format 2"),
        pytest.param("x.h5", write_labelled, id="HDF5"),
    ],
)
def test_names_of_axes_are_the_layout(path, write, tmp_path, rng, normcli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=(6, 4, 5))
    write(path, x, ("time", "lat", "lon"))
    found = normcli("zscore", "-i", path, "--axes", "time,lat", "--print", "mean")
    np.testing.assert_allclose(np.array(found.out.split(), float), x.mean((0, 1)))
    assert normcli("zscore", "-i", path, "--layout", "NCL", "--axes", "time", "--print", "mean").code == 2


def test_axes_in_another_order_are_not_those_of_statistics(tmp_path, rng, normcli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=(6, 5, 5))
    for name, dims in (
        ("a", ("time", "lat", "lon")),
        ("b", ("time", "lon", "lat")),
        ("c", (None, "lat", "lon")),
    ):
        write_named(f"{name}.zarr", x, dims)
    assert normcli("fit", "zscore", "--axes", "time", "a.zarr", "c.zarr", "-o", "s.npz").code == 0
    for words in ("fit zscore --axes time a.zarr b.zarr", "apply s.npz b.zarr -o y.npy"):
        refused = normcli(*words.split())
        assert (refused.code, refused.out) == (3, "")
        assert refused.err.endswith(
            "b.zarr has the axes time, lon, lat; the statistics are of time, lat, lon\n"
        )
    assert normcli("apply", "s.npz", "c.zarr", "-o", "y.npy").code == 0
