"""The guided search, with little time: no element and no statistic is further off than is specified.

`python -m tests.bench search --seconds 3600` searches for as long as it is told.
"""

from __future__ import annotations

import numpy as np
import pytest

from normcli.compiled import VARIABLE
from normcli.dtypes import find_type
from normcli.norms.table import NORMS
from tests.conftest import KERNELS
from tests.marks import costly, sampled
from tests.reference.limits import ELEMENT, STATISTIC
from tests.reference.rounding import FORMATS, find_format
from tests.search import __main__ as command
from tests.search.cells import DTYPES, Case, list_cells
from tests.search.climb import climb, explore, sample
from tests.search.families import FAMILIES, Stream, list_families, make

CELLS = {norm: [cell for cell in list_cells(norm) if not cell.is_long] for norm in NORMS}


def find_worst(findings):
    return max(findings, key=lambda found: found.verdict.excess)


@costly
@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
def test_many_cells_of_every_norm(norm, monkeypatch):
    """Of ten cells one is sampled, and one is climbed from, by each kernel in turn; a long search takes all."""
    findings = []
    for number, cell in enumerate(CELLS[norm]):
        monkeypatch.setenv(VARIABLE, KERNELS[number // 10 % len(KERNELS)])
        if number % 10 == 1:
            findings.append(sample(cell, 1))
        elif number % 10 == 6:
            families = list_families(find_type(cell.dtype))
            findings.append(climb(cell, families[number // 10 % len(families)], number, rounds=3))
    worst = find_worst(findings)
    assert worst.verdict.excess <= 1.0, worst.describe()


@costly
@sampled
@pytest.mark.slow
@pytest.mark.usefixtures("either_kernel")
@pytest.mark.parametrize("norm", [norm for norm in NORMS if any(cell.is_long for cell in list_cells(norm))])
def test_groups_of_many_leaves(norm):
    cells = [cell for cell in list_cells(norm) if cell.is_long]
    number = list(NORMS).index(norm)
    cell = cells[number % len(cells)]
    families = list_families(find_type(cell.dtype))
    worst = find_worst(
        climb(cell, families[(number + step) % len(families)], step, rounds=1) for step in range(2)
    )
    assert worst.verdict.excess <= 1.0, worst.describe()


def test_the_cells_are_of_every_norm_and_dtype():
    assert {(cell.norm, cell.dtype) for cell in list_cells()} == {
        (norm, dtype) for norm in NORMS for dtype in DTYPES
    }
    assert {cell.path.given for cell in list_cells("bn", "float32")} == {
        "", "mask", "nan", "statistics", "affine", "affine float64",
    }  # fmt: skip
    assert not any(cell.path.given == "statistics" for cell in list_cells("ln"))


@pytest.mark.parametrize("name", [*FORMATS, "int64", "uint64", "int16"])
def test_families_are_finite_and_exact_in_their_dtype(name):
    dtype = np.dtype(find_type(name))
    for family in list_families(dtype):
        x = make(family, Stream("test", family), (30, 13), dtype)
        assert x.shape == (30, 13)
        assert x.dtype == dtype
        if name in FORMATS:
            form = find_format(dtype)
            digits, exponent = FAMILIES[family](Stream("test", family), (30, 13), form)
            assert np.abs(digits).max() < 2**form.precision
            np.testing.assert_array_equal(x.astype(float), np.ldexp(digits.astype(float), exponent))
            assert np.isfinite(x.astype(float)).all()


@pytest.mark.slow
def test_a_case_can_be_repeated(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["search", "maxabs, float32, rows", "tails", "3"])
    found = explore(next(list_cells("maxabs", "float32")), "tails", 3)
    assert command.main() == (0 if found.verdict.excess <= 1.0 else 1)
    assert capsys.readouterr().out.splitlines()[0] == found.describe()


def test_a_wrong_result_is_found_and_described(monkeypatch):
    """A kernel that adds one unit in the last place to one element in each group."""
    calculate = Case.calculate

    def spoil(case):
        result = calculate(case)
        y = result.normalized
        y[..., 0] = np.nextafter(y[..., 0], np.float32(9e9))
        return result

    monkeypatch.setattr(Case, "calculate", spoil)
    cell = next(list_cells("maxabs", "float32"))
    found = sample(cell, 0)
    assert found.verdict.element > ELEMENT
    assert found.verdict.statistic <= STATISTIC
    assert "maxabs, float32, rows" in found.describe()
    assert str(found.case.groups[found.group].astype(float).tolist()) in found.describe()
