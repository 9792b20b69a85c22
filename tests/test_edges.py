"""`--like` where conventions part: it gives what the framework gives, or says that it does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli import normalize
from tests.conftest import DATA
from tests.edges import EDGES
from tests.test_conformance import live, load

RECORDED = json.loads((DATA / "conventions.json").read_text())["edges"]

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 5e-6, "float64": 1e-13}
"""Of the largest value; a rounding error of the largest input besides."""

CASES = [pytest.param(edge, id=f"{edge}") for edge in EDGES]


def hold(edge, theirs, ours):
    largest = np.nanmax(np.abs(theirs), initial=0.0)
    error = min(np.spacing(float(np.nanmax(np.abs(edge.make())))), 1e-3)  # of what is left divided by 1
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[edge.dtype] * largest + error)


def test_each_edge_is_recorded_and_no_other():
    assert sorted(RECORDED) == sorted(map(str, EDGES))


@pytest.mark.parametrize("edge", CASES)
def test_it_gives_what_the_framework_gave_or_says_that_it_does_not(edge):
    result, recorded = (
        normalize(edge.make(), edge.norm, like=edge.framework, **edge.options),
        RECORDED[str(edge)],
    )
    theirs = None if recorded is None else np.array(recorded)
    departures = [found for found in result.degeneracies if found.kind == "departure"]
    if not departures:
        assert theirs is not None
        hold(edge, theirs, result.normalized.ravel().astype(float))
        return
    assert all(edge.framework in str(found) for found in departures)
    assert ("refuses" in str(departures[0])) == (theirs is None)
    if theirs is not None:
        with pytest.raises(AssertionError):
            hold(edge, theirs, result.normalized.ravel().astype(float))


def draw_half():
    rng = np.random.default_rng(0)
    x, *parameters = (rng.normal(1.0, 0.5, shape).astype(np.float16) for shape in ((3, 8), (8,), (8,)))
    return x, *parameters


def test_a_product_that_is_rounded_before_beta_is_said():
    x, gamma, beta = draw_half()
    (said,) = normalize(x, "ln", like="onnx", gamma=gamma, beta=beta).degeneracies
    assert str(said) == "onnx rounds x̂ · gamma to float16 before it adds beta: here it is not"
    assert not normalize(x, "ln", like="onnx", gamma=gamma).degeneracies
    assert not normalize(x.astype("f4"), "ln", like="onnx", gamma=gamma, beta=beta).degeneracies


@live
@pytest.mark.parametrize("edge", CASES)
def test_the_framework_still_gives_that(edge):
    load(edge.module)
    found, recorded = edge.run(), RECORDED[str(edge)]
    assert (found is None) == (recorded is None)
    if found is not None:
        np.testing.assert_allclose(found, recorded, rtol=0.25, atol=1e-6)
