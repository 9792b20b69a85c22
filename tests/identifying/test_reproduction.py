"""Which algorithm gave a tensor's bits: every one of the tables is planted, and found."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.algorithms.row_computation import Accumulation, Computation, has_dtype, parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.algorithms.table import ALGORITHMS, CASTS, DTYPES, FORMS, KERNELS
from normcli.dtypes import find_type
from normcli.identifying.attempts import Candidate
from normcli.identifying.identify import identify
from normcli.identifying.question import Kind, Question
from normcli.identifying.reproduction import MOST_SURVIVORS, reproduce
from normcli.identifying.words.phrasing import diagnose
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.marks import choose_some, costly, sampled

SHAPE = (11, 47)


def draw(dtype, seed=0):
    return np.random.default_rng(seed).normal(0.7, 1.5, SHAPE).astype(find_type(dtype))


def run(computation, x, norm="ln", eps=1e-5, affine=(None, None)):
    """Return y as a kernel calculates it."""
    formula = RowFormula.of(make_plan(Request(norm), x.shape, x.dtype))._replace(eps=eps)
    return computation.run(x, formula, x.dtype, affine)


def plant(name, dtype):
    """Return x and y of a kernel by its name."""
    x = draw(dtype)
    return x, run(parse_computation(name), x)


COMPUTATIONS = [
    *(parse_computation(f"{name}:{sums}") for name in ALGORITHMS for sums in DTYPES if has_dtype(sums)),
    *(parse_computation(f"two-pass:{sums}:{cast}") for sums in DTYPES if has_dtype(sums) for cast in CASTS),
    *(Computation(Accumulation(kernel, "float32"), CASTS["once"]) for kernel in KERNELS),
]


@pytest.mark.slow
@costly
@sampled
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("computation", COMPUTATIONS, ids=lambda one: one.name)
def test_what_gave_the_bits_is_found_or_the_bits_are_the_exact_ones(computation, dtype):
    gamma = np.linspace(0.5, 2.0, SHAPE[1])[None].astype(find_type(dtype))
    x = draw(dtype)
    with np.errstate(all="ignore"):
        y = run(computation, x, affine=(np.broadcast_to(gamma, SHAPE), None))
    exact = normalize(x, "ln", gamma=gamma[0]).normalized
    found = reproduce(x, y, [Candidate(Request("ln"), "gamma", (0, 1))], gamma=gamma[0])
    if np.mean(exact != y) >= 0.2:  # of fewer there may be too few to tell
        assert found[0].equal == 1.0
    own = computation.accumulation.dtype == dtype  # then cast orders are one
    assert not found or own or computation.cast in [one.computation.cast for one in found]
    if found and computation.accumulation.dtype in ("float16", "bfloat16") and len(found) < MOST_SURVIVORS:
        assert computation.accumulation in [one.computation.accumulation for one in found]


@costly
@pytest.mark.parametrize(
    ("name", "dtype", "words"),
    [
        ("one-pass:float16", "float16", "float16 sums, E[x²] − E[x]² in one pass, rounded once at the end"),
        ("two-pass:bfloat16", "float32", "bfloat16 sums, the mean first, then E[(x − mean)²]"),
        ("pairwise:bfloat16", "float16", "bfloat16 sums, two passes, added as NumPy does"),
    ],
)
def test_identify_names_the_algorithm_where_no_exact_norm_gives_the_bits(name, dtype, words):
    found = identify(Question(*plant(name, dtype)))
    assert (found.kind, found.matches[0].norm, found.matches[0].axes) == (Kind.NORM, "ln", (1,))
    low, high = found.matches[0].eps_range
    assert low <= 1e-5 <= high
    said = diagnose(found).sentence
    assert words in said
    assert f"{name} gives every bit: " in said


@costly
@pytest.mark.parametrize(("dtype", "name"), [("bfloat16", "stored-sums"), ("float16", "stored")])
@pytest.mark.slow
def test_statistics_that_were_stored_in_half_precision_are_found(dtype, name):
    """As torch's batch norm on a CPU: x · a + b in float32, of a mean and a divisor in half precision."""
    x, half = draw(dtype), find_type(dtype)
    wide = x.astype(np.float32)
    mean, var = wide.mean(axis=1, keepdims=True).astype(half).astype("f4"), wide.var(axis=1, keepdims=True)
    if name == "stored-sums":
        var = ((var * SHAPE[1]).astype(half) / np.asarray(SHAPE[1]).astype(half)).astype("f4")
    inverse = (1 / np.sqrt(var + np.float32(1e-5))).astype(half).astype("f4")
    gamma, beta = (np.linspace(*ends, SHAPE[1]).astype(half) for ends in ((0.5, 2.0), (-1.0, 1.0)))
    factor = inverse * gamma.astype("f4")
    shift = beta.astype("f4") - mean * factor
    y = (wide.astype("f8") * factor + shift).astype("f4").astype(half)
    found = reproduce(x, y, [Candidate(Request("ln"), "gamma, beta", (0, 1))], gamma=gamma, beta=beta)
    assert (found[0].computation.cast.name, found[0].equal) == (name, 1.0)


def test_nothing_is_named_where_the_exact_result_gives_every_bit():
    x = draw("float32")
    assert identify(Question(x, normalize(x, "ln").normalized)).reproductions == ()


def test_the_share_of_bits_is_said_where_some_differ():
    x, y = plant("two-pass:float16", "float16")
    y[3, :5] += np.float16(0.25)
    found = reproduce(x, y, [Candidate(Request("ln"), "none", (0, 1))])
    assert found[0].computation.name == "two-pass:float16"
    assert found[0].equal == 1.0 - 5.0 / x.size
    assert not found[0].is_certain


@pytest.mark.slow
def test_to_say_which_of_many_values_differ_takes_more_bits_than_the_others_show():
    x, y = plant("two-pass:float16", "float16")
    y.reshape(-1)[::11] += np.float16(0.25)
    assert reproduce(x, y, [Candidate(Request("ln"), "none", (0, 1))]) == ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_noise_in_the_last_place_is_no_algorithm(seed):
    x, rng = draw("float16", seed), np.random.default_rng(seed)
    y = normalize(x, "ln").normalized
    bits = y.view(np.int16) + rng.integers(-1, 2, y.shape).astype(np.int16)
    assert reproduce(x, bits.view(np.float16), [Candidate(Request("ln"), "none", (0, 1))]) == ()


def test_a_group_of_nan_is_little_evidence():
    x = draw("float32")
    y = normalize(x, "ln").normalized
    y[2] = np.nan
    assert reproduce(x, y, [Candidate(Request("ln"), "none", (0, 1))]) == ()


@pytest.mark.slow
def test_one_wrong_value_beyond_the_sample_is_seen():
    x = np.random.default_rng(0).normal(0.7, 1.5, (300, 64)).astype("f2")
    y = run(parse_computation("one-pass:float16"), x)
    y[151, 3] += 1
    found = identify(Question(x, y))
    assert found.kind is not Kind.NORM
    assert found.reproductions[0].equal == 1.0 - 1.0 / x.size


@pytest.mark.slow
@pytest.mark.parametrize("value", choose_some([np.inf, np.nan], 2))
def test_finite_values_where_x_is_not_are_none_of_an_algorithm(value):
    x = draw("float32")
    x[7, 5] = value
    y = run(parse_computation("pairwise:float16"), x)
    assert identify(Question(x, y), "ln").reproductions[0].is_certain
    y[7] = np.resize([9.0, -7.0], SHAPE[1])
    found = identify(Question(x, y), "ln")
    assert found.kind is not Kind.NORM
    assert not any(one.is_certain for one in found.reproductions)


def divide(sums):
    """Return the kernel that adds squares in turn and divides, each step in the dtype of the sums."""
    form = next(form for form in FORMS if form.name == "divided")
    return Computation(Accumulation(ALGORITHMS["one-pass"], sums), form)


@costly
@pytest.mark.skipif(not has_dtype("bfloat16"), reason="bfloat16 is of another library")
@pytest.mark.parametrize(("seed", "eps"), [(19, 1e-5), (20, 1e-3), (27, 1e-6)])
@pytest.mark.slow
def test_an_eps_of_low_precision_sums_is_told_with_every_other_that_gives_the_bits(seed, eps):
    x = np.random.default_rng(seed).normal(size=(4, 16)).astype(find_type("bfloat16"))
    matches = identify(Question(x, run(divide("bfloat16"), x, "rms", eps))).matches
    true = [one for one in matches if one.eps_range[0] <= eps <= one.eps_range[1] and one.eps_mode == "inside"]
    assert true or not matches


@pytest.mark.slow
def test_an_eps_that_is_not_the_usual_one_is_told_where_many_groups_show_it():
    x = np.random.default_rng(0).normal(0.0, 0.05, (48, 32)).astype("f2")
    for rows in (48, 4):
        found = identify(Question(x[:rows], run(divide("float16"), x[:rows], "rms", 1e-3)))
        assert [one.eps for one in found.matches] == [1e-3] * (rows == 48)
