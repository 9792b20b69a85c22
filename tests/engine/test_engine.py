"""The engine: the same bits for any threads, tiles, passes and memory; inputs untouched; `out=`."""

from __future__ import annotations

import concurrent.futures
import gc
import time
import weakref

import numpy as np
import pytest

from normcli import normalize
from normcli.engine import passes
from normcli.engine.inputs import Inputs, Selection
from normcli.engine.run import measure, run
from normcli.engine.tiling.geometry import MOST_RECORDS, Totals, find_geometry
from normcli.engine.walk import Effort
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.sums.leaf_records import Leaves, fold_leaves
from tests.marks import sampled

pytestmark = pytest.mark.usefixtures("either_kernel")

SHAPES = [
    ((64, 300), (1,)),
    ((64, 300), (0,)),
    ((1100, 4), (1,)),
    ((9001,), (0,)),
    ((3, 5, 7, 11), (0, 2, 3)),
    ((3, 5, 7, 11), (1,)),
    ((3, 5, 7, 11), (0, 2)),
    ((2, 40, 50, 3), (0, 1, 2)),
    ((5000, 8), (0,)),
    ((4, 6, 40, 40), (0, 2, 3)),
    ((4, 6, 40, 40), (1, 2, 3)),
    ((1, 1, 6), (1,)),
]


def bits(array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def equal(one, other) -> bool:
    return bits(one[0]) == bits(other[0]) and all(bits(v) == bits(other[1][k]) for k, v in one[1].items())


def require_same_bits(plan, x, *efforts):
    """Require of a tensor the same bits by any effort as by one thread's, which are returned."""
    plain = run(plan, x, effort=Effort(threads=1))
    for threads, block, whole in efforts:
        assert equal(run(plan, x, effort=Effort(threads=threads, block=block, whole=whole)), plain)
    return plain


@pytest.mark.parametrize("request_", [Request("ln"), Request("lp", p=1.0)], ids=lambda r: r.norm)
def test_groups_that_are_read_again_leave_out_what_does_not_count(request_):
    """Of values so far apart, sums are asked of the groups themselves."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 300)) * 10.0 ** rng.integers(-200, 200, (4, 300))
    plan = make_plan(request_._replace(axes=(1,)), x.shape, x.dtype)
    inputs = Inputs(selection=Selection(rng.random(x.shape) < 0.5))
    assert equal(run(plan, x, inputs, effort=Effort(block=64, whole=1)), run(plan, x, inputs))


LARGE = [
    ((20_000,), (0,)),
    ((3, 4, 1500), (0, 2)),
    ((4, 2, 5000), (0, 2)),
    ((2000, 8), (0,)),
    ((3, 4500, 2), (0, 1)),
]


FOLDED = [
    *({"norm": norm} for norm in ("ln", "rms", "minmax", "robust")),
    *({"norm": "lp", "p": p} for p in (3.0, 1.0, np.inf)),
]
VALUES = {
    "mixed": lambda rng, x: x * 10.0 ** rng.integers(-3, 3, x.shape),
    "shifted": lambda rng, x: x + 1e9,
    "extreme": lambda rng, x: x * 1e170,
}


@pytest.mark.slow
@sampled("options")
@pytest.mark.usefixtures("few_records")
@pytest.mark.parametrize(("shape", "axes"), LARGE, ids=str)
@pytest.mark.parametrize("options", FOLDED, ids=str)
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("mixed", "f8"), ("mixed", "f4"), ("shifted", "f8"), ("shifted", "f4"), ("extreme", "f8")],
)
def test_folded_leaves_give_the_same_bits_for_any_threads_tiles_and_passes(shape, axes, options, kind, dtype):
    rng = np.random.default_rng(1)
    x = VALUES[kind](rng, rng.normal(3.0, 2.0, shape)).astype(dtype)
    plan = make_plan(Request(**options, axes=axes), shape, np.dtype("f8"))
    efforts = [(2, 4096, 1 << 18), (3, 1000, 64), (2, 1 << 14, 1), (1, 1, 1), (1, 1 << 20, 1)]
    require_same_bits(plan, x, *efforts)


def test_no_more_is_kept_of_a_group_than_some_tiles():
    """The larger a file was, the more was kept, up to a thousand tiles: 5 MiB of 64 groups."""
    plan = make_plan(Request("bn"), (40, 3, 50), np.dtype("f8"))
    totals = Totals(find_geometry(plan), fold_leaves, Leaves)
    for i in range(40):
        found = Leaves.empty((3, 1))
        found.sum_0[:], found.square_0[:] = i, 2.0**60 + i
        totals.put((slice(i, i + 1), slice(0, 3), slice(0, 50)), found)
        assert all(len(parts) < MOST_RECORDS for parts in totals._parts.values())
    assert totals.records.sum_0.tolist() == [780.0] * 3
    assert (totals.records.square_0 + totals.records.square_1).tolist() == [40 * 2.0**60 + 780] * 3


@sampled
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("norm", ["ln", "minmax", "robust"])
def test_the_same_bits_for_any_memory(norm, shape, axes, tmp_path):
    x = np.random.default_rng(2).normal(size=shape).astype("float32")
    plan = make_plan(Request(norm, axes=axes), shape, np.dtype("f8"))
    plain = run(plan, x)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    strided = np.repeat(x, 2, axis=-1)[..., ::2]
    for other in (np.asfortranarray(x), np.ascontiguousarray(x[::-1])[::-1], x.astype(">f4"), strided, mapped):
        assert equal(run(plan, other), plain)


@pytest.mark.parametrize(
    "out",
    [np.empty((5, 8)), np.empty((5, 7), "float32"), np.empty((7, 5)).T, np.broadcast_to(np.zeros(7), (5, 7))],
    ids=["shape", "dtype", "order", "read-only"],
)
def test_an_out_that_does_not_fit_is_refused(out):
    with pytest.raises(
        UsageError, match=r"out must be a writable C-contiguous float64 array of the shape \(5, 7\)"
    ):
        normalize(np.ones((5, 7)), "ln", out=out)


def test_the_input_is_never_written_to():
    x = np.ones((5, 7))
    with pytest.raises(UsageError, match="must not share memory"):
        normalize(x, "ln", out=x)
    with pytest.raises(UsageError, match="threads 0"):
        normalize(x, "ln", threads=0)


def test_no_more_threads_than_tiles():
    x = np.ones((400, 500))
    assert normalize(x, "ln", threads=10**30).group_count == 400
    with pytest.raises(UsageError, match="out must be"):
        normalize(x, "ln", out=[1])


def run_in_threads():
    x = np.ones((400, 500))
    run(make_plan(Request("ln"), x.shape, x.dtype), x, effort=Effort(threads=2, block=500))


def test_a_failure_in_a_thread_reaches_the_caller(monkeypatch):
    calls = []

    def fail(*arguments, **options):
        calls.append(arguments)
        raise RuntimeError("broken")

    monkeypatch.setattr(passes.Passes, "_work_on_whole_groups", fail)
    with pytest.raises(RuntimeError, match="broken"):
        run_in_threads()
    assert len(calls) <= 2


def test_an_interrupt_stops_every_thread(monkeypatch):
    calls = []
    real = passes.Passes._work_on_whole_groups

    def count(*arguments):
        calls.append(arguments)
        time.sleep(0.01)
        real(*arguments)

    monkeypatch.setattr(passes.Passes, "_work_on_whole_groups", count)

    def interrupt(parts):
        raise KeyboardInterrupt

    monkeypatch.setattr(concurrent.futures, "as_completed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_in_threads()
    assert len(calls) < 100


@pytest.mark.parametrize("work", [measure, run])
def test_memory_is_free_as_soon_as_nobody_has_it(work):
    """Without waiting for garbage to be collected: a worker on a cluster held a dozen blocks."""
    x = np.ones((4, 8, 16), np.float32)
    kept = weakref.ref(x)
    gc.disable()
    try:
        work(make_plan(Request("bn"), x.shape, x.dtype), x)
        del x
        assert kept() is None
    finally:
        gc.enable()
