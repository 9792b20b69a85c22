"""The inputs on which kernels fail: what there is among them, and that none of them hides a fault."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from normcli import NORMS, backward, normalize
from normcli.checking.gradient_terms import make_terms
from normcli.dtypes import OUTPUT_DTYPES
from normcli.errors import DataError, UsageError
from normcli.testing import assert_matches, provocations
from tests.marks import costly


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    ("norm", "dtype"), [*((norm, "float32") for norm in NORMS), *(("bn", dtype) for dtype in OUTPUT_DTYPES)]
)
def test_every_norm_and_dtype_has_them_and_what_is_exact_passes(norm, dtype):
    cases = provocations(norm, dtype)
    names = [str(case) for case in cases]
    assert len(set(names)) == len(names) >= 30
    for case in cases:
        assert {case.x.dtype.name, case.dy.dtype.name} == {dtype}
        assert np.isfinite(case.x.astype(np.float64)).all()
        assert case.dy.shape == case.x.shape
        assert_matches(
            normalize(case.x, norm, **case.options).normalized, case.x, norm, max_ulp=0.51, **case.options
        )


@costly
@pytest.mark.parametrize(
    ("dtype", "lost"),
    [
        ("float16", []),
        ("bfloat16", ["edge of bfloat16"]),
        ("float32", ["mean 4.1943e+06 times the spread", "edge of float32"]),
    ],
)
def test_sums_in_float32_are_promised_nothing_of_the_cases_that_the_docstring_names(dtype, lost):
    cases = provocations("ln", dtype)
    assert set(lost) <= {case.name for case in cases}
    for case in cases:
        y = normalize(case.x, "ln", **case.options).normalized
        told = pytest.raises(AssertionError, match="promises nothing of 8 of 8 groups")
        with told if case.name in lost else contextlib.nullcontext():
            assert_matches(y, case.x, "ln", accumulate="float32", **case.options)


@pytest.mark.parametrize("norm", ["ln", "bn", "gn", "in", "wn"])
def test_group_sizes_are_those_around_powers_of_two(norm):
    found = set()
    for case in provocations(norm):
        if str(case).startswith("group size"):
            result = normalize(case.x, norm, **case.options)
            assert str(case) == f"group size {result.group_size}"
            assert result.group_count > 1
            found.add(result.group_size)
    assert found >= {n + off for n in (8, 32, 128, 1024) for off in (-1, 0, 1)} | {1, 2, 3}


def find(name, norm="ln", dtype="float32"):
    (case,) = (case for case in provocations(norm, dtype) if str(case).startswith(name))
    return case


WITHOUT_SPREAD = (
    "group size 1",
    "group size 2",
    "constant",
    "one constant",
    "all zeros",
    "no values",
    "subnormals",
)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["ln", "bn", "gn", "rms", "ws"])
def test_no_gradient_hides_a_term(norm):
    """Without either term dx is off by a twentieth at least, and by no mere rounding."""
    shown = 0
    for case in provocations(norm, "float32"):
        if str(case).startswith(WITHOUT_SPREAD):
            continue
        exact = backward(case.x.astype(np.float64), case.dy, norm, **case.options)
        terms = make_terms(exact)
        right = np.linalg.norm(exact.dx)
        wrongs = [terms.scale(b=0.0).differentiate(), terms.g / terms.divisor]
        if terms.centres:
            wrongs.append(terms.scale(a=0.0).differentiate())
        for wrong in wrongs:
            if (1e-5 / terms.divisor**2).max() < 0.1:  # where eps outweighs the variance, there is no term
                assert np.linalg.norm(wrong.reshape(case.x.shape) - exact.dx) > 0.05 * right, str(case)
                shown += 1
    assert shown > 30


@pytest.mark.slow
def test_options_are_those_of_normalize_and_shapes_that_do_not_fit_are_left_out():
    cases = provocations("gn", "float16", groups=3, like="torch")
    assert {case.options["groups"] for case in cases} == {3}
    assert {case.options["like"] for case in cases} == {"torch"}
    assert len(cases) < len(provocations("gn", "float16"))
    assert {case.x.ndim for case in provocations("ln", layout="NCHW")} == {4}
    assert {case.x.ndim for case in provocations("ln", axes=4)} == {5}


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("ln", "int8"), {}, "dtype 'int8' is none of float16, bfloat16, float32, float64"),
        ((3,), {}, "norm 3 is not a name"),
        (("ln",), {"seed": -1}, "seed -1 is less than 0"),
        (("ln",), {"foo": 1}, "provocations has no option 'foo'"),
        (("ln",), {"axes": 5}, r"no shape fits these options; of \(2, 4, 3, 6\): axes: axis 5 is out of range"),
        (("banana",), {}, "banana"),
        (("ln",), {"eps": -1.0}, "eps -1"),
        (("ln",), {"axes": 1, "keep": 1}, "axes and keep say the same thing"),
    ],
    ids=repr,
)
def test_arguments_that_make_no_sense_are_usage_errors(arguments, options, message):
    with pytest.raises(UsageError, match=message):
        provocations(*arguments, **options)


def test_a_gamma_that_does_not_fit_every_shape_is_a_data_error():
    with pytest.raises(DataError, match="gamma has the shape"):
        provocations("ln", gamma=np.ones(3))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_added_to_gamma_does_not_make_it_zero(dtype):
    """Gemma multiplies by 1 + gamma: no gamma is near −1, and every dy is finite."""
    for case in provocations("rms", dtype, seed=4, like="gemma"):
        if case.x.size:
            assert np.abs(case.gamma.astype(np.float64) + 1.0).min() > 0.45
            assert np.abs(case.dy.astype(np.float64)).max() < 100.0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_values():
    first, again, other = (provocations("ln", seed=seed) for seed in (1, 1, 2))
    for one, same, another in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one.x, same.x)
        np.testing.assert_array_equal(one.dy, same.dy)
        if one.x.size and "zeros" not in str(one):
            assert (one.dy != another.dy).any()
