"""Results are defined by the input and the request alone: 500 of them have the hashes that are kept.

`python -m tests.bits --write` keeps others instead, where the specification of a result has changed.
"""

from __future__ import annotations

import numpy as np
import pytest

from normcli.norms.table import NORMS
from tests.bits import __main__ as command
from tests.bits.cases import COUNT, Case, list_cases
from tests.marks import choose_some, costly
from tests.search.cells import DTYPES, list_cells

CASES = list_cases()
KEPT = command.read_kept()
FEW = 25
"""The quick loop takes one case in so many."""


def test_there_are_500_cases_of_every_norm_dtype_and_path():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) == COUNT
    assert names == list(KEPT)
    words = [tuple(name.split(", ")) for name in names]
    assert {word[0] for word in words} >= {*NORMS, "fit zscore", "fit robust", "fit bn"}
    assert {word[1] for word in words} == set(DTYPES)
    for norm in NORMS:
        wanted = {cell.path.name for cell in list_cells(norm)}
        assert {name.split(", ", 2)[2] for name in names if name.split(", ")[0] == norm} >= wanted


@costly
@pytest.mark.usefixtures("either_kernel")
def test_a_few_results_are_those_that_are_kept():
    assert [case.name for case in CASES[::FEW] if case.hash() != KEPT[case.name]] == []


@pytest.mark.slow
def test_results_are_those_that_are_kept():
    """Of eight cases one; `.ci/run` compares all, in four environments."""
    assert [case.name for case in choose_some(CASES, 8) if case.hash() != KEPT[case.name]] == []


@costly
@pytest.mark.slow
@pytest.mark.parametrize("name", command.list_environments())
def test_no_bit_depends_on_the_processor_nor_on_variations(name):
    """Of eight cases one, in one of the environments; `.ci/run` compares all in each."""
    environments = command.list_environments()
    assert command.compare_apart(environments[name], every=8 * len(environments)) == []


def test_a_hash_is_of_every_bit():
    x = np.array([1.0, np.nan, -0.0])
    others = x.astype("f4"), x[:, None], np.array([1.0, np.nan, 0.0]), np.array([1.0 + 2**-52, np.nan, -0.0])
    hashes = {Case("", lambda variation, a=a: {"y": a}).hash() for a in (x, *others)}
    assert len(hashes) == 5
    other = x.copy()
    other.view(np.uint64)[1] ^= np.uint64(1 << 63 | 1)  # another NaN
    assert Case("", lambda variation: {"y": other}).hash() == Case("", lambda variation: {"y": x}).hash()


def test_what_differs_is_named(monkeypatch, capsys):
    case = Case("one", lambda variation: {"y": np.ones(3)})
    monkeypatch.setattr(command, "list_cases", lambda: [case])
    monkeypatch.setattr("sys.argv", ["bits"])
    monkeypatch.setattr(command, "read_kept", lambda: {"one": case.hash()})
    assert (command.main(), capsys.readouterr().out) == (0, "")
    monkeypatch.setattr(command, "read_kept", lambda: {"one": "0"})
    assert (command.main(), capsys.readouterr().out) == (1, "one\n")
