"""Right results on odd data, where other hypotheses fit as well: none is called wrong, and no cause is false."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, identify, normalize
from normcli.dtypes import find_type

rng = np.random.default_rng(0)


def draw(*shape):
    return np.random.default_rng(shape).exponential(1.0, shape).astype("f4")


def make(x, norm, **options):
    """Return the exact result, rounded once to the dtype of x."""
    return x, normalize(x, norm, **options).normalized.astype(x.dtype), options


def put_infinity(x):
    x[3, 4] = np.inf
    return x


ONE_HOT = np.eye(7, dtype="f4")[rng.integers(0, 7, 40)]
SMALL = (1e-3 * rng.uniform(-1, 1, (6, 24))).astype(find_type("bfloat16"))
GAMMA, BETA, ONES = draw(7), draw(7), np.ones(7, "f4")
PAIRS, PAIR = (
    np.arange(16.0, dtype="f4").reshape(8, 2),
    {"gamma": np.full(2, 0.7, "f4"), "beta": np.ones(2, "f4")},
)

IDENTIFIED = {
    "an eps beyond any rounding": (make(SMALL, "ln", eps=0.1), "y is layer normalization over c, eps 0.1"),
    "pairs": (make(PAIRS, "ln", **PAIR), "y may be layer normalization over c"),
    "one row of bn": (make(draw(1, 7), "bn", gamma=GAMMA, beta=BETA), "no norm can be identified: each group of bn has"),
    "groups of one value": (make(draw(2, 8, 1), "rms", gamma=BETA[:1]), "no norm can be identified: each group of rms"),
    "one-hot rows": (make(ONE_HOT, "rms", gamma=GAMMA, eps=1e-5), "y is root mean square normalization over c, eps 1e-05"),
    "windows of all": (make(np.log(draw(12, 3)), "rms", eps=1e-3), "y is root mean square normalization over c"),
    "a gamma of ones": (make(draw(30, 7), "ln", gamma=ONES, beta=BETA), "y is layer normalization over c, eps 1e-05, then gamma"),
    "a range that is infinite": (
        make(put_infinity(draw(9, 5))[:, 4:], "minmax"), "no norm can be identified: every finite value",
    ),
    "unknown gamma beside infinity": (
        (*make(put_infinity(draw(20, 32)), "ln", gamma=draw(32), beta=draw(32))[:2], {}),
        "y is layer normalization over c, a fitted gamma",
    ),
    **{
        f"{norm} without its beta": (
            (*make(draw(4, 12, 5), norm, gamma=draw(12), beta=draw(12), **groups)[:2], {"gamma": draw(12)}),
            f"y is {norm}, but y has a beta that was not given",
        )
        for norm, groups in (("bn", {}), ("gn", {"groups": 3}))
    },
}  # fmt: skip


@pytest.mark.all_quick
@pytest.mark.parametrize(("case", "cause"), [pytest.param(*case, id=name) for name, case in IDENTIFIED.items()])
def test_what_fits_is_named_by_default(case, cause):
    x, y, options = case
    given = {name: options[name] for name in ("gamma", "beta") if name in options}
    assert identify(y, x, **given).diagnosis.cause.startswith(cause)


HUGE = 1e20 * draw(5, 64)
with np.errstate(all="ignore"):
    OVERFLOWN = (HUGE - HUGE.mean(1, keepdims=True)) / np.sqrt(HUGE.var(1, keepdims=True))

CHECKED = {
    "x · x overflows": ((HUGE, OVERFLOWN, {}), "ln differs: x · x overflows float32 in every group"),
    "0 / 0 of one value": (
        (draw(16, 1), np.full((16, 1), np.nan, "f4"), {"eps": 0}), "ln differs: y is NaN, and x is constant",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("case", "cause"), [pytest.param(*case, id=name) for name, case in CHECKED.items()])
def test_a_statistic_that_is_not_finite_is_named_as_that(case, cause):
    x, y, options = case
    assert check(y, x, "ln", **options).diagnosis.cause == cause


def test_groups_that_do_the_same_are_all_listed():
    x = np.broadcast_to(draw(1, 5, 16), (2, 5, 16)).copy()
    found = identify(make(x, "in", eps=1e-2)[1], x).found
    assert {"bn", "in"} <= {match.norm for match in found.matches}
