"""The passes of the backward pass: the same bits for any tiles, threads, order of memory and place of the data."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.engine.backward import run_backward
from normcli.engine.gradients import passes as gradients_run
from normcli.engine.gradients import tile_gradients
from normcli.engine.inputs import Inputs
from normcli.engine.walk import Effort
from normcli.norms.request import Request
from normcli.results.given_inputs import SelectionRequest, fit_inputs
from tests.conftest import plan_request
from tests.marks import sampled

REQUESTS = [
    Request("bn"),
    Request("in"),
    Request("ln", axes=(1, 2)),
    Request("gn", groups=2),
    Request("rms", axes=(0, 2)),
    Request("wn"),
    Request("zscore"),
    Request("lp", p=1.0, axes=0),
    Request("lp", p=np.inf, axes=(0, 2)),
    Request("lp", p=3.0, axes=(0, 2), eps=0.0),
    Request("lrn", size=3),
]
EFFORTS = [
    pytest.param(Effort(threads=1, block=64, whole=1), id="passes"),
    pytest.param(Effort(threads=3, block=100, whole=1), id="passes in threads"),
    pytest.param(Effort(threads=2, block=500), id="whole groups in threads"),
]


def draw(request, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x, dy = (rng.normal(size=(3, 4, 40)).round(1).astype(dtype) for _ in range(2))
    plan = plan_request(request, x)
    names = plan.norm.parameter_names
    parameters = {name: rng.normal(size=plan.parameters.shape) for name in names}
    return plan, x, dy, fit_inputs(plan, x, parameters)


def require_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def require_no_change(plan, x, dy, inputs, *efforts):
    """Require the same gradients by some efforts as by the usual one, which are returned."""
    expected = run_backward(plan, x, dy, inputs, None, Effort())
    for effort in efforts:
        require_same(run_backward(plan, x, dy, inputs, None, effort), expected)
    return expected


@sampled
@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: f"{r.norm} {r.axes} {r.p}")
def test_no_bit_depends_on_tiles_threads_and_how_many_groups_are_in_a_band(request_, effort, monkeypatch):
    plan, x, dy, inputs = draw(request_, "float64")
    expected = require_no_change(plan, x, dy, inputs, effort)
    monkeypatch.setattr(gradients_run, "MOST_GROUPS", 2)
    require_same(run_backward(plan, x, dy, inputs, None, effort), expected)


@pytest.mark.parametrize("fill", ["pass", "normalize"])
def test_nor_does_any_of_what_does_not_count(fill):
    plan, x, dy, _ = draw(Request("bn"), "float32")
    x[0, 0, :5] = np.nan
    mask = np.arange(40) % 3 > 0
    inputs = fit_inputs(plan, x, selection=SelectionRequest(mask, nan="omit", fill=fill))
    require_no_change(plan, x, dy, inputs, Effort(threads=2, block=64, whole=1))


def test_nor_of_groups_beyond_the_range_of_products():
    plan, x, dy, inputs = draw(Request("bn"), "float64")
    dy = dy * np.where(np.arange(40) % 2, 1e-250, 1e150)
    found = require_no_change(plan, x * 1e200, dy, inputs, Effort(threads=2, block=64, whole=1))
    assert np.isfinite(found.dx).all()


@pytest.mark.parametrize("request_", REQUESTS[:6], ids=lambda r: r.norm)
def test_nor_on_the_order_of_memory_and_on_files(request_, tmp_path):
    plan, x, dy, inputs = draw(request_, "float32")
    expected = run_backward(plan, x, dy, inputs, None, Effort())
    turned = np.asfortranarray(x)
    require_same(run_backward(plan, turned, dy[::-1][::-1], inputs, None, Effort(block=64)), expected)
    for name, array in (("x", x), ("dy", dy)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("x", "dy"))
    out = np.lib.format.open_memmap(tmp_path / "dx.npy", mode="w+", dtype=np.float32, shape=x.shape)
    found = run_backward(plan, *mapped, inputs, out, Effort(block=128, whole=64, threads=2))
    require_same(found, expected)
    np.testing.assert_array_equal(np.load(tmp_path / "dx.npy"), expected.dx)


@pytest.mark.parametrize("norm", ["bn", "ln", "gn"])
def test_what_pairs_do_not_decide_of_gamma_is_added_exactly(norm):
    """Pairs of values cancel in dgamma to less than their errors."""
    rng = np.random.default_rng(2)
    half, dy = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 4, 6))
    x = np.concatenate([half, half[:, ::-1] if norm == "bn" else half])
    dy = np.concatenate([dy, -dy])
    plan = plan_request(Request(norm, groups=2 if norm == "gn" else None), x)
    found = require_no_change(plan, x, dy, Inputs(), Effort(threads=2, block=8, whole=1))
    assert norm == "bn" or not found.dgamma.any()


KINDS = {
    "ordinary": lambda x: x,
    "far from 0": lambda x: x + 1e6,
    "a group that is constant, one that is huge and one without gradients": lambda x: (
        x * np.array([0.0, 1e30, 1.0])[:, None, None]
    ),
    "values that are not finite": lambda x: np.where(x > 2.5, np.inf, np.where(x < -2.5, np.nan, x)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("effort", [*EFFORTS, pytest.param(Effort(), id="one tile")])
@pytest.mark.parametrize("request_", REQUESTS[:5], ids=lambda r: f"{r.norm} {r.axes}")
def test_short_floats_in_doubles_are_the_same_as_in_pairs(request_, effort, kind, dtype, monkeypatch):
    plan, x, dy, _ = draw(request_, "float64")
    dy[2, :, ::3] = 0.0
    with np.errstate(over="ignore"):
        x, dy = KINDS[kind](x).astype(dtype), dy.astype(dtype)
    plan = plan_request(request_, x)
    gamma = np.random.default_rng(1).normal(size=plan.parameters.shape).astype(dtype)
    inputs = fit_inputs(plan, x, {"gamma": gamma})
    found = run_backward(plan, x, dy, inputs, None, effort)
    monkeypatch.setattr(tile_gradients, "suits_doubles", lambda *_: False)
    require_same(found, run_backward(plan, x, dy, inputs, None, effort))


def test_doubles_decide_most_gradients_of_short_floats(monkeypatch):
    rng = np.random.default_rng(3)
    x, dy = (rng.normal(size=(64, 256)).astype(np.float32) for _ in range(2))
    asked = []
    decide = gradients_run.differentiate_in_doubles

    def count(*arguments):
        dx, undecided = decide(*arguments)
        asked.append(int(undecided.sum()))
        return dx, undecided

    monkeypatch.setattr(gradients_run, "differentiate_in_doubles", count)
    plan = plan_request(Request("ln"), x)
    run_backward(plan, x, dy, fit_inputs(plan, x, {}), None, Effort())
    assert asked
    assert sum(asked) <= 4  # of 16,384


@pytest.mark.parametrize("norm", ["bn", "rms"])
def test_sums_that_halves_hold_as_0_have_the_sign_of_exact_ones(norm, monkeypatch):
    rng = np.random.default_rng(4)
    x, dy = rng.normal(size=(6, 8)).astype(np.float16), np.ones((6, 8), np.float16)
    dy[3:] = -1
    plan = plan_request(Request(norm), x)
    found = run_backward(plan, x, dy, Inputs(), None, Effort())
    monkeypatch.setattr(tile_gradients, "suits_doubles", lambda *_: False)
    for one, other in zip(found, run_backward(plan, x, dy, Inputs(), None, Effort()), strict=True):
        assert one is None or one.tobytes() == other.tobytes()
