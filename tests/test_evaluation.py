"""Normalizing with running statistics, as evaluation does after training."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.numerics.statistics.solution import Given
from normcli.results.calculate import calculate
from normcli.results.given_inputs import SelectionRequest, fit_inputs
from tests.conftest import plan_request
from tests.reference.limits import ELEMENT
from tests.reference.measuring import measure_result

pytestmark = pytest.mark.usefixtures("either_kernel")

TRACKED = [name for name, norm in NORMS.items() if norm.tracks]


@pytest.mark.parametrize("norm", TRACKED)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("eps_mode", ["inside", "outside"])
def test_every_value_is_the_exact_one_rounded_once(norm, dtype, affine, eps_mode, rng):
    x = rng.normal(1000.0 if affine else 3.0, 2.0, (3, 4, 5)).astype(dtype)
    mean, var = rng.normal(3.0, 1.0, 4), rng.uniform(1e-3, 9.0, 4)
    given = {"gamma": rng.normal(size=4), "beta": rng.normal(size=4)} if affine else {}
    result = normalize(x, norm, eps=1e-3, eps_mode=eps_mode, running_mean=mean, running_var=var, **given)
    assert measure_result(result).element <= ELEMENT
    np.testing.assert_array_equal(np.broadcast_to(mean, result.mean.shape), result.mean)
    np.testing.assert_array_equal(np.broadcast_to(var, result.var.shape), result.var)
    assert result.check == ()
    assert result.warnings == ()


@pytest.mark.parametrize("shape", [(3,), (1, 3, 1, 1), (1, 1, 1), (), (3, 1)])
def test_shapes_of_running_statistics(shape, rng):
    x = rng.normal(size=(2, 3, 4, 4))
    values = np.broadcast_to(2.0, shape)
    expected = normalize(x, "bn", running_mean=[2.0] * 3, running_var=[2.0] * 3).normalized
    found = normalize(x, "bn", running_mean=values, running_var=values).normalized
    np.testing.assert_array_equal(found, expected)


def test_what_is_no_number_stays_so_and_spoils_no_neighbour():
    x = np.array([[1.0, np.nan, 3.0], [np.inf, 5.0, 6.0]])
    result = normalize(x, "bn", running_mean=0.0, running_var=1.0, eps=0)
    np.testing.assert_array_equal(result.normalized, x)
    assert [d.kind for d in result.degeneracies] == ["nan"]
    assert "c=0 (and 1 more group)" in result.warnings[0]


def test_a_variance_of_zero_without_eps_divides_by_zero_and_says_so():
    result = normalize([[1.0, 0.0], [3.0, 2.0]], "bn", running_mean=[1.0, 0.0], running_var=[0.0, 1.0], eps=0)
    np.testing.assert_array_equal(result.normalized, [[np.nan, 0.0], [np.inf, 2.0]])
    np.testing.assert_array_equal(result.rstd, [np.inf, 1.0])
    assert result.warnings == (
        "group c=0 has the running variance 0 and no eps: its normalized values are infinite or NaN",
    )


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
@pytest.mark.parametrize("norm", TRACKED)
def test_tensors_without_values(norm, shape):
    result = normalize(np.zeros(shape), norm, running_mean=1.0, running_var=4.0)
    assert result.normalized.shape == shape
    assert (result.std == 2.0).all()
    assert [d.kind for d in result.degeneracies] == ["empty"]


@pytest.mark.parametrize("norm", [name for name in NORMS if name not in TRACKED])
def test_norms_without_running_statistics_refuse_them(norm):
    groups = {"groups": 2} if NORMS[norm].needs_groups else {}
    with pytest.raises(UsageError, match="no running statistics are kept"):
        normalize(np.ones((2, 4, 3)), norm, running_mean=0.0, running_var=1.0, **groups)


def test_bad_running_statistics():
    x = np.ones((2, 3))
    with pytest.raises(UsageError, match="go together"):
        normalize(x, "bn", running_mean=0.0)
    with pytest.raises(DataError, match=r"shape \(2,\); bn of \(2, 3\) takes \(3,\)"):
        normalize(x, "bn", running_mean=[0.0, 1.0], running_var=1.0)
    with pytest.raises(DataError, match="running_var is negative: -0.5"):
        normalize(x, "bn", running_mean=0.0, running_var=[1.0, -0.5, 1.0])


RUNNING = ("--running-mean", "1,2,3", "--running-var", "4,5,6")


def test_on_the_command_line(normcli, here):
    ran = normcli("bn", "--shape", "2,3,4,4", "--eval", *RUNNING, "-f", "json")
    x = np.array(normcli("generate", "--shape", "2,3,4,4").json, dtype=float)
    expected = normalize(x, "bn", running_mean=[1, 2, 3], running_var=[4, 5, 6])
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["evaluation"] is True
    np.testing.assert_array_equal(ran.json["normalized"], expected.normalized)
    assert ran.json["stats"]["mean"] == [1.0, 2.0, 3.0]
    assert ran.json["check"] == {}
    assert normcli("bn", "--shape", "2,3,4,4", "-f", "json").json["evaluation"] is False
    table = normcli("bn", "--shape", "2,3,4,4", "--eval", *RUNNING).out
    assert "running var   (3,)   4, 5, 6" in table
    assert "running statistics promise nothing" in table
    assert normcli("bn", "--shape", "2,3,4", "--eval", *RUNNING, "-o", "y.npy").code == 0
    for options, code in ((("--eval", *RUNNING), 0), ((), 1)):
        assert normcli("check", "bn", "--shape", "2,3,4", "--actual", "y.npy", *options).code == code


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("eps_mode", ["inside", "outside"])
@pytest.mark.parametrize("norm", TRACKED)
def test_an_infinite_variance_makes_all_that_is_finite_0(norm, eps_mode, dtype):
    x = np.array([[1.0, 2.0], [3.0, 4.0]], dtype)
    given = {"running_mean": [0.0, 1.0], "running_var": [np.inf, 4.0], "eps": 0.25, "eps_mode": eps_mode}
    plain = normalize(x, norm, **given)
    assert plain.std[..., 0].tolist() in (np.inf, [np.inf] * 2)
    assert (plain.rstd[..., 0] == 0.0).all()
    np.testing.assert_array_equal(plain.normalized[:, 0], 0.0)
    alone = normalize(x, norm, **{**given, "running_var": 4.0}).normalized
    np.testing.assert_array_equal(plain.normalized[:, 1], alone[:, 1])
    scaled = normalize(x, norm, gamma=[2.0, 1.0], beta=[5.0, 0.0], **given)
    np.testing.assert_array_equal(scaled.normalized[:, 0], 5.0)
    assert "running statistics that are not finite" in plain.warnings[0]


MASKED = ("--data", "[[1,2],[3,4]]", "--eval", "--running-mean", "0", "--running-var", "1")


def test_counts_of_an_evaluation_are_of_any_tiles_and_threads(rng):
    x = rng.normal(size=(5, 3, 700))
    x[rng.random(x.shape) < 0.3] = np.nan
    mask = rng.random((3, 700)) < 0.5
    given = Given(np.zeros(3), np.ones(3))
    plan = plan_request(Request("bn"), x)
    for asked in (SelectionRequest(mask), SelectionRequest(mask, nan="omit")):
        inputs = fit_inputs(plan, x, running=given, selection=asked)
        marks = np.broadcast_to(mask, x.shape) & (~np.isnan(x) if asked.nan else True)
        for effort in (Effort(threads=2, block=1 << 8), Effort(threads=1)):
            for alone in (False, True):
                result = calculate(plan, x, inputs, effort=effort, statistics_alone=alone)
                assert result.counts.tolist() == marks.sum((0, 2)).tolist()


def test_nan_that_was_asked_for_is_no_fault(normcli):
    data = ("--data", "[[1,2],[3,NaN]]", *MASKED[2:], "--mask", "[[1,1],[1,0]]")
    for fill in ("nan", "pass", "zero", "normalize"):
        ran = normcli("bn", *data, "--fill", fill, "--strict")
        assert (ran.code, ran.err) == (0, "")
    assert normcli("bn", *data[:-2], "--mask", "[[0,0],[1,1]]", "--strict").code == 4
