"""First lines of verdicts on kernels that once were called something else."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.dtypes import find_type
from normcli.norms.plan import make_plan
from normcli.norms.request import Request


def draw(shape, mean=0.0, spread=1.0, seed=0):
    return np.random.default_rng(seed).normal(mean, spread, shape)


def standardize(x, axes=-1, eps=1e-5, square=None):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt((x.var(axes, keepdims=True) if square is None else square) + eps)


def divide(x, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def write_channels_last(x):
    return standardize(x, (0, 2, 3)).transpose(0, 2, 3, 1).reshape(x.shape)


def read_channels_last(x):
    shape = (len(x), *x.shape[2:], x.shape[1])
    return standardize(x, (0, 2, 3)).reshape(shape).transpose(0, 3, 1, 2)


def average_replicas(x):
    return standardize(x, (0, 2, 3), square=x.var((2, 3), keepdims=True).mean(0, keepdims=True))


def leave_unsynced(x):
    return np.concatenate([standardize(part, (0, 2, 3)) for part in np.split(x, 2)])


def stop_early(x):
    y = standardize(x)
    y[:, 10:] = 0.0
    return y


CASES = {
    "bn, but memory with channels last is read as channels first": (draw((2, 6, 4, 5)), write_channels_last),
    "bn, but memory with channels first is read as channels last": (draw((2, 6, 4, 5)), read_channels_last),
    "bn, but the variance is averaged over 2 parts of n": (draw((2, 8, 5, 7)), average_replicas),
    "bn, but statistics are of 2 parts along n, each by itself": (draw((4, 8, 5, 6), 30.0), leave_unsynced),
    "standard score over n, ddof 1, any eps up to": (draw((6, 96)), lambda x: (x - x.mean(0)) / x.std(0, ddof=1)),
    "ln, but y is 0 for c ≥ 10": (draw((3, 24, 40)), stop_early),
    "ln, but the mean is not subtracted": (
        draw((6, 100)), lambda x: x / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    ),
    "layer normalization over c, a gamma of 3.7 everywhere": (draw((6, 96)), lambda x: 3.7 * standardize(x)),
    "root mean square normalization over c, eps 0.0078125": (
        draw((6, 96), spread=0.2), lambda x: divide(x, 2.0**-7)
    ),
}  # fmt: skip
"""What `identify` says of y, after `y is `: x, and the kernel."""


@pytest.mark.all_quick
@pytest.mark.parametrize("words", CASES)
def test_the_kernel_is_named(words):
    x, kernel = CASES[words]
    told = normcli.identify(kernel(x).astype("f4"), x.astype("f4")).diagnosis
    assert told.cause.startswith(f"y is {words}"), told


@pytest.mark.parametrize(
    ("seed", "words"), [(0, "mean and divisor are rounded to bfloat16"), (4, "any eps up to 0.001")]
)
def test_a_divisor_rounded_to_half_precision_is_no_other_eps(seed, words):
    """As PyTorch's batch norm of bfloat16 tensors: the sum of squares is rounded, too."""
    short = find_type("bfloat16")
    x = draw((3, 6, 10, 10), seed=seed).astype(short)
    wide = x.astype("f8")
    mean, square = (part((0, 2, 3), keepdims=True) for part in (wide.mean, wide.var))
    summed = (300 * square).astype(short).astype("f8")
    rstd = (1.0 / np.sqrt(summed / 300 + 1e-5)).astype(short).astype("f8")
    y = (wide * rstd - mean.astype(short).astype("f8") * rstd).astype(short)
    assert words in normcli.identify(y, x).diagnosis.cause


def test_an_eps_that_half_precision_blurs_is_a_range():
    x = draw((3, 8, 72), 9.0, 0.3, seed=4).astype(find_type("bfloat16"))
    y = divide(x.astype("f8"), 2.0**-7).astype(x.dtype)
    cause = normcli.identify(y, x).diagnosis.cause
    low, high = map(float, cause.partition("eps ")[2].split(" to "))
    assert low <= 2.0**-7 <= high, cause


def test_a_nan_among_numbers_is_no_cancellation():
    x = draw((6, 96), 30.0, seed=3).astype(find_type("bfloat16"))
    y = standardize(x.astype("f8")).astype(x.dtype)
    y[1, 5] = np.nan
    assert normcli.identify(y, x).diagnosis.cause == "y is ln, but y is NaN for n=1, c=5"


def test_one_pass_is_no_fault_of_a_tensor_around_0():
    x = draw((8, 96), seed=2).astype("f4")
    formula = RowFormula.of(make_plan(Request("ln"), x.shape, x.dtype))
    for mean, fault in ((0.0, None), (300.0, "stats-one-pass")):
        moved = (x + mean).astype("f4")
        y = parse_computation("one-pass:float32").run(moved, formula, moved.dtype, (None, None))
        assert normcli.identify(y, moved).diagnosis.fault == fault


def test_gn_of_another_memory_order_is_no_rounding():
    """Gamma and beta are those of the channels; groups of the misread tensor are parts of its rows."""
    x, gamma, beta = draw((2, 8, 4, 5)), draw(8, 1.0, 0.2, 1), draw(8, seed=2)
    rows = x.transpose(0, 2, 3, 1).reshape(2, 2, -1)
    y = standardize(rows).reshape(2, 4, 5, 8).transpose(0, 3, 1, 2) * gamma[:, None, None] + beta[:, None, None]
    arrays = {"gamma": gamma.astype("f4"), "beta": beta.astype("f4")}
    y, x = y.astype("f4"), x.astype("f4")
    for told in (
        normcli.check(y, x, "gn", groups=2, **arrays).diagnosis,
        normcli.identify(y, x, **arrays).diagnosis,
    ):
        assert told.fault == "order-memory", told
        assert "memory with channels last is read as channels first" in told.cause


def test_a_reversed_gamma_of_channel_groups_is_named():
    x, gamma = draw((3, 8, 5, 4), 30.0), draw(8, 1.0, 0.5, 1).astype("f4")
    y = standardize(x.reshape(3, 2, -1)).reshape(x.shape) * gamma[::-1, None, None]
    told = normcli.check(y.astype("f4"), x.astype("f4"), "gn", groups=2, gamma=gamma).diagnosis
    assert told.cause == "gn differs: gamma is reversed"


def test_a_small_fault_of_ln_is_no_gn_of_other_axes():
    x, gamma, beta = (part.astype("f4") for part in (draw((8, 64), seed=4), draw(64, 1.0, 0.5, 5), draw(64)))
    short = find_type("bfloat16")
    x = x.astype(short)
    rounded = gamma.astype(short).astype("f8")
    y = (standardize(x.astype("f8")) * rounded + beta).astype(short)
    told = normcli.identify(y, x, gamma=gamma, beta=beta).diagnosis
    assert "gn" not in told.cause.split(), told


@pytest.mark.parametrize("ask", ["check", "identify"])
def test_a_factor_is_no_eps_where_the_divisors_of_all_groups_are_alike(ask):
    rng = np.random.default_rng(5)
    x, gamma, beta = (
        rng.normal(*part).astype("f4") for part in ((300, 1, (8, 48)), (1, 0.5, 48), (0, 0.5, 48))
    )
    y = (divide(x.astype("f8")) / 1.001 * gamma + beta).astype("f4")
    arguments = (y, x, *(("rms",) if ask == "check" else ()))
    told = getattr(normcli, ask)(*arguments, gamma=gamma, beta=beta).diagnosis
    assert told.fault == "affine-constant", told
    assert "multiplied by 0.999001" in told.cause


def test_groups_of_a_part_of_a_large_tensor_are_no_other_axes():
    x = draw((60_000, 3)).astype("f4")
    told = normcli.check((1.01 * standardize(x.astype("f8"))).astype("f4"), x, "ln").diagnosis
    assert "axes" not in told.cause, told
    assert "1.01" in told.cause


@pytest.mark.parametrize("kind", ["f4", "bfloat16"])
@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_few_values_that_are_cut_off_are_no_exceptions_of_a_map(kind, mean):
    """Which values are wrong is evidence: all beyond the bounds, and no other."""
    x = draw((6, 96), mean, seed=15).astype(find_type(kind))
    y = standardize(x.astype("f8")).clip(-2, 2).astype(x.dtype)
    assert normcli.identify(y, x).diagnosis.cause == "y is ln, but values are cut off beyond -2 and 2"


def test_relu_of_one_negative_channel_is_no_zeroed_channel():
    x, beta = draw((8, 64), seed=3).astype("f4"), np.full(64, 6.0, "f4")
    beta[43] = -8.0
    y = np.maximum(standardize(x.astype("f8")) + beta, 0.0).astype("f4")
    assert normcli.check(y, x, "ln", beta=beta).diagnosis.fault == "after-relu"


def test_a_border_of_zeros_is_named():
    x = draw((7, 5, 8, 8), 2.0, seed=6).astype("f4")
    y = standardize(x.astype("f8"), (0, 2, 3)).astype("f4")
    inner = np.zeros_like(y)
    inner[..., 1:-1, 1:-1] = y[..., 1:-1, 1:-1]
    assert normcli.check(inner, x, "bn").diagnosis.cause == "bn differs: y is 0 for h=0, 7 or w=0, 7"


def test_parts_of_unequal_length_that_count_alike_are_named():
    """Statistics of ranks with 5 and 3 samples, averaged without weights."""
    x = draw((8, 4, 6, 6), 1.0, seed=7)
    parts = x[:5], x[5:]
    mean, square = (
        sum(moment.mean((0, 2, 3), keepdims=True) for moment in moments) / 2.0
        for moments in (parts, [part**2 for part in parts])
    )
    y = (x - mean) / np.sqrt(square - mean**2 + 1e-5)
    told = normcli.check(y.astype("f4"), x.astype("f4"), "bn").diagnosis
    assert told.cause == "bn differs: unequal parts of n, 5 and 3, count alike"


@pytest.mark.parametrize("offset", [0, 1])
def test_exchanged_parts_of_an_adaptive_norm_are_named(offset):
    x, scale, shift = draw((3, 5, 32), seed=4), draw((3, 1, 32), 0.0, 0.3, 5), draw((3, 1, 32), 0.0, 0.3, 6)
    y = (standardize(x) * (1.0 + shift) + scale).astype("f4")
    arrays = {"gamma": (1 - offset + scale).astype("f4"), "beta": shift.astype("f4"), "gamma_offset": offset}
    told = normcli.check(y, x.astype("f4"), "ln", feature_axes="BD", layout="BLD", **arrays).diagnosis
    assert told.fault == "affine-swapped", told


def test_a_number_added_to_gamma_is_named():
    x, gamma = draw((6, 64), seed=12).astype("f4"), draw(64, 1.0, 0.3, 13).astype("f4")
    y = (standardize(x.astype("f8")) * (gamma + 1e-3)).astype("f4")
    assert normcli.check(y, x, "ln", gamma=gamma).diagnosis.cause == "ln differs: 0.001 is added to gamma"


@pytest.mark.parametrize("factor", [0.9997, 0.997])
def test_a_factor_far_off_centre_is_told_from_rounding_and_cancellation(factor):
    """Sums of squares that cancel would scatter from group to group; and with the factor, most values are exact."""
    x = draw((12, 64), 300.0, seed=307).astype("f4")
    y = (standardize(x.astype("f8")) * factor).astype("f4")
    assert normcli.identify(y, x).diagnosis.cause.endswith(f"over c, a gamma of {factor} everywhere")
    gamma = np.ones(64, "f4")
    told = normcli.check(y, x, "ln", gamma=gamma).diagnosis
    assert told.cause == f"ln differs: every value is multiplied by {factor}"


def test_a_map_with_a_term_may_be_a_norm_without_mean():
    x = draw((12, 64), 300.0, seed=307).astype(find_type("bfloat16"))
    told = normcli.identify(divide(x.astype("f8")).astype(x.dtype), x).diagnosis
    assert "root mean square normalization" in told.alternatives
    assert not any("255" in other for other in told.alternatives)


def test_identify_takes_a_residual():
    x, residual = draw((6, 64)).astype("f4"), draw((6, 64), seed=1).astype("f4")
    y = standardize(x.astype("f8") + residual).astype("f4")
    assert normcli.identify(y, x, residual=residual).found.matches[0].norm == "ln"
    assert not normcli.identify(y, x)


def test_another_gamma_than_the_given_one_is_named_with_an_eps_that_is_no_default():
    x, gammas = draw((2, 4, 12, 8)), draw((2, 8), 1.0, 0.3, 1).astype("f4")
    y = (divide(x, 1e-6) * gammas[0]).astype("f4")
    told = normcli.identify(y, x.astype("f4"), gamma=gammas[1]).diagnosis
    assert told.cause == "y is rms, but another gamma is used at all 8 indices"


@pytest.mark.parametrize(("norm", "axes"), [("ln", -1), ("bn", 0)])
@pytest.mark.parametrize("dtype", ["f4", "bfloat16"])
def test_gamma_along_another_axis_of_its_length_is_no_rounding(norm, axes, dtype):
    x = draw((16, 16), 3.0, seed=5).astype(find_type(dtype))
    gamma, beta = draw(16, 1.0, 0.3, 6).astype("f4"), draw(16, 0.0, 0.3, 7).astype("f4")
    y = (standardize(x.astype("f8"), axes) * gamma[:, None] + beta[:, None]).astype(x.dtype)
    told = normcli.check(y, x, norm, gamma=gamma, beta=beta).diagnosis
    assert told.cause == f"{norm} differs: gamma and beta are taken along n, not c"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda squares: np.roll(squares.mean(-1, keepdims=True), 1, 0), "stats-other-row"),
        (lambda squares: squares[:, :992].sum(-1, keepdims=True) / 1024, "stats-tail-skipped"),
    ],
)
def test_long_rows_of_half_precision_have_no_sums_of_it_where_a_fault_is_listed(change, fault):
    """A mean of 0 is no evidence of half precision; and values that are alike but for a power of two round alike."""
    x = draw((8, 1024), seed=3).astype(find_type("bfloat16"))
    wide = x.astype("f8")
    y = (wide / np.sqrt(change(wide**2) + 1e-5)).astype(x.dtype)
    assert normcli.check(y, x, "rms").diagnosis.fault == fault


def test_a_row_that_rounds_to_x_is_no_copy():
    x = draw((4, 4096), seed=1).astype(find_type("bfloat16"))
    wide = x.astype("f8")
    y = (wide / np.sqrt((wide[:, :3968] ** 2).sum(-1, keepdims=True) / 4096)).astype(x.dtype)
    told = normcli.check(y, x, "rms").diagnosis
    assert not any("y is x" in line for line in (told.cause, *told.evidence)), told


@pytest.mark.parametrize(
    ("others", "cause"),
    [
        pytest.param([0.9], "gamma[0] is", id="few"),
        pytest.param([0.9, 1.1, 1.2], "the divisor is wrong, the mean is right", id="most"),
        pytest.param([0.9, 1.1, 1.2, 0.8], "the divisor is wrong, the mean is right", id="all"),
    ],
)
def test_where_most_channels_are_wrong_the_divisor_is_likelier_than_the_given_gamma(others, cause):
    x, gamma = draw((8, 4, 5, 5), 2.0).astype("f4"), draw(4, 1.0, 0.3, 6).astype("f4")
    factors = np.array([*others, 1.0, 1.0, 1.0])[:4, None, None]
    y = (standardize(x.astype("f8"), (0, 2, 3)) * gamma[:, None, None] / factors).astype("f4")
    told = normcli.check(y, x, "bn", gamma=gamma).diagnosis
    assert told.cause.startswith(f"bn differs: {cause}")


def test_a_small_term_far_off_centre_is_said_as_such():
    x = draw((4, 32, 32), 300.0).astype("f4")
    y = (standardize(x.astype("f8")) + 2e-3).astype("f4")
    assert normcli.check(y, x, "ln").diagnosis.cause == "ln differs: 0.002 is added to every value"
    assert normcli.identify(y, x).diagnosis.cause == "y is layer normalization over l, a fitted gamma and beta"


def test_a_norm_without_mean_shows_no_mean_of_half_precision():
    """0 is a number of any dtype: the statistics of every second lane are no sums in bfloat16."""
    x = draw((8, 1024), seed=3).astype(find_type("bfloat16"))
    wide = x.astype("f8")
    y = (wide / np.sqrt((wide[:, ::2] ** 2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)
    assert "added in" not in normcli.check(y, x, "rms").diagnosis.cause
