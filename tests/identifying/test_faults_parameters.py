"""How gamma and beta are applied otherwise than they should be."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from tests.identifying.faulty import ask, draw, draw_affine, name, standardize

X = draw((12, 64))
G, B = draw_affine(64)
XHAT = standardize(X)


@pytest.mark.slow
def test_nothing_is_said_of_parameters_that_are_not_there():
    assert name("ln", X, XHAT * 1.7)[0] == ["affine-constant"]
    assert ask("ln", X, XHAT * G) == ()


@pytest.mark.slow
def test_a_gamma_of_groups_that_any_line_fits_takes_no_long_search():
    """Each order of gamma leaves lines, with other statistics: none of them is tried to the end."""
    x = draw((8, 64, 3, 3))
    gamma, beta = draw_affine(64)
    shown = np.random.default_rng(0).normal(1, 0.3, (1, 64, 1, 1))
    assert ask("bn", x, standardize(x, (0, 2, 3)) * shown + shown[:, ::-1], gamma, beta) == ()


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        (np.arange(12) // 3, "gamma and beta are taken from the group's index, not the channel's"),
        (np.arange(12) % 3, "gamma and beta are taken from group=0 in every group"),
    ],
)
def test_parameters_that_are_not_indexed_by_the_channel_are_told(place, cause):
    x, (gamma, beta) = draw((4, 12, 6)), draw_affine(12)
    right = standardize(x.reshape(4, 4, 18)).reshape(x.shape)
    y = right * gamma[place, None] + beta[place, None]
    assert ask("gn", x, y, gamma, beta, groups=4)[0].cause == cause


def test_a_gamma_in_half_precision_is_told_without_an_eps_that_shows_as_little_as_the_right_one():
    rng = np.random.default_rng(1)
    x = (2 * np.round(2 * rng.normal(size=(7, 13)))).astype("f2")
    gamma, beta = ((1 + 0.5 * rng.normal(size=13)).astype("f2"), (0.5 * rng.normal(size=13)).astype("f2"))
    y = standardize(x) * gamma.astype(find_type("bfloat16")).astype("f8") + beta
    assert name("ln", x, y.astype("f2"), gamma, beta)[1] == ["gamma is rounded to bfloat16"]
