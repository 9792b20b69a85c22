"""Where y is not finite, or 0, x and gamma may show which step made it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.dtypes import find_type
from normcli.engine.inputs import Inputs
from normcli.library.judging import identify
from tests.conftest import pose
from tests.identifying.faulty import diagnose_exactly, draw, draw_affine, plan, standardize
from tests.marks import costly, sampled

X = draw((6, 16))
G, B = draw_affine(16)


def fill(index, value, x=X, gamma=1.0, beta=0.0):
    y = standardize(x) * gamma + beta
    y[index] = value
    return y


def tell(x, y, gamma=None, beta=None, norm="ln", **options):
    subject = pose(plan(norm, x, **options), x, Inputs(gamma, beta))
    return diagnose_exactly(subject, np.asarray(y, x.dtype))


@costly
@pytest.mark.all_tried
@pytest.mark.parametrize(
    ("index", "value", "cause"),
    [
        pytest.param((3, 5), np.nan, "y is NaN for n=3, c=5", id="a value"),
        pytest.param(
            ([1, 4], [5, 9]), -np.inf, "y is infinite for 2 values, the first at (1, 5)", id="two values"
        ),
        pytest.param(3, [np.nan, np.inf] * 8, "y is infinite or NaN for n=3", id="both in a row"),
    ],
)
def test_values_that_are_not_finite_are_said(index, value, cause):
    assert tell(X, fill(index, value)).cause == f"ln differs: {cause}"


def spoil(row):
    x = X.copy()
    x[2] = row
    return x


NEAR = 3000 + np.linspace(0, 0.01, 16)
ODD = np.where(np.arange(16) == 4, np.inf, G).astype("f4")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("x", "index", "value", "gamma", "clause", "remedy"),
    [
        pytest.param(spoil(NEAR), 2, np.nan, G, "E[x²] − E[x]² may be negative for n=2", "take squares of x − mean", id="one pass"),
        pytest.param(spoil(2.0), 2, np.nan, G, "x is constant for n=2", "add eps to the variance", id="no eps"),
        pytest.param(X, np.s_[:, 4], np.nan, ODD, "gamma is not finite for c=4", "find what made gamma", id="gamma"),
    ],
)  # fmt: skip
def test_what_made_them_is_said_where_x_or_gamma_show_it(x, index, value, gamma, clause, remedy):
    gamma, beta = gamma.astype(x.dtype), B.astype(x.dtype)
    with np.errstate(all="ignore"):
        told = tell(x, fill(index, value, x, np.nan_to_num(gamma, posinf=1.0), beta), gamma, beta)
    assert told.cause == f"ln differs: y is NaN, and {clause}"
    assert told.remedy == remedy


WIDE = draw((6, 16), mean=1.0)
FACTORS = {
    "every group": np.full((6, 1), 300.0),
    "some groups": np.where(np.arange(6) == 2, 300.0, 1.0)[:, None],
}


@pytest.mark.parametrize("where", FACTORS)
def test_squares_that_overflow_are_named_in_every_group_or_in_some(where):
    """Where gamma multiplies zeros, beta alone is left."""
    x, gamma, beta = (values.astype("f2") for values in (WIDE * FACTORS[where], G, B))
    with np.errstate(over="ignore"):
        over = np.isinf((x * x).max(-1, keepdims=True))
    told = tell(x, np.where(over, 0.0, standardize(x)) * gamma + beta, gamma, beta)
    assert (told.fault, told.remedy) == ("stats-overflow", "square and add in float32")
    assert told.cause == f"ln differs: x · x overflows float16 in {where}"


def test_a_sum_that_overflows_is_named_where_no_square_does():
    x = (draw((6, 16), mean=0.0) * 20 + 240).clip(-250, 250).astype("f2")
    assert (x.astype("f4") ** 2).max() < 65504 < (x.astype("f4") ** 2).sum(-1).min()
    told = tell(x, np.zeros(x.shape))
    assert told.cause == "ln differs: the sum of x · x overflows float16 in every group"


@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize(
    ("scale", "what", "where"),
    [(5e-5, "whole", "every group"), (2e-4, "each", "every group"), (1.5e-4, "whole", "some groups")],
)
def test_a_variance_that_underflows_is_said_to_be_0(scale, what, where, norm):
    x = (draw((16, 64), mean=0.0) * scale).astype("f2")
    wide = x.astype("f8")
    centred = wide - wide.mean(-1, keepdims=True) if norm == "ln" else wide
    square = centred**2 if what == "each" else (centred**2).mean(-1, keepdims=True)
    divisor = np.sqrt(square.astype("f2").astype("f8").mean(-1, keepdims=True) + 1e-8)
    told = tell(x, centred / divisor, norm=norm, eps=1e-8)
    names = {"ln": ("the variance", "(x − mean)²"), "rms": ("the mean square", "x · x")}[norm]
    assert (told.fault, told.remedy) == ("stats-underflow", "square and add in float32")
    assert told.cause == f"{norm} differs: {names[what == 'each']} underflows to 0 in float16, in {where}"


@pytest.mark.slow
def test_squares_that_float16_holds_do_not_underflow():
    x = draw((16, 64)).astype("f2")
    told = tell(x, standardize(x, eps=1e-3))
    assert told.fault == "stats-eps-other"


# -- sums in half precision

DTYPES = {name: np.dtype(find_type(name)) for name in ("float16", "bfloat16")}


@costly
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("norm", "algorithm"), [("ln", "one-pass"), ("ln", "two-pass"), ("ln", "tree"), ("rms", "one-pass")]
)
def test_sums_in_half_precision_are_named_by_their_algorithm(norm, algorithm, dtype):
    x = draw((64, 256)).astype(DTYPES[dtype])
    computation = parse_computation(f"{algorithm}:{dtype}")
    told = tell(x, computation.run(x, RowFormula.of(plan(norm, x)), x.dtype), norm=norm)
    assert told.cause == f"{norm} differs: sums are added in {dtype}, as {algorithm} does"
    assert (told.fault, told.remedy) == ("stats-half-sums", "accumulate in float32")


@pytest.mark.slow
def test_so_are_sums_in_an_order_that_is_not_known():
    x = np.random.default_rng(0).standard_normal((64, 1024)).astype("f2")

    def add(values):
        lanes = np.add.accumulate(values.reshape(64, 128, 8), axis=1, dtype=np.float16)[:, -1]
        return np.add.accumulate(lanes, axis=1, dtype=np.float16)[:, -1:]

    deviations = x - add(x) / np.float16(1024)
    told = tell(x, deviations / np.sqrt(add(deviations * deviations) / np.float16(1024) + np.float16(1e-5)))
    assert told.fault == "stats-half-sums"


def spoil_statistics(x, which):
    """Return the mean and variance of rows, in which a kernel that adds in float32 takes some values amiss."""
    mean, squares = x.mean(-1, keepdims=True), (x - x.mean(-1, keepdims=True)) ** 2
    if which == "warp":
        squares[..., 32:64] = 0.0
    square = squares.mean(-1, keepdims=True)
    row = np.arange(24) % 16 if which == "mod" else np.minimum(np.arange(24), 22 if which == "last" else 23)
    return mean[row], square[row]


@costly
@sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("which", "cause"),
    [
        pytest.param("last", "statistics are taken from n=22, used for n=23", id="a stale row"),
        pytest.param("mod", "statistics are taken from index n − 16 for n ≥ 16", id="stale rows"),
        pytest.param("warp", "sums leave out c=32 … 63", id="a warp left out"),
    ],
)
def test_exact_means_or_exact_groups_show_that_sums_are_not_in_half_precision(which, cause, dtype):
    x = np.random.default_rng(0).normal(1.2, 1.0, (24, 256)).astype(DTYPES[dtype])
    wide = x.astype("f4")
    mean, square = spoil_statistics(wide, which)
    assert tell(x, standardize(wide, mean=mean, square=square)).cause == f"ln differs: {cause}"


@pytest.mark.slow
def test_exact_sums_that_are_rounded_to_half_precision_are_not_sums_in_it():
    """ONNX's reference evaluator averages in float32, rounds to float16, and calculates the rest in it."""
    rng, f2 = np.random.default_rng(1), np.float16
    x, gamma, beta = rng.normal(8, 1, (8, 12, 7)), rng.normal(1, 0.3, 12), rng.normal(0, 0.5, 12)
    x, gamma, beta = (a.astype(f2) for a in (x, gamma, beta))
    mean, variance = x.mean(2, keepdims=True), x.var(2, keepdims=True)
    y = gamma[:, None] * (x - mean) / np.sqrt(variance + f2(1e-5)) + beta[:, None]
    told = identify(y, x, gamma=gamma, beta=beta, layout="NCL").diagnosis
    assert told.cause.startswith("y is nearly instance normalization over l")
    assert told.fault is None


@pytest.mark.slow
def test_where_other_groups_overflow_as_well_it_is_not_the_source():
    x = (X * 300).astype("f2")
    assert tell(x, fill(2, 0.0, x)).cause == "ln differs: y is 0 for n=2"


def test_padded_rows_of_zeros_are_called_so():
    x = np.where(np.arange(6)[:, None] < 4, X, np.float32(0.0))
    told = tell(x, np.where(x == 0.0, 0.0, standardize(x) * G + B), G, B)
    assert told.cause == "ln differs: y is 0, and x is constant for n ≥ 4"
    assert told.alternatives == ()
    assert told.remedy == "give --mask or --lengths if these values are padding"


def test_x_that_is_not_finite_is_evidence():
    x = spoil(np.nan)
    told = tell(x, fill(2, 0.5, np.nan_to_num(x)))
    assert told.cause == "ln differs: y is right, except for n=2"
    assert told.evidence[0] == "x is not finite there"


def test_all_of_y_is_nan():
    told = tell(np.repeat(np.arange(4.0), 8).reshape(4, 8), np.full((4, 8), np.nan))
    assert (told.cause, told.remedy) == ("ln differs: y is NaN, and x is constant", "add eps to the variance")


@pytest.mark.parametrize(
    ("norm", "value", "why", "square"),
    [
        pytest.param("ln", 2.5, "x is constant", "variance", id="ln"),
        pytest.param("rms", 0.0, "x is 0", "mean square", id="rms"),
    ],
)
def test_nan_of_a_group_without_eps_is_no_right_result(norm, value, why, square):
    x = spoil(value)
    mean = x.mean(-1, keepdims=True) if norm == "ln" else 0.0
    with np.errstate(invalid="ignore"):
        y = (x - mean) / np.sqrt(np.square(x - mean).mean(-1, keepdims=True))
    cause = f"y is NaN, and {why} for n=2"
    told = tell(x, y, norm=norm, eps=0.0)
    assert (told.cause, told.remedy) == (f"{norm} differs: {cause}", f"add eps to the {square}")
    assert identify(y, x).diagnosis.cause == f"y is {norm}, but {cause}"


@pytest.mark.parametrize(("norm", "shape"), [("ln", (40, 1)), ("bn", (1, 40))])
def test_a_variance_of_one_value_with_ddof_1_is_named(norm, shape):
    told = tell(draw(shape), np.full(shape, np.nan), norm=norm)
    assert (told.cause, told.fault) == (f"{norm} differs: ddof is 1, not 0", "stats-ddof")


# -- constant groups

CONSTANT = np.repeat(np.arange(4.0, dtype="f4")[:, None], 16, 1)


@pytest.mark.parametrize("given", [(CONSTANT + 1,), (np.random.default_rng(0).normal(size=(4, 16)), G, B)])
def test_constant_groups_show_nothing_of_the_norm(given):
    told = tell(CONSTANT, *given)
    assert told.cause == "ln differs: x is constant in every group"
    assert told.evidence == ("it shows nothing of the norm",)
    assert told.next_step.startswith("normcli generate --shape 4,16 ")


@pytest.mark.parametrize(
    ("y", "cause"),
    [
        pytest.param(np.zeros(16), "beta is not applied", id="no beta"),
        pytest.param(-B, "beta is subtracted", id="minus beta"),
        pytest.param(draw_affine(16, 9)[1], "another beta is used at all 16 indices", id="another beta"),
    ],
)
def test_but_a_wrong_beta(y, cause):
    assert tell(CONSTANT, np.broadcast_to(y, (4, 16)), G, B).cause == f"ln differs: {cause}"
