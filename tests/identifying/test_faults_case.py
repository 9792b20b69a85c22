"""What a norm should have made, the line that y shows instead, and how far rounding may take values."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
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
        scale = 1.0 if dtype == "float16" else 10.0 ** rng.integers(-3, 4)
        x = (rng.normal(mean, 1.0, shape) * scale).astype(find_type(dtype))
        gamma, beta = draw_affine(shape[1], number)
        w = x.astype(wide)
        with np.errstate(all="ignore"):
            root = np.sqrt(KERNELS[kernel](w, -1) + w.dtype.type(1e-5))
            y = (w - w.mean(-1, keepdims=True)) / root * gamma.astype(wide) + beta.astype(wide)
        if x.astype("f8").std(-1).min() > 0.0:
            assert open_("ln", x, y.astype(x.dtype), gamma, beta).differs.sum() == 0, (shape, mean, number)


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
