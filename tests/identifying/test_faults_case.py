"""What a norm should have made, the line that y shows instead, and how far rounding may take values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.identifying.faults.tables.parameters import recover_parameters
from normcli.identifying.faults.variant import Variant
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.numerics.statistics.solution import Given
from tests.identifying.faulty import draw, draw_affine, open_, standardize

X = draw((5, 40), "f8")
MEAN, DIVISOR = np.arange(1.0, 6.0)[:, None], np.linspace(0.5, 2.0, 5)[:, None]
GAMMA, BETA = draw_affine(40)


@pytest.mark.parametrize("zeros", [0, 3, 20])
@pytest.mark.parametrize("lost", [0, 7])
def test_a_line_through_y_shows_the_mean_and_the_divisor_of_each_group(zeros, lost):
    gamma = GAMMA.astype("f8")
    gamma[:zeros] = 0.0
    y = (X - MEAN) / DIVISOR * gamma + BETA
    y[2, 25 : 25 + lost] = np.nan
    used = open_("ln", X, y, gamma, BETA).used
    assert used.mean == pytest.approx(MEAN, rel=1e-9)
    assert used.divisor == pytest.approx(DIVISOR, rel=1e-9)


def test_a_norm_that_does_not_centre_has_a_line_through_zero_where_that_fits():
    assert open_("rms", X, X / DIVISOR).used.divisor == pytest.approx(DIVISOR)
    assert open_("rms", X, X / DIVISOR).used.mean == pytest.approx(0.0)
    assert open_("rms", X, (X - MEAN) / DIVISOR).used.mean == pytest.approx(MEAN)


def test_a_line_of_gamma_0_and_of_nothing_but_nan_is_not_there():
    assert np.isnan(open_("ln", X, X, np.zeros(40), BETA).used.divisor).all()
    assert not np.isfinite(open_("ln", X, X * np.nan).used.divisor).any()


@pytest.mark.parametrize("mode", ["inside", "outside"])
def test_the_eps_of_a_divisor_is_found_again(mode):
    case = open_("ln", X, X, eps_mode=mode, eps=0.03)
    assert case.unroot(case.divisor, case.square) == pytest.approx(0.03)
    assert case.root(case.square, 0.0) == pytest.approx(X.std(-1, keepdims=True))


def test_an_eps_that_is_a_floor_keeps_divisors_above_it():
    square = np.array([[4.0], [1e-8]])
    case = open_("ln", X[:2], X[:2])
    for mode, eps in ((EpsMode.FLOOR, 0.1), (EpsMode.SQUARE_FLOOR, 0.01)):
        floor = replace(case, plan=case.plan.change_spec(eps_mode=mode, eps=eps))
        assert floor.root(square) == pytest.approx(np.array([[2.0], [0.1]]))


def test_gamma_is_found_as_the_slope_of_each_feature():
    y = standardize(X) * GAMMA + BETA
    assert recover_parameters(open_("ln", X, y, GAMMA, BETA))[0].ravel() == pytest.approx(GAMMA, rel=1e-6)


@pytest.mark.parametrize("groups", [2, 3])
def test_an_axis_that_is_split_has_names_for_both_parts(groups):
    x = draw((2, 6, 7))
    case = open_("gn", x, x, groups=groups)
    assert [case.name_axis(axis) for axis in range(4)] == ["n", "group", "c of a group", "l"]


def test_running_statistics_stand_for_the_batchs():
    given = Given(np.arange(40.0), np.full(40, 4.0))
    case = open_("bn", X, X, given=given, eps=0.0)
    assert case.standardized == pytest.approx((X - np.arange(40.0)) / 2.0)


def test_norms_without_moments_are_what_normcli_makes_of_them():
    case = open_("minmax", X, X)
    assert not case.has_moments
    low, high = X.min(case.axes), X.max(case.axes)
    assert case.right.values == pytest.approx((X - low) / (high - low), abs=1e-9)


def test_nan_is_explained_by_nan_alone():
    y = standardize(X)
    y[0, 0] = np.nan
    case = open_("ln", X, y)
    assert case.differs.sum() == 1
    assert case.explains(case.predict(Variant(result=np.where(np.isnan(y), np.nan, y)))).all()


KERNELS = {
    "two passes": lambda x, axes: ((x - x.mean(axes, keepdims=True)) ** 2).mean(axes, keepdims=True),
    "var": lambda x, axes: x.var(axes, keepdims=True),
    "one pass": lambda x, axes: (x * x).mean(axes, keepdims=True) - x.mean(axes, keepdims=True) ** 2,
    "one after another": lambda x, axes: (
        np.add.accumulate(((x - x.mean(-1, keepdims=True)) ** 2), axis=-1, dtype=x.dtype)[..., -1:]
        / x.dtype.type(x.shape[-1])
    ),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_a_right_result_is_within_the_noise_of_sums(kernel, dtype):
    rng = np.random.default_rng(len(kernel))
    shapes = [(2, 3), (3, 5), (7, 33), (2, 768), (3, 1000), (2, 8192)]
    wide = "f8" if dtype == "float64" else "f4"
    for number in range(48):
        shape, mean = shapes[number % 6], (0.0, 1.0, 10.0, 300.0, 1000.0)[number % 5]
        mean = min(mean, 0.5) if kernel == "one pass" else mean
        x = (
            rng.normal(mean, 1.0, shape) * (1.0 if dtype == "float16" else 10.0 ** rng.integers(-3, 4))
        ).astype(find_type(dtype))
        gamma, beta = draw_affine(shape[1], number)
        w = x.astype(wide)
        with np.errstate(all="ignore"):
            root = np.sqrt(KERNELS[kernel](w, -1) + w.dtype.type(1e-5))
            y = ((w - w.mean(-1, keepdims=True)) / root * gamma.astype(wide) + beta.astype(wide)).astype(
                x.dtype
            )
        if x.astype("f8").std(-1).min() > 0.0:
            assert open_("ln", x, y, gamma, beta).differs.sum() == 0, (shape, mean, number)


def test_sums_of_rows_one_after_another_are_right():
    """NumPy adds the rows of a tall matrix so: 2^17 of them lose more than sums of halves."""
    x = np.random.default_rng(0).normal(2.0, 1.0, (1 << 17, 2)).astype("f4")
    y = (x - x.mean(0)) / np.sqrt(x.var(0) + np.float32(1e-5))
    assert not open_("bn", x, y).differs.any()


def test_a_plan_of_groups_that_interleave_has_them_in_the_view():
    x = draw((2, 6, 5), "f8")
    made = make_plan(Request("gn", groups=2, group_order="interleaved"), x.shape, x.dtype)
    view = x.reshape(made.grid.view_shape)
    y = standardize(view, made.grid.view_axes).reshape(x.shape)
    assert not open_("gn", x, y, groups=2, group_order="interleaved").differs.any()
    assert open_("gn", x, y, groups=2).differs.any()
