"""Checks block by block: what one machine says, whatever the blocks."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import normcli
from normcli.checking.check import NORMALIZED, check
from normcli.errors import DataError, UsageError
from normcli.results.arguments import read_arguments

pytestmark = pytest.mark.peers

SHAPE = (7, 6, 4, 5)


@pytest.fixture(scope="module")
def array():
    return pytest.importorskip("dask.array")


@pytest.fixture
def x(rng):
    return rng.normal(3.0, 2.0, SHAPE).astype("float32")


def damage(y, rng):
    """Return a tensor of which some values are far off, and one is NaN."""
    wrong = np.array(y)
    places = rng.choice(wrong.size, 40, replace=False)
    wrong.reshape(-1)[places] += rng.normal(0.0, 1.0, 40).astype(wrong.dtype)
    wrong.reshape(-1)[places[0]] = np.nan
    return wrong


REQUESTS = [
    pytest.param("bn", {}, id="bn"),
    pytest.param("gn", {"groups": 3}, id="gn"),
    pytest.param("gn", {"groups": 3, "axes": "NCHW"}, id="channel groups over the batch"),
    pytest.param("ln", {"axes": "CHW", "dtype": "float64"}, id="ln, counted in float64"),
    pytest.param("lrn", {}, id="a window"),
    pytest.param("minmax", {"axes": "N"}, id="minmax"),
]


@pytest.mark.parametrize(("norm", "options"), REQUESTS)
def test_blocks_say_what_one_machine_says(norm, options, array, x, rng):
    affine = {"gamma": rng.normal(size=6), "beta": rng.normal(size=6)} if norm == "bn" else {}
    y = damage(normcli.normalize(x, norm, **options, **affine).normalized, rng)
    asked = read_arguments(x, norm, {**options, **affine})
    expected = check(asked, {NORMALIZED: y}).comparisons[NORMALIZED]
    for _ in range(2):
        chunks, others = (tuple(int(rng.integers((n + 1) // 2, n + 1)) for n in SHAPE) for _ in range(2))
        lazy = array.from_array(y, chunks=others) if rng.integers(2) else y
        judged = normcli.check(lazy, array.from_array(x, chunks=chunks), norm, **options, **affine)
        found = judged.found.comparisons[NORMALIZED]
        assert not judged.ok
        for field in fields(found):
            if field.name == "groups":
                assert norm == "lrn" or list(found.groups) == list(expected.groups)
            else:
                np.testing.assert_equal(getattr(found, field.name), getattr(expected, field.name))


def test_other_shapes_and_masks_are_refused(array, x):
    lazy = array.from_array(x, chunks=3)
    with pytest.raises(DataError, match=r"actual has the shape \(6, 6, 4, 5\); x has \(7, 6, 4, 5\)"):
        normcli.check(x[1:], lazy, "bn")
    with pytest.raises(UsageError, match="mask is of arrays in memory"):
        normcli.check(x, lazy, "bn", mask=x > 0)
