"""Whether y goes with x: any function of x does, in a part of y too, and chance does not."""

from __future__ import annotations

import numpy as np
import pytest

import normcli.identifying.default_norm_faults as opening
from normcli.identifying.faults.case import Case
from normcli.identifying.identify import identify
from normcli.identifying.question import Question
from normcli.identifying.sampling import thin_axes
from normcli.identifying.search.screen import go_together

RNG = np.random.default_rng(7)
X = RNG.normal(size=(24, 72))
GAMMA = RNG.normal(size=72)


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(-X, id="falling"),
        pytest.param(X**2, id="not monotone"),
        pytest.param(np.maximum(X, 0), id="zeros"),
        pytest.param(np.where(RNG.random(X.shape) < 0.4, X, RNG.normal(size=X.shape)), id="here and there"),
        pytest.param(np.where(np.arange(24)[:, None] < 8, X, np.nan), id="a third of the rows"),
        pytest.param(X * GAMMA + GAMMA[::-1], id="gamma and beta of each feature"),
    ],
)
def test_a_function_of_x_goes_with_it(y):
    assert go_together([X], y)


@pytest.mark.parametrize("seed", range(6))
def test_chance_does_not(seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 6, 12, 5, 8))
    assert not go_together([x, x**2], y)
    assert not go_together([x], np.sign(y))


def test_few_values_say_nothing():
    assert go_together([X[:2]], X[2:4])


def test_places_are_spread_over_each_axis():
    assert thin_axes((24, 64)) == (slice(None, None, 1),) * 2
    assert thin_axes((64, 256), first=(1,)) == (slice(None, None, 1), slice(None, None, 8))
    assert thin_axes((64, 256), first=(0,)) == (slice(None, None, 8), slice(None, None, 1))


def test_of_what_goes_with_nothing_orders_alone_are_tried(monkeypatch):
    tried = []
    predict = Case.predict
    monkeypatch.setattr(Case, "predict", lambda case, variant: tried.append(variant) or predict(case, variant))
    y = np.random.default_rng(1).normal(size=X.shape)
    found = identify(Question(X, y, GAMMA, GAMMA[::-1], None))
    assert not found.claims
    assert not found.matches
    assert len(tried) < 1000  # more than 9,000 otherwise


def test_large_groups_of_what_goes_with_nothing_are_not_kept(monkeypatch):
    sizes = []
    open_joints = opening.open_joints
    monkeypatch.setattr(
        opening,
        "open_joints",
        lambda cases, **options: sizes.extend(case.y.size for case in cases) or open_joints(cases, **options),
    )
    x, y = np.random.default_rng(2).normal(size=(2, 40, 6, 1024)).astype("f4")
    assert not identify(Question(x, y, None, None, None)).claims
    assert 0 < max(sizes) <= 1 << 16  # of batch normalization, two groups have 81,920
