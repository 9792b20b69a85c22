from __future__ import annotations

import numpy as np
import pytest

from normcli.moments import gather_moments


def test_gather_moments(rng):
    x = rng.normal(size=(3, 4, 5))
    moments, centred = gather_moments(x, (0, 2))
    assert moments.count == 15
    np.testing.assert_allclose(moments.mean, x.mean((0, 2), keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(moments.variance(0), x.var((0, 2), keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(centred, x - x.mean((0, 2), keepdims=True), atol=1e-15)


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e15 / 3, -7.7e140])
@pytest.mark.parametrize("count", [3, 7, 10, 1000])
def test_a_constant_group_has_a_variance_of_exactly_zero(value, count):
    moments, centred = gather_moments(np.full((count, 2), value), (0,))
    assert (moments.mean == value).all()
    assert (moments.variance(0) == 0.0).all()
    assert (centred == 0.0).all()


def test_a_nearly_constant_group_is_not_taken_for_a_constant():
    x = np.full((10, 1), 0.1)
    x[3] = np.nextafter(0.1, 1.0)
    assert gather_moments(x, (0,))[0].variance(0) > 0.0


def test_a_group_of_no_values_has_no_moments():
    moments, centred = gather_moments(np.zeros((0, 3)), (0,))
    assert (moments.count, centred.shape) == (0, (0, 3))
    assert np.isnan(moments.mean).all()
    assert np.isnan(moments.variance(0)).all()


def test_ddof_beyond_the_count_leaves_no_variance():
    moments, _ = gather_moments(np.array([[1.0, 2.0]]), (1,))
    assert np.isnan(moments.variance(2)).all()
    np.testing.assert_array_equal(moments.variance(1), [[0.5]])
