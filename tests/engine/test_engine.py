"""The engine: the same bits for any threads, tiles, passes and memory; inputs untouched; `out=`."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from normcli import normalize
from normcli.engine import passes
from normcli.engine.inputs import Inputs
from normcli.engine.run import measure, run
from normcli.engine.tiling.geometry import MOST_RECORDS, Totals, find_geometry
from normcli.engine.walk import DEFAULT_EFFORT, Effort
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import Given
from normcli.numerics.sums.leaf_records import Leaves, fold_leaves
from tests.marks import costly, sampled, slowly

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


BY_MOMENTS, BY_ORDER = "ln", "robust"
DTYPES = ("float64", "float32")
FEW = [
    *((shape, axes, "float64", BY_MOMENTS) for shape, axes in SHAPES[:7]),
    *((shape, axes, "float64", BY_ORDER) for shape, axes in SHAPES[:7:2]),
]
OTHERS = [
    case
    for i, place in enumerate(SHAPES)
    for j, norm in enumerate([BY_MOMENTS, BY_ORDER, "rms", "lp", "minmax", "maxabs"])
    if (case := (*place, DTYPES[(i + j) % 2], norm)) not in FEW
]
"""With `FEW`: every shape with every norm and either dtype, and every norm with either dtype."""


@costly
@sampled
@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "norm"),
    [*FEW, *slowly(pytest.param(*case) for case in OTHERS)],
    ids=str,
)
@pytest.mark.slow
def test_the_same_bits_for_any_threads_tiles_and_passes(shape, axes, dtype, norm, monkeypatch):
    rng = np.random.default_rng(1)
    x = (rng.normal(3.0, 2.0, shape) * 10.0 ** rng.integers(-3, 3, shape)).astype(dtype)
    plan = make_plan(Request(norm, axes=axes), shape, np.dtype("f8"))
    plain = run(plan, x, effort=Effort(threads=1))
    for threads, block, whole in [
        (2, 1 << 20, 1 << 18),
        (1, 4096, 1 << 18),
        (3, 1000, 64),
        (2, 1 << 14, 1),
        (1, 1, 1),
    ]:
        assert equal(run(plan, x, effort=Effort(threads=threads, block=block, whole=whole)), plain)
    monkeypatch.setattr("normcli.numerics.elements.kernel.CHUNK", 1000)
    monkeypatch.setattr("normcli.numerics.sums.row_sums.CHUNK", 1000)
    assert equal(run(plan, x, effort=Effort(threads=2)), plain)


FAR = {"gamma": (4, 2.0**400), "beta": (6, -(2.0**500)), "mean": (7, 2.0**-500), "variance": (9, 2.0**700)}
"""Of some channels a number that makes values leave the range of doubles, or nearly."""


@pytest.mark.slow
def test_what_is_far_from_1_does_not_change_the_bits_of_others():
    x = (1000 / 3 + np.random.default_rng(7).uniform(-0.2, 0.2, (600, 12))).astype("float32")
    ordinary = {"gamma": 3.0, "beta": -1000.0, "mean": 0.0, "variance": 1.0}  # beta cancels nearly everything
    usual = {name: np.full(12, value) for name, value in ordinary.items()}
    numbers = {
        name: np.where(np.arange(12) == channel, far, usual[name]) for name, (channel, far) in FAR.items()
    }
    plan = make_plan(Request("bn"), x.shape, x.dtype)

    def evaluate(gamma, beta, mean, variance, effort=DEFAULT_EFFORT):
        return run(plan, x, Inputs(gamma, beta, Given(mean, variance)), effort=effort)[0]

    whole = evaluate(**numbers)
    for effort in (
        Effort(2),
        Effort(1, block=500),
        Effort(3, block=100, whole=64),
        Effort(1, block=1, whole=1),
    ):
        np.testing.assert_array_equal(evaluate(**numbers, effort=effort), whole)
    others = np.delete(np.arange(12), [channel for channel, _ in FAR.values()])
    np.testing.assert_array_equal(whole[:, others], evaluate(**usual)[:, others])


@pytest.mark.slow
@costly
@sampled
@pytest.mark.parametrize("shape", [(7,), (3, 5, 4, 2), (2, 20, 3), (2, 1, 9)], ids=str)
@pytest.mark.parametrize("request_", [Request("lrn"), Request("lp", p=600.0)], ids=lambda r: r.norm)
def test_the_same_bits_for_norms_apart(shape, request_, tmp_path, monkeypatch):
    x = np.random.default_rng(1).normal(size=shape) * 10.0 ** np.random.default_rng(2).integers(
        -200, 200, shape
    )
    axes = (min(1, len(shape) - 1),)
    plan = make_plan(request_._replace(axes=axes), shape, np.dtype("f8"))
    plain = run(plan, x, effort=Effort(threads=1))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    efforts = Effort(threads=2), Effort(block=100), Effort(threads=3, block=1)
    for values, effort in zip((x, np.asfortranarray(x), mapped), efforts, strict=True):
        assert equal(run(plan, values, effort=effort), plain)
    monkeypatch.setattr("normcli.engine.lrn.windows.MOST_VALUES", 64)
    assert equal(run(plan, x, effort=Effort(threads=2)), plain)


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
VALUES = [("mixed", "float32"), ("shifted", "float64"), ("extreme", "float64"), ("shifted", "float32")]
EITHER = [
    (shape, axes, options, *VALUES[(i + j) % len(VALUES)])
    for i, (shape, axes) in enumerate(LARGE)
    for j, options in enumerate(FOLDED)
]
"""Every shape with every norm, and either with all values."""


@pytest.mark.slow
@costly
@sampled
@pytest.mark.usefixtures("few_records")
@pytest.mark.parametrize(
    ("shape", "axes", "options", "kind", "dtype"),
    [
        *((*case, {"norm": "ln"}, "mixed", "float64") for case in LARGE),
        *((*case, {"norm": "lp", "p": 3.0}, "mixed", "float64") for case in LARGE[::2]),
        *slowly(pytest.param(*case) for case in EITHER),
    ],
    ids=str,
)
def test_folded_leaves_give_the_same_bits_for_any_threads_tiles_and_passes(shape, axes, options, kind, dtype):
    rng = np.random.default_rng(1)
    x = rng.normal(3.0, 2.0, shape)
    if kind == "mixed":
        x *= 10.0 ** rng.integers(-3, 3, shape)
    x = x + 1e9 if kind == "shifted" else x
    x = x * 1e170 if kind == "extreme" else x
    x = x.astype(dtype)
    plan = make_plan(Request(**options, axes=axes), shape, np.dtype("f8"))
    plain = run(plan, x, effort=Effort(threads=1))
    for threads, block, whole in [
        (2, 4096, 1 << 18),
        (3, 1000, 64),
        (2, 1 << 14, 1),
        (1, 1, 1),
        (1, 1 << 20, 1),
    ]:
        assert equal(run(plan, x, effort=Effort(threads=threads, block=block, whole=whole)), plain)


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
    strided = np.zeros((*shape[:-1], shape[-1] * 2), "float32")[..., ::2]
    strided[...] = x
    for other in (np.asfortranarray(x), np.ascontiguousarray(x[::-1])[::-1], x.astype(">f4"), strided,
                  np.load(tmp_path / "x.npy", mmap_mode="r")):  # fmt: skip
        assert equal(run(plan, other), plain)


@pytest.mark.parametrize("norm", ["bn", "gn", "ln", "ws"])
@pytest.mark.parametrize("block", [1 << 20, 500])
def test_parameters_meet_their_values_in_every_tile(norm, block):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(4, 6, 30, 20))
    plan = make_plan(
        Request(norm, groups=3 if norm == "gn" else None, axes="CW" if norm == "ln" else None), x.shape, x.dtype
    )
    gamma, beta = rng.normal(size=plan.parameters.shape), rng.normal(size=plan.parameters.shape)
    plain, _ = run(plan, x)
    scaled, _ = run(plan, x, Inputs(gamma, beta), effort=Effort(block=block, whole=64))
    full = tuple(
        n if axis in {"bn": (1,), "gn": (1,), "ln": (1, 3), "ws": (0,)}[norm] else 1
        for axis, n in enumerate(x.shape)
    )
    np.testing.assert_allclose(scaled, plain * gamma.reshape(full) + beta.reshape(full), rtol=1e-13, atol=1e-14)


def test_measuring_alone_gives_the_same_statistics():
    x = np.random.default_rng(5).normal(size=(4, 6, 30))
    plan = make_plan(Request("bn"), x.shape, x.dtype)
    _, statistics = run(plan, x)
    for name, values in measure(plan, x).items():
        assert bits(values) == bits(statistics[name])


def test_out_takes_the_result():
    x = np.random.default_rng(6).normal(size=(5, 7)).astype("float32")
    out = np.empty((5, 7), "float32")
    result = normalize(x, "ln", out=out)
    assert result.normalized is out
    assert bits(out) == bits(normalize(x, "ln").normalized)


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


def test_a_failure_in_a_thread_reaches_the_caller(monkeypatch):
    calls = []

    def fail(*arguments, **options):
        calls.append(arguments)
        raise RuntimeError("broken")

    monkeypatch.setattr(passes.Passes, "_work_on_whole_groups", fail)
    with pytest.raises(RuntimeError, match="broken"):
        run(
            make_plan(Request("ln"), (400, 500), np.dtype("f8")),
            np.ones((400, 500)),
            effort=Effort(threads=2, block=500),
        )
    assert len(calls) <= 2


def test_an_interrupt_stops_every_thread(monkeypatch):
    calls = []
    real = passes.Passes._work_on_whole_groups

    def count(*arguments):
        calls.append(arguments)
        time.sleep(0.01)
        real(*arguments)

    monkeypatch.setattr(passes.Passes, "_work_on_whole_groups", count)
    interrupts, join = iter([KeyboardInterrupt]), threading.Thread.join

    def wait(thread):
        for interrupt in interrupts:
            raise interrupt
        join(thread)

    monkeypatch.setattr(threading.Thread, "join", wait)
    with pytest.raises(KeyboardInterrupt):
        run(
            make_plan(Request("ln"), (400, 500), np.dtype("f8")),
            np.ones((400, 500)),
            effort=Effort(threads=2, block=500),
        )
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
