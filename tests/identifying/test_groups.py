"""Groups that are taken of a tensor: of a file as of memory, once, and without the rest of it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.sampling import put_back, take_groups
from normcli.identifying.search.groups import enumerate_grids
from normcli.tensors.files import load
from normcli.tensors.mapped import Mapped

SHAPE = (6, 4, 3, 8)


@pytest.mark.parametrize("picked", [0, 1 << 17], ids=["part by part", "one by one"])
def test_groups_are_taken_of_a_file_as_of_memory_and_put_back(picked, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    monkeypatch.setattr("normcli.identifying.sampling.MOST_SAMPLED", picked)
    monkeypatch.setattr("normcli.identifying.sampling.PIECE", 5)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=SHAPE).astype("f4"))
    mapped = load(str(tmp_path / "x.npy")).values
    assert isinstance(mapped, Mapped)
    values = np.array(mapped)
    for grid in enumerate_grids(SHAPE):
        rows, chosen = take_groups(grid, values), np.unique([0, grid.group_count // 2, grid.group_count - 1])
        assert rows.shape == (grid.group_count, grid.group_size)
        np.testing.assert_array_equal(put_back(grid, rows), values)
        for source in (values, mapped):
            np.testing.assert_array_equal(take_groups(grid, source, chosen), rows[chosen])
