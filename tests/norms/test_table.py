"""The table of norms walked row by row."""

from __future__ import annotations

import re

import pytest

from normcli.errors import UsageError
from normcli.norms.request import Request
from normcli.norms.table import NORMS, find_norm
from tests.conftest import ROOT
from tests.numerics.test_kernel import ORACLES

ROWS = [pytest.param(row, id=name) for name, row in NORMS.items()]


@pytest.mark.parametrize("row", ROWS)
def test_each_row_has_a_title_a_summary_a_source_and_a_use(row):
    assert row.title
    assert row.summary
    assert row.source
    assert row.use


def test_each_row_has_an_oracle():
    assert set(NORMS) == set(ORACLES)


def test_each_row_is_in_readme():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in NORMS if f"| {name}" not in readme] == []


@pytest.mark.parametrize("row", ROWS)
def test_eps_has_a_mode_and_a_place_in_the_formula_exactly_where_there_is_one(row):
    assert (row.eps_mode is not None) == ("eps" in row.formula()) == (row.eps is not None)


def test_no_name_means_two_rows():
    names = [name for row in NORMS.values() for name in row.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "row", "preset"),
    [
        pytest.param("batchnorm", "bn", {}, id="alias"),
        pytest.param("LayerNorm", "ln", {}, id="any case"),
        pytest.param("l1", "lp", {"p": 1.0}, id="l1"),
    ],
)
def test_find_norm(name, row, preset):
    found, fixed = find_norm(name)
    assert (found.name, dict(fixed)) == (row, preset)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="no norm 'foo'; the norms are bn, ln"):
        find_norm("foo")


def test_each_divisor_has_statistics():
    assert all(row.statistics for row in NORMS.values())


@pytest.mark.parametrize("name", [3, None, b"bn", ["ln"]])
@pytest.mark.parametrize("read", [find_norm, lambda name: Request.collect(name, {})])
def test_a_norm_is_named_by_a_text(name, read):
    with pytest.raises(UsageError, match=f"^norm {re.escape(repr(name))} is not a name$"):
        read(name)
