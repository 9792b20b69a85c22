"""Which fault of a gradient is said: the nearest, beside it those that are as near, and none by chance."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward
from normcli.checking.fault import find_fault
from normcli.checking.gradient_bounds import GradientScales, Rounding
from normcli.checking.gradient_cause import _choose, find_cause
from normcli.checking.gradient_check import check_gradients
from normcli.checking.gradient_faults import FACTOR, ZERO, Wrong
from normcli.checking.wrong_gradient import WrongGradient
from normcli.errors import DataError
from tests.conftest import pose
from tests.marks import choose_some

RIGHT, OFF = np.array([1.0, 0.0, 0.0]), np.array([0.0, 5.0, 0.0])
NEAR, FAR = np.array([0.0, 5.0, 0.005]), np.array([0.0, 5.0, 0.01])
ONE = Wrong(find_fault(ZERO)._replace(id="one", words="one is {0}"), ("a",), OFF)
SAME = Wrong(find_fault(ZERO)._replace(id="same", words="the same"), (), OFF)
OTHER = Wrong(find_fault(ZERO)._replace(id="other", words="other"), (), FAR)


def choose(actual, *candidates, noise=0.003, clearly=8.0):
    scales = GradientScales(np.ones(3), (Rounding("terms", "float64", np.full(3, noise)),), None, clearly)
    return _choose(WrongGradient(None, "dx", actual, RIGHT, None), candidates, scales)


def name_all(finding):
    return [fault.id for fault in (finding.fault, *finding.alternatives)]


def test_the_nearest_is_said_and_those_that_are_as_near():
    assert name_all(choose(NEAR, ONE)) == ["dx-one"]
    assert choose(NEAR, ONE, SAME).sentence == "dx: one is a, or on these data the same: the same."
    assert name_all(choose(NEAR, ONE, OTHER)) == ["dx-one", "dx-other"]
    assert name_all(choose(OFF, OTHER, ONE)) == ["dx-one"]
    assert name_all(choose(OFF, OTHER, ONE, noise=0.01)) == ["dx-one", "dx-other"]
    assert choose(NEAR, ONE, ONE._replace(details=("b",))).fault.words == "one is a or b"


def test_what_rounding_explains_has_no_fault():
    assert (
        choose(RIGHT + 0.001, OTHER, Wrong(find_fault(FACTOR), ("1.001",), RIGHT + 0.001), noise=0.01) is None
    )
    assert choose(RIGHT + 0.001, OTHER) is None


def test_a_fault_that_leaves_more_than_rounding_is_only_the_nearest():
    assert choose(OFF * 1.05, ONE) == "one is a"


def test_of_few_values_a_fault_has_to_come_nearer():
    actual = OFF * 1.05
    assert choose(actual, ONE, noise=0.2) is not None
    assert choose(actual, ONE, noise=0.2, clearly=32.0) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_below_the_smallest_normal_number_are_not_called_wrong(dtype):
    """Those of a loss that is a mean over many: nothing but their rounding is wrong."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(8, 32)), rng.normal(size=(8, 32)) * (1e-7 if dtype == "float16" else 1e-40)
    exact = backward(x, dy, "ln", dtype="float64")
    assert find_cause(exact, "dx", backward(x, dy, "ln", dtype=dtype).dx).is_rounding


def test_groups_count_alike_however_unequal_they_are():
    """The gradient of the narrowest group is by far the largest; the fault is that of the others."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(8, 32)) * 10.0 ** np.arange(-2, 6)[:, None], rng.normal(size=(8, 32))
    exact = backward(x, dy, "ln")
    wrong = np.where(np.arange(8)[:, None] == 0, exact.dx, -exact.dx)
    problem = pose(exact.plan, x, exact.inputs, dy)
    assert not check_gradients(problem, {"dx": wrong}).faults
    assert check_gradients(problem, {"dx": -exact.dx}).faults["dx"].fault.id == "dx-sign"


def test_groups_without_a_gradient_do_not_count():
    x, dy = np.random.default_rng(0).normal(size=(2, 6, 20))
    x[2, 3] = np.nan
    exact = backward(x, dy, "ln")
    wrong = np.where(np.isnan(exact.dx), 1.0, 2.0 * exact.dx)
    assert find_cause(exact, "dx", wrong).sentence == "dx: every value is 2 times what it should be."


def test_in_large_tensors_other_norms_are_not_tried(monkeypatch):
    x, dy = np.random.default_rng(0).normal(size=(2, 6, 20))
    exact, wrong = backward(x, dy, "ln"), backward(x, dy, "ln", ddof=1).dx
    assert find_cause(exact, "dx", wrong).fault.words == "its variance is divided by n − 1, not n"
    monkeypatch.setattr("normcli.checking.wrong_gradient.MOST_VARIED", x.size - 1)
    assert "dx-ddof" not in name_all(find_cause(exact, "dx", wrong))


@pytest.mark.parametrize(
    ("offset", "words"), [(0.0, ""), (300.0, "rounding of the mean in float32 may explain")]
)
@pytest.mark.parametrize("name", ["dx", "dgamma"])
def test_far_off_centre_rounding_of_the_mean_is_told(name, offset, words):
    """A right kernel in float32, which adds values one by one."""
    rng = np.random.default_rng(2)
    x = rng.normal(offset, 1.0, (16, 64)).astype("f4")
    dy = rng.normal(size=x.shape).astype("f4")

    def mean(values):
        return np.add.accumulate(values, 1)[:, -1:] / np.float32(64)

    w = x - mean(x)
    rstd = 1 / np.sqrt(mean(w * w) + np.float32(1e-5))
    xhat = w * rstd
    actual = {"dx": (dy - mean(dy) - xhat * mean(dy * xhat)) * rstd, "dgamma": (dy * xhat).sum(0)}[name]
    exact = backward(x, dy, "ln", gamma=np.ones(64, "f4"))
    found = check_gradients(pose(exact.plan, x, exact.inputs, dy), {name: actual})
    assert found.ok is not bool(words)
    assert not found.faults
    if words:
        assert found.causes[name].sentence.startswith(f"{name}: {words}")
        assert found.causes[name].evidence[0].startswith("|mean| is up to 3")


def make_ln(x, dy, var=None, mean=None, means=1.0):
    """Return dx and dgamma of `ln` with another mean or variance, and means of the backward pass times a factor."""
    mean = x.mean(1, keepdims=True) if mean is None else mean
    rstd = 1 / np.sqrt((x.var(1, keepdims=True) if var is None else var) + 1e-5)
    xhat = (x - mean) * rstd
    first, second = (means * values.mean(1, keepdims=True) for values in (dy, dy * xhat))
    return {"dx": ((dy - first - xhat * second) * rstd).astype("f4"), "dgamma": (dy * xhat).sum(0).astype("f4")}


@pytest.mark.parametrize("offset", choose_some([3.0, 0.0], 2))
def test_a_padded_count_is_named(offset):
    rng = np.random.default_rng(3)
    x, dy = rng.normal(offset, 1.0, (8, 100)), rng.normal(size=(8, 100))
    x, dy = (values.astype("f4").astype("f8") for values in (x, dy))
    own, var, n, padded = x.mean(1, keepdims=True), x.var(1, keepdims=True), 100, 128
    padded_mean = own * n / padded
    squares = ((x - padded_mean) ** 2).sum(1, keepdims=True)
    kernels = {
        "count": make_ln(x, dy, var * n / padded),
        "padded-variance": make_ln(x, dy, (var * n + 28 * own**2) / padded, None, n / padded),
        "padded-mean": make_ln(x, dy, None, padded_mean),
        "padded": make_ln(x, dy, (squares + 28 * padded_mean**2) / padded, padded_mean, n / padded),
        "means-count": {"dx": make_ln(x, dy, means=n / padded)["dx"]},
    }
    exact = backward(x.astype("f4"), dy.astype("f4"), "ln", gamma=np.ones(n, "f4"))
    problem = pose(exact.plan, exact.input, exact.inputs, exact.dy)
    for fault, actual in kernels.items():
        found = check_gradients(problem, actual).faults
        assert [one.fault.id for one in found.values()] == [f"{name}-{fault}" for name in actual]
    assert "divided by 128, not 100" in check_gradients(problem, kernels["count"]).faults["dx"].sentence


@pytest.mark.parametrize(("offset", "padded"), [(0.0, 113), (0.0, 512), (3.0, 1000)])
def test_a_count_that_is_not_usual_is_found(offset, padded):
    x, dy = np.random.default_rng(3).normal((offset,), 1.0, (2, 8, 100)) - [[[0.0]], [[offset]]]
    x, dy = (values.astype("f4").astype("f8") for values in (x, dy))
    mean, more = x.mean(1, keepdims=True) * 100 / padded, padded - 100
    var = (((x - mean) ** 2).sum(1, keepdims=True) + more * mean**2) / padded
    exact = backward(x.astype("f4"), dy.astype("f4"), "ln", gamma=np.ones(100, "f4"))
    problem = pose(exact.plan, exact.input, exact.inputs, exact.dy)
    found = check_gradients(problem, make_ln(x, dy, var, mean, 100 / padded)).faults
    words = f"mean and variance count {more} zeros of padding"
    assert {name: one.fault.words for name, one in found.items()} == {"dx": words, "dgamma": words}


def test_a_factor_holds_for_every_value():
    x, dy = np.random.default_rng(4).normal(size=(2, 8, 32))
    exact = backward(x, dy, "ln")
    assert find_cause(exact, "dx", 1.5 * exact.dx).fault.id == "dx-factor"
    rms = backward(x, dy, "rms", eps=0.0)  # a count of 128, not 32, doubles it too
    assert find_cause(rms, "dx", 2.0 * rms.dx).fault.words == "every value is 2 times what it should be"
    wrong = exact.dx * np.linspace(1.49, 1.51, 32)
    assert find_cause(exact, "dx", wrong).sentence == "dx: nothing known explains it."


def test_few_wrong_values_are_counted():
    x, dy = np.random.default_rng(4).normal(size=(2, 8, 32))
    exact, wrong = backward(x, dy, "ln"), backward(x, dy, "ln").dx.copy()
    wrong[2, 3], wrong[5, 7] = 9.0, np.nan
    found = find_cause(exact, "dx", wrong)
    assert (found.fault.id, found.fault.words) == ("dx-values", "it is right, except for 2 values")


@pytest.mark.parametrize("options", [{}, {"gate": True}, {"gate": True, "gate_order": "before"}])
def test_without_a_mean_dgamma_is_summed_with_x(options):
    x, dy, gate = np.random.default_rng(5).normal(1.0, 1.0, (3, 8, 32))
    options = options | ({"gate": gate} if options else {})
    exact = backward(x, dy, "rms", gamma=np.ones(32), **options)
    silu = gate / (1 + np.exp(-gate))
    for shares in ([dy * silu * x] if options else []) + ([dy * x] if len(options) != 1 else []):
        assert find_cause(exact, "dgamma", shares.sum(0)).sentence == "dgamma: it is summed with x, not x̂."


@pytest.mark.parametrize(
    ("norm", "scale", "offset", "words"),
    [
        ("rms", 1.0, 1000.0, "x · x overflows float16"),
        ("ln", 70.0, 0.0, "the sum of (x − mean)² overflows float16"),
        ("rms", 1.0, 0.0, "every value is 0: it is not calculated, or not written"),
    ],
)
def test_squares_that_overflow_in_every_group_are_why_gradients_are_0(norm, scale, offset, words):
    rng = np.random.default_rng(6)
    x, dy = rng.normal(offset, scale, (4, 64)).astype("f2"), rng.normal(size=(4, 64)).astype("f2")
    exact = backward(x, dy, norm, gamma=np.ones(64), dtype="float64")
    for name in ("dx", "dgamma"):
        found = find_cause(exact, name, np.zeros_like(exact.field(name), dtype="f2")).fault
        assert found.words == words
        assert ("overflow" in words) is (found.remedy == "square and add in float32")
        assert find_cause(exact, name, np.zeros_like(exact.field(name))).fault.id == f"{name}-zero"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("shape", "axes", "words"),
    [
        ((16, 16), (1,), "it is summed over c, not over n"),
        ((6, 6, 6), (0, 2), "it is summed over n×l, not over n×c"),
        ((6, 6, 6), (1, 2), "it is summed over c×l, not over n×c"),
    ],
)
def test_a_parameter_that_is_summed_over_other_axes_is_named(shape, axes, words, dtype):
    x, dy = np.random.default_rng(7).normal(size=(2, *shape)).astype(dtype)
    ones = np.ones(shape[-1])
    exact = backward(x, dy, "ln", gamma=ones, beta=ones, dtype="float64")
    wide = x.astype("f8")
    xhat = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    for name, shares in {"dgamma": dy * xhat, "dbeta": dy.astype("f8")}.items():
        found = find_cause(exact, name, shares.sum(axes).astype(dtype)).fault
        assert (found.id, found.words) == (f"{name}-sum-axes", words)


def test_a_shape_tells_the_axes_that_were_summed_over():
    x, dy = np.random.default_rng(7).normal(size=(2, 8, 64))
    exact = backward(x, dy, "ln", gamma=np.ones(64))
    problem = pose(exact.plan, exact.input, exact.inputs, exact.dy)
    with pytest.raises(DataError, match=r"shape \(8,\), that of a sum over c; it takes \(64,\)$"):
        check_gradients(problem, {"dgamma": dy.sum(1)})
    with pytest.raises(DataError, match=r"shape \(5,\); it takes \(64,\)$"):
        check_gradients(problem, {"dgamma": np.ones(5)})


@pytest.mark.parametrize(("offset", "words"), [(100.0, "of the mean and of its terms"), (0.0, "of its terms")])
def test_rounding_of_the_mean_is_named_beside_that_of_terms(offset, words):
    """Both bounds are above the error."""
    rng = np.random.default_rng(23)
    x = rng.normal(offset, 1.0, (256, 64)).astype("f4")
    dy = rng.normal(size=x.shape).astype("f4")
    exact = backward(x, dy, "ln", gamma=np.ones(64), dtype="float64")
    found = find_cause(exact, "dgamma", exact.dgamma * (1 + 1e-6))
    assert found.is_rounding
    assert found.fault.words.startswith(f"rounding {words} in float32")
    assert ("subtract a number near the mean first" in found.fault.remedy) is (offset > 0)
