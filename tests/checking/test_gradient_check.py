"""Wrong backward passes, as kernels had them: each is found, and named."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward
from normcli.checking.gradient_check import check_gradients
from normcli.checking.gradient_terms import make_terms
from normcli.dtypes import find_type
from normcli.errors import DataError, UsageError
from tests.conftest import pose

RNG = np.random.default_rng(0)
X, DY = RNG.normal(1.0, 2.0, (6, 4, 5)), RNG.normal(size=(6, 4, 5))
GAMMA, BETA = RNG.normal(2.0, 1.0, 4), RNG.normal(size=4)
AXES = (0, 2)


def mean(values, axes=AXES):
    return values.mean(axes, keepdims=True)


G, W = DY * GAMMA[:, None], X - mean(X)
DIVISOR = np.sqrt(mean(W * W) + 1e-5)
XHAT = W / DIVISOR
"""The parts that a kernel for batch norm puts together."""


def calculate_dx(axes, share=1.0, a=1.0):
    return (G - share * (a * mean(G, axes) + XHAT * mean(G * XHAT, axes))) / DIVISOR


WRONG = [
    ("dx", "both means are divided by n − 1", calculate_dx(AXES, 30 / 29)),
    ("dx", "its means are over n, not", calculate_dx(0)),
    ("dx", "its means are over n×c×l, not", calculate_dx((0, 1, 2))),
    ("dgamma", "it and dbeta are exchanged", DY.sum(AXES)),
    ("dgamma", "it is summed with y, not x̂", (DY * (XHAT * GAMMA[:, None] + BETA[:, None])).sum(AXES)),
    ("dgamma", "it is summed over n=0 … n=2 alone", (DY * XHAT)[:3].sum(AXES)),
    ("dgamma", "it is summed over l=0 alone", (DY * XHAT)[..., :1].sum(AXES)),
    ("dgamma", "n=2 … n=3 is left out of its sum", (DY * XHAT)[[0, 1, 4, 5]].sum(AXES)),
    ("dgamma", "n×l=3,2 is summed twice", (DY * XHAT).sum(AXES) + (DY * XHAT)[3, :, 2]),
    ("dbeta", "it is summed over n=0, n=2 … alone", DY[::2].sum(AXES)),
    (
        "dx",
        "it is divided by the divisor twice, and the mean(dy · gamma) term is left out",
        calculate_dx(AXES, a=0) / DIVISOR,
    ),
    (
        "dx",
        "mean(dy · gamma) is taken 3 times, and the x̂ term is taken 0.25 times",
        calculate_dx(AXES, 0.25, a=12),
    ),
    ("dgamma", "its values are rolled by -1 along c", np.roll((DY * XHAT).sum(AXES), -1)),
    ("dbeta", "it and dgamma are exchanged", (DY * XHAT).sum(AXES)),
    ("dbeta", "it is summed over n=0 … n=2 alone", DY[:3].sum(AXES)),
    ("dx", "every value is 0: it is not calculated", np.zeros_like(X)),
]
"""The fault of each gradient, beside those of `test_gradient_faults`."""


def check(name, array, dtype="float32", norm="bn", **options):
    x, dy, gamma, beta = (a.astype(dtype) for a in (X, DY, GAMMA, BETA))
    right = backward(x, dy, norm, gamma=gamma, beta=beta, **options)
    return check_gradients(pose(right.plan, x, right.inputs, dy), {name: array.astype(dtype)})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("name", "fault", "array"), WRONG)
def test_each_fault_is_named(name, fault, array, dtype):
    found = check(name, array, dtype)
    assert not found.ok
    assert found.faults[name].sentence.startswith(f"{name}: {fault}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_right_has_no_fault(dtype):
    x, dy, gamma = (a.astype(dtype) for a in (X, DY, GAMMA))
    right = backward(x, dy, "bn", gamma=gamma)
    actual = {"dx": right.dx, "dgamma": right.dgamma, "dbeta": right.dbeta}
    found = check_gradients(pose(right.plan, x, right.inputs, dy), actual)
    assert found.ok
    assert found.faults == {}
    assert all(comparison.max_ulp <= 0.5 for comparison in found.comparisons.values())


def test_small_gradients_are_not_tolerated_away():
    """1e-5 beside a loss that is a mean over millions would take anything for right."""
    x, dy = X.astype("f4"), (DY * 1e-9).astype("f4")
    right = backward(x, dy, "bn")
    found = check_gradients(pose(right.plan, x, right.inputs, dy), {"dx": right.dx * 0})
    assert not found.ok


@pytest.mark.parametrize("array", [RNG.normal(size=X.shape), X])
def test_what_no_fault_explains_has_no_sentence(array):
    found = check("dx", array)
    assert not found.ok
    assert found.faults == {}


@pytest.mark.parametrize("name", ["dx", "dgamma", "dbeta"])
@pytest.mark.parametrize("factor", [2.0, 0.5, -3.0, 1.25])
def test_a_constant_factor_is_named(name, factor):
    right = backward(X, DY, "bn", gamma=GAMMA, beta=BETA)
    found = check(name, factor * right.field(name), "float16")
    assert found.faults[name].sentence == f"{name}: every value is {factor:.3g} times what it should be."


def test_running_statistics_are_constants():
    """In evaluation: the derivative of training, and what differentiates the running statistics."""
    running = {"running_mean": np.arange(4.0), "running_var": np.arange(1.0, 5.0)}
    found = check("dx", backward(X, DY, "bn", gamma=GAMMA).dx, **running)
    assert found.faults["dx"].sentence == "dx: the statistics are the batch's, as in training."


@pytest.mark.parametrize("divided", [4, 24])
def test_means_over_more_than_the_group(divided):
    """Of layer norm over the last axis, summed over the channels too, and divided by either number of values."""
    axes = (1, 2)
    w = X - X.mean(2, keepdims=True)
    divisor = np.sqrt((w * w).mean(2, keepdims=True) + 1e-5)
    xhat, number = w / divisor, {4: 5, 24: 20}[divided]
    sums = (values.sum(axes, keepdims=True) / number for values in (DY, DY * xhat))
    first, second = sums
    right, wrong = backward(X, DY, "ln"), (DY - first - xhat * second) / divisor
    found = check_gradients(pose(right.plan, X, right.inputs, DY), {"dx": wrong})
    words = {20: "its means are over c×l", 5: "its sums are over c×l, and divided by the number of values"}[
        number
    ]
    assert found.faults["dx"].sentence.startswith(f"dx: {words}")


def test_faults_that_are_the_same_on_the_data_are_both_named():
    dy = DY - mean(DY)
    right = backward(X, dy, "bn")
    found = check_gradients(pose(right.plan, X, right.inputs, dy), {"dx": dy / DIVISOR})
    assert found.faults["dx"].sentence == (
        "dx: the x̂ · mean(dy · gamma · x̂) term is left out, or on these data the same: the statistics are taken as "
        "constants: it is dy · gamma / divisor."
    )


@pytest.mark.parametrize(
    ("fault", "share"),
    [
        ("x̂ · mean(dy · gamma · x̂) term is added, not subtracted", -1.0),
        ("mean of the x̂ term is a sum: it is not divided by n", 5.0),
    ],
)
def test_faults_of_a_norm_without_a_centre_speak_of_its_one_mean(fault, share):
    x, dy = X.reshape(-1, 5), DY.reshape(-1, 5)
    exact = backward(x, dy, "rms", gamma=GAMMA.repeat(2)[:5])
    wrong = make_terms(exact).scale(b=share).differentiate().reshape(x.shape)
    found = check_gradients(pose(exact.plan, x, exact.inputs, dy), {"dx": wrong})
    assert found.faults["dx"].sentence == f"dx: the {fault}."


@pytest.mark.parametrize(
    ("norm", "options"), [("ln", {}), ("rms", {}), ("mvn", {}), ("gn", {"groups": 2}), ("lp", {})]
)
def test_other_norms_are_judged_by_the_same_expressions(norm, options):
    right = backward(X, DY, norm, **options)
    found = check_gradients(pose(right.plan, X, right.inputs, DY), {"dx": -right.dx})
    assert found.faults["dx"].sentence == "dx: its sign is turned."
    own = make_terms(right).differentiate().reshape(X.shape)
    np.testing.assert_allclose(own, right.dx, rtol=1e-9, atol=1e-12)


def test_what_does_not_fit_is_refused():
    right = backward(X, DY, "lp")
    with pytest.raises(UsageError, match="lp has no gamma"):
        check_gradients(pose(right.plan, X, right.inputs, DY), {"dgamma": np.ones(4)})
    with pytest.raises(DataError, match=r"dx has the shape \(2,\); it takes \(6, 4, 5\)"):
        check_gradients(pose(right.plan, X, right.inputs, DY), {"dx": np.ones(2)})


def test_gamma_at_the_end_is_told_where_it_varies_within_groups():
    """Of a gamma that is one for a group it makes no difference."""
    gamma = RNG.normal(2.0, 1.0, 5)
    w = X - mean(X, -1)
    divisor = np.sqrt(mean(w * w, -1) + 1e-5)
    xhat = w / divisor
    wrong = gamma * (DY - mean(DY, -1) - xhat * mean(DY * xhat, -1)) / divisor
    right = backward(X, DY, "ln", gamma=gamma)
    found = check_gradients(pose(right.plan, X, right.inputs, DY), {"dx": wrong})
    assert found.faults["dx"].sentence == "dx: gamma multiplies dx at the end, not dy before it is averaged."


BFLOAT16 = np.dtype(find_type("bfloat16"))


def make_pairs(rows, seed, dtype):
    """Return x, dy and gamma for groups of two values, whose exact dx is nearly 0."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape).astype(dtype) for shape in ((rows, 2), (rows, 2), 2))


def compare_pairs(x, dy, gamma, g):
    """Return the comparison of the dx of a kernel that calculates in float32, with g in place of dy · gamma."""
    w, g = x.astype("f4"), g.astype("f4")
    w = w - w.mean(-1, keepdims=True)
    r = 1 / np.sqrt((w * w).mean(-1, keepdims=True) + np.float32(1e-5))
    dx = (g - g.mean(-1, keepdims=True) - w * r * (g * w * r).mean(-1, keepdims=True)) * r
    right = backward(x, dy, "ln", gamma=gamma)
    return check_gradients(pose(right.plan, x, right.inputs, dy), {"dx": dx.astype(x.dtype)})


def test_a_fault_goes_before_a_rounding_as_large_as_the_gradient():
    x, dy, gamma = make_pairs(3, 1, BFLOAT16)
    found = compare_pairs(x, dy, gamma, dy).causes["dx"]
    assert found.fault.words == "gamma is left out"
    also = "rounding of its terms in bfloat16 may explain the difference"
    assert [(one.id, one.words) for one in found.alternatives] == [("", also)]


def test_one_size_of_values_shows_no_fault_that_rounding_may_explain():
    x, dy, gamma = make_pairs(1, 1, BFLOAT16)
    assert compare_pairs(x, dy, gamma, dy).causes["dx"].is_rounding


@pytest.mark.parametrize("dtype", [BFLOAT16, np.dtype("f4")])
@pytest.mark.parametrize("seed", range(8))
def test_a_right_dx_near_0_has_no_fault(dtype, seed):
    x, dy, gamma = make_pairs(4, seed, dtype)
    found = compare_pairs(x, dy, gamma, dy.astype("f4") * gamma.astype("f4"))
    assert found.faults == {}
    assert found.ok or found.causes["dx"].is_rounding


def test_a_dx_of_zeros_may_be_rounding_where_the_exact_one_is_nearly_0():
    x, dy = np.array([[300.0, 316.0]], "f4"), np.array([[1.0, -0.5]], "f4")
    right = backward(x, dy, "ln")
    found = check_gradients(pose(right.plan, x, right.inputs, dy), {"dx": np.zeros_like(x)})
    assert not found.ok
    assert found.causes["dx"].is_rounding


@pytest.mark.parametrize("factor", [0.7, 1.01])
def test_one_value_shows_neither_a_factor_nor_that_others_are_right(factor):
    x, dy = X[:, :1], DY[:, :1]
    right = backward(x, dy, "bn", gamma=np.ones(1))
    found = check_gradients(pose(right.plan, x, right.inputs, dy), {"dgamma": factor * right.dgamma})
    assert found.causes["dgamma"].fault.words == "nothing known explains it"
