"""Statistics from blocks: the same bits, however a tensor is cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from normcli.engine.run import run
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError
from normcli.fitting.block_sums import Whole, cut_stats
from normcli.fitting.stats_file import describe_stats
from normcli.fitting.subject import choose_subject
from normcli.fitting.use import Use
from normcli.norms.request import Request
from normcli.tensors.tensor import Tensor
from tests.fitting.test_fit import fit_arrays, make


def cut_into(shape, chunks):
    ranges = [[slice(a, min(a + c, n)) for a in range(0, n, c)] for n, c in zip(shape, chunks, strict=True)]
    return list(itertools.product(*ranges))


CASES = [
    pytest.param(Request("bn"), (6, 4, 5, 3), id="bn"),
    pytest.param(Request("zscore"), (13, 4), id="zscore"),
    pytest.param(Request("zscore", axes=(0, 1), ddof=1), (6, 4, 5), id="some axes"),
    pytest.param(Request("zscore", axes=(0, 1), layout="XBY"), (4, 6, 5), id="the batch is not first"),
    pytest.param(Request("minmax"), (9, 3), id="minmax"),
    pytest.param(Request("maxabs"), (9, 3), id="maxabs"),
    pytest.param(Request("gn", groups=2, axes=(0, 1, 2)), (5, 4, 3), id="channel groups"),
    pytest.param(Request("mvn", axes=(0, 1, 2, 3)), (4, 3, 5, 2), id="one group"),
]


def require_members(found, expected):
    """Require that two fits have the bits of each other."""
    found, expected = describe_stats(found), describe_stats(expected)
    assert {name: member.tobytes() for name, member in found.items()} == {
        name: member.tobytes() for name, member in expected.items()
    }


@pytest.mark.parametrize("chunks", [(2, 2, 2, 2), (3, 9, 1, 2), (9, 9, 9, 9), (1, 1, 1, 1)])
@pytest.mark.parametrize(("request_", "shape"), CASES)
def test_blocks_of_any_shape_in_any_order_give_the_bits_of_one_fit(request_, shape, chunks, rng):
    x = make(rng, shape, "float64")
    x.reshape(-1)[3] = np.nan
    x.reshape(-1)[-2] = np.inf
    whole = Whole(choose_subject(request_, Tensor(x, "x")), shape)
    sizes = list(chunks[: x.ndim])
    if request_.groups:
        sizes[1] = x.shape[1]
    boxes = rng.permutation(np.array(cut_into(shape, sizes))).tolist()
    parts = [whole.gather(tuple(box), x[tuple(box)], DEFAULT_EFFORT) for box in boxes]
    require_members(whole.join(parts), fit_arrays([x], request_))


QUANTILES = pytest.param(Request("robust"), (9, 3), id="quantiles, which are fitted on one machine")


@pytest.mark.parametrize(("request_", "shape"), [*CASES, QUANTILES])
def test_a_block_is_normalized_with_the_statistics_of_its_groups(request_, shape, rng):
    x = make(rng, shape, "float32")
    stats = fit_arrays([x], request_)
    use = Use(stats)
    plan = use.plan("x", x)
    whole = run(plan, x, use.fit_inputs(plan))[0]
    sizes = [2] * x.ndim
    if request_.groups:
        sizes[1] = x.shape[1]
    for box in cut_into(shape, sizes):
        part = Use(cut_stats(stats, shape, box))
        block = np.ascontiguousarray(x[box])
        plan = part.plan("x", block)
        assert run(plan, block, part.fit_inputs(plan))[0].tobytes() == whole[box].tobytes()


def test_blocks_have_their_columns_and_one_is_needed(rng):
    x = make(rng, (5, 4), "float64")
    tensor = Tensor(x, "x", columns=("a", "b", "c", "d"))
    whole = Whole(choose_subject(Request("zscore"), tensor), x.shape)
    stats = whole.join([whole.gather((slice(0, 5), slice(0, 4)), x, DEFAULT_EFFORT)])
    assert cut_stats(stats, x.shape, (slice(0, 5), slice(1, 3))).subject.columns == ("b", "c")
    with pytest.raises(DataError, match="^there is no block to fit$"):
        whole.add([])
