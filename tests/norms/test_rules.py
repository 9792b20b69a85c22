from __future__ import annotations

from typing import get_args

import pytest

from normcli.norms import rules as names
from normcli.norms.conventions import CONVENTIONS
from normcli.norms.options import find_option
from normcli.norms.request import Fill, NanRule
from normcli.norms.table import BY_ANY_NAME


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        pytest.param(names.NormName, BY_ANY_NAME, id="norms"),
        pytest.param(names.FrameworkName, {row.framework for row in CONVENTIONS}, id="frameworks"),
        pytest.param(names.EpsModeName, find_option("eps_mode").choices, id="eps modes"),
        pytest.param(names.GroupOrderName, find_option("group_order").choices, id="group orders"),
        pytest.param(names.NanName, list(NanRule), id="nan"),
        pytest.param(names.FillName, list(Fill), id="fill"),
    ],
)
def test_the_types_have_the_names_of_the_tables(literal, words):
    assert sorted(get_args(literal)) == sorted(words)
