"""One group alone is what the whole tensor makes of it, to the bit; and nothing else is read."""

from __future__ import annotations

import numpy as np

from normcli import normalize
from normcli.engine.single import normalize_group
from normcli.norms.plan import make_plan
from normcli.norms.request import Request


def test_nothing_but_the_group_is_read(tmp_path):
    path = tmp_path / "x.npy"
    made = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(1 << 16, 1 << 16))  # 16 GiB of holes
    made[7] = np.arange(1 << 16)
    del made
    x = np.load(path, mmap_mode="r")
    result = normalize(x[7], "ln")
    plan = make_plan(Request("ln"), x.shape, x.dtype)
    single = normalize_group(plan, x, 7, [0, 65535])
    np.testing.assert_array_equal(single.values, result.normalized[[0, -1]])
    assert single.statistics["mean"] == result.mean
