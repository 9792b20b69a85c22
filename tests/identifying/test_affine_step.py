"""gamma and beta are taken in every shape that the commands take them in."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.identifying.search.affine_step import enumerate_affine_steps

SHAPE = (4, 6, 5, 5)


@pytest.mark.parametrize(
    ("shape", "placed"),
    [
        pytest.param((6,), [(1, 6, 1, 1)], id="its own"),
        pytest.param((5,), [(1, 1, 1, 5), (1, 1, 5, 1)], id="of two axes, the last first"),
        pytest.param((6, 1, 1), [(1, 6, 1, 1)], id="as NumPy broadcasts it"),
        pytest.param((1, 6, 1, 1), [(1, 6, 1, 1)], id="of the rank"),
        pytest.param((6, 1), [(1, 6, 1, 1)], id="a column"),
        pytest.param((6, 5, 5), [(1, 6, 5, 5)], id="several axes"),
        pytest.param(SHAPE, [SHAPE], id="whole"),
        pytest.param((1,), [(1, 1, 1, 1)], id="one number"),
        pytest.param((3,), [(1, 6, 1, 1)], id="of groups of channels"),
    ],
)
def test_a_gamma_lies_along_the_axes_of_its_shape(shape, placed):
    steps = list(enumerate_affine_steps(SHAPE, np.ones(shape), None))
    assert [step.scale.shape for step in steps if step.way == "gamma"] == placed


def test_a_gamma_of_groups_is_repeated_within_them():
    (step, *_) = enumerate_affine_steps(SHAPE, np.array([1.0, 2.0]), None)
    assert step.scale.ravel().tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    steps = enumerate_affine_steps((4, 6, 8), np.ones(2), None)
    assert [step.scale.shape for step in steps if step.way == "gamma"] == [(1, 6, 1), (1, 1, 8)]
    with pytest.raises(DataError, match=r"gamma has the shape \(2,\), which no axes of \(4, 6\) have"):
        list(enumerate_affine_steps((4, 6), np.ones(2), None))


@pytest.mark.parametrize(
    ("lengths", "shape", "placed"),
    [
        pytest.param((4, 6), (4, 5, 6), [(4, 1, 6)], id="of each sample"),
        pytest.param((3, 6), (2, 3, 5, 6), [(1, 3, 1, 6)], id="of each head"),
        pytest.param((2, 3, 6), (2, 3, 5, 6), [(2, 3, 1, 6)], id="of each sample and head"),
        pytest.param((4, 6), (4, 4, 6), [(1, 4, 6), (4, 1, 6)], id="neighbours first"),
        pytest.param((4, 4), (4, 4, 4), [(1, 4, 4), (4, 4, 1), (4, 1, 4)], id="the last of the neighbours"),
        pytest.param((4, 1, 6), (4, 5, 6), [(4, 1, 6)], id="with ones"),
    ],
)
def test_a_gamma_lies_along_any_axes_of_its_lengths(lengths, shape, placed):
    gamma = np.arange(np.prod(lengths), dtype=float).reshape(lengths)
    steps = [step for step in enumerate_affine_steps(shape, gamma, None) if step.way == "gamma"]
    assert [step.scale.shape for step in steps] == placed
    assert all(step.scale.ravel().tolist() == gamma.ravel().tolist() for step in steps)
