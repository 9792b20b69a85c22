"""Every element and every statistic, held to the last bit against exact arithmetic.

Every element and every statistic is the exact one, rounded once, at any conditioning.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normcli import normalize
from tests.marks import sampled, slowly
from tests.reference.limits import ELEMENT, STATISTIC
from tests.reference.measuring import measure_result
from tests.strategies import GROUPED, SCALERS

pytestmark = pytest.mark.usefixtures("either_kernel")


def over_rows(norm: str) -> dict[str, object]:
    """What a norm must be told for the rows of a matrix to be its groups."""
    return {"groups": 1} if norm == "gn" else {"axes": 1}


CASES = {name: (name, over_rows(name)) for name in GROUPED} | {
    "ln outside": ("ln", {"eps_mode": "outside"}),
    "ln without eps": ("ln", {"eps": 0.0}),
    "ln ddof": ("ln", {"ddof": 1}),
    "rms outside": ("rms", {"eps_mode": "outside"}),
    "l1": ("l1", {}),
    "lp 0": ("lp", {"p": 0.0}),
    "lp 0.5": ("lp", {"p": 0.5}),
    "lp 3": ("lp", {"p": 3.0}),
    "lp inf": ("lp", {"p": np.inf}),
}
"""Every norm that has groups, by itself, and what else its arithmetic can be asked for."""

OPTIONAL = {
    "zscore no mean": ("zscore", {"no_mean": True}),
    "zscore no scale": ("zscore", {"no_scale": True}),
    "robust no scale": ("robust", {"no_scale": True}),
    "the ends": ("robust", {"quantiles": (0, 100)}),
    "on one side": ("robust", {"quantiles": (60, 97.5), "no_mean": True}),
    "thousandths": ("robust", {"quantiles": (0.001, 99.9)}),
}
"""What scikit-learn's scalers can be told."""


def make(kind: str, rows: int, n: int, seed: int = 0) -> np.ndarray:
    """Rows of values that are hard to sum, to centre or to square."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, n))
    if kind.startswith("mean "):
        return x + float(kind.split()[1])
    if kind.startswith("scale "):
        return x * float(kind.split()[1])
    if kind == "mixed":
        return x * 10.0 ** rng.uniform(-12, 12, x.shape)
    if kind == "cancelling":
        x *= 10.0 ** rng.uniform(-8, 8, x.shape)
        half = n // 2 * 2
        x[:, 1:half:2] = -x[:, 0:half:2] * (1 + 1e-7 * rng.standard_normal((rows, n // 2)))
        return x
    if kind == "near the mean":
        x[:, ::3] = 5.0 + 1e-9 * x[:, ::3]
        x[:, 1::3] = 5.0 - 1e-9 * x[:, 1::3]
        return x
    if kind == "outlier":
        x[:, n // 2] = 1e6
        return x
    if kind == "all but one":  # nearly every value lies so near the mean that the mean's last bits decide
        x[...] = 1e6
        x[:, 0] += 0.0625
        return x
    if kind == "integers":
        return np.round(x * 4)
    if kind == "relu":
        return np.maximum(x, 0.0)
    return x


def check(result, case: object = "") -> None:
    worst, statistics = measure_result(result)
    assert worst <= ELEMENT, case
    assert max(statistics.values()) <= STATISTIC, (case, statistics)


KINDS = [
    *("all but one", "normal", "mean 1e3", "mean 1e6", "mixed", "cancelling", "near the mean", "outlier"),
    *("integers", "relu"),
]
WIDE_KINDS = [*KINDS, "mean 1e9", "mean 1e12", "mean 1e15", "scale 1e-20", "scale 1e160", "scale 1e-160", "scale 1e300",
              "scale 1e-300"]  # fmt: skip


HARD = {"ln": ("ln", {})} | {name: (name, {}) for name in SCALERS} | OPTIONAL


@pytest.mark.slow
@sampled
@pytest.mark.parametrize("n", [5, *slowly([1, 2, 3, 4, 34, 500])])
@pytest.mark.parametrize("case", HARD)
def test_rows_that_are_hard_to_sum(case, n):
    norm, options = HARD[case]
    for kind in WIDE_KINDS:
        check(normalize(make(kind, 2, n), norm, axes=1, **options), kind)
    for kind in KINDS:
        check(normalize(make(kind, 2, n).astype(np.float32), norm, axes=1, **options), (kind, "float32"))


@pytest.mark.parametrize("norm", SCALERS)
@pytest.mark.parametrize("scale", [1.7e308, 1e-323, 1.0])
def test_scalers_of_values_at_the_ends_of_float64(norm, scale):
    x = np.array([[-1.0, 1.0, 0.5, -0.75], [1.0, 0.25, 1.0, -1.0], [1.0, 1.0, 1.0, 1.0]]) * scale
    worst, statistics = measure_result(normalize(x, norm, axes=1))
    assert worst <= ELEMENT
    assert max(statistics.values()) <= STATISTIC


def test_an_outlier_beyond_the_quartiles_range_keeps_its_value():
    x = np.array([[1e-310, 2e-310, 4e-310, 5e-310, 1e-300], [1e300, 2e300, 3e300, -4e300, 1.7e308]])
    worst, _ = measure_result(normalize(x, "robust", axes=1))
    assert worst <= ELEMENT


OTHER_KINDS = ("mean 1e3", "mixed", "normal", "scale 1e-20")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("dtype", "kinds"),
    [
        pytest.param("float64", OTHER_KINDS[:2], id="float64"),
        *slowly(
            [
                pytest.param("float64", OTHER_KINDS[2:], id="float64, other values"),
                pytest.param("float32", OTHER_KINDS, id="float32"),
                pytest.param(ml_dtypes.bfloat16, OTHER_KINDS, id="bfloat16"),
            ]
        ),
    ],
)
def test_every_norm(name, dtype, kinds):
    norm, options = CASES[name]
    for kind in kinds:
        check(normalize(make(kind, 2, 40).astype(dtype), norm, **options), kind)


@pytest.mark.parametrize(
    "scales",
    [
        pytest.param((1e-310, 1e300), id="beyond"),
        *slowly([pytest.param((1e-200, 1e-160, 1e160, 1e200), id="near")]),
    ],
)
@pytest.mark.parametrize("name", [*GROUPED, "l1", "lp 3"])
def test_no_overflow_or_underflow_that_the_exact_result_does_not_have(name, scales):
    norm, options = CASES[name]
    for scale in scales:
        result = normalize(make("normal", 2, 70) * scale, norm, **options)
        worst, _ = measure_result(result)
        assert worst <= ELEMENT, scale
        assert np.isfinite(result.normalized).all(), scale


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e15 / 3, -7.7e300])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_constant_group_has_a_variance_of_exactly_zero(value, axis):
    for count in (3, 7, 10, 100, 10_000):
        shape = (count, 2) if axis == 0 else (2, count)
        result = normalize(np.full(shape, value), "ln", axes=axis)
        assert (result.mean == value).all(), count
        assert (result.var == 0.0).all(), count
        assert (result.normalized == 0.0).all(), count


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("norm", ["ln", "gn", "rms"])
def test_a_tie_goes_to_even_and_what_is_hardly_less_does_not(norm, dtype):
    """Of two values ±s, x̂ is ±1 without eps, and nearer to 0 by eps / 2s² with it: by 2⁻²¹⁷ of the largest s."""
    last = float(ml_dtypes.finfo(dtype).eps)
    sizes = np.array([1.0, 2.0**7, 2.0**50, 2.0**100])
    sizes = sizes[: {"float16": 2, "float64": 4}.get(np.dtype(dtype).name, 3)]
    x = np.stack([-sizes, sizes], axis=1).astype(dtype)
    half, odd = np.array([-last / 2, last / 2]), 1.0 + last
    for gamma, eps, wanted in (
        (half, 0.0, 1.0 + 2 * last),
        (half, 1e-5, odd),
        (-half, 0.0, 1.0),
        (-half, 1e-5, odd),
    ):
        found = normalize(x, norm, eps=eps, gamma=gamma, beta=np.full(2, odd), **over_rows(norm)).normalized
        np.testing.assert_array_equal(found.astype(np.float64), np.full(x.shape, wanted))


def test_a_value_beside_a_mean_that_no_doubles_hold_is_not_zero():
    """The middle of 2⁻¹⁰⁷⁴ and 1 is 2⁻¹⁰⁷⁵ above 1/2."""
    found = normalize(np.array([[2.0**-1074], [1.0], [0.5]]), "midrange").normalized
    np.testing.assert_array_equal(found[:, 0], [-1.0, 1.0, -(2.0**-1074)])


@pytest.mark.parametrize(
    ("dtype", "last"), [("float32", 2.0**-23), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)]
)
@pytest.mark.parametrize("size", [1.0, 2.0**7])
def test_a_product_far_below_beta_tells_on_which_side_of_a_tie_the_sum_is(dtype, last, size):
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    tie = size * (1.0 + last / 2)
    for gamma in (5e-324, -1e-300):
        parameters = {"gamma": np.full(2, gamma), "beta": np.full(2, tie)}
        found = normalize(np.array([[-1.0, 1.0]]), "ln", eps=0.0, dtype=dtype, axes=1, **parameters).normalized
        wanted = [size, size * (1.0 + last)]
        np.testing.assert_array_equal(found[0].astype(np.float64), wanted if gamma > 0.0 else wanted[::-1])
