"""Doubles decide ordinary results without any fraction; fractions, where they are made to decide, give the same bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import backward, normalize
from normcli.compiled import NUMPY, VARIABLE
from normcli.norms.table import NORMS
from normcli.numerics.elements.in_pairs import Results

RNG = np.random.default_rng(5)
X, DY = RNG.normal(1.0, 2.0, (3, 4, 6)), RNG.normal(size=(3, 4, 6))

CASES = [
    *(pytest.param(name, {}, id=name) for name in NORMS if name not in ("gn", "lp", "sn", "robust")),
    *(pytest.param("lp", {"p": p}, id=f"lp {p}") for p in (0, 0.5, 1, 1.7, 2, 3, -1.5, np.inf, -np.inf)),
    pytest.param("gn", {"groups": 2}, id="gn"),
    pytest.param("bn", {"ddof": 1, "eps_mode": "outside"}, id="bn outside"),
    pytest.param("bn", {"eps": 0.0}, id="bn without eps"),
    pytest.param("bn", {"running_mean": 0.25, "running_var": 2.0}, id="bn of running statistics"),
    pytest.param("mvn", {"mask": np.arange(4)[:, None] != 2, "axes": (1, 2)}, id="mvn masked"),
    pytest.param("lp", {"like": "torch", "eps": 5.0}, id="lp floor"),
    pytest.param("zscore", {"no_mean": True}, id="zscore without mean"),
    pytest.param("zscore", {"no_scale": True}, id="zscore without scale"),
    pytest.param("lrn", {"size": 3, "exponent": 2.0, "k": 2.0, "alpha": 0.5}, id="lrn squares"),
]
BY_ORDER = [
    pytest.param("robust", options, id=f"robust {options}") for options in ({}, {"quantiles": (10.0, 97.5)})
]
DIFFERENTIABLE = [case for case in CASES if NORMS[case.values[0]].gradient_names and "zscore w" not in case.id]


@pytest.fixture(autouse=True)
def _without_compiled_kernel(monkeypatch):
    monkeypatch.setenv(VARIABLE, NUMPY)


def refuse(*_, **__):
    pytest.fail("a fraction was made")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("norm", "options"), CASES)
def test_ordinary_values_are_normalized_without_fractions(norm, options, dtype, monkeypatch):
    x, parameters = X.astype(dtype), dict.fromkeys(NORMS[norm].parameter_names, 0.75)
    expected = normalize(x, norm, **options, **parameters)
    monkeypatch.setattr(Fraction, "__new__", refuse)
    found = normalize(x, norm, **options, **parameters)
    np.testing.assert_array_equal(found.normalized, expected.normalized)


@pytest.mark.parametrize(("norm", "options"), BY_ORDER)
def test_ordinary_quantiles_are_decided_without_fractions(norm, options, monkeypatch):
    expected = normalize(X, norm, **options)
    monkeypatch.setattr("normcli.numerics.rational.split", refuse)
    monkeypatch.setattr("normcli.numerics.rational.round_once", refuse)
    np.testing.assert_array_equal(normalize(X, norm, **options).normalized, expected.normalized)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("norm", "options"), DIFFERENTIABLE)
def test_ordinary_derivatives_are_taken_without_fractions(norm, options, dtype, monkeypatch):
    x, dy = X.astype(dtype), DY.astype(dtype)
    expected = backward(x, dy, norm, **options)
    monkeypatch.setattr(Fraction, "__new__", refuse)
    np.testing.assert_array_equal(backward(x, dy, norm, **options).dx, expected.dx)


def require_same(monkeypatch, changes, calculate):
    """Require that what a function returns, arrays by name, is the same when other functions stand in some places."""
    expected = calculate()
    for place, other in changes.items():
        monkeypatch.setattr(f"normcli.{place}", other)
    for name, values in calculate().items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name, strict=True)


UNDECIDED = {
    **{f"{module}.KNOWN": -1.0 for module in ("numerics.statistics.lengths", "engine.lrn.windows")},
    **{
        f"numerics.statistics.{module}.is_double_decided": lambda value, _: np.zeros(np.shape(value[0]), bool)
        for module in ("solution", "order_statistics", "moments")
    },
}  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 2.0**-600], ids=["ordinary", "small"])
@pytest.mark.parametrize(("norm", "options"), CASES + BY_ORDER)
def test_statistics_are_the_same_of_fractions(norm, options, scale, monkeypatch):
    def calculate():
        result = normalize(X * scale, norm, **options)
        return {"normalized": result.normalized, **result.statistics}

    require_same(monkeypatch, UNDECIDED, calculate)


def miss_everything(elements, *_):
    return np.ones(elements.x.shape, bool)


def decide_nothing(elements, _, **__):
    return Results(np.zeros(elements.x.shape), np.ones(elements.x.shape, bool))


MISSED = {"numerics.elements.kernel.apply_usual": miss_everything}


@pytest.mark.parametrize(
    "others",
    [MISSED, {**MISSED, "numerics.elements.kernel.calculate": decide_nothing}],
    ids=["pairs", "fractions"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("norm", "options"), [case for case in CASES if case.values[0] != "lrn"] + BY_ORDER)
def test_values_are_the_same_by_themselves(norm, options, dtype, others, monkeypatch):
    parameters = dict(zip(NORMS[norm].parameter_names, (0.75, -1.25), strict=False))
    x = X.astype(dtype)
    require_same(
        monkeypatch, others, lambda: {"normalized": normalize(x, norm, **options, **parameters).normalized}
    )


def differentiate_nothing(groups, _, dtype, gate=None):
    return np.zeros(groups.w.value.shape, dtype), np.ones(groups.w.value.shape, bool)


def round_nothing(found, dtype):
    return np.zeros(found.value.hi.shape, dtype), np.ones(found.value.hi.shape, bool)


ROUND_NOTHING = {
    f"engine.{module}.round_known": round_nothing
    for module in ("gradients.tile_gradients", "gradients.parameter_sums", "lrn.gradients")
} | {"engine.gradients.passes.differentiate_in_doubles": differentiate_nothing}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("norm", "options"), DIFFERENTIABLE)
def test_derivatives_are_the_same_of_fractions(norm, options, dtype, monkeypatch):
    x, dy = X[:, :, :4].astype(dtype), DY[:, :, :4].astype(dtype)

    def calculate():
        found = backward(x, dy, norm, **options)
        return {name: getattr(found, name) for name in NORMS[norm].gradient_names}

    require_same(monkeypatch, ROUND_NOTHING, calculate)
