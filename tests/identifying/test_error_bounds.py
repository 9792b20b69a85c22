"""A group that is constant, nearly so, or not finite excuses no value in it, and what kernels leave there is no error."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from normcli.identifying.identify import identify
from normcli.identifying.question import Kind, Question
from normcli.identifying.words.phrasing import diagnose
from tests.marks import EVERY_CASE, costly, sampled

ODD = {
    "3": lambda _, n: np.full(n, 3.0),
    "3.1": lambda _, n: np.full(n, 3.1),
    "1000.3": lambda _, n: np.full(n, 1000.3),
    "0": lambda _, n: np.zeros(n),
    "about 3": lambda rng, n: 3.0 + 1e-6 * rng.normal(size=n),
    "about 1000": lambda rng, n: 1000.0 + 1e-4 * rng.normal(size=n),
    "one last place": lambda _, n: np.where(np.arange(n) == 1, 3.0000002, 3.0),
    "subnormal": lambda rng, n: 1e-42 * rng.normal(size=n),
    "normal": lambda rng, n: rng.normal(size=n),
    "one NaN": lambda rng, n: np.where(np.arange(n) == 0, np.nan, rng.normal(size=n)),
    "NaN": lambda _, n: np.full(n, np.nan),
    "one infinity": lambda rng, n: np.where(np.arange(n) == n - 1, np.inf, rng.normal(size=n)),
    "two infinities": lambda rng, n: np.where(
        np.arange(n) < 2, [[-np.inf], [np.inf]][n % 2], rng.normal(size=n)
    ),
}
"""A group of n values."""

WRONG = {
    "anything": lambda rng, y: np.resize([9.0, -7.0, 5.0], len(y)),
    "noise": lambda rng, y: rng.normal(size=len(y)),
    "0.5": lambda rng, y: np.full(len(y), 0.5),
    "0.1": lambda rng, y: np.full(len(y), 0.1),
    "negative": lambda rng, y: np.where(np.abs(y) > 0.1, -y, y - 0.3),
    "one value": lambda rng, y: np.where(np.arange(len(y)) == 0, np.nan_to_num(y, nan=1.0) + 0.2, y),
    "NaN": lambda rng, y: np.full(len(y), np.nan),
    "one NaN": lambda rng, y: np.where(np.arange(len(y)) == len(y) // 2, np.where(np.isnan(y), 7.0, np.nan), y),
}
"""What stands in that group instead of y."""

KERNELS = {
    "2x3": ((2, 3), "float32", True, 1e-5, None),
    "7x7": ((7, 7), "float32", True, 1e-5, None),
    "eps 1e-12": ((13, 61), "float32", True, 1e-12, None),
    "no eps": ((6, 4), "float32", True, 0.0, None),
    "float64": ((7, 13), "float64", True, 1e-5, None),
    "float16": ((7, 13), "float16", True, 1e-5, None),
    "rms": ((7, 13), "float32", False, 1e-6, None),
    "pairs": ((29, 2), "float32", True, 1e-5, None),
    "gamma": ((8, 16), "float32", True, 1e-5, "given"),
    "hidden gamma": ((23, 13), "float32", True, 1e-5, "hidden"),
}
"""Most are of prime lengths, which have few ways of grouping: the shape, the dtype, whether the mean is subtracted, eps, and where gamma and beta are."""


def standardize(x, eps, *, centred):
    """The formula in float64, with 0 for 0 / 0."""
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        rest = wide - (wide.mean(1, keepdims=True) if centred else 0.0)
        y = rest / np.sqrt((rest**2).mean(1, keepdims=True) + eps)
    return np.where(rest == 0.0, 0.0, y)


def plant(shape, dtype, centred, eps, affine, odd, wrong):
    """Return a question about y that is right but in one odd group; None where that is right as well."""
    name = f"{shape} {dtype} {centred} {eps} {affine} {odd} {wrong}"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    x = rng.normal(rng.normal(), 1.0, shape)
    place = int(rng.integers(shape[0]))
    x[place] = ODD[odd](rng, shape[1])
    with np.errstate(all="ignore"):
        x = x.astype("f2" if dtype == "float16" else "f4" if dtype == "float32" else "f8")
        true = standardize(x, eps, centred=centred)
        y = true.copy()
        y[place] = WRONG[wrong](rng, true[place])
        gamma, beta = rng.normal(1.0, 0.3, shape[1]), rng.normal(size=shape[1]) * centred
        if affine is not None:
            true, y = true * gamma + beta, y * gamma + beta
        given = (gamma, beta) if affine == "given" else (None, None)
        same = np.allclose(y.astype(dtype), true.astype(dtype), rtol=1e-2, atol=5e-3, equal_nan=True)
    return None if same else Question(x, y.astype(dtype), *given)


ASKED = [
    pytest.param(kernel, odd, row + place, id=f"{kernel}-{odd}")
    for row, kernel in enumerate(KERNELS)
    for place, odd in enumerate(ODD)
    if row == 0 or (row + place) % 5 == 0 or EVERY_CASE
]
"""The smallest kernel with every odd group, and each other with every fifth one; whose turn it is."""


@costly
@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "odd", "turn"), ASKED)
def test_nothing_wrong_in_an_odd_group_is_a_match(kernel, odd, turn):
    """Of what may be wrong, every other is tried where tensors are smallest, and one elsewhere, in turn."""
    first = turn // 2 % len(WRONG)
    questions = {wrong: plant(*KERNELS[kernel], odd, wrong) for wrong in [*WRONG][first:] + [*WRONG][:first]}
    asked = {wrong: question for wrong, question in questions.items() if question is not None}
    assert len(asked) > len(WRONG) // 2
    for wrong in [*asked][:: 1 if EVERY_CASE else 2] if kernel == "2x3" else [*asked][:1]:
        found = identify(asked[wrong])
        assert found.kind is not Kind.NORM, (wrong, diagnose(found).sentence)


@pytest.mark.costly
@pytest.mark.parametrize("constant", [3.0, 3.1])
def test_what_is_wrong_in_a_constant_group_is_said(constant):
    x = np.random.default_rng(0).normal(size=(6, 3))
    x[1] = constant
    y = standardize(x, 1e-5, centred=True)
    y[1] = [9.0, -7.0, 5.0]
    assert diagnose(identify(Question(x, y))).cause == "y is ln, except for n=1"


@pytest.mark.slow
def test_what_is_wrong_where_x_is_not_finite_is_counted():
    x = np.random.default_rng(0).normal(size=(8, 16)).astype("f4")
    x[[2, 5], 3] = np.nan, np.inf
    y = standardize(x, 1e-5, centred=True).astype("f4")
    assert identify(Question(x, y)).kind is Kind.NORM
    y[2, 7:9] = 0.0
    found = identify(Question(x, y))
    assert diagnose(found).cause == "y is ln, except for n=2, c=7 … 8"


@pytest.mark.slow
def test_a_root_mean_square_with_an_infinity_leaves_zeros():
    x = np.random.default_rng(0).normal(size=(8, 16)).astype("f4")
    x[3, 3] = np.inf
    y = standardize(x, 1e-6, centred=False).astype("f4")
    assert (y[3] == 0.0).sum() == 15
    assert identify(Question(x, y), "rms").matches
    for value in (0.25, np.nan, np.inf):
        y[3, 4] = value
        assert not identify(Question(x, y), "rms").matches


# -- kernels: what they leave of a mean that they rounded is no error


def mean_in_turn(x):
    """The mean of each row, summed from left to right in its own dtype."""
    return np.add.accumulate(x, axis=1, dtype=x.dtype)[:, -1:] / x.dtype.type(x.shape[1])


@pytest.mark.slow
@costly
@sampled
@pytest.mark.parametrize("odd", ["3", "3.1", "0", "about 3", "about 1000", "one last place"])
@pytest.mark.parametrize(("shape", "eps"), [((8, 16), 1e-5), ((24, 67), 1e-3), ((3, 769), 1e-5)])
def test_the_noise_of_a_rounded_mean_is_a_match(odd, shape, eps):
    rng = np.random.default_rng(1)
    x = rng.normal(0.7, 2.0, shape)
    x[1] = ODD[odd](rng, shape[1])
    x = x.astype("f4")
    rest = x - mean_in_turn(x)
    y = rest / np.sqrt(mean_in_turn(rest * rest) + np.float32(eps))
    match = identify(Question(x, y), "ln").matches[0]
    assert (match.axes, match.eps_range[0] <= eps <= match.eps_range[1]) == ((1,), True)


@pytest.mark.slow
def test_zeros_are_no_window():
    x = np.random.default_rng(3).normal(size=(5, 7, 3))
    square = x * x
    y = x / np.sqrt(1.0 + sum(np.pad(square, ((0, 0), (1, 1), (0, 0)))[:, k : k + 7] for k in range(3)) / 3.0)
    assert identify(Question(x, y)).matches[0].norm == "lrn"
    y[2, 3] = 0.0
    assert identify(Question(x, y)).kind is not Kind.NORM
