"""Valid files of every format that the program reads, to be damaged; and the commands that read them."""

from __future__ import annotations

import contextlib
import io
import json
import struct
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.auditing.dump_file import DumpWriter, LayerSettings
from normcli.cli.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Command = tuple[str, ...]
"""Arguments, where `{file}` is the damaged file, `{whole}` a valid one of its kind, and `{out}` a new path."""

_QUICK: tuple[Command, ...] = (
    ("bn", "-i", "{file}", "--print", "mean"),
    ("ln", "-i", "{file}"),
    ("ln", "-i", "{file}", "-f", "json"),
    ("zscore", "-i", "{file}", "-o", "{out}.npy"),
    ("rms", "-i", "{file}", "--nan", "omit", "-f", "jsonl"),
    ("robust", "-i", "{file}", "-f", "markdown"),
    ("minmax", "-i", "{file}", "-o", "{out}.json"),
    ("fit", "zscore", "{file}", "--print", "mean"),
    ("fit", "bn", "{whole}", "{file}", "-o", "{out}.npz"),
    ("explain", "ln", "-i", "{file}", "--at", "0,0"),
    ("compare", "bn", "ln", "-i", "{file}", "-f", "json"),
    ("bn", "-i", "{whole}", "--gamma", "{file}"),
    ("bn", "-i", "{whole}", "--mask", "{file}"),
    ("draw", "bn", "-i", "{file}", "-o", "{out}.svg"),
)

_SLOW: tuple[Command, ...] = (
    ("check", "ln", "-i", "{whole}", "--actual", "{file}"),
    ("identify", "-i", "{whole}", "--actual", "{file}"),
)

_READERS = _QUICK * 3 + _SLOW
"""Most cases are run by what takes little time."""

_OF_TABLES: tuple[Command, ...] = (
    ("zscore", "-i", "{file}", "-f", "csv"),
    ("zscore", "-i", "{file}", "-o", "{out}.csv"),
    ("fit", "zscore", "{whole}", "{file}", "-f", "json"),
)

_OF_STATS: tuple[Command, ...] = (
    ("merge", "{file}", "-f", "json"),
    ("merge", "{whole}", "{file}", "-o", "{out}.npz"),
    ("merge", "{file}", "--emit", "torchvision"),
    ("apply", "{file}", "x.npy", "-o", "{out}.npy"),
    ("invert", "{file}", "x.npy", "-o", "{out}.npy"),
)

_OF_STORES: tuple[Command, ...] = (
    ("zscore", "-i", "{file}", "--print", "mean"),
    ("ln", "-i", "{file}", "-o", "{out}.npy"),
    ("bn", "-i", "{file}", "-f", "json"),
    ("fit", "zscore", "{file}", "-o", "{out}.npz"),
    ("ln", "-i", "x.npy", "--gamma", "{file}"),
    ("zscore", "-i", "{file}", "--follow-links"),
)

_OF_ZARR = (
    *(tuple(part.replace("{file}", "x.zarr") for part in command) for command in _OF_STORES[:-1]),
    ("ln", "-i", "x.zarr", "-o", "{out}.zarr"),
)

_TOLERANT = ("--norm", "ln:eps=1e-5", "--rtol", "1e300")
"""Each layer agrees, so that a dump is read and no cause is looked for."""

_JUDGING: tuple[Command, ...] = (
    ("audit", "{file}"),
    ("audit", "{file}", "-f", "json"),
    ("audit", "{file}", "--norm", "ln"),
    ("audit", "{whole}", "--against", "{file}"),
    ("audit", "{file}", "--against", "{whole}"),
)

_OF_DUMPS = tuple((*command, *_TOLERANT) for command in _JUDGING[:2] * 200) + _JUDGING
"""Most cases are only read: to judge one takes a second."""

_OF_MODELS = (_JUDGING[0], _JUDGING[1], _JUDGING[3])

_OF_FOLDERS = tuple(tuple(part.format(file="dump") for part in command) for command in _OF_DUMPS[:-2])

_OF_GOLDEN: tuple[Command, ...] = (("check", "golden"), ("check", "golden", "-f", "json"))

_OF_STATES: tuple[Command, ...] = (
    ("bn", "-i", "x.npy", "--state", "{file}"),
    ("bn", "-i", "x.npy", "--state", "{file}", "--eval", "--print", "normalized"),
)


class Format(NamedTuple):
    """A kind of file.

    Parameters
    ----------
    suffix : str
        Of the damaged file's name.
    make : callable
        Yields valid files; the first is the `{whole}` one.
    commands : tuple
    inside : str or None
        What the damaged file is called, where commands take it by that name: in a folder that `make` made.
    believe : callable
        Whether a damaged file, of a valid one, may be taken for right: whether exit code 0 is right.
    is_part : bool
        Whether it is a part of a store, which may be no file at all.
    """

    suffix: str
    make: Callable[[], Iterator[bytes]]
    commands: tuple[Command, ...]
    inside: str | None = None
    believe: Callable[[bytes, Sequence[bytes]], bool] = lambda damaged, samples: True
    is_part: bool = False


def prepare(folder: Path) -> None:
    """Write the valid files that commands name."""
    np.save(folder / "x.npy", _make_tensor())


def _make_tensor() -> np.ndarray:
    return np.random.default_rng(5).normal(3, 2, (4, 3)).round(3)


def _collect(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a function writes to a stream."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _save(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    return _collect(lambda stream: np.lib.format.write_array(stream, array, version))


def _make_npy() -> Iterator[bytes]:
    x = _make_tensor()
    yield _save(x)
    for dtype in ("i1", "u1", "i2", "<i8", ">i8", "u8", "f2", "f4", ">f4", "?"):
        yield _save(x.astype(dtype))
    yield _save(np.asfortranarray(x))
    yield _save(x, (2, 0))
    yield _save(x, (3, 0))
    yield _save(x[0, 0])
    yield _save(x[:0])
    yield _save(np.array([2**53 + 1, 2**63 - 1, -(2**63)]).reshape(3, 1))
    yield _save(np.array([[np.nan, np.inf], [-np.inf, 1e300]]))


def _make_npz() -> Iterator[bytes]:
    x = _make_tensor()
    for save in (np.savez, np.savez_compressed):
        yield _collect(lambda stream, save=save: save(stream, x=x))
    yield _collect(lambda stream: np.savez_compressed(stream, a=x, b=x.astype("f4")))


def _make_json() -> Iterator[bytes]:
    x = _make_tensor()
    yield json.dumps(x.tolist()).encode()
    yield json.dumps({"normalized": x.tolist(), "dtype": "float32", "norm": "bn"}).encode()
    yield json.dumps([["nan", "inf"], [1, -2.5e-3]]).encode()
    yield json.dumps([{"x": 1, "y": 2.5, "z": None}, {"x": -3, "y": 4, "z": 1}]).encode()
    yield b"[9007199254740993, 9223372036854775807, -1]"


def _make_csv(delimiter: str = ",") -> Iterator[bytes]:
    rows = [[repr(value) for value in row] for row in _make_tensor().tolist()]

    def join(lines: list[list[str]], end: str = "\n") -> bytes:
        return end.join(delimiter.join(line) for line in lines).encode() + end.encode()

    yield join(rows)
    yield join([["height", "weight", "age"], *rows])
    yield join([['"a ""b"""', '"c\nd"', "é"], *rows], "\r\n")
    yield join([["x", "y", "z"], ["1", "", "NA"], ["", "", ""], ["-3e5", "nan", "0"]])
    yield b"\xef\xbb\xbf" + join([["t"], ["1700000000000000001"], ["1700000000000000003"]])
    yield join([["name", "x", "y"], ["ann", "1", "2"], ["bob", "3", "4"]])


def _make_jsonl() -> Iterator[bytes]:
    yield "".join(
        json.dumps(dict(zip("xyz", row, strict=True))) + "\n" for row in _make_tensor().tolist()
    ).encode()
    yield b"[1, 2]\n[3, 4.5]\n"
    yield b'{"a": 1, "b": null}\n{"a": "nan", "b": 3}\n'


def _make_safetensors() -> Iterator[bytes]:
    def pack(values: np.ndarray, kind: str) -> bytes:
        entry = {"dtype": kind, "shape": list(values.shape), "data_offsets": [0, values.nbytes]}
        header = json.dumps({"__metadata__": {"format": "np"}, "x": entry}).encode()
        return struct.pack("<Q", len(header)) + header + values.tobytes()

    x = _make_tensor()
    yield pack(x, "F64")
    yield pack(x.astype("f4"), "F32")
    yield pack(x.astype("i8"), "I64")
    yield pack(x.astype("f4").view("u2")[:, 1::2], "BF16")


def _make_parquet() -> Iterator[bytes]:
    import pyarrow
    from pyarrow import parquet

    x, whole = _make_tensor(), pyarrow.array([1, None, 2**60 + 1, -3])
    tables = [
        {"x": x[:, 0], "y": x[:, 1]},
        {"i": whole, "ok": [True, False, None, True]},
        {"name": list("abcd"), "x": x[:, 2]},
    ]
    for table in map(pyarrow.table, tables):
        for compression in ("snappy", "none"):
            yield _collect(partial(parquet.write_table, table, compression=compression))


def _run(*arguments: str) -> None:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
        code = run([*arguments, "-q"])
    if code:
        raise RuntimeError(f"normcli {' '.join(arguments)} left with {code}")


def _write(arguments: str, made: str) -> bytes:
    _run(*arguments.split())
    content = Path(made).read_bytes()
    Path(made).unlink()
    return content


def _make_stats() -> Iterator[bytes]:
    yield _write("fit zscore x.npy -o made.npz", "made.npz")
    yield _write("fit robust x.npy -o made.npz", "made.npz")
    yield _write("fit gn --groups 1 --axes NC x.npy -o made.npz", "made.npz")


def _make_state() -> Iterator[bytes]:
    yield _write("bn -i x.npy --state made.npz", "made.npz")


def _make_hdf5() -> Iterator[bytes]:
    import h5py

    def write(stream: io.BytesIO, shape: tuple[int, int], libver: str | None = None, **options: object) -> None:
        with h5py.File(stream, "w", libver=libver) as file:
            file.create_dataset("x", shape, **options)

    x = _make_tensor()
    for options in ({}, {"chunks": (2, 2)}, {"chunks": (2, 2), "compression": "gzip", "fletcher32": True}):
        yield _collect(partial(write, shape=x.shape, data=x, **options))
    yield _collect(partial(write, shape=(2**16, 3), libver="latest", dtype="f4", chunks=(64, 3)))


def _make_zarr(version: int, part: str) -> Iterator[bytes]:
    import zarr

    array = zarr.create_array(
        "x.zarr", shape=(4, 3), chunks=(2, 2), dtype="f8", zarr_format=version, overwrite=True
    )
    array[:] = _make_tensor()
    yield Path("x.zarr", part).read_bytes()


def _list_recorded() -> Iterator[tuple[str, np.ndarray]]:
    """Yield the tensors of a recorded run of two layer norms, of which the second is wrong."""
    x = _make_tensor().astype("f4")
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-5))
    for name, output in (("a", y), ("b.norm", y * 2)):
        yield from ((f"{name}.input", x), (f"{name}.output", output), (f"{name}.weight", np.ones(3, "f4")))


def _make_dump() -> Iterator[bytes]:
    def write(stream: io.BytesIO, settings: list[LayerSettings]) -> None:
        writer = DumpWriter(stream, len(settings))
        for name, values in _list_recorded():
            writer.add_array(name, values)
        for one in settings:
            writer.add_call(one)
        writer.finish("the fuzzer")

    layers = [LayerSettings("a", "ln", {"eps": 1e-5}), LayerSettings("b.norm", "ln", {"eps": 1e-5})]
    others = [LayerSettings("a", "bn", momentum=0.1), LayerSettings("b.norm", weights_of="a")]
    for settings in (layers, others):
        yield _collect(partial(write, settings=settings))


def _make_dump_npz() -> Iterator[bytes]:
    for save in (np.savez, np.savez_compressed):
        yield _collect(lambda stream, save=save: save(stream, **dict(_list_recorded())))


def _make_onnx() -> Iterator[bytes]:
    from onnx import TensorProto, helper, numpy_helper

    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 3)) for name in "xy"]
    held = [numpy_helper.from_array(np.arange(1, 4, dtype="f4") + n, name) for n, name in enumerate("gbmv")]
    for kind, names in (("LayerNormalization", "gb"), ("BatchNormalization", "gbmv")):
        graph = helper.make_graph(
            [helper.make_node(kind, ["x", *names], ["y"], name="n")], "g", types[:1], types[1:], held
        )
        opsets = [helper.make_opsetid("", 17)]
        yield helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def _make_dump_folder() -> Iterator[bytes]:
    Path("dump").mkdir(exist_ok=True)
    for name, values in _list_recorded():
        np.save(f"dump/{name}.npy", values)
    yield Path("dump/a.input.npy").read_bytes()


def _make_golden() -> Iterator[bytes]:
    recipe = "--shape 3,4 --dist normal --rng torch --dtype float32 --affine-seed 1 --ddof 1"
    _run("golden", "bn", *recipe.split(), "-o", "golden")
    yield Path("golden", "manifest.json").read_bytes()


def _says_the_same(damaged: bytes, samples: Sequence[bytes]) -> bool:
    """Whether a damaged manifest is the JSON that was written."""

    def sort(data: bytes) -> str:
        return json.dumps(json.loads(data), sort_keys=True)

    try:
        return sort(damaged) in map(sort, samples)
    except (ValueError, RecursionError):
        return False


FORMATS = {
    "npy": Format(".npy", _make_npy, _READERS),
    "npz": Format(".npz", _make_npz, _READERS),
    "json": Format(".json", _make_json, _READERS),
    "jsonl": Format(".jsonl", _make_jsonl, _READERS + _OF_TABLES),
    "csv": Format(".csv", _make_csv, _READERS + _OF_TABLES),
    "tsv": Format(".tsv", lambda: _make_csv("\t"), _READERS + _OF_TABLES),
    "safetensors": Format(".safetensors", _make_safetensors, _READERS),
    "parquet": Format(".parquet", _make_parquet, _READERS + _OF_TABLES),
    "stats": Format(".npz", _make_stats, _OF_STATS),
    "state": Format(".npz", _make_state, _OF_STATES),
    "hdf5": Format(".h5", _make_hdf5, _OF_STORES),
    "zarr": Format(".json", partial(_make_zarr, 3, "zarr.json"), _OF_ZARR, "x.zarr/zarr.json", is_part=True),
    "zarr2": Format(".json", partial(_make_zarr, 2, ".zarray"), _OF_ZARR, "x.zarr/.zarray", is_part=True),
    "chunk": Format("", partial(_make_zarr, 3, "c/1/0"), _OF_ZARR, "x.zarr/c/1/0", is_part=True),
    "dump": Format(".safetensors", _make_dump, _OF_DUMPS),
    "dump npz": Format(".npz", _make_dump_npz, _OF_DUMPS),
    "onnx": Format(".onnx", _make_onnx, _OF_MODELS),
    "dump folder": Format(".npy", _make_dump_folder, _OF_FOLDERS, "dump/a.input.npy", is_part=True),
    "golden": Format(".json", _make_golden, _OF_GOLDEN, "golden/manifest.json", _says_the_same),
}
