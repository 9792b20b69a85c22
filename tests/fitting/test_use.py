"""Fitted statistics used on tensors, and that undone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.engine.run import run
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.fitting.subject import choose_subject
from normcli.fitting.use import Use, use_stats
from normcli.norms.conventions import find_convention, list_frameworks
from normcli.norms.request import Request
from normcli.norms.rules import Centre, EpsRule
from normcli.numerics.rational import find_root, round_once, sum_exactly
from normcli.results.calculate import calculate
from normcli.tensors.tensor import Tensor
from tests.conftest import plan_request
from tests.fitting.test_fit import fit_arrays, make
from tests.reference.groups import solve_group
from tests.reference.real import Real
from tests.reference.rounding import round_once as nearest

EFFORT = Effort(threads=2, block=512)


def apply(stats, x, **options):
    use = Use(stats, **options)
    plan = use.plan("x.npy", x)
    return run(plan, x, use.fit_inputs(plan), effort=EFFORT)[0]


def invert(stats, y, **options):
    use = Use(stats, **options)
    return use_stats(use, Tensor(y, "y.npy"), None, EFFORT, inverts=True)


def make_request(name):
    """Return a request for statistics that all samples of four axes share."""
    grouped = NORMS[name].needs_groups
    return Request(name, axes=(0, 1, 2, 3) if grouped else (0, 2, 3), groups=2 if grouped else None)


FITTABLE = [name for name, norm in NORMS.items() if name != "lrn" and norm.rows is None]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FITTABLE)
def test_applied_to_what_it_was_fitted_to_it_is_the_norm(name, dtype, rng):
    x = make(rng, (6, 4, 3, 5), dtype)
    request = make_request(name)
    stats = fit_arrays([x[:2], x[2:]], request)
    result = normalize(x, name, axes=request.axes, groups=request.groups)
    got = np.concatenate([apply(stats, part) for part in (x[:1], x[1:])])
    np.testing.assert_array_equal(got, result.normalized, strict=True)


def test_other_groups_or_axes_are_refused(rng):
    stats = fit_arrays([make(rng, (6, 3, 8), "float64")])
    with pytest.raises(DataError, match=r"x\.npy of the shape \(2, 4, 8\) has \(4,\) groups along c"):
        apply(stats, np.zeros((2, 4, 8)))
    with pytest.raises(DataError, match="has 2 axes; the statistics are of tensors of 3"):
        apply(stats, np.zeros((2, 3)))


INVERTIBLE = [name for name in FITTABLE if NORMS[name].centre is Centre.MEAN] + ["rms", "lp"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", INVERTIBLE)
def test_inverted_it_is_within_a_ulp_or_the_bound_that_is_told(name, dtype, rng):
    x = make(rng, (5, 4, 6, 7), dtype, 2.0, 0.5)
    stats = fit_arrays([x], make_request(name))
    back, loss = invert(stats, apply(stats, x))
    off = np.abs(back.astype("f8") - x.astype("f8"))
    ulp = np.spacing(np.abs(x)).astype("f8")
    assert (off <= np.maximum(ulp, loss.bound + ulp)).all()
    assert (off > ulp).sum() <= loss.count
    assert dtype == "float64" or loss.count < x.size // 2


def test_lost_values_are_counted_and_told():
    x = np.array([[1e8], [1.0], [-1e8]], "float32")
    stats = fit_arrays([x], Request("zscore"))
    _, loss = invert(stats, apply(stats, x))
    assert loss.count >= 1
    assert loss.bound > 0.1


def test_an_overflow_is_told():
    stats = fit_arrays([np.array([[-1e38], [1e38]], "float32")], Request("zscore"))
    back, loss = invert(stats, np.array([[1.0], [100.0]], "float32"))
    assert np.isinf(back[1, 0])
    assert loss.overflows == 1


def test_a_gamma_of_0_cannot_be_undone(rng):
    stats = fit_arrays([make(rng, (6, 2, 3), "float64")])
    with pytest.raises(UsageError, match="gamma is 0"):
        invert(stats, np.zeros((1, 2, 3)), gamma=np.array([1.0, 0.0]))


@pytest.mark.parametrize(("name", "like"), [(n, f) for n in FITTABLE for f in list_frameworks(n)])
def test_a_frameworks_convention_is_kept(name, like, rng):
    x = make(rng, (6, 4, 3, 5), "float32")
    eps = 1e-3 if find_convention(like, name).eps is EpsRule.GIVEN else None
    request = make_request(name)._replace(like=like, layout="NCHW", eps=eps)
    y = apply(fit_arrays([x[:1], x[1:]], request), x[:3])
    whole = calculate(plan_request(request, x), x).normalized
    np.testing.assert_array_equal(y, whole[:3], strict=True)


@pytest.mark.parametrize(
    ("fitted", "y", "ddof"),
    [
        pytest.param([[3.0], [0.0]], -0.9999977946281433, 0, id="nearly 0"),
        pytest.param([[-6.448e80], [-4.078e-293], [2.752e-29]], 0.5773502691896257, 1, id="wide"),
    ],
)
def test_what_the_mean_cancels_comes_back_exactly(fitted, y, ddof):
    stats = fit_arrays([np.array(fitted)], Request("zscore", ddof=ddof))
    sums = sum_exactly(np.array(fitted))
    root = find_root(sums.scatter() / (sums.count - ddof), 5000)
    assert invert(stats, np.array([[y]]))[0] == round_once(sums.mean() + Fraction(y) * root)


@pytest.mark.parametrize(
    ("axes", "layout", "wanted"),
    [((0,), "NC", ("a", "b")), ((0, 1), "NC", None), ((1,), "CN", None)],
    ids=["kept", "reduced", "samples"],
)
def test_columns_are_wanted_where_they_have_statistics_of_their_own(axes, layout, wanted):
    x, request = np.arange(6.0).reshape(3, 2), Request("zscore", axes=axes, layout=layout)
    subject = choose_subject(request, Tensor(x, "x", columns=("a", "b")))
    assert Use(fit_arrays([x], request)._replace(subject=subject)).wanted == wanted


ENDS = [2.258101033035733e307, -0.8907063934042704, 5e-324, -2.2250738585072014e-308, 1e60, 1e-250, -3e-303, 0]


@pytest.mark.parametrize("name", ["zscore", "minmax", "midrange", "maxabs", "robust", "bn", "rms", "lp"])
@pytest.mark.parametrize("places", [(0, 1), (1, 2, 5), (2, 3), (4, 2, 7, 2), (6, 0, 7), (5, 6, 5)])
def test_the_ends_of_the_range(name, places):
    """Whatever it was fitted to, any number is applied, and inverted, as the exact statistics have it."""
    values = np.array(ENDS)[:, None]
    fitted = values[list(places)]
    eps = {"eps": 1e-300} if name in ("bn", "rms") else {}
    stats = fit_arrays([fitted], Request(name, axes=(0,), **eps))
    solved = solve_group(Use(stats).plan("x.npy", values), fitted)
    numbers = [Real.of(value) for value in values[:, 0].tolist()]
    forward = [nearest((number - solved.centre) / solved.divisor, "float64") for number in numbers]
    np.testing.assert_array_equal(apply(stats, values)[:, 0], forward)
    back = [nearest(number * solved.divisor + solved.centre, "float64") for number in numbers]
    np.testing.assert_array_equal(invert(stats, values)[0][:, 0], back)
