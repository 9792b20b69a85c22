"""The compiled kernel: chosen where it is asked for, checked before it is used, and the same to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normcli import NormError, backward, normalize
from normcli import compiled as room
from normcli.compiled import (
    COMPILED,
    NUMPY,
    STAMP,
    VARIABLE,
    Kernel,
    describe_kernel,
    find_kernel,
    list_variants,
)
from normcli.dtypes import find_type
from normcli.engine import small
from normcli.engine.inputs import Inputs, Selection
from normcli.engine.run import run
from normcli.engine.walk import Effort
from normcli.norms.plan import make_plan
from normcli.norms.request import Fill, Request
from normcli.numerics.elements.compiled_kernel import Rule, measure_parts
from normcli.numerics.rounding import store
from normcli.numerics.statistics.solution import Given
from tests.compiled import find_stamp
from tests.conftest import ROOT
from tests.marks import costly

KERNEL = find_kernel() if os.environ.get(VARIABLE) != NUMPY else None
needs_kernel = pytest.mark.skipif(KERNEL is None, reason="the compiled kernel is not there, or not to be used")


def run_shell(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "normcli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables},
    )


# -- which kernel runs


def test_the_stamp_is_that_of_the_sources():
    assert Path(STAMP).read_text() == find_stamp(), "renew it: python -m tests.compiled"


def test_every_header_is_one_that_the_object_depends_on():
    with (ROOT / "pyproject.toml").open("rb") as stream:
        (module,) = tomllib.load(stream)["tool"]["setuptools"]["ext-modules"]
    said = sorted(module["sources"] + module["depends"])
    assert said == sorted(f"normcli/compiled/{path.name}" for path in Path(STAMP).parent.glob("*.[ch]"))


def test_numpy_is_chosen_by_the_variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, NUMPY)
    assert find_kernel() is None
    assert describe_kernel() == "numpy kernel"


@needs_kernel
def test_the_compiled_kernel_is_chosen_where_it_is_there(monkeypatch):
    for value in ("", COMPILED):
        monkeypatch.setenv(VARIABLE, value)
        assert find_kernel() == KERNEL
    assert describe_kernel().startswith("compiled kernel, ")


def test_a_kernel_of_other_sources_is_not_used(monkeypatch):
    room._load.cache_clear()
    monkeypatch.setattr(room.importlib, "import_module", lambda name: mock.Mock(STAMP="another", any=0))
    monkeypatch.setenv(VARIABLE, "")
    try:
        assert find_kernel() is None
        monkeypatch.setenv(VARIABLE, COMPILED)
        with pytest.raises(NormError, match="is not there"):
            find_kernel()
    finally:
        room._load.cache_clear()


@pytest.mark.parametrize("arguments", [("--version",), ("bn", "--shape", "2,3,4,4")], ids=" ".join)
def test_another_kernel_is_refused_in_one_line(arguments):
    ran = run_shell(*arguments, NORMCLI_KERNEL="fortran")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "NORMCLI_KERNEL is 'fortran'; it takes numpy or compiled" in ran.stderr


# -- the same bits


def compare(x, norm, kernel, **options):
    """Assert that a variant of the kernel gives the same bits as NumPy; NaN is one value."""
    with mock.patch.dict(os.environ, {VARIABLE: NUMPY}):
        wanted = normalize(x, norm, **options)
    for most in (small.MOST_VALUES, 0):  # at once where it is small, and in tiles
        with (
            mock.patch.object(room, "_load", return_value=kernel),
            mock.patch.object(small, "MOST_VALUES", most),
        ):
            found = normalize(x, norm, **options)
        for name in wanted.statistics:
            assert_same(found.statistics[name], wanted.statistics[name], name)
        assert_same(found.normalized, wanted.normalized, "normalized")


def assert_same(found, wanted, name):
    assert found.dtype == wanted.dtype
    one, other = (np.asarray(a, np.float64) for a in (found, wanted))
    where = (one.view(np.int64) != other.view(np.int64)) & ~(np.isnan(one) & np.isnan(other))
    assert not where.any(), f"{name}: {one[where][:5]} instead of {other[where][:5]}"


def name_variants():
    variants = {} if KERNEL is None else list_variants(KERNEL.module)
    return [pytest.param(number, id=name) for name, number in variants.items()]


VALUES = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "far from 0": lambda rng, shape: 1e4 + rng.standard_normal(shape),
    "whole": lambda rng, shape: rng.integers(-9, 9, shape).astype(float),
    "constant": lambda rng, shape: np.full(shape, 0.1),
    "many magnitudes": lambda rng, shape: rng.standard_normal(shape) * 2.0 ** rng.integers(-40, 40, shape),
    "subnormal": lambda rng, shape: rng.standard_normal(shape) * rng.choice([1e-41, 1e-310, 1e-6]),
    "ends of the range": lambda rng, shape: rng.standard_normal(shape) * 10.0 ** rng.integers(-290, 290, shape),
    "zeros": lambda rng, shape: rng.standard_normal(shape) * rng.integers(0, 2, shape) * -1.0,
    "beyond 2^53": lambda rng, shape: (
        rng.standard_normal(shape) * 2.0 ** rng.integers(50, 60, (shape[0], *[1] * (len(shape) - 1)))
    ),
    "not finite": lambda rng, shape: rng.choice(
        [1.0, -2.5, np.nan, np.inf, -0.0], shape, p=[0.5, 0.47, 0.01, 0.01, 0.01]
    ),
}
FLOATS = ["float64", "float32", "float16", "bfloat16"]
ORDERS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "rolled": lambda x: np.ascontiguousarray(np.moveaxis(x, -1, 0)).transpose(*range(1, x.ndim), 0),
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ..., ::-1])[::-1, ..., ::-1],
    "with gaps": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
}
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 257, 1023, 1024, 1025, 2049, 4097]
NAMES = ["ln", "rms", "bn", "in", "lp", "ws", "mvn", "zscore"]


@pytest.mark.slow
@costly
@needs_kernel
@pytest.mark.parametrize("variant", name_variants())
@given(
    norm=st.sampled_from(NAMES),
    dtype=st.sampled_from([*FLOATS, "int16", "int64"]),
    kind=st.sampled_from(sorted(VALUES)),
    size=st.sampled_from(SIZES),
    groups=st.integers(1, 70),
    order=st.sampled_from(sorted(ORDERS)),
    parameters=st.sampled_from(["", "gamma", "beta", "both"]),
    far=st.booleans(),
    out=st.sampled_from([None, *FLOATS]),
    masked=st.sampled_from(["", "", "pass", "zero", "nan", "normalize"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_of_both_kernels(
    variant, norm, dtype, kind, size, groups, order, parameters, far, out, masked, seed
):
    rng = np.random.default_rng(seed)
    shape = (
        (size, groups) if norm in ("bn", "zscore") else (1, groups, size) if norm == "in" else (groups, size)
    )
    if norm == "mvn":
        shape = (max(1, size // 4), groups % 5 + 1, 4)
    with np.errstate(all="ignore"):
        x = ORDERS[order](VALUES[kind](rng, shape).astype(find_type(dtype)))
    options = {} if out is None else {"dtype": out}
    if masked:
        whole = rng.random() < 0.7
        mask = np.broadcast_to(rng.random(shape if whole else shape[-1]) < rng.choice([0.05, 0.7]), shape)
        options |= {"mask": mask, "fill": masked, "nan": rng.choice(["omit", "propagate"])}
    length = {"ln": shape[-1], "rms": shape[-1], "bn": shape[1], "in": shape[1]}.get(norm)
    for name in (parameters,) if parameters != "both" else ("gamma", "beta"):
        if length is not None and name and (norm, name) != ("rms", "beta"):
            scale = 2.0 ** rng.choice([0, 0, 0, 400, -400], length) if far else 1.0
            options[name] = rng.standard_normal(length) * scale
    compare(x, norm, Kernel(KERNEL.module, variant), **options)


@pytest.mark.slow
@needs_kernel
@given(
    norm=st.sampled_from(["minmax", "maxabs", "midrange", 1.0, np.inf, -np.inf, 3.0, 0.0]),
    dtype=st.sampled_from([*FLOATS, "int16", "int64"]),
    kind=st.sampled_from(sorted(VALUES)),
    shape=st.tuples(st.integers(1, 70), st.sampled_from(SIZES[:-4])),
    axis=st.sampled_from([0, 1]),
    order=st.sampled_from(sorted(ORDERS)),
    masked=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_of_extremes_and_lengths(norm, dtype, kind, shape, axis, order, masked, seed):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        x = ORDERS[order](VALUES[kind](rng, shape).astype(find_type(dtype)))
    options = {"mask": rng.random(shape) < 0.7} if masked else {}
    norm, options = ("lp", options | {"p": norm}) if isinstance(norm, float) else (norm, options)
    compare(x, norm, KERNEL, axes=axis, **options)


@pytest.mark.slow
@needs_kernel
@given(
    norm=st.sampled_from(["bn", "in", "gn", "rms"]),
    dtype=st.sampled_from([*FLOATS, "int32", "int64"]),
    kind=st.sampled_from(sorted(VALUES)),
    shape=st.tuples(st.integers(1, 5), st.sampled_from([2, 4, 20]), st.sampled_from([1, 3, 50])),
    last=st.booleans(),
    block=st.sampled_from([100, 1000, 1 << 20]),
    whole=st.sampled_from([1, 1 << 18]),
    parameters=st.booleans(),
    evaluated=st.booleans(),
    masked=st.sampled_from([None, None, *Fill]),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_in_passes(norm, dtype, kind, shape, last, block, whole, parameters, evaluated, masked, seed):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        x = VALUES[kind](rng, shape).astype(find_type(dtype))
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    request = Request(norm, layout="NLC" if last else "NCL", groups=2 if norm == "gn" else None)
    plan = make_plan(request, x.shape, x.dtype)
    gamma = rng.standard_normal(plan.parameters.shape) if parameters else None
    beta = rng.standard_normal(plan.parameters.shape) if parameters and norm != "rms" else None
    known = None
    if evaluated and norm == "bn":
        known = Given(rng.standard_normal(shape[1]), rng.standard_normal(shape[1]) ** 2)
    selection = None if masked is None else Selection(rng.random(x.shape) < 0.7, omits_nan=last, fill=masked)
    results = []
    for kernel in (NUMPY, COMPILED):
        with mock.patch.dict(os.environ, {VARIABLE: kernel}):
            effort = Effort(threads=1, block=block, whole=whole)
            results.append(run(plan, x, Inputs(gamma, beta, known, selection), effort=effort))
    (wanted, statistics), (found, others) = results
    for name, values in statistics.items():
        assert_same(others[name], values, name)
    assert_same(found, wanted, "normalized")


@needs_kernel
@pytest.mark.parametrize("variant", name_variants())
@pytest.mark.parametrize("channels", [1, 2, 3, 5, 31, 33])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_bits_of_few_columns(variant, channels, dtype):
    """Of which several values are looked at together, and a few are left at the end."""
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((3, 7, 11, channels))
    x[0, 0, 0] *= 2.0**-9
    kernel = Kernel(KERNEL.module, variant)
    compare(x.astype(dtype), "bn", kernel, layout="NHWC")
    compare((1e3 * x).astype(dtype), "bn", kernel, layout="NHWC", gamma=rng.standard_normal(channels))
    compare(x.reshape(-1, channels).astype(dtype), "zscore", kernel)


@needs_kernel
@pytest.mark.parametrize("variant", name_variants())
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once(variant, dtype):
    """At every number of the dtype and a little beside the middle of neighbours; in the middle, Python decides."""
    ends = (0, 0x7C00) if dtype == "float16" else (0x80, 0x7F80)  # below, Python decides
    numbers = np.arange(*ends, dtype=np.uint16).view(find_type(dtype))
    middles = (numbers[:-1].astype(np.float64) + numbers[1:]) / 2
    near = [middles * (1 + sign * 2.0**-e) for e in (26, 36) for sign in (-1, 1)]
    others = [np.nan, 1e300, 0.0, 65519.9, 2.0**-26, 3.3961e38]
    decided = np.concatenate([numbers.astype(np.float64), *near, others])
    x = np.concatenate([decided, -decided, middles, -middles])
    results, wanted = np.empty((2, x.size), np.uint16 if dtype == "bfloat16" else dtype)
    missed = np.empty((2 * middles.size, 7))
    given = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    rule = Rule(1.0, 0.0, 0.0, 0.0, 0, centred=False, exact=False)
    views = {"x": x.reshape(1, 1, 1, -1), "out": results.reshape(1, 1, 1, -1), "left": np.zeros(1, np.bool_)}
    assert len(missed) == call_kernel(
        variant=variant, known=given, rule=rule, results=(), missed=missed, **views
    )
    np.testing.assert_array_equal(missed[:, 0], 2 * decided.size + np.arange(2 * middles.size))
    with np.errstate(over="ignore"):
        store(wanted.view(find_type(dtype)), x)
    end = 2 * decided.size
    assert_same(results.view(find_type(dtype))[:end], wanted.view(find_type(dtype))[:end], dtype)


@pytest.mark.slow
@needs_kernel
@pytest.mark.parametrize("variant", name_variants())
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("given", ["", "gamma", "gamma and beta"])
def test_short_results_are_rounded_once_whatever_is_added(variant, dtype, given):
    """Floats decide most halves, and bounds of their errors which these are: of 64,000, some lie near each bound."""
    rng = np.random.default_rng(7)
    names = [name for name in ("gamma", "beta") if name in given]
    parameters = {name: rng.standard_normal(1000) for name in names}
    if names:
        parameters["gamma"][1::7] *= 2.0**38
    for offset in (0.0, 3.0, -40.0):
        x = rng.standard_normal((64, 1000)) + offset
        x[:, ::7], x[:, 1::7] = 0.0, x[:, 1::7] * 2.0**-134
        compare(x.astype(find_type(dtype)), "ln", Kernel(KERNEL.module, variant), **parameters)
    compare(x.astype(find_type(dtype)), "rms", Kernel(KERNEL.module, variant), **parameters)


@pytest.mark.slow
@needs_kernel
def test_rows_of_values_far_apart_are_decided():
    """Of which a grid does not hold the sums, but three and four doubles do."""
    x = np.random.default_rng(7).standard_normal((10, 2000))
    x[:, 1500::97] *= 2.0**-20  # the leaves before these lie on grids
    leaves = measure_parts(KERNEL, x.reshape(1, 10, 1, 2000), need_sum=True)
    assert not leaves.extreme.any()
    for row, *sums in zip(x.tolist(), *(a[0] for a in (*leaves.sums, *leaves.squares)), strict=True):
        assert sum(map(Fraction, row)) == sum(map(Fraction, sums[:3]))
        assert sum(Fraction(value) ** 2 for value in row) == sum(map(Fraction, sums[3:]))


@needs_kernel
def test_a_tie_that_the_last_bits_of_a_sum_break():
    values = [-2.0972944270170046e-08, -63639207936.0, 102979420160.0, 1315861504.0]
    compare(np.tile(np.float32(values), (20, 1)), "rms", KERNEL)


# -- what the module refuses


def lay_oddly(values):
    """Return values as the tensors of a safetensors file are: not aligned, of a byte order that is named."""
    return np.frombuffer(b"-" + values.tobytes(), values.dtype.newbyteorder("<"), offset=1).reshape(
        values.shape
    )


@needs_kernel
@pytest.mark.parametrize("norm", ["ln", "bn"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_bits_of_what_lies_oddly_in_memory(norm, dtype):
    x = np.random.default_rng(0).standard_normal((4, 6, 25)).astype(dtype)
    odd, expected = lay_oddly(x), normalize(x, norm)
    out = np.frombuffer(bytearray(x.nbytes + 1), odd.dtype, x.size, 1).reshape(x.shape)
    for result in (normalize(odd, norm, out=out), normalize(x.view(odd.dtype), norm)):
        np.testing.assert_array_equal(result.normalized, expected.normalized)
        np.testing.assert_array_equal(result.mean, expected.mean)


@needs_kernel
@pytest.mark.parametrize("lay", [lay_oddly, lambda values: values.view(values.dtype.newbyteorder("<"))])
def test_parameters_may_lie_oddly_in_memory(lay):
    x, dy, gamma, beta = np.random.default_rng(0).standard_normal((4, 6, 6))
    usual, odd = ({"gamma": gamma[0], "beta": beta[0]}, {"gamma": lay(gamma[0]), "beta": lay(beta[0])})
    np.testing.assert_array_equal(normalize(x, "ln", **odd).normalized, normalize(x, "ln", **usual).normalized)
    np.testing.assert_array_equal(backward(x, dy, "ln", **odd).dx, backward(x, dy, "ln", **usual).dx)


def call_kernel(
    *, variant=None, rule=(3.0, 1e-5, 0.0, 1.0, 0, True, True), spans=(1, 1), results=None, **change
):
    """Call the kernel's function on two groups of three values, but for what is changed."""
    names = ("x", "out", "left", "missed", "known", "counts", "selected")
    names += ("gamma", "beta", "gamma_starts", "beta_starts")
    buffers = dict.fromkeys(names) | {"x": np.ones((1, 2, 1, 3)), "out": np.zeros((1, 2, 1, 3))}
    buffers |= {"left": np.zeros(2, np.bool_), "missed": np.zeros((9, 7))} | change
    assert tuple(buffers) == names
    results = np.zeros((4, 2)) if results is None else results
    rest = (None,) * (7 - len(results))
    variant = KERNEL.variant if variant is None else variant
    return KERNEL.module.normalize(variant, rule, spans, (*buffers.values(), *results, *rest))


@needs_kernel
def test_right_buffers_are_taken():
    assert call_kernel() == 0
    assert call_kernel(x=np.ones((1, 2, 1, 6))[..., ::2], known=np.ones(10), results=()) == 0
    some = {"counts": np.full(4, 3.0), "selected": np.ones((2, 3), np.bool_)}
    assert call_kernel(gamma=np.ones(4), gamma_starts=np.array([0, 1]), **some) == 6


def place(gamma, *starts):
    """Return buffers of gamma, and of where that of each group begins."""
    return {"gamma": gamma, "gamma_starts": np.array(starts, np.int64)}


@needs_kernel
@pytest.mark.all_quick
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"x": np.zeros((1, 2, 1, 3), np.int32)}, id="integers"),
        pytest.param({"x": np.zeros((1, 2, 3))}, id="three axes"),
        pytest.param({"x": np.zeros((1, 0, 1, 3))}, id="nothing"),
        pytest.param({"x": np.zeros((1, 2, 1, 3), ">f8")}, id="other byte order"),
        pytest.param({"x": lay_oddly(np.zeros((1, 2, 1, 3)))}, id="not aligned"),
        pytest.param({"out": np.zeros((1, 2, 1, 4))}, id="other shape"),
        pytest.param({"out": b"123"}, id="not writable"),
        pytest.param({"x": None}, id="no values"),
        pytest.param({"left": None}, id="no place for what is left"),
        pytest.param({"left": np.zeros(3, np.bool_)}, id="what is left of other groups"),
        pytest.param({"left": np.zeros(2, np.int8)}, id="what is left as integers"),
        pytest.param({"missed": np.zeros((9, 14))[:, ::2]}, id="a place for values with gaps"),
        pytest.param({"results": np.zeros((4, 3))}, id="statistics of other groups"),
        pytest.param({"results": np.zeros((4, 2), np.float32)}, id="statistics as floats"),
        pytest.param({"known": np.zeros(15)}, id="means of other groups"),
        pytest.param(place(np.zeros(2), 0, 0), id="gamma too short"),
        pytest.param(place(np.zeros(3), 0, 1), id="gamma begins too late"),
        pytest.param(place(np.zeros(3), 0, -1), id="gamma begins too early"),
        pytest.param(place(np.zeros(3), 0), id="gamma of fewer groups"),
        pytest.param({"gamma": np.zeros(3)}, id="gamma begins nowhere"),
        pytest.param(place(np.zeros(3), 0, 0) | {"spans": (0, 0)}, id="gamma of no span"),
        pytest.param({"beta": np.zeros(3, "f4"), "beta_starts": np.zeros(2, "i8")}, id="beta of floats"),
        pytest.param({"counts": np.ones(2)}, id="counts without freedom"),
        pytest.param({"selected": np.ones(5, np.bool_)}, id="a mask of fewer values"),
        pytest.param({"rule": (0.0, 1e-5, 0.0, 1.0, 0, True, True)}, id="no freedom"),
        pytest.param({"rule": (3.0, 0.0, 0.0, 1.0, 9, True, True)}, id="no such eps mode"),
        pytest.param({"variant": 99}, id="no such variant"),
    ],
)
def test_wrong_buffers_are_refused(change):
    with pytest.raises((ValueError, BufferError)):
        call_kernel(**change)


@needs_kernel
@pytest.mark.all_quick
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"variant": 99}, id="no such variant"),
        pytest.param({"y": np.ones(5)}, id="values that are no multiple of scales"),
        pytest.param({"codes": np.zeros(3, np.uint8)}, id="fewer codes"),
        pytest.param({"lost": np.ones(3)}, id="fewer losses"),
        pytest.param({"sums": np.ones(1)}, id="no room for sums"),
        pytest.param({"sums": np.ones(6)}, id="values that are no multiple of sums"),
        pytest.param({"factors": np.ones(0)}, id="no scales"),
        pytest.param({"y": lay_oddly(np.ones(4))}, id="values not aligned"),
        pytest.param({"rule": (9, 1.0, 1.0, False, 7)}, id="too many digits"),
    ],
)
def test_wrong_buffers_of_codes_are_refused(change):
    given = {
        "variant": KERNEL.variant, "rule": (3, 2.0**-6, 448.0, False, 7), "y": np.ones(4), "factors": np.ones(2),
        "lost": np.ones(4), "sums": np.ones(2), "codes": np.zeros(4, np.uint8),
    }  # fmt: skip
    assert KERNEL.module.round_codes(*given.values()) == (0.0, 0, 0, False)
    with pytest.raises((ValueError, BufferError)):
        KERNEL.module.round_codes(*(given | change).values())


@needs_kernel
@pytest.mark.parametrize(("variant", "y", "largest"), [(99, 4, 2), (0, 5, 2), (0, 0, 1), (0, 1, 2)])
def test_wrong_buffers_of_magnitudes_are_refused(variant, y, largest):
    with pytest.raises(ValueError, match="variant|empty|numbers"):
        KERNEL.module.find_largest(variant, np.ones(y), np.ones(largest))
