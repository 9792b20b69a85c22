"""gamma and beta are taken in every shape that the commands take them in."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.verify.affine import enumerate_affine_steps

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
    ],
)
def test_a_gamma_lies_along_the_axes_of_its_shape(shape, placed):
    steps = list(enumerate_affine_steps(SHAPE, np.ones(shape), None))
    assert [step.scale.shape for step in steps if step.way == "gamma"] == placed


@pytest.mark.parametrize("shape", [(7,), (5, 6), (7, 1), (1, 1, 4, 6, 5, 5)])
def test_a_gamma_of_no_axes_is_refused(shape):
    with pytest.raises(DataError, match="which no axes of"):
        list(enumerate_affine_steps(SHAPE, np.ones(shape), None))
