"""Where the values of a group lie, and when two grids hold the same groups."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.norms.plan import make_plan
from normcli.norms.request import Request

REQUESTS = [
    pytest.param(Request("bn"), id="bn"),
    pytest.param(Request("ln"), id="ln"),
    pytest.param(Request("bn", axes=()), id="nothing reduced"),
    pytest.param(Request("bn", keep=()), id="all reduced"),
    pytest.param(Request("gn", groups=2), id="gn"),
    pytest.param(Request("gn", groups=2, group_order="interleaved"), id="gn, interleaved"),
    pytest.param(Request("gn", groups=2, layout="NHWC", axes="HWC"), id="gn, channels last"),
    pytest.param(Request("gn", groups=2, like="mlx"), id="gn of mlx"),
    pytest.param(Request("lrn", size=4), id="lrn"),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_values_of_a_group_are_located_where_they_were_taken(request_):
    values = np.arange(2 * 6 * 3 * 4).reshape(2, 6, 3, 4)
    grid = make_plan(request_, values.shape, values.dtype).grid
    numbers = range(grid.group_count)
    assert list(grid.walk_groups()) == [(grid.group_index(n), grid.select_group(n)) for n in numbers]
    for group in numbers:
        taken = grid.take_group(values, group).reshape(-1)
        found = values[grid.locate_values(group, np.arange(taken.size))]
        np.testing.assert_array_equal(found, taken, strict=True)
        if grid.reach is None:
            cells = grid.locate_values(group, np.arange(taken.size))
            assert set(grid.locate_groups(cells).tolist()) == {group}
            np.testing.assert_array_equal(grid.locate_within_groups(cells), np.arange(taken.size))


def test_values_of_several_groups_are_located_at_once():
    values = np.arange(24).reshape(2, 3, 4)
    grid = make_plan(Request("bn"), values.shape, values.dtype).grid
    assert values[grid.locate_values(np.array([2, 0]), np.array([0, 5]))].tolist() == [8, 13]


def test_the_one_value_of_a_tensor_without_axes_is_at_the_empty_index():
    grid = make_plan(Request("zscore", axes=()), (), np.dtype("f8")).grid
    assert grid.locate_values(0, np.array([0])) == ()


def test_statistics_have_names_of_columns_where_the_last_axis_is_kept():
    def find(request, shape, names):
        return make_plan(request, shape, np.dtype("f8"), names).grid.group_columns

    names = ("height", "weight")
    assert find(Request("zscore"), (3, 2), names) == names
    assert find(Request("ln"), (3, 2), names) is None
    assert find(Request("gn", groups=2), (3, 2), names) is None
    assert find(Request("zscore"), (3, 2), None) is None
