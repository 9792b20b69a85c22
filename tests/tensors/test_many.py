"""Tensors by name: the arrays of an archive, and archives that are damaged."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.many import name_tensors

DIRECTORY = b"PK\x01\x02"
"""The first bytes of a member's entry in the directory of a zip file."""


@pytest.mark.parametrize(("names", "named"), [("x", ["{}"]), ("xy", ["{}:x", "{}:y"])])
def test_an_archive_names_each_of_several_arrays(names, named, tmp_path):
    path = str(tmp_path / "a.npz")
    np.savez(path, **{name: np.arange(3.0) for name in names})
    tensors = list(name_tensors([path]))
    assert [tensor.name for tensor in tensors] == [name.format(path) for name in named]
    assert [tensor.load(None).values.tolist() for tensor in tensors] == [[0.0, 1.0, 2.0]] * len(names)


@pytest.mark.parametrize(
    ("place", "byte"), [(6, 255), (46, 255), (0, 0)], ids=["a version to come", "no UTF-8", "no entry"]
)
def test_a_damaged_archive_is_named_whole_and_refused_when_it_is_loaded(place, byte, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, é=np.arange(3.0), y=np.arange(2.0))
    data = bytearray(path.read_bytes())
    data[data.index(DIRECTORY) + place] = byte
    path.write_bytes(data)
    (tensor,) = name_tensors([str(path)])
    assert tensor.name == str(path)
    with pytest.raises(DataError, match="a.npz is no readable .npz archive: it is damaged or cut short"):
        tensor.load(None)
