"""What a way of grouping and dividing is called, and which frameworks do so: those whose own results these are."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.models.divisor_fit import Model
from normcli.identifying.models.error_bounds import Level
from normcli.identifying.models.standards import standardize
from normcli.identifying.sampling import take_groups
from normcli.identifying.search.affine_step import NO_AFFINE
from normcli.identifying.search.groups import Hypothesis, Sample, enumerate_grids
from normcli.identifying.search.match import Scope
from normcli.identifying.search.match_names import describe_hypothesis
from normcli.norms.divisors import DEVIATION, LENGTH, RANGE, ROOT_MEAN_SQUARE
from normcli.norms.rules import EpsMode

X = np.random.default_rng(0).normal(0.7, 2.0, (3, 6, 4, 5)).astype("f4")


def describe(axes, divisor, *, split=None, x=X, **model):
    """Return the matches of a hypothesis whose exact results, rounded, are y."""
    grids = (grid for grid in enumerate_grids(x.shape) if grid.axes == axes)
    grid = next(grid for grid in grids if (grid.split and grid.split[1:]) == split)
    standard = standardize(take_groups(grid, x), divisor)
    eps = model.pop("eps", 0.0)
    own = LENGTH if model.get("p") else divisor
    fitted = Model(own, model.pop("mode", EpsMode.INSIDE), low=0.99 * eps, high=1.01 * eps, **model)
    sample = Sample(grid, np.arange(grid.group_count), standard, standard.values)
    hypothesis = Hypothesis(sample, NO_AFFINE, fitted)
    actual = hypothesis.predict(eps).astype("f4").astype("f8")
    hypothesis = hypothesis._replace(sample=hypothesis.sample._replace(actual=actual))
    scope = Scope(None, frozenset({1, x.ndim - 1}), tuple(range(x.ndim)), np.dtype("f4"))
    return list(describe_hypothesis(hypothesis, scope, Level("float32", 1.0, 0.0)))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("axes", "asked", "named"),
    [
        pytest.param((0, 2, 3), {}, {"bn"}, id="channels"),
        pytest.param((2, 3), {}, {"in"}, id="samples and channels"),
        pytest.param((3,), {}, {"ln"}, id="the last axis"),
        pytest.param((1, 2, 3), {}, {"ln", "gn"}, id="all but the first"),
        pytest.param((1, 2, 3), {"split": (2, "contiguous")}, {"gn"}, id="groups"),
        pytest.param((0, 1, 2, 3), {}, {"ln"}, id="all"),
        pytest.param((0, 3), {}, {"bn", "mvn"}, id="where axes are given"),
        pytest.param((0, 1, 3), {"split": (2, "contiguous")}, {"gn"}, id="groups over samples"),
        pytest.param((3,), {"eps": 0.0123}, {"ln"}, id="an eps of one's own"),
    ],
)
def test_norms_are_named_whose_groups_these_are(axes, asked, named):
    matches = describe(axes, DEVIATION, **{"eps": 1e-5} | asked)
    assert named <= {match.norm for match in matches}
    groups = asked.get("split", (None, None))
    for match in matches:
        assert (match.groups, match.group_order) == (
            groups if match.norm != "gn" or groups[0] else (1, "contiguous")
        )
        assert match.axes == axes


def test_axes_that_are_nobodys_choice_have_one_name():
    (match,) = describe((0, 3), DEVIATION, eps=0.0123, ddof=1)
    assert (match.norm, match.like, match.users, match.by_default) == ("ln", (), 0, False)
    assert not match.has_default_eps


@pytest.mark.parametrize(
    ("asked", "is_default"),
    [
        ({"eps": 1e-5}, True),
        ({"eps": 0.0}, True),
        ({"eps": 1e-12, "mode": EpsMode.OUTSIDE}, False),
        ({"eps": 0.5}, False),
    ],
)
def test_an_eps_is_somebodys_own_or_not(asked, is_default):
    assert {match.has_default_eps for match in describe((3,), DEVIATION, **asked) if match.norm == "ln"} == {
        is_default
    }


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("p", "floor", "like"),
    [
        (1.0, 1.0, {"torch"}),
        (3.0, 1.0, {"torch"}),
        (3.0, 1e-13, set()),
        (2.0, 1.0, {"torch", "openvino", "tensorflow"}),
        (2.0, 1e-7, {"torch", "openvino"}),
        (2.0, 1e-13, {"openvino"}),
    ],
)
def test_lengths_are_named_by_their_p_and_what_they_are_at_least(p, floor, like):
    """A floor of 1e-12 shows beside no longer length: torch's is of the length, TensorFlow's of its square."""
    matches = describe((1,), ROOT_MEAN_SQUARE, p=p, mode=EpsMode.FLOOR, floor=floor)
    (match,) = [match for match in matches if match.norm == "lp"]
    assert (match.p, match.eps_mode, match.eps, set(match.like)) == (p, None, 0.0, like)


def test_a_range_is_that_of_scalers():
    (match,) = describe((0, 2, 3), RANGE, mode=EpsMode.FLOOR, x=X - X.min())
    assert (match.norm, match.eps_mode, match.takes_eps) == ("minmax", None, False)
