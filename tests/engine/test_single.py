"""One group alone is what the whole tensor makes of it, to the bit; and nothing else is read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.engine.inputs import Inputs
from normcli.engine.single import normalize_group
from normcli.norms.options import list_own_options
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.marks import costly, sampled, slowly

SHAPES = [(2, 4, 3, 3), (1, 4, 1, 9), (300, 4), (2, 4, 5000), (5, 4, 50, 60), (1200, 4), (6, 2)]


def vary(name: str) -> list[dict[str, object]]:
    options = list_own_options(NORMS[name])
    if NORMS[name].needs_groups:
        return [{"groups": 2}, {"groups": 2, "group_order": "interleaved"}]
    if "p" in options:
        return [{}, {"p": 0}, {"p": 1}, {"p": 3}, {"p": 600.0}, {"p": np.inf}]
    return [{}]


@costly
@sampled
@pytest.mark.parametrize("dtype", ["float64", *slowly(["float16", "float32", "int32"])])
@pytest.mark.parametrize("name", NORMS)
def test_a_group_alone_has_the_bits_that_it_has_in_the_tensor(name, dtype, rng, frozen):
    for shape, options in itertools.product(SHAPES, vary(name)):
        x = frozen((rng.normal(size=shape) * 3 + 1).astype(dtype))
        plain = normalize(x, name, **options)
        plan = plain.plan
        affine = {n: rng.normal(size=plan.parameters.shape) for n in NORMS[name].parameter_names}
        for result in [plain, *([normalize(x, name, **options, **affine)] if affine else [])]:
            size = 1 if plan.spec.window is not None else plan.grid.group_size
            wanted = sorted({0, size // 3, size - 1})
            for group in sorted({0, plan.grid.group_count // 2, plan.grid.group_count - 1}):
                single = normalize_group(plan, x, group, wanted, Inputs(result.gamma, result.beta))
                whole = result.normalized.reshape(plan.grid.view_shape)[plan.grid.select_group(group)]
                np.testing.assert_array_equal(single.values, whole.reshape(-1)[wanted])
                assert single.values.dtype == result.dtype
                assert single.statistics == {n: a.reshape(-1)[group] for n, a in result.statistics.items()}


def test_groups_of_many_leaves_too(few_records, rng):
    x = rng.normal(size=(3, 300, 301)).astype("float32")
    result = normalize(x, "ln", axes=(1, 2))
    single = normalize_group(result.plan, x, 2, [5])
    assert single.values[0] == result.normalized[2, 0, 5]
    assert single.statistics["var"] == result.var[2]


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
