"""What comes nearest where nothing fits: which hypothesis, which values it does not explain, and how sure that is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.nearly.nearest import Nearness
from normcli.identifying.question import Question
from normcli.identifying.search.affine_step import enumerate_affine_steps
from normcli.identifying.search.match import Scope
from normcli.identifying.search.samples import Samples

X = np.random.default_rng(0).normal(0.7, 2.0, (13, 11)).astype("f4")


def find(y, x=X, norm=None, **parameters):
    steps = list(enumerate_affine_steps(x.shape, *map(parameters.get, ("gamma", "beta"))))
    scope = Scope(norm, frozenset({1, x.ndim - 1}), tuple(range(x.ndim)), np.dtype(y.dtype))
    return Nearness(Samples(x, y, steps, scope)).find_nearest()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"eps": 1e-3}, ("inside", 0, 1e-3)),
        ({"eps": 0.1}, ("inside", 0, 0.1)),
        ({"eps": 0.1, "eps_mode": "outside"}, ("outside", 0, 0.1)),
        ({"eps": 0.1, "ddof": 1}, ("inside", 1, 0.1)),
    ],
)
def test_the_nearest_has_its_eps_and_ddof_and_names_what_it_does_not_explain(options, expected):
    y = normalize(X, "ln", **options).normalized.copy()
    y[3, 5] += 0.25
    y[3, 2] -= 0.25
    near = find(y)
    match = near.match
    assert (match.norm, match.axes, (match.eps_mode, match.ddof, match.eps)) == ("ln", (1,), expected)
    assert (near.mismatches, near.compared, near.first) == (2, X.size, (3, 2))
    assert near.bits > 900.0
    assert match.max_abs == pytest.approx(0.25, rel=1e-3)


def test_evidence_is_less_the_more_is_not_explained():
    y, bits = normalize(X, "ln").normalized.copy(), []
    for count in (1, 30, 60):
        y.reshape(-1)[:count] = 9.0 + np.arange(count)
        near = find(y)
        assert near.mismatches == count
        bits.append(near.bits)
    assert bits[0] > bits[1] > 20.0
    each = (bits[0] - bits[1]) / 29.0
    assert each > 2.0 * math.log2(X.size)  # its place, and what it would have shown


def test_what_is_near_nothing_has_no_evidence():
    near = find(np.random.default_rng(1).normal(size=X.shape).astype("f4"))
    assert near.bits < 0.0
    assert 2 * near.mismatches > near.compared


@pytest.mark.parametrize(("norm", "named"), [(None, "bn"), ("bn", "bn"), ("ln", "ln"), ("rms", "rms")])
def test_the_nearest_is_of_the_norm_that_was_asked_for(norm, named):
    y = normalize(X, "bn").normalized.copy()
    y[3, 5] += 0.25
    near = find(y, norm=norm)
    assert near.match.norm == named
    assert (near.mismatches == 1) == (named == "bn")


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_nearest_may_be_a_length(p):
    y = normalize(X, "lp", p=p).normalized.copy()
    y[3, 5] += 0.25
    near = find(y)
    assert (near.match.p, near.mismatches, near.first) == (p, 1, (3, 5))


def test_the_nearest_has_the_gamma_and_beta_that_were_given():
    gamma, beta = np.linspace(0.5, 2.0, 11), np.linspace(-1.0, 1.0, 11)
    y = normalize(X, "ln", gamma=gamma, beta=beta).normalized.copy()
    y[0, 0] = np.nan
    near = find(y, gamma=gamma, beta=beta)
    assert (near.match.affine, near.mismatches, near.first) == ("gamma, beta", 1, (0, 0))


def test_the_nearest_is_said_in_the_precision_that_it_is_judged_in():
    half = normalize(X.astype("f2"), "ln").normalized.copy()
    half[3, 5] += 1
    double = normalize(X.astype("f8"), "ln").normalized.copy()
    double[3, 5] += 1
    assert find(half, X.astype("f2")).match.precision == "float32"
    assert find(double, X.astype("f8")).match.precision == "float64"


def test_groups_of_two_values_are_no_evidence():
    x = X[:, :2]
    y = normalize(x, "ln").normalized.copy()
    y[3, 1] = 0.5
    assert find(y, x, "ln").bits <= 0.0


# -- exceptions that lie all over are none, but a sign of another arithmetic


def make_off(part):
    """Return x and layer normalization whose variances are off by a thousandth in a part of the groups."""
    rng = np.random.default_rng(4)
    x = rng.normal(0.7, 2.0, (60, 64)).astype("f4")
    factors = np.where(np.arange(60) < part * 60, rng.uniform(0.998, 0.999, 60), 1.0)
    return x, (normalize(x, "ln").normalized * factors[:, None]).astype("f4")


@pytest.mark.slow
def test_variances_that_are_off_in_a_third_of_the_groups_are_no_exceptions():
    nearest = identify(Question(*make_off(1 / 3))).nearest
    assert nearest is None or nearest.bits == 0.0


@pytest.mark.slow
def test_one_group_whose_variance_is_off_is_an_exception():
    nearest = identify(Question(*make_off(1 / 60))).nearest
    assert (nearest.match.norm, nearest.shared) == ("ln", ((0, 0),))
    assert nearest.bits >= CERTAIN


@pytest.mark.slow
@pytest.mark.parametrize("replaced", ["values", "groups"])
def test_what_somebody_has_spoilt_is_an_exception_wherever_it_lies(replaced):
    x, y = make_off(0.0)
    spoilt = np.random.default_rng(5).random(y.shape if replaced == "values" else (60, 1)) < 0.15
    nearest = identify(Question(x, np.where(spoilt, x, y))).nearest
    assert (nearest.match.norm, nearest.bits >= CERTAIN) == ("ln", True)


@pytest.mark.peers
def test_what_torch_makes_of_channels_last_off_centre_has_no_other_eps_with_exceptions():
    torch = pytest.importorskip("torch")
    x = torch.tensor(np.random.default_rng(8).normal(100.0, 1.0, (8, 8, 5, 7)).astype("f4"))
    y = torch.nn.functional.group_norm(x.to(memory_format=torch.channels_last), 4).contiguous()
    nearest = identify(Question(x.numpy(), y.numpy())).nearest
    assert nearest is None or nearest.bits < CERTAIN
