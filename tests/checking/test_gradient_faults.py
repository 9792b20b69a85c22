"""The table of faults of backward passes: each row's example is a kernel, and is named by the row's id."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from normcli import backward
from normcli.checking.gradient_check import check_gradients
from normcli.checking.gradient_faults import list_faults
from normcli.checking.ulp import choose_tolerance
from normcli.dtypes import find_type
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from tests.conftest import pose
from tests.marks import costly, sampled

FAULTS = {fault.id: fault for fault in list_faults()}
OFFSETS = (0.0, 1.0, 10.0, 100.0)
GATE = np.random.default_rng(3).normal(size=(12, 4, 16))
RUNNING = {"running_mean": np.arange(4.0), "running_var": np.arange(1.0, 5.0)}


def draw(norm, offset=0.0, dtype="float32", *, unequal=False):
    """Return x, dy, gamma and beta; x lies so many spreads off 0, and the spread of its groups may differ."""
    rng = np.random.default_rng(1)
    shape = {"bn": (8, 4, 6), "gn": (5, 8, 6)}.get(norm, (12, 4, 16))
    x, dy = rng.normal(offset, 1.0, shape), rng.normal(size=shape)
    if unequal:
        x *= 10.0 ** rng.uniform(-2, 2, (1, shape[1], 1) if norm in ("bn", "gn") else (*shape[:2], 1))
    width = shape[1] if norm in ("bn", "gn") else shape[-1]
    gamma, beta = rng.normal(1.5, 1.0, width), rng.normal(size=width)
    return tuple(a.astype(dtype) for a in (x, dy, gamma, beta))


def find(norm, name, actual, data, **options):
    """Return what is found to be wrong of a gradient; None where nothing is."""
    x, dy, gamma, _ = data
    exact = backward(x, dy, norm, gamma=gamma, **options)
    actual = np.asarray(actual).astype(dy.dtype)
    found = check_gradients(pose(exact.plan, x, exact.inputs, dy), {name: actual})
    assert not found.ok
    return found.faults.get(name)


def name_all(finding):
    """Return the ids of what is said."""
    return [fault.id for fault in (finding.fault, *finding.alternatives)] if finding else []


def make_example(example, norm, data):
    """Return what the NumPy of an example gives; None where it is a part of a kernel."""
    name = re.match(r"(dx|dgamma|dbeta) = ", example)
    if name is None:
        return None
    x, dy, gamma, beta = (a.astype(np.float64) for a in data)
    axes, along = ((0, 2), (0, 2)) if norm == "bn" else ((2,), (0, 1))
    gamma, beta = (a[:, None] if norm == "bn" else a for a in (gamma, beta))

    def mean(values):
        return values.mean(axes, keepdims=True)

    std = np.sqrt(mean((x - mean(x)) ** 2) + 1e-5)
    xhat, g = (x - mean(x)) / std, dy * gamma
    n = g.size // std.size
    right = {"dx": (g - mean(g) - xhat * mean(g * xhat)) / std, "dgamma": (dy * xhat).sum(along)}[name[1]]
    y, order = xhat * gamma + beta, np.random.default_rng(0).permutation(right.size)
    known = {"x": x, "y": y, "dy": dy, "g": g, "xhat": xhat, "std": std, "n": n, "gamma": gamma, "mean": mean}
    known |= {"axes": along, "right": right, "half": len(x) // 2, "np": np, "order": order}
    return eval(example[name.end() :], known)


EXAMPLES = [
    pytest.param(fault.id, norm, offset, unequal, id=f"{fault.id}-{norm}-{offset:g}{'-unequal' * unequal}")
    for fault in FAULTS.values()
    for norm in ("bn", "ln")
    for offset in OFFSETS
    for unequal in (False, True)
    if fault.id.startswith(fault.example.split(" ")[0] + "-")
    and not fault.id.endswith(("-given", "-left", "-sum-axes"))
    if (fault.id, norm) != ("dx-gamma-late", "bn")  # gamma is one number for a group: it is right
]


@pytest.mark.parametrize(("fault", "norm", "offset", "unequal"), EXAMPLES)
def test_an_example_is_named_by_its_own_id(fault, norm, offset, unequal):
    data, name = draw(norm, offset, unequal=unequal), fault.split("-")[0]
    wrong = make_example(FAULTS[fault].example, norm, data)
    found = name_all(find(norm, name, wrong, data, beta=data[3]))
    small = fault.endswith("-freedom") and offset == 100  # as x − mean cancels, a right one may be so far off
    assert fault in found or (small and not found)


def shard(norm, name, data, **options):
    x, dy, gamma, _ = data
    parts = np.split(np.arange(8), 2)
    halves = [backward(x[part], dy[part], norm, gamma=gamma, **options).field(name) for part in parts]
    return np.concatenate(halves) if name == "dx" else sum(halves)


def ask_otherwise(norm=None, **changes):
    """Return a kernel that gives the exact gradient of another request."""

    def calculate(own, name, data, **options):
        x, dy, gamma, _ = data
        return backward(x, dy, norm or own, gamma=gamma, **(options | changes)).field(name)

    return calculate


OTHERWISE = [
    pytest.param("gate-missing", "rms", ask_otherwise(gate=None), {"gate": GATE}, id="without the gate"),
    pytest.param("gate-missing", "ln", ask_otherwise(gate=None), {"gate": GATE}, id="without the gate of ln"),
    pytest.param("eps", "bn", ask_otherwise(eps=1e-3), {}, id="eps"),
    pytest.param("eps", "rms", ask_otherwise(eps=1e-2), {}, id="eps of rms"),
    pytest.param("eps-mode", "ln", ask_otherwise(eps_mode="outside"), {"eps": 1e-2}, id="eps outside"),
    pytest.param("ddof", "ln", ask_otherwise(ddof=1), {}, id="ddof 1"),
    pytest.param("ddof", "bn", ask_otherwise(ddof=0), {"ddof": 1}, id="ddof 0"),
    pytest.param("groups", "gn", ask_otherwise(groups=4), {"groups": 2}, id="groups"),
    pytest.param("axes", "ln", ask_otherwise(axes=(1, 2), feature_axes="2"), {}, id="more axes"),
    pytest.param("axes", "bn", ask_otherwise(axes=(2,), feature_axes="1"), {}, id="fewer axes"),
    pytest.param("uncentred", "ln", ask_otherwise("rms", eps=1e-5), {}, id="ln by the formula of rms"),
    pytest.param("centred", "rms", ask_otherwise("ln", eps=1e-5), {"eps": 1e-5}, id="rms by that of ln"),
    pytest.param("shard", "bn", shard, {}, id="each half of the rows"),
    pytest.param(
        "trained", "bn", ask_otherwise(running_mean=None, running_var=None), RUNNING, id="of the batch"
    ),
]


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", ["dx", "dgamma"])
@pytest.mark.parametrize(("fault", "norm", "kernel", "options"), OTHERWISE)
def test_the_gradient_of_another_norm_is_named(fault, norm, kernel, options, name, offset, unequal):
    data = draw(norm, offset, "float64", unequal=unequal)
    found = find(norm, name, kernel(norm, name, data, **options), data, **options)
    assert f"{name}-{fault}" in name_all(found)


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("offset", [*OFFSETS, 1000.0])
@pytest.mark.parametrize("norm", ["bn", "ln"])
@pytest.mark.parametrize("one_pass", [False, True])
def test_what_is_right_but_for_rounding_is_never_named(norm, offset, unequal, one_pass):
    """Kernels in float32, of which one cancels where x is off centre, held to the exact bits."""
    x, dy, gamma, beta = data = draw(norm, offset, unequal=unequal)
    axes, along = ((0, 2), (0, 2)) if norm == "bn" else ((2,), (0, 1))
    gamma = gamma[:, None] if norm == "bn" else gamma

    def mean(values):
        return values.mean(axes, keepdims=True, dtype=np.float32)

    var = np.maximum(mean(x * x) - mean(x) ** 2, 0) if one_pass else mean((x - mean(x)) ** 2)
    std = np.sqrt(var + np.float32(1e-5))
    xhat, g = (x - mean(x)) / std, dy * gamma
    actual = {"dx": (g - mean(g) - xhat * mean(g * xhat)) / std}
    actual |= {"dgamma": (dy * xhat).sum(along), "dbeta": dy.sum(along)}
    exact = backward(x, dy, norm, gamma=data[2], beta=beta)
    tolerate = functools.partial(choose_tolerance, max_ulp=0)
    problem = pose(exact.plan, x, exact.inputs, dy)
    for wide in ("float32", "float64"):
        found = check_gradients(problem, {name: a.astype(wide) for name, a in actual.items()}, tolerate)
        assert not found.comparisons["dx"].ok
        assert not found.faults


LONG = np.random.default_rng(2).normal(1.0, 2.0, (2, 512, 8)).astype("f4")


@pytest.mark.slow
@costly
@pytest.mark.parametrize("name", ["dgamma", "dbeta"])
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_sum_in_half_precision_is_named(name, factors, dtype):
    half, (x, dy) = find_type(dtype), LONG
    xhat = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-5))
    one = dy.astype(half) if factors else dy
    rows = one * xhat.astype(half if factors else "float32") if name == "dgamma" else one
    total = np.add.accumulate(rows.astype(half), 0, dtype=half)[-1].astype("f4")
    found = find("ln", name, total, (x, dy, np.ones(8, "f4"), None), beta=np.zeros(8, "f4"))
    assert (found.fault.id, found.fault.remedy) == (f"{name}-rounded-sums", "accumulate in float32")
    assert found.fault.words == f"it is summed in {dtype}, row by row"


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True], ids=["blocks in float32", "blocks in half precision"])
def test_so_is_a_sum_of_blocks(inside):
    parts = LONG[1].reshape(16, 32, 8)
    sums = np.add.accumulate(parts, 1, dtype="f2")[:, -1] if inside else parts.sum(1).astype("f2")
    total = np.add.accumulate(sums, 0, dtype="f2")[-1].astype("f4")
    found = find("ln", "dbeta", total, (*LONG, np.ones(8, "f4"), None), beta=np.zeros(8, "f4"))
    assert found.fault.words == "it is summed in float16, in blocks of 32"


def test_gamma_in_the_place_of_1_plus_gamma_is_named():
    data = draw("rms")
    wrong = backward(*data[:2], "rms", gamma=data[2], eps=1e-6).dx
    assert find("rms", "dx", wrong, data, like="gemma").fault.id == "dx-gamma-one-missing"
    wrong = backward(*data[:2], "rms", gamma=data[2], like="gemma", eps=1e-5).dx
    assert find("rms", "dx", wrong, data, eps=1e-5).fault.id == "dx-gamma-one-added"


def test_in_evaluation_means_that_are_subtracted_are_named():
    x, dy, gamma, _ = data = draw("bn", dtype="float64")
    given, g = [a[:, None] for a in RUNNING.values()], dy * gamma[:, None]
    xhat = (x - given[0]) / np.sqrt(given[1] + 1e-5)
    inner = g - g.mean((0, 2), keepdims=True) - xhat * (g * xhat).mean((0, 2), keepdims=True)
    found = find("bn", "dx", inner / np.sqrt(given[1] + 1e-5), data, **RUNNING)
    assert found.fault.id == "dx-means-given"
    assert found.fault.remedy == "return dy · gamma / divisor"


def test_shards_may_be_interleaved():
    x, dy, gamma, _ = data = draw("bn", dtype="float64")
    wrong = np.empty_like(x)
    for first in range(4):
        wrong[first::4] = backward(x[first::4], dy[first::4], "bn", gamma=gamma).dx
    found = find("bn", "dx", wrong, data)
    assert found.sentence == "dx: each of 4 parts of n has its own statistics."
    assert found.fault.remedy == "add up the sums of all parts before they are divided"


def make_unfair(wrong, norm="bn"):
    """Return x, dy, gamma and beta, and the dx of a kernel whose `wrong` takes g, x̂ and the shape of a group."""
    x, dy, gamma, _ = data = draw(norm, dtype="float64")
    axes, gamma = ((0, 2), gamma[:, None]) if norm == "bn" else ((2,), gamma)
    std = np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return data, wrong(dy, gamma, (x - x.mean(axes, keepdims=True)) / std, axes) / std


def test_means_of_shards_are_not_statistics_of_shards():
    def wrong(dy, gamma, xhat, axes):
        parts = zip(np.split(dy * gamma, 4), np.split(xhat, 4), strict=True)
        return np.concatenate(
            [g - g.mean(axes, keepdims=True) - h * (g * h).mean(axes, keepdims=True) for g, h in parts]
        )

    data, dx = make_unfair(wrong)
    found = find("bn", "dx", dx, data)
    assert found.sentence == "dx: each of 4 parts of n has its own means, though not its own statistics."


@pytest.mark.parametrize(("count", "norm"), [(8, "bn"), (6, "bn"), (12, "ln")])
def test_means_may_be_divided_by_the_length_of_other_axes(count, norm):
    def wrong(dy, gamma, xhat, axes):
        g = dy * gamma
        return g - (g.sum(axes, keepdims=True) + xhat * (g * xhat).sum(axes, keepdims=True)) / count

    data, dx = make_unfair(wrong, norm)
    own = {"bn": 48, "ln": 16}[norm]
    assert find(norm, "dx", dx, data).sentence == f"dx: its means are divided by {count}, not {own}."


@pytest.mark.parametrize("norm", ["bn", "ln", "rms"])
@pytest.mark.parametrize("shift", [1, -3])
def test_gamma_that_is_rolled_in_dx_is_named(norm, shift):
    x, dy, gamma, _ = data = draw(norm)
    wrong = backward(x, dy, norm, gamma=np.roll(gamma, shift)).dx
    if norm == "bn" and shift == -3:
        shift = 1  # of 4 channels
    assert find(norm, "dx", wrong, data).sentence == f"dx: gamma is rolled by {shift}."


def test_gamma_along_another_axis_and_statistics_in_half_precision_are_named():
    """Of as many groups as features; the second as PyTorch saves them of tensors in half precision, off centre."""
    x, dy, gamma, _ = data = [a[..., :4].astype(np.float64) for a in draw("ln", 30.0)]
    wrong = backward(x, dy * gamma[:, None], "ln").dx
    assert find("ln", "dx", wrong, data).sentence == "dx: gamma multiplies along c, not along l."
    half, g = find_type("bfloat16"), dy * gamma
    mean, rstd = x.mean(2, keepdims=True), 1 / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    mean, rstd = (a.astype(half).astype("f8") for a in (mean, rstd))
    xhat = (x - mean) * rstd
    wrong = rstd * (g - g.mean(2, keepdims=True) - xhat * (g * xhat).mean(2, keepdims=True))
    assert find("ln", "dx", wrong, data).sentence == "dx: saved statistics are rounded to bfloat16."


def test_gamma_that_is_left_out_of_one_mean_is_named():
    x, dy, gamma, _ = data = draw("rms", dtype="float64")
    rms = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    wrong = (dy * gamma - x / rms**2 * (dy * x).mean(-1, keepdims=True)) / rms
    assert name_all(find("rms", "dx", wrong, data, eps=1e-5)) == ["dx-gamma-means"]


@pytest.mark.parametrize("factor", [3.0, 48.0, 402.0])
def test_a_mean_is_at_most_a_sum(factor):
    x, dy, gamma, beta = draw("bn")
    right = backward(x, dy, "bn", gamma=gamma).dx.astype(np.float64)
    g = (dy * gamma[:, None]).astype(np.float64)
    std = np.sqrt(x.astype(np.float64).var((0, 2), keepdims=True) + 1e-5)
    actual = right + (1.0 - factor) * g.mean((0, 2), keepdims=True) / std
    named = name_all(find("bn", "dx", actual, (x, dy, gamma, beta)))
    assert named == (["dx-mean-factor"] if factor <= 48.0 else [])


@pytest.mark.parametrize(
    ("stop", "where"), [(slice(12, None), "l=12 … l=15"), (slice(2), "l=0 … l=1"), (slice(15, None), None)]
)
def test_sums_of_blocks_that_are_not_written_are_named(stop, where):
    data = draw("ln", dtype="float64")
    for name in ("dgamma", "dbeta"):
        wrong = backward(*data[:2], "ln", gamma=data[2], beta=data[3]).field(name).copy()
        wrong[stop] = 0.0
        found = find("ln", name, wrong, data, beta=data[3])
        words = (
            "it is right, except for 1 value" if where is None else f"it is 0 at {where}, and right elsewhere"
        )
        assert found.fault.words == words


@pytest.mark.parametrize(
    ("counts", "where"),
    [(np.arange(5)[:, None, None] == 4, "n=4"), (np.arange(6) < 3, "l=0 … l=2")],
)
def test_a_part_of_a_sum_is_named_by_its_axis_beside_groups_of_channels(counts, where):
    x, dy, gamma, _ = data = draw("gn", dtype="float64")
    wrong = backward(x, dy * counts, "gn", gamma=gamma, groups=2).dgamma
    found = find("gn", "dgamma", wrong, data, groups=2)
    assert found.fault.words == f"it is summed over {where} alone"


def differentiate(x, z, dy, gamma, *, order, act="silu", slope=None, norm="ln"):
    """Return the gradients of a gated norm, of another activation, or with another slope."""
    factor, slope = activate(z, act), activate(z, act, is_slope=True) if slope is None else slope
    entering = x * factor if order == "before" else x
    upstream = dy if order == "before" else dy * factor
    moved = entering - entering.mean(-1, keepdims=True) if norm == "ln" else entering
    divisor = np.sqrt((moved**2).mean(-1, keepdims=True) + 1e-5)
    xhat, g = moved / divisor, upstream * gamma
    mean = g.mean(-1, keepdims=True) if norm == "ln" else 0.0
    known = (g - mean - xhat * (g * xhat).mean(-1, keepdims=True)) / divisor
    dgamma = (upstream * xhat).sum((0, 1))
    if order == "before":
        return {"dx": known * factor, "dgate": known * x * slope, "dgamma": dgamma, "dp": known}
    return {"dx": known, "dgate": dy * xhat * gamma * slope, "dgamma": dgamma, "xhat": xhat}


def activate(z, act="silu", *, is_slope=False):
    return Gated(z, Activation(act), is_slope=is_slope).activate()


def list_gate_faults(order, norm, x, z, dy, gamma):
    """Yield the id of each fault of a gate, with the gradient of a kernel that has it."""
    ask = functools.partial(differentiate, x, z, dy, gamma, norm=norm)
    factor, slope, other = activate(z), activate(z, is_slope=True), "after" if order == "before" else "before"
    for name in ("dx", "dgamma", "dgate"):
        yield f"{name}-gate-order", ask(order=other)[name]
        yield f"{name}-gate-activation", ask(order=order, act="sigmoid")[name]
    yield "dgate-slope-missing", ask(order=order, slope=1.0)["dgate"]
    yield "dgate-slope-activation", ask(order=order, slope=factor)["dgate"]
    yield "dgate-slope-factor", ask(order=order, slope=factor / z)["dgate"]
    bare = differentiate(x, np.ones_like(z), dy, gamma, order="after", act="none", norm=norm)
    yield "dgamma-gate-missing", bare["dgamma"]
    if order == "after":
        yield "dx-gate-missing", bare["dx"]
        yield "dx-gate-late", bare["dx"] * factor
        yield "dgate-result-missing", dy * slope
        yield "dgate-result-bare", dy * bare["xhat"] * slope
        yield "dgate-x-taken", dy * x * slope
        return
    known = ask(order=order)["dp"]
    yield "dx-gate-missing", known
    early = differentiate(x * factor, np.ones_like(z), dy * factor, gamma, order="after", act="none", norm=norm)
    yield "dx-gate-early", early["dx"]
    yield "dx-norm-skipped", dy * factor
    yield "dgate-norm-skipped", dy * x * slope
    yield "dgate-x-missing", known * slope
    yield "dgate-gate-activation", ask(order=order, slope=activate(z, "sigmoid", is_slope=True))["dgate"]


@sampled
@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("order", ["after", "before"])
def test_a_fault_of_a_gate_is_named_and_no_other(order, norm):
    x, dy, gamma, _ = (a.astype(np.float64) for a in draw("ln", 1.0))
    options = {"gamma": gamma, "gate": GATE, "gate_order": order, "eps": 1e-5}
    exact = backward(x, dy, norm, **options)
    problem = pose(exact.plan, exact.input, exact.inputs, dy)
    for name, right in differentiate(x, GATE, dy, gamma, order=order, norm=norm).items():
        assert name in ("dp", "xhat") or check_gradients(problem, {name: right}).ok
    for fault, wrong in list_gate_faults(order, norm, x, GATE, dy, gamma):
        name = fault.partition("-")[0]
        named = [fault]
        if fault == "dgate-slope-missing" and order == "after":  # a gate without activation has its gradient
            named.append("dgate-gate-activation")
        found = check_gradients(problem, {name: wrong}).faults.get(name)
        assert name_all(found) == named
        assert not fault.endswith("gate-missing") or found.fault.words == "the gate is left out"


@sampled
@pytest.mark.parametrize(
    ("gate", "axes"),
    [pytest.param(GATE[:1], (0,), id="of samples"), pytest.param(GATE[0, 0], (0, 1), id="of features")],
)
@pytest.mark.parametrize("order", ["after", "before"])
def test_a_fault_beside_a_gate_that_is_broadcast_is_named(order, gate, axes):
    x, dy, gamma, _ = (a.astype(np.float64) for a in draw("ln", 1.0))
    options = {"gamma": gamma, "gate": gate, "gate_order": order, "eps": 1e-5}
    exact = backward(x, dy, "ln", **options)
    problem = pose(exact.plan, exact.input, exact.inputs, dy)
    spread = np.broadcast_to(gate, x.shape)
    right = differentiate(x, spread, dy, gamma, order=order)["dgate"]
    assert np.allclose(right.sum(axes).reshape(gate.shape), exact.dgate)
    for fault, wrong in list_gate_faults(order, "ln", x, spread, dy, gamma):
        name, _, rest = fault.partition("-")
        if name == "dgate" and rest in ("slope-activation", "norm-skipped", "x-missing"):
            found = check_gradients(problem, {name: wrong.sum(axes).reshape(gate.shape)}).faults
            assert found[name].fault.id == fault
        elif name == "dx" and rest != "gate-order":
            assert check_gradients(problem, {name: wrong}).faults[name].fault.id == fault


def test_a_fault_of_the_norm_is_named_behind_a_gate_that_multiplies_first():
    x, dy, gamma, _ = data = draw("rms", dtype="float64")
    wrong = backward(x, dy, "rms", gamma=gamma, gate=GATE, gate_order="before", eps=1e-2).dx
    exact = backward(x, dy, "rms", gamma=gamma, gate=GATE, gate_order="before")
    problem = pose(exact.plan, exact.input, exact.inputs, dy)
    assert "dx-eps" in name_all(check_gradients(problem, {"dx": wrong}).faults["dx"]), data


def test_ids_are_not_changed():
    """An id is in JSON, and is kept for ever: to change this list is to break it."""
    names = {name: [] for name in ("dx", "dgamma", "dbeta", "dgate")}
    for id_ in FAULTS:
        name, _, rest = id_.partition("-")
        names[name].append(rest)
    assert {name: " ".join(sorted(ids)) for name, ids in names.items()} == IDS


IDS = {
    "dx": "axes centred constants count ddof divided divisor-cubed divisor-missing divisor-twice eps eps-mode "
    "factor gamma-axis gamma-inner gamma-late gamma-means gamma-missing gamma-one-added gamma-one-missing "
    "gamma-pull gamma-reversed gamma-rolled gamma-twice gate-activation gate-early gate-late gate-missing "
    "gate-order groups mean-added mean-factor mean-left mean-missing mean-twice means-added means-axes "
    "means-count means-freedom means-given means-shard means-summed norm-skipped overflow padded "
    "padded-mean padded-variance pull-added pull-bare pull-factor pull-freedom pull-missing pull-power "
    "pull-summed pull-twice pull-x pull-y relu residual root-missing rounded-statistics shard sign "
    "sums-axes trained uncentred values x-added zero",
    "dgamma": "axes centred count ddof eps eps-mode exchanged factor gamma gate-activation gate-missing gate-order "
    "groups left-out mean overflow padded padded-mean padded-variance part permuted relu reversed rolled "
    "root-missing rounded-statistics rounded-sums shard sign sum-axes summed-dx trained twice uncentred "
    "undivided values x y zero zeros",
    "dbeta": "exchanged factor gamma gate-activation gate-missing gate-order left-out mean part permuted relu "
    "reversed rolled rounded-sums sign sum-axes summed-dx twice values zero zeros",
    "dgate": "factor gate-activation gate-order norm-skipped result-bare result-missing sign slope-activation "
    "slope-factor slope-missing values x-missing x-taken zero",
}
