"""What a check says first of wrong kernels that readers from outside brought, with its id."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, normalize

RNG = np.random.default_rng(7)
X = RNG.normal(5.0, 1.0, (12, 50)).astype("f4")
Z = RNG.normal(0.0, 1.0, (12, 50)).astype("f4")


def silu(z):
    return z / (1.0 + np.exp(-z.astype("f8")))


def ln(x, eps=1e-5, square=None, mean=None):
    wide = x.astype("f8")
    square = wide.var(-1, keepdims=True) if square is None else square
    return (wide - (wide.mean(-1, keepdims=True) if mean is None else mean)) / np.sqrt(square + eps)


def rms(x):
    return x.astype("f8") / np.sqrt(np.mean(x.astype("f8") ** 2, -1, keepdims=True) + 1e-5)


def quantize(y):
    step = np.abs(y).max(-1, keepdims=True) / 127
    return np.round(y / step) * step


def skip_tail():
    y = np.zeros_like(X)
    y[:, :40] = ln(X[:, :40])
    return y


def outside(x, eps):
    wide = x.astype("f8")
    return ((wide - wide.mean(-1, keepdims=True)) / (wide.std(-1, keepdims=True) + eps)).astype(x.dtype)


THREE, AWAY = X[:3], np.array([[0.1], [-0.2], [0.3]])
FAR = RNG.normal(60.0, 1.0, (60, 4))
EVALUATED = {"running_mean": np.arange(50.0), "running_var": np.arange(1.0, 51.0)}
SMALL = (X - 5.0) * np.float32(0.003)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("y", "x", "norm", "options", "cause"),
    [
        pytest.param(ln(X), X, "ln", {"mask": np.arange(50) < 40}, "values count that are masked", id="mask"),
        pytest.param(ln(X, 1e-12), X, "ln", {}, "eps is at most ", id="eps of bert"),
        pytest.param(skip_tail(), X, "ln", {}, "statistics are of the first 40 of 50 along c", id="tail"),
        pytest.param(ln(THREE, mean=THREE[:, :32].mean(-1, keepdims=True)), THREE, "ln", {}, "the mean is of the first 32 of 50", id="mean of 3 rows"),
        pytest.param(ln(THREE, square=THREE[:, :32].var(-1, keepdims=True)), THREE, "ln", {}, "the variance is of the first 32", id="variance of 3 rows"),
        pytest.param(ln(THREE, square=THREE[:, :32].var(-1, keepdims=True), mean=THREE[:, :32].mean(-1, keepdims=True)), THREE, "ln", {}, "statistics are of the first 32 of 50", id="statistics of 3 rows"),
        pytest.param(ln(THREE, mean=THREE.mean(-1, keepdims=True) + AWAY), THREE, "ln", {}, "the mean is wrong, the divisor is right", id="any mean of 3 rows"),
        pytest.param(quantize(ln(np.maximum(Z, 0))), np.maximum(Z, 0), "ln", {}, "y is rounded to 127 steps", id="int8 of many zeros"),
        *(
            pytest.param((X - centre) / spread, X, norm, {}, cause, id=cause)
            for centre, spread, norm, cause in [
                (X.mean(0), np.subtract(*np.percentile(X, [75, 25], 0)), "robust", "the mean is subtracted, the quartile range (linear) divides"),
                (np.median(X, 0), 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0), "robust", "the median is subtracted, 1.4826 times"),
                (X.min(0), X.max(0), "minmax", "the minimum is subtracted, the maximum divides"),
                (X.mean(0), np.sqrt(X.std(0)), "zscore", "the mean is subtracted, the root of the deviation divides"),
                (X[:9].min(0), np.ptp(X[:9], 0), "minmax", "statistics are of the first 9 of 12 along n"),
                (0, np.abs(X[:9]).max(0), "maxabs", "statistics are of the first 9 of 12 along n"),
            ]
        ),
        pytest.param((FAR - FAR[:48].mean(0)) / FAR[:48].std(0), FAR, "zscore", {}, "statistics are of the first 48 of 60", id="split far off"),
    ],
)  # fmt: skip
def test_the_cause_is_said_first(y, x, norm, options, cause):
    told = check(np.asarray(y, x.dtype), x, norm, **options).diagnosis
    assert told.cause.startswith(f"{norm} differs: {cause}")


@pytest.mark.parametrize(
    ("y", "x", "norm", "options", "also", "step"),
    [
        pytest.param(ln(X[:1]) * 0.3, X[:1], "ln", {}, "the divisor is wrong, the mean is right", None, id="one row"),
        pytest.param(X * RNG.uniform(0.5, 1, 50) + 1, X, "bn", EVALUATED, "y has a gamma and a beta that were not given", "give --gamma and --beta", id="evaluated"),
    ],
)  # fmt: skip
def test_what_tells_as_much_is_said_too(y, x, norm, options, also, step):
    told = check(np.asarray(y, "f4"), x, norm, **options).diagnosis
    assert also in told.alternatives
    assert told.next_step == step


def test_half_precision_summed_with_a_residual_is_judged_as_such():
    x, residual = (values.astype("f2") for values in (X, Z))
    y = normalize(x, "rms", residual=residual).normalized
    assert check(*(values.astype("f4") for values in (y, x)), "rms", residual=residual.astype("f4")).ok


def test_in_half_precision_an_eps_that_gives_every_bit_outweighs_a_fault_that_rounding_allows():
    x = np.random.default_rng(5).normal(10.0, 1.0, (32, 256)).astype("f2")  # eps · max² is about as far off
    said = check(outside(x, 1e-3), x, "ln").diagnosis
    assert said.cause == "ln differs: eps is 0.001 outside the root, not 1e-05"
    assert said.evidence == ("with that, every value is the exact one, rounded",)


def test_beside_a_gate_no_rounding_is_called_a_sum_in_half_precision():
    rng = np.random.default_rng(21)
    x, z = (rng.normal(0.0, spread, (16, 128)).astype("f2") for spread in (1.5, 2.0))
    gamma = rng.normal(1.0, 0.2, 128).astype("f2")
    given = {"gamma": gamma, "gate": z, "gate_order": "before", "eps": 1e-5, "max_ulp": 1}
    first = check(gamma * rms(x * silu(z)).astype("f2"), x, "rms", **given).diagnosis
    assert (first.cause, first.remedy) == (
        "rms agrees but for its bits: x̂ is rounded first (as mamba2)", "normcli rms … --like mamba2"
    )  # fmt: skip
    each = check((rms(x * silu(z).astype("f2")) * gamma).astype("f2"), x, "rms", **given).diagnosis
    assert each.cause == "rms differs: each step is rounded to float16 before the norm"  # and so it was


@pytest.mark.parametrize("spreads", [100, 300, 1000])
def test_an_eps_that_gives_every_bit_is_named_far_off_centre(spreads):
    x = np.random.default_rng(7).normal(spreads, 1.0, (6, 72)).astype("f4")
    mean = x.mean(1, keepdims=True)
    y = (x - mean) / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + np.float32(1e-3))
    assert check(y, x, "ln").diagnosis.cause == "ln differs: eps is 0.001, not 1e-05"


def test_so_is_one_with_which_all_values_of_half_precision_are_exact():
    x = np.random.default_rng(3).normal(300, 1.0, (4, 5, 4, 8)).astype("f2")
    y = normalize(x, "bn", eps=1e-3).normalized
    told = check(y, x, "bn", max_ulp=0.5).diagnosis
    assert told.cause == "bn differs: eps is 0.001, not 1e-05"
    assert told.evidence == ("with that, every value is the exact one, rounded",)


def test_one_factor_in_all_groups_is_no_cancellation_far_off_centre():
    x = np.random.default_rng(0).normal(300, 1.0, (6, 72)).astype("f4")
    y = (normalize(x, "ln").normalized.astype("f8") * 0.997).astype("f4")
    assert check(y, x, "ln").diagnosis.cause == "ln differs: y has a gamma of 0.997 everywhere"


def test_of_two_divisors_it_is_said_which_is_the_kernels():
    x = np.random.default_rng(0).normal(size=(4, 32)).astype("f4")
    y = (ln(x) / np.array([[1.0], [1.37], [1.0], [1.21]])).astype("f4")
    told = "the first divisor that differs: the kernel's is 1.32108, the exact one 0.964295"
    assert told in str(check(y, x, "ln"))
