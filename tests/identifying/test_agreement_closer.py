"""A check that passes says which other convention gives far more values exactly, and nothing where rounding may."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, normalize
from normcli.dtypes import find_type
from normcli.identifying.words.agreement import diagnose_closer_convention
from normcli.results.arguments import read_arguments

LOOSE = {"rtol": 1e-2, "atol": 1e-2}


def make(shape=(32, 64), dtype="float32", offset=0.0, scale=1.0):
    return np.random.default_rng(0).normal(offset, scale, shape).astype(dtype)


def remark(y, x, norm="ln", **options):
    """Return what is said of a tensor, once it is sure that it passes."""
    judgement = check(y, x, norm, **LOOSE, **options)
    assert judgement.ok
    asked = read_arguments(x, norm, options)
    with np.errstate(all="ignore"):
        said = diagnose_closer_convention(asked.plan, asked.values, y, asked.inputs)
    sentence = None if said is None else said.sentence
    assert judgement.data()["sentence"] == sentence
    return sentence


def plainly(x, eps, gamma=1.0, beta=0.0, axis=-1):
    """Layer normalization in the tensor's own dtype, as people write it."""
    mean = x.mean(axis, keepdims=True)
    y = (x - mean) / np.sqrt(x.var(axis, keepdims=True) + x.dtype.type(eps))
    return (y * np.asarray(gamma, x.dtype) + np.asarray(beta, x.dtype)).astype(x.dtype)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"eps": 1e-12}, "eps 1e-12 gives every value exactly", id="eps, with who uses it"),
        pytest.param(
            {"eps_mode": "outside"}, "eps 1e-05 outside the root gives every value exactly", id="outside"
        ),
        pytest.param({"ddof": 1}, "eps 1e-05 and ddof 1 gives every value exactly", id="ddof"),
    ],
)
def test_what_differs_is_said(options, words):
    x = make((32, 512), "float64", scale=0.5)
    said = remark(normalize(x, "ln", **options).normalized, x)
    assert said.startswith(f"ln passes the tolerance, but {words}. Evidence: ")
    assert said.endswith("; so do bert.") == ("eps" in options)


def test_of_a_kernel_that_rounds_the_shares_of_exact_values_are_said():
    x = make()
    said = remark(plainly(x, 1e-6), x)
    assert said.startswith("ln passes the tolerance, but eps 1e-06 gives more values exactly")
    assert " % of the values are exact with that, " in said


def test_gamma_and_beta_enter_as_they_were_given():
    x, gamma, beta = make(), make(64), make(64) + 3
    y = plainly(x, 1e-3, gamma, beta)
    assert "eps 0.001" in remark(y, x, gamma=gamma, beta=beta)
    y = normalize(x, "rms", eps=1e-3, gamma=gamma, like="llama").normalized
    assert "eps 0.001" in remark(y, x, "rms", gamma=gamma)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("shape", [(32, 64), (2, 8), (3, 512)])
def test_where_rounding_explains_the_difference_nothing_is_said(shape, offset, dtype):
    x = make(shape, dtype, offset)
    wide = plainly(x.astype("float32"), 1e-5).astype(dtype)
    for y in (normalize(x, "ln").normalized, wide):
        asked = read_arguments(x, "ln", {})
        with np.errstate(all="ignore"):
            assert diagnose_closer_convention(asked.plan, asked.values, y, asked.inputs) is None


@pytest.mark.parametrize("norm", ["minmax", "lp", "lrn", "zscore"])
def test_norms_without_such_an_eps_are_passed_over(norm):
    x = make()
    assert remark(normalize(x, norm).normalized, x, norm) is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_factor_with_which_values_are_exact_is_said(dtype):
    x = make().astype(find_type(dtype))
    right = normalize(x, "ln", dtype="float64").normalized
    assert "but 1.009 times the result gives every value exactly" in remark((right * 1.009).astype(x.dtype), x)
    y = (right * 1.002 + 2.0).astype(x.dtype)
    assert "but 1.002 times x̂ gives every value exactly" in remark(
        y, x, beta=np.full(x.shape[-1], 2.0, x.dtype)
    )
