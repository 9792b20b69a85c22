"""The backward pass against exact arithmetic, against differences of the forward pass, and at its edges."""

from __future__ import annotations

import math
import warnings

import ml_dtypes
import numpy as np
import pytest

from normcli import NORMS, backward, normalize
from normcli.errors import DataError, UsageError
from normcli.norms.rules import AxesRule
from normcli.results.backward import draw_gradient
from tests.marks import costly, sampled
from tests.reference.backward import measure_gradients
from tests.reference.limits import STATISTIC
from tests.search.families import Stream, list_families, make

DIFFERENTIABLE = [name for name, norm in NORMS.items() if norm.gradient_names and norm.rows is None]
"""But for matrices, which `tests/numerics/test_matrix_slopes.py` differentiates."""

DTYPES = ["float16", ml_dtypes.bfloat16, "float32", "float64"]


def require_exact(found):
    worst = measure_gradients(found)
    assert all(error <= STATISTIC for error in worst.values()), worst


def draw(norm, dtype, shape=(3, 4, 5), seed=0, offset=1.0):
    rng = np.random.default_rng(seed)
    x, dy = rng.normal(offset, 2.0, shape).astype(dtype), rng.normal(size=shape).astype(dtype)
    options = {"groups": 2} if NORMS[norm].axes is AxesRule.CHANNEL_GROUPS else {}
    return x, dy, options


def draw_parameters(x, norm, options, seed=1):
    """Return gamma and beta for a tensor, of its dtype."""
    rng = np.random.default_rng(seed)
    shape = normalize(x, norm, **options).plan.parameters.shape
    names = NORMS[norm].parameter_names
    return {name: rng.normal(size=shape).astype(x.dtype) for name in names}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("norm", DIFFERENTIABLE)
def test_every_norm_and_dtype_is_exact(norm, dtype):
    x, dy, options = draw(norm, dtype)
    found = backward(x, dy, norm, **options, **draw_parameters(x, norm, options))
    assert found.dx.dtype == dtype
    require_exact(found)


OPTIONS = [
    ("ln", {"axes": (1, 2), "eps": 0.0}),
    ("ln", {"eps": 3.0, "eps_mode": "outside", "ddof": 1}),
    ("gn", {"groups": 2, "group_order": "interleaved"}),
    ("bn", {"axes": ()}),
    ("rms", {"axes": (0, 2), "eps": 0.0}),
    ("rms", {"like": "gemma"}),
    ("lp", {"like": "tensorflow", "axes": 1, "eps": 5.0}),
    ("mvn", {"ddof": 2}),
    ("zscore", {"axes": 2, "ddof": 1}),
    ("lp", {"p": 1}),
    ("lp", {"p": 0}),
    ("lp", {"p": np.inf}),
    ("lp", {"p": -np.inf}),
    ("lp", {"p": 3}),
    ("lp", {"p": 0.5}),
    ("lrn", {"size": 2, "alpha": 0.5}),
    ("lrn", {"size": 4, "alpha": 3.0, "exponent": 1.3, "k": 0.5, "axes": 2}),
    ("lrn", {"size": 3, "alpha": -0.01, "exponent": -0.5}),
    ("in", {"dtype": "float32"}),
]


@sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("norm", "options"), OPTIONS, ids=lambda v: str(v))
def test_every_option_is_exact(norm, options, dtype):
    x, dy, _ = draw(norm, dtype, seed=2)
    require_exact(backward(x, dy, norm, **options, **draw_parameters(x, norm, options)))


@sampled
@pytest.mark.parametrize("norm", DIFFERENTIABLE)
@pytest.mark.parametrize("fill", ["pass", "zero", "nan", "normalize"])
def test_what_does_not_count_follows_its_fill(norm, fill):
    """Of two groups nothing counts, of others one value."""
    if norm == "lrn" and fill == "normalize":
        fill = "zero"  # windows make 0 of what does not count
    x, dy, options = draw(norm, "float32", (3, 4, 2), seed=16)
    mask = np.ones(x.shape, bool)
    mask[0] = mask[:, 1] = mask[1, 0, 0] = mask[2, 3, 1] = False
    if NORMS[norm].centre.value == "mean":
        options["ddof"] = 1
    require_exact(backward(x, dy, norm, mask=mask, fill=fill, **options, **draw_parameters(x, norm, options)))


@pytest.mark.parametrize("eps", [1e-300, 1e-12])
def test_what_only_a_tiny_eps_leaves_is_exact(eps):
    x = np.array([[0.0, 0.0, 0.0, 1e-3], [0.0, 1.0, 1.0, 1.0]])
    for dy in (x, 1 - 2 * x):
        require_exact(backward(x, dy, "ln", eps=eps, eps_mode="outside"))


def test_omitted_nan_is_left_out():
    x, dy, _ = draw("ln", "float32", seed=6)
    x[0, 0, 1] = x[1, 2, 3] = np.nan
    for fill in ("pass", "zero", "nan"):
        require_exact(backward(x, dy, "ln", nan="omit", fill=fill))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("norm", [name for name in DIFFERENTIABLE if NORMS[name].tracks])
def test_evaluation_takes_statistics_as_constants(norm, dtype):
    x, dy, _ = draw(norm, dtype, seed=7)
    given = {"running_mean": [0.5, -1.0, 1e6, 0.0], "running_var": [2.0, 4.0, 1e-9, 0.25]}
    for options in ({}, {"eps": 0.0}, {"eps_mode": "outside"}):
        require_exact(backward(x, dy, norm, **given, **options, **draw_parameters(x, norm, {})))


@pytest.mark.parametrize("mean", [np.nan, np.inf, -np.inf])
def test_dx_does_not_depend_on_a_given_mean_that_is_not_finite(mean):
    x, dy = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 5.0]])
    given = {"running_var": [2.0, 2.0], "gamma": [2.0, 1.0]}
    found, usual = (backward(x, dy, "bn", running_mean=[first, 1.0], **given) for first in (mean, 1.0))
    np.testing.assert_array_equal(found.dx, usual.dx)
    np.testing.assert_array_equal(found.dgamma, [np.nan, usual.dgamma[1]])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", [name for name in DIFFERENTIABLE if name != "lrn"])
def test_planted_cancellation_is_exact(norm, dtype):
    x, _, options = draw(norm, dtype, seed=8)
    xhat = normalize(x, norm, **options).normalized
    for dy in (np.ones_like(x), 3 * xhat, xhat + 1, 1e8 + x):
        require_exact(backward(x, dy.astype(dtype), norm, **options))


@sampled
@pytest.mark.parametrize("norm", ["ln", "bn", "rms", "mvn", "gn", "lp", "wn"])
@pytest.mark.parametrize(
    ("offset", "spread"),
    [(1e15, 1.0), (1e6, 1e-6), (0.0, 1e-150), (0.0, 1e150), (1e200, 1e190), (0.0, 5e-324 * 2**10)],
)
def test_any_conditioning_and_magnitude_is_exact(norm, offset, spread):
    rng = np.random.default_rng(10)
    x, dy = offset + spread * rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3))
    options = {"groups": 2} if norm == "gn" else {}
    require_exact(backward(x, dy, norm, **options))
    require_exact(backward(x, dy * 1e-200, norm, **options))


@pytest.mark.parametrize("norm", ["ln", "bn", "in", "gn"])
@pytest.mark.parametrize("largest", [1.1e304, 2.0**990, 1.7e308])
def test_the_largest_gradients_are_exact(norm, largest):
    x = np.array([[[1.0, 2.0, 4.0], [0.5, 1.0, -3.0]]])
    dy = np.array([[[1.0, largest, 3.0], [-largest, 1e-300, largest]]])
    options = {"groups": 1} if norm == "gn" else {}
    require_exact(backward(x, dy, norm, **options))


def test_differences_from_a_mean_that_are_no_doubles():
    x, dy = np.array([[1.7e308, -1.7e308, 1.7e308]]), np.array([[1.0, 2.0, 4.0]])
    found = backward(x, dy, "ln")
    require_exact(found)
    np.testing.assert_allclose(found.dgamma, [0.70710678, -2.82842712, 2.82842712])
    given = {"running_mean": np.array([-1.7e308, 1e300, 0.0]), "running_var": np.array([1e300, 1.0, 0.0])}
    require_exact(backward(x, dy, "bn", **given))


def test_what_cancels_between_groups_is_decided_by_more_bits():
    """In dgamma 2¹⁰⁰⁰ and −2¹⁰⁰⁰ cancel, times roots that are irrational."""
    row = [[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]]
    dy = np.array([[[2.0**1000, 0.0, 0.0], [1.0] * 3], [[-(2.0**1000), 0.0, 2.0**-60], [1.0] * 3]])
    require_exact(backward(np.array([row, row]), dy, "in", eps=0.1))


def test_gradients_of_very_different_sizes_are_exact():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(2, 6))
    dy = rng.normal(size=(2, 6)) * 2.0 ** rng.integers(-300, 300, (2, 6))
    require_exact(backward(x, dy, "ln", gamma=rng.normal(size=6)))


@sampled
@pytest.mark.parametrize(("norm", "value"), [("ln", 3.0), ("bn", 2.0), ("in", 2.0), ("rms", 0.0), ("lp", 0.0)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"eps": 0.0},
        {"eps": 0.5},
        {"like": "torch"},
        {"eps": 1e-320},
        {"eps": 1e-320, "eps_mode": "outside"},
    ],
    ids=str,
)
def test_constant_groups_move_no_gamma(norm, value, options):
    if norm == "lp":
        options = {name: given for name, given in options.items() if name != "eps_mode"}
    dy = np.array([[[1.0, 2.0, 4.0], [1.0, 1.0, -7.0]]])
    found = backward(np.full(dy.shape, value), dy, norm, **options)
    require_exact(found)
    assert found.dgamma is None or not found.dgamma.any()


@costly
@sampled
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("p", [3.0, 0.5, 1.25, -1.5, 16.0, 1 / 16, 0.01, -40.0, 1.0 + 1e-9])
def test_lengths_of_any_power_are_exact(p, dtype):
    """Of values beside 1, far from it, equal ones and zeros; some are decided by pairs, others by decimals."""
    rng = np.random.default_rng(17)
    x = rng.normal(2.0, 2.0, (6, 5)).round(3)
    x[1], x[2], x[3, 2], x[4] = x[1] * 1e4, 1.5, 0.0, x[4] / 1000
    x[5] = 0.0
    dy = rng.normal(size=x.shape).astype("float64" if dtype == "int64" else dtype)
    for options in ({}, {"eps": 0.0}, {"axes": 0}, {"mask": [1, 1, 0, 1, 1]}):
        require_exact(backward(x.astype(dtype), dy, "lp", p=p, **options))


def test_usual_lengths_need_no_decimals(monkeypatch):
    """These take a thousand times as long as pairs."""
    from normcli.engine.gradients import coefficients as solver

    monkeypatch.setattr(solver, "sum_powers", None)
    rng = np.random.default_rng(18)
    x, dy = rng.normal(1.0, 2.0, (2, 200, 50))
    for p in (3.0, 0.5, -1.5):
        assert np.isfinite(backward(x, dy, "lp", p=p).dx).all()


FLAT = np.array([[1.0, 1.0], [1.0 + 2**-52, 2.0], [1.0, 4.0]])


@pytest.mark.parametrize("effort", [{}, {"threads": 2}])
@pytest.mark.parametrize(("like", "expected"), [("sklearn", [-2.0, 0.0, 2.0]), ("scipy", [np.nan] * 3)])
def test_a_column_that_counts_as_constant_is_differentiated_as_one(like, expected, effort):
    """Scikit-learn only centres it; SciPy has NaN, and so no derivative."""
    dy = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    found = backward(FLAT, dy, "zscore", like=like, **effort)
    np.testing.assert_array_equal(found.dx[:, 0], expected)
    np.testing.assert_array_equal(found.dx[:, 1], backward(FLAT, dy, "zscore").dx[:, 1])


def test_corners_are_those_of_torch():
    outside = backward([[1.0, 1.0]], [[1.0, 3.0]], "ln", eps=0.5, eps_mode="outside")
    assert outside.dx.tolist() == [[-2.0, 2.0]]
    assert backward([[1.0, 0.0, -1.0]], [[1.0, 1.0, 0.0]], "lp", p=1).dx.tolist() == [[0.25, 0.5, 0.25]]
    assert backward([[2.0, -2.0, 1.0]], [[1.0, 0.0, 0.0]], "lp", p=np.inf).dx.tolist() == [[0.25, 0.25, 0.0]]


@pytest.mark.parametrize("norm", DIFFERENTIABLE)
def test_groups_of_one_value_and_tensors_of_none(norm):
    x, dy, options = draw(norm, "float32", (1, 2, 1), seed=12)
    require_exact(backward(x, dy, norm, **options))
    found = backward(np.zeros((0, 2, 3), np.float32), np.zeros((0, 2, 3)), norm, **options)
    assert found.dx.shape == (0, 2, 3)
    if found.dgamma is not None:
        assert not found.dgamma.any()


def test_integers_beyond_doubles_are_what_they_are():
    dy = np.array([[1.0, -2.0, 0.5]])
    far = backward(np.array([[2**62 + 1, 2**62 + 2, 2**62 + 5]]), dy, "ln", eps=0.0)
    np.testing.assert_array_equal(far.dx, backward(np.array([[1, 2, 5]]), dy, "ln", eps=0.0).dx)


@pytest.mark.parametrize("norm", [name for name, norm in NORMS.items() if norm.is_by_order])
def test_norms_by_order_are_refused(norm):
    with pytest.raises(UsageError, match=f"{norm} has no backward pass: its statistics are single values"):
        backward(np.ones((2, 3)), np.ones((2, 3)), norm)


def test_bad_arguments():
    with pytest.raises(DataError, match=r"dy has the shape \(2,\); it takes that of the input, \(2, 3\)"):
        backward(np.ones((2, 3)), np.ones(2), "ln")
    with pytest.raises(UsageError, match="backward has no option 'epsilon'"):
        backward(np.ones((2, 3)), np.ones((2, 3)), "ln", epsilon=1.0)
    with pytest.raises(UsageError, match="threads 0 is less than one"):
        backward(np.ones((2, 3)), np.ones((2, 3)), "ln", threads=0)


X23, DY23 = np.arange(6, dtype="f4").reshape(2, 3), np.ones((2, 3), "f4")


@pytest.mark.parametrize(
    ("out", "message"),
    [
        pytest.param(np.zeros((2, 3)), r"out must be a writable C-contiguous float32 array of the shape \(2, 3\)", id="float64"),
        pytest.param(X23, "out must not share memory with the input", id="x"),
        pytest.param(DY23, "out must not share memory with the input", id="dy"),
    ],
)  # fmt: skip
def test_dx_goes_only_where_a_result_would(out, message):
    with pytest.raises(UsageError, match=message):
        backward(X23, DY23, "ln", out=out)


def test_dx_is_written_into_what_fits():
    out = np.empty_like(X23)
    assert backward(X23, DY23, "ln", out=out).dx is out
    np.testing.assert_array_equal(out, backward(X23, DY23, "ln").dx)


def test_dtypes_of_the_derivatives_are_those_of_the_parameters():
    x, dy, _ = draw("ln", "float16", seed=15)
    found = backward(x, dy, "ln", gamma=np.ones(5, np.float32))
    assert (found.dx.dtype, found.dgamma.dtype, found.dbeta.dtype) == (np.float16, np.float32, np.float16)
    require_exact(found)


def test_a_drawn_gradient_is_seeded_and_hides_nothing():
    plan = normalize(np.zeros((3, 4), np.float32), "ln").plan
    dy = draw_gradient(plan, 5)
    np.testing.assert_array_equal(dy.values, draw_gradient(plan, 5).values)
    assert dy.values.dtype == np.float32
    assert len(np.unique(dy.values)) == dy.values.size
    assert dy.source == "normal, seed 5, numpy"


def draw_case(rng):
    """Return x, dy, a norm and options, of kinds of values that are hard in different ways."""
    norm, shape = str(rng.choice(DIFFERENTIABLE)), (int(rng.integers(1, 4)), 4, int(rng.integers(1, 6)))
    dtype, stream, row = DTYPES[rng.integers(len(DTYPES))], Stream(int(rng.integers(2**31))), NORMS[norm]
    families = list_families(dtype)
    x, dy = (make(stream.pick(families), stream, (1, math.prod(shape)), dtype).reshape(shape) for _ in range(2))
    options = {"groups": 2} if row.axes is AxesRule.CHANNEL_GROUPS else {}
    if row.eps is not None:
        options["eps"] = float(rng.choice([0.0, 1e-5, 3.0, 1e-320, 1e300]))
    if row.eps_mode in ("inside", "outside"):
        options["eps_mode"] = str(rng.choice(["inside", "outside"]))
    if norm == "lp":
        options["p"] = float(rng.choice([0.5, 1.0, 2.0, 3.0]))
    if norm != "lrn":
        options |= {"mask": rng.random(shape) < 0.8, "fill": str(rng.choice(["pass", "normalize"]))}
    return x, dy, norm, options


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_drawn_cases_are_exact(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        x, dy, norm, options = draw_case(rng)
        require_exact(backward(x, dy, norm, **options))


def test_gamma_and_beta_of_different_shapes_are_differentiated_one_by_one(rng):
    x = rng.normal(size=(2, 3, 4))
    with pytest.raises(UsageError, match="gamma and beta of different shapes: leave out beta"):
        backward(x, x, "ln", gamma=np.ones(4), beta=np.ones((2, 1, 4)))


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("norm", "options"), [("ln", {}), ("rms", {}), ("rms", {"eps": 0.0}), ("gn", {"groups": 2}), ("bn", {})]
)
def test_a_gradient_that_is_not_finite_spreads_no_further_than_its_sums(norm, options, dtype, lost, rng):
    x, dy = rng.normal(3.0, 1.0, (2, 6, 4)).astype(dtype), rng.normal(size=(2, 6, 4)).astype(dtype)
    channel = -1 if norm in ("ln", "rms") else 1
    gamma = rng.normal(1.0, 0.2, x.shape[channel]).astype(dtype)
    without, dy[1, 2, 3] = dy.copy(), lost
    without[1, 2, 3] = 0.0
    found, expected = (backward(x, one, norm, gamma=gamma, **options) for one in (dy, without))
    reached = np.arange(len(gamma)) == (3 if channel == -1 else 2)
    assert not np.isfinite(found.dgamma[reached]).any()
    assert found.dgamma[~reached].tobytes() == expected.dgamma[~reached].tobytes()
    groups = {"ln": np.s_[1, 2], "rms": np.s_[1, 2], "gn": np.s_[1, :3], "bn": np.s_[:, 2]}[norm]
    is_lost = np.zeros(x.shape, bool)
    is_lost[groups] = True
    assert not np.isfinite(found.dx[is_lost]).any()
    assert found.dx[~is_lost].tobytes() == expected.dx[~is_lost].tobytes()


def test_a_gradient_of_sn_beyond_its_dtype_is_infinite_without_a_warning_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = backward([[1e-4, 0.0], [0.0, 1e-5]], [[1.0, 2.0], [3.0, 1e5]], "sn", dtype="float16")
    assert result.dx.tolist() == [[-np.inf, 20000.0], [30000.0, np.inf]]
