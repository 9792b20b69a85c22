"""Results that once were further off than is specified, each held against exact arithmetic."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normcli import normalize
from tests.marks import slowly
from tests.reference.limits import ELEMENT, STATISTIC
from tests.reference.measuring import measure_result

pytestmark = pytest.mark.usefixtures("either_kernel")


def check(result) -> None:
    errors = measure_result(result)
    assert errors.element <= ELEMENT
    assert max(errors.statistics.values()) <= STATISTIC, errors.statistics


def near_constant(count: int) -> np.ndarray:
    """A group of one value, but for one whose last bit differs."""
    x = np.full((1, count), -0.06178096064352026)
    x[0, count // 3] = np.nextafter(x[0, 0], 0.0)
    return x


def lay_extreme_leaf(columns: bool) -> np.ndarray:
    x = np.random.default_rng(3).standard_normal((4000, 2))
    x[10], x[20] = 1e200, -1e200
    return x if columns else np.ascontiguousarray(x.T)


CANCELLING = [1e30, 1e8, 1e-9, -1e30, -1e8]
SHIFTED = np.random.default_rng(10).standard_normal((66843, 16))[66838:] + 1.0

CASES = {
    "a mean of which all but the least cancels": ([CANCELLING], "ln", {"eps": 0.0}),
    "the same in columns": (np.array([CANCELLING] * 2).T, "zscore", {}),
    "antisymmetric": ([[3e200, -1e-200, 1.0, -1.0, 1e-200, -3e200]], "ln", {}),
    "a leaf of large values": (lay_extreme_leaf(columns=False), "ln", {}),
    "a leaf of large values in columns": (lay_extreme_leaf(columns=True), "zscore", {}),
    "a mean of 1, no eps": (SHIFTED, "ln", {"eps": 0.0}),
    "a mean of 1, zscore": (SHIFTED, "zscore", {"axes": 1}),
    "a mean of 1, robust": (SHIFTED, "robust", {"axes": 1}),
    "a mean of 1, minmax": (SHIFTED, "minmax", {"axes": 1}),
    "robust with a subnormal median": ([[-1.7e-322, -6.6e-85, 9.76e-85, -1.73e-322]], "robust", {"axes": 1}),
    "130 values, one of which differs": (near_constant(130), "ln", {}),
    "5,000 values, one of which differs": (near_constant(5000), "ln", {}),
    "5,000 values, one of which differs, no eps": (near_constant(5000), "ln", {"eps": 0.0}),
    "100,003 values, one of which differs, no eps": (near_constant(100_003), "ln", {"eps": 0.0}),
    "lp of a large p": ([[1e-290, 2e-290], [0.5, 1.0], [3.0, 4e200]], "lp", {"p": 511.0, "eps": 0.0}),
    "lp of p = 20": ([[1e-290, 2e-290], [0.5, 1.0], [3.0, 4e200]], "lp", {"p": 20.0, "eps": 0.0}),
    "lp of p = 100": ([[1e-290, 2e-290], [0.5, 1.0], [3.0, 4e200]], "lp", {"p": 100.0, "eps": 0.0}),
    "lp of p = 1e-5": ([[3.7], [0.1]], "lp", {"p": 1e-5, "eps": 0.0}),
    "lp of p = 0.01": ([[3.7, 1.9, 0.1]], "lp", {"p": 0.01, "eps": 0.0}),
    "lp of p = −1": ([[0.25, 3.0], [1.0, 0.0]], "lp", {"p": -1.0}),
    "lp of p = −∞": ([[0.25, -3.0], [1.0, 0.0]], "lp", {"p": -np.inf}),
    "lp of p = −2.5": ([[0.25, -3.0], [1e-300, 1e300]], "lp", {"p": -2.5}),
    "evaluation beyond the largest number": (
        [[1.7e308], [1.0]],
        "bn",
        {"running_mean": [-1.7e308], "running_var": [1e308]},
    ),
    "lrn of small values": ([[5.87e-21]], "lrn", {"exponent": 8.0, "k": 0.0, "size": 1, "alpha": 1.0}),
    "integers beyond 2⁵³": (np.array([[2**62 + 1, 2**62 + 2, 2**62 + 3, 2**62 + 4]]), "ln", {}),
    "integers just beyond 2⁵³": (np.array([[2**53 + 1, 2**53 + 2, 2**53 + 3]]).T, "zscore", {}),
    "unsigned integers": (np.array([[2**64 - 1, 2**64 - 3, 2**64 - 7]], np.uint64), "minmax", {"axes": 1}),
}


MANY = [name for name, (x, _, _) in CASES.items() if np.size(x) >= 5000]


@pytest.mark.parametrize("name", [*(name for name in CASES if name not in MANY), *slowly(MANY)])
def test_results_are_as_specified(name):
    x, norm, options = CASES[name]
    check(normalize(x, norm, **options))


@pytest.mark.parametrize(
    ("dtype", "values", "tie"),
    [
        pytest.param(ml_dtypes.bfloat16, [-51200, 53, 3584], 0.9375, id="bfloat16"),
        pytest.param("float32", [-0.5, 2.0**-25, 2.0**22 - 0.5], 2.0**-23, id="float32, down"),
        pytest.param("float32", [-0.5, 3 * 2.0**-25, 2.0**22 - 0.5], 2.0**-23 + 2.0**-45, id="float32, up"),
    ],
)
def test_ties_go_to_the_even_neighbour(dtype, values, tie):
    result = normalize(np.array([values], dtype), "minmax", axes=1)
    assert result.normalized[0, 1] == tie


@pytest.mark.parametrize("seed", range(4))
def test_gamma_and_beta_that_cancel(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, 64)) + rng.uniform(100, 256)
    gamma = rng.standard_normal(64)
    plain = normalize(x, "ln", gamma=gamma).normalized
    check(normalize(x, "ln", gamma=gamma, beta=-plain[seed]))


@pytest.mark.parametrize("seed", range(4))
def test_a_float64_beta_that_cancels_in_float32(seed):
    rng = np.random.default_rng(seed)
    x = np.full((2, 130), [[-0.06178096], [1e6]], "float32")
    x[[0, 1], [3, 5]] = np.nextafter(x[:, 0], np.float32(0))
    gamma = rng.standard_normal(130)
    plain = normalize(x, "ln", dtype="float64", gamma=gamma).normalized
    check(normalize(x, "ln", gamma=gamma, beta=-plain[seed % 2]))
