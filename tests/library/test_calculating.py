from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from normcli import check, fit, identify, normalize

X = np.arange(24.0).reshape(2, 3, 4) % 7


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param(lambda: normalize(X, "bn"), "bn · batch normalization", id="a result"),
        pytest.param(lambda: fit(X[0], "zscore"), "zscore · standard score", id="statistics"),
        pytest.param(lambda: identify(normalize(X, "bn").normalized, X), "y is batch norm", id="identify"),
        pytest.param(lambda: check(X, X, "bn"), "check bn", id="check"),
    ],
)
def test_a_notebook_shows_the_table(made, said):
    html = made()._repr_html_()
    text = "".join(ElementTree.fromstring(html).itertext())
    assert said in text
