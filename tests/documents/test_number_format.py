from __future__ import annotations

import numpy as np
import pytest

from normcli.documents.number_format import format_cells, format_statistic


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        pytest.param(6.1005859375, None, "6.1005859", id="eight digits"),
        pytest.param(5.0, None, "5", id="no trailing zeros"),
        pytest.param(-0.0, None, "0", id="no sign of zero"),
        pytest.param(1.5e-20, 3, "1.5e-20", id="small"),
        pytest.param(float("nan"), None, "nan", id="nan"),
        pytest.param(float("-inf"), None, "-inf", id="inf"),
    ],
)
def test_format_statistic(value, digits, text):
    assert format_statistic(value, digits) == text


@pytest.mark.parametrize(
    ("values", "digits", "texts"),
    [
        pytest.param([6, 10], None, [" 6", "10"], id="integers"),
        pytest.param([True, False], None, ["1", "0"], id="booleans"),
        pytest.param([3.0, -10.0], None, ["  3", "-10"], id="whole floats"),
        pytest.param([0.5440419, -1.8851684], None, [" 0.5440", "-1.8852"], id="five digits of the largest"),
        pytest.param([123.456, 1.0], None, ["123.46", "  1.00"], id="hundreds"),
        pytest.param([-0.00001, 1.5], None, ["0.0000", "1.5000"], id="no sign of zero"),
        pytest.param([1.5e9, 2.5], None, ["1.5000e+09", "2.5000e+00"], id="large"),
        pytest.param([0.54404, -1.7586], 3, [" 0.544", "-1.76 "], id="so many digits of each"),
        pytest.param([1.5e9, 123.4, -2.5e-9], 3, ["  1.50e+09", "123       ", " -2.50e-09"], id="of any size"),
        pytest.param([1.5e-9], None, ["1.5000e-09"], id="small"),
        pytest.param([float("nan"), 1.5], None, ["   nan", "1.5000"], id="not finite"),
        pytest.param([], None, [], id="none"),
    ],
)
def test_format_cells(values, digits, texts):
    assert format_cells(np.array(values), digits) == texts
