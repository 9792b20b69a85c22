"""A part of a normalized tensor is what the whole holds there, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.engine.inputs import Inputs
from normcli.norms.rules import AxesRule
from normcli.results import normalized_part as part
from normcli.results.normalized_part import normalize_one_group, normalize_part
from normcli.results.result import Result

CASES = [
    *(pytest.param(name, {"groups": 3} if row.axes is AxesRule.CHANNEL_GROUPS else {}, id=name) for name, row in NORMS.items()),
    pytest.param("gn", {"groups": 3, "group_order": "interleaved"}, id="interleaved"),
    pytest.param("gn", {"groups": 2, "layout": "NHWC"}, id="channels last"),
    pytest.param("ln", {"axes": (1, 3)}, id="axes apart"),
    pytest.param("rms", {"like": "gemma"}, id="gamma with an offset"),
]  # fmt: skip

WANTED = ([0, 3], [1, 2, 5], [0], [0, 5])


@pytest.fixture
def results(rng, monkeypatch):
    """Make a result that holds its normalized tensor, and one that holds statistics alone and counts as large."""
    from normcli.results.calculate import calculate

    def make(norm, options):
        x = rng.normal(3, 2, size=(4, 6, 3, 6)).astype("f4")
        plan = normalize(x, norm, **options).plan
        names = plan.norm.parameter_names
        given = {name: rng.normal(size=plan.parameters.shape).astype("f4") for name in names}
        whole = normalize(x, norm, **options, **given)
        monkeypatch.setattr(part, "SMALL", 0)
        bare = calculate(plan, x, Inputs(**given), statistics_alone=True)
        return whole, bare

    return make


@pytest.mark.parametrize(("norm", "options"), CASES)
def test_a_part_is_that_of_the_whole(norm, options, results):
    whole, bare = results(norm, options)
    got = normalize_part(bare, WANTED)
    np.testing.assert_array_equal(got, whole.normalized[np.ix_(*WANTED)], strict=True)
    assert not bare.is_normalized


@pytest.mark.parametrize(("norm", "options"), CASES)
def test_a_group_is_that_of_the_whole(norm, options, results):
    whole, bare = results(norm, options)
    plan = whole.plan
    if plan.spec.window is not None:
        pytest.skip("a window is no group")
    for group in range(plan.grid.group_count):
        expected = whole.normalized.reshape(plan.grid.view_shape)[plan.grid.select_group(group)].reshape(-1)
        np.testing.assert_array_equal(normalize_one_group(bare, group), expected, strict=True)
    assert not bare.is_normalized


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"clip_output": (-0.5, 0.5)}, id="clip"),
        pytest.param({"gate": "random"}, id="gate"),
        pytest.param({"gate": "random", "gate_order": "before", "clip_output": (-0.5, 0.5)}, id="both"),
    ],
)
def test_a_part_is_gated_and_clipped_as_the_whole(options, rng, monkeypatch):
    x = rng.normal(3, 2, size=(4, 6, 3, 6)).astype("f4")
    if "gate" in options:
        options = options | {"gate": rng.normal(size=x.shape).astype("f4")}
    whole = normalize(x, "ln", axes=(1, 3), **options)
    monkeypatch.setattr(part, "SMALL", 0)
    bare = Result(whole.plan, whole.input, whole.statistics, whole.inputs)
    got = normalize_part(bare, WANTED)
    np.testing.assert_array_equal(got, whole.normalized[np.ix_(*WANTED)], strict=True)
