"""Where things stand on a page, in headless Chromium: columns line up, nothing is cut off, the formula holds its step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.page.reader import NARROW, WIDE, make, normal

pytestmark = [
    pytest.mark.browser,
    # What the driver itself warns of when it is imported is its own.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def uneven():
    """A tensor of which only the last matrix has a negative number, and a long one."""
    values = np.abs(normal(2, 3, 4, 4))
    values[1, 2, 3, 3] = -3.25
    return values


def find_columns(reader, side):
    """Return where each column of a side begins and ends, in every matrix."""
    edges = reader.page.eval_on_selector_all(
        f".side-{side} tbody tr",
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => "
        "[cell.getBoundingClientRect().left, cell.getBoundingClientRect().right]))",
    )
    return np.array(edges)


@pytest.mark.parametrize(
    ("values", "options", "viewport"),
    [
        pytest.param(uneven(), {}, WIDE, id="signs"),
        pytest.param(normal(4, 2, 4, 3), {"axes": (1,)}, WIDE, id="badges-of-cells"),
        pytest.param(np.arange(24).reshape(2, 3, 4) % 10, {"layout": "BND"}, WIDE, id="badges-above-digits"),
        pytest.param(np.arange(72).reshape(2, 3, 12) % 10, {"layout": "BND"}, WIDE, id="wider-badges"),
        pytest.param(normal(2, 2, 3, 12), {}, WIDE, id="stacked"),
        pytest.param(uneven(), {}, NARROW, id="phone"),
    ],
)
def test_columns_stand_in_line_from_matrix_to_matrix_and_below_their_heads(values, options, viewport, read):
    reader = read(make(values, "ln" if "axes" in options else "bn", **options), viewport)
    for side in "xzy":
        columns = find_columns(reader, side)
        assert np.ptp(columns, axis=0).max() < 0.5
        heads = reader.page.eval_on_selector_all(
            f".matrix:first-child .side-{side} thead th:not(:has(.corner))",
            "heads => heads.filter(head => head.closest('thead').clientHeight > 1)"
            ".map(head => (head.getBoundingClientRect().left + head.getBoundingClientRect().right) / 2)",
        )
        if side == "x" or heads:  # of what is stacked the first heads stand for all
            np.testing.assert_allclose(heads, columns[0].mean(axis=1), atol=0.5)


def test_an_edited_number_leaves_its_column_as_wide_as_it_was(read):
    reader = read(make(uneven()), WIDE)
    before = find_columns(reader, "x")
    reader.cell(95).click()
    reader.move("x", -2.1234)
    assert reader.page.locator(".side-x .edited").count() == 1
    np.testing.assert_allclose(find_columns(reader, "x"), before, atol=0.5)
