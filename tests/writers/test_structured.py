"""JSON, JSON lines and CSV: complete, strict, and telling the same story."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.answers.calculating.calculation import Answer
from normcli.answers.calculating.catalogue import Catalogue
from normcli.tensors.tensor import Tensor
from normcli.writers import FORMATS
from tests.conftest import render
from tests.strategies import options_for

DOCUMENTED = [
    "schema", "norm", "formula", "input", "layout", "axes", "kept", "group_count", "group_size", "eps", "eps_mode",
    "ddof", "stats", "gamma", "beta", "normalized", "check", "warnings",
]  # fmt: skip


def reject(constant):
    raise AssertionError(f"{constant} is not strict JSON")


def make(norm="bn", shape=(2, 4, 3, 2), dtype="float32", **options):
    values = np.random.default_rng(3).normal(size=shape).astype(dtype)
    result = normalize(values, norm, **(options_for(norm, shape) | options))
    return Answer(result, Tensor(values, "x.npy"))


@pytest.mark.parametrize("norm", NORMS)
def test_json_is_strict_complete_and_exact(norm):
    answer = make(norm)
    data = json.loads(render(answer, format_name="json"), parse_constant=reject)
    assert [key for key in data if key in DOCUMENTED] == DOCUMENTED
    result = answer.result
    np.testing.assert_array_equal(np.array(data["normalized"], dtype=np.float32), result.normalized)
    assert set(data["stats"]) == set(result.statistics)
    for name, values in result.statistics.items():
        np.testing.assert_array_equal(np.array(data["stats"][name]), values)
    assert data["input"] == {"source": "x.npy", "shape": [2, 4, 3, 2], "dtype": "float32"}


def test_json_spells_what_is_not_finite():
    values = np.array([[1.0, np.nan], [np.inf, 2.0]])
    data = json.loads(
        render(Answer(normalize(values, "ln", gamma=[np.inf, 1.0]), Tensor(values, "x")), format_name="json"),
        parse_constant=reject,
    )
    assert data["normalized"] == [["nan", "nan"], ["nan", "nan"]]
    assert data["gamma"] == ["inf", 1.0]
    assert len(data["warnings"]) == 2


@pytest.mark.parametrize("norm", NORMS)
def test_json_lines_hold_every_group_once(norm):
    answer = make(norm)
    records = [
        json.loads(line, parse_constant=reject) for line in render(answer, format_name="jsonl").splitlines()
    ]
    plan = answer.result.plan
    assert len(records) == plan.grid.group_count
    for number, record in enumerate(records):
        assert list(record)[:2] == ["group", "count"]
        assert record["group"] == plan.grid.group_index(number)
        expected = answer.result.normalized.reshape(plan.grid.view_shape)[plan.grid.select_group(number)]
        np.testing.assert_array_equal(np.array(record["normalized"], dtype=np.float32), expected)
        for name, values in answer.result.statistics.items():
            assert record[name] == values.reshape(-1)[number]
    if plan.spec.window is None:
        assert sum(record["count"] for record in records) == answer.result.input.size


@pytest.mark.parametrize("norm", NORMS)
def test_csv_holds_every_value_once(norm):
    answer = make(norm)
    rows = list(csv.DictReader(io.StringIO(render(answer, format_name="csv"))))
    result = answer.result
    assert len(rows) == result.input.size
    assert list(rows[0]) == ["n", "c", "h", "w", "input", *result.statistics, "normalized"]
    for row, (index, value) in zip(rows, np.ndenumerate(result.normalized), strict=True):
        assert tuple(int(row[name]) for name in "nchw") == index
        assert np.float32(row["normalized"]) == value
        assert np.float32(row["input"]) == result.input[index]
    owners = result.plan.grid.locate_groups(np.ix_(*(np.arange(length) for length in result.input.shape)))
    name = next(iter(result.statistics))
    expected = result.statistics[name].reshape(-1)[owners].reshape(-1)
    np.testing.assert_array_equal([float(row[name]) for row in rows], expected)


@pytest.mark.all_quick
@pytest.mark.parametrize("format_name", FORMATS)
def test_the_table_of_norms_has_every_format_and_every_norm(format_name):
    text = render(Catalogue(), format_name=format_name)
    for norm in NORMS.values():
        assert norm.name in text
        assert norm.source.split(",")[0] in text
