"""Bounds that follow from a declared algorithm: live runs stay within them, and are not far below."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from normcli import backward, normalize
from normcli.algorithms.row_computation import Accumulation, Computation
from normcli.algorithms.row_formula import RowFormula
from normcli.algorithms.table import ALGORITHMS, CASTS
from normcli.errors import UsageError
from normcli.results.arguments import read_arguments
from normcli.testing import assert_backward_matches, assert_matches, provocations
from normcli.testing.declared_algorithm import derive_bounds, derive_gradient_bounds
from tests.marks import costly, sampled

RNG = np.random.default_rng(17)
X = RNG.normal(3.0, 2.0, (6, 300)).astype(np.float32)


class Live:
    """A computation, carried out on a provocation of a norm over the last axis."""

    def __init__(self, case, norm, computation, form=None):
        self.asked = asked = read_arguments(case.x, norm, case.options)
        rows, dtype = np.ascontiguousarray(case.x).reshape(-1, case.x.shape[-1]), case.x.dtype
        affine = tuple(
            None if p is None else np.broadcast_to(p, case.x.shape).reshape(rows.shape)
            for p in (asked.inputs.gamma, asked.inputs.beta)
        )
        with np.errstate(all="ignore"):
            kernel = computation if form is None else computation._replace(cast=form)
            found = kernel.run(rows, RowFormula.of(asked.plan), dtype, affine)
        self.y = found.reshape(case.x.shape)
        self.exact = normalize(case.x, norm, **{**case.options, "dtype": "float64"}).normalized
        self.bounds = derive_bounds(computation, asked)
        kept = np.ones(len(rows), bool)
        kept[self.bounds.void] = False
        self.kept, self.shape = kept, rows.shape

    def compare(self):
        """Return how large a part of its bound each value is off, of the groups that something is promised of."""
        y, exact, allowed = (
            a.astype(np.float64).reshape(self.shape)[self.kept]
            for a in (self.y, self.exact, self.bounds.allowed)
        )
        with np.errstate(all="ignore"):
            parts = np.abs(y - exact) / allowed
        return np.where((y == exact) | (np.isnan(y) & np.isnan(exact)), 0.0, parts)


def list_cases(norm, dtype, largest):
    return [case for case in provocations(norm, dtype) if case.x.size and case.x.shape[-1] <= largest]


ACCUMULATED = {
    "float16": ("float16", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float32": ("float32", "float64"),
}


@sampled
@pytest.mark.parametrize("dtype", ACCUMULATED)
@pytest.mark.parametrize(
    ("norm", "name"),
    [
        *(("ln", name) for name in ALGORITHMS),
        *((norm, name) for norm in ("rms", "lp") for name, row in ALGORITHMS.items() if row.squares),
    ],
)
def test_live_runs_never_go_beyond_their_bounds(norm, dtype, name):
    """Each provocation under another cast order than the one before, so that all of them are met."""
    compared, casts = 0, list(CASTS.values())
    for number, case in enumerate(list_cases(norm, dtype, 128)):
        for sums in ACCUMULATED[dtype]:
            cast = casts[number % len(casts)] if case.gamma is not None else casts[number % 2]
            parts = Live(case, norm, Computation(Accumulation(ALGORITHMS[name], sums), cast)).compare()
            assert not parts.size or parts.max() <= 1.0, (str(case), sums, cast.name)
            compared += parts.size
    assert compared > 7_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sums", "name", "least"),
    [
        pytest.param("float32", "two-pass", 0.03, id="as wide as the result"),
        pytest.param("float32", "tree", 0.06, id="as wide, by halves"),
        pytest.param("float32", "welford", 0.015, id="as wide, by Welford's recurrence"),
        pytest.param("float64", "two-pass", 0.95, id="wider"),
    ],
)
def test_bounds_are_near_what_happens(sums, name, least):
    """Half of the provocations have a value that comes to such a part of its bound."""
    computation = Computation(Accumulation(ALGORITHMS[name], sums), next(iter(CASTS.values())))
    worst = [Live(case, "ln", computation).compare() for case in list_cases("ln", "float32", 1025)]
    assert np.median([parts.max() for parts in worst if parts.size]) > least


def differentiate(case, norm, sums, mode="inside"):
    """dx, dgamma and dbeta of a kernel that adds in turn and stays in the dtype of its sums."""
    dtype, n = np.dtype(sums), case.x.shape[-1]
    x, dy, gamma = (a.astype(dtype) for a in (case.x, case.dy, case.gamma))
    add = partial(np.add.accumulate, axis=-1, dtype=dtype)

    def mean(values):
        return add(values)[..., -1:] / dtype.type(n)

    with np.errstate(all="ignore"):
        centred = x - mean(x) if norm == "ln" else x
        square, eps = mean(centred * centred), dtype.type(EPS[norm])
        root = np.sqrt(square)
        rstd = dtype.type(1) / (np.sqrt(square + eps) if mode == "inside" else root + eps)
        xhat, g = centred * rstd, dy * gamma
        pull = xhat if mode == "inside" else centred / root
        inner = g - mean(g) if norm == "ln" else g
        dx = (inner - pull * mean(g * xhat)) * rstd
        rows = [np.add.accumulate(a.reshape(-1, n), axis=0, dtype=dtype)[-1] for a in (dy * xhat, dy)]
        return [a.astype(case.x.dtype) for a in (dx, *rows)]


EPS = {"ln": 1e-5, "rms": 1e-3}


@costly
@pytest.mark.parametrize(("norm", "dtype", "sums"), [
    ("ln", "float16", "float32"), ("ln", "float32", "float32"), ("ln", "float16", "float16"),
    ("rms", "float16", "float16"), ("rms", "float32", "float32"), ("ln", "float32", "float64"),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["inside", "outside"])
def test_gradients_never_go_beyond_their_bounds_and_are_near_them(norm, dtype, sums, mode):
    computation, parts = Computation(Accumulation(ALGORITHMS["two-pass"], sums), CASTS["once"]), []
    for case in list_cases(norm, dtype, 129):
        options = {**case.options, "eps": EPS[norm], "eps_mode": mode}
        asked = read_arguments(case.x, norm, options)
        exact = backward(
            case.x.astype(np.float64), case.dy, norm, **{**options, "gamma": case.gamma.astype(np.float64)}
        )
        names = ("dx", "dgamma", "dbeta")[: 3 if norm == "ln" else 2]
        allowed, void = derive_gradient_bounds(computation, asked, case.dy, dict.fromkeys(names, case.x.dtype))
        for name, actual in zip(names, differentiate(case, norm, sums, mode), strict=False):
            if void.size:
                continue
            with np.errstate(all="ignore"):
                off = np.abs(actual.astype(np.float64) - exact.field(name))
                part = np.where((off == 0) | np.isinf(allowed[name]), 0.0, off / allowed[name])
            assert part.max() <= 1.0, (str(case), name)
            parts.append(part.max())
    assert len(parts) > 40
    assert np.median(parts) > (0.5 if sums > dtype else 0.01)


@pytest.mark.parametrize("sums", ["float32", "float64"])
@pytest.mark.parametrize("floor", [1e-12, 2.0, 5.5, 100.0])
def test_gradients_of_lengths_stay_within_theirs_on_either_side_of_a_floor(floor, sums):
    x, dy = (RNG.normal(size=(40, 30)).astype(np.float32) for _ in range(2))
    wide, slope = x.astype(sums), dy.astype(sums)
    add = partial(np.add.accumulate, axis=-1, dtype=wide.dtype)
    length = np.sqrt(add(wide * wide)[:, -1:])
    divisor = np.maximum(length, wide.dtype.type(floor))
    y = wide / divisor
    pull = y * add(slope * y)[:, -1:]
    right, wrong = (
        ((slope - np.where(is_pulled, pull, 0)) / divisor).astype(np.float32)
        for is_pulled in (length > floor, length <= floor)
    )
    options = {"axes": 1, "eps": floor, "accumulate": sums}
    assert_backward_matches(right, x, dy, "lp", **options)
    for dx in (right * (1 + np.float32(2.0**-13)), wrong):
        with pytest.raises(AssertionError, match="values? differ"):
            assert_backward_matches(dx, x, dy, "lp", **options)


def test_bounds_of_gradients_are_asked_for_likewise():
    case = next(case for case in provocations("ln", "float32") if str(case) == "rank 3")
    options = {**case.options, "eps": EPS["ln"], "accumulate": "float32"}
    dx, dgamma, dbeta = differentiate(case, "ln", "float32")
    assert_backward_matches(dx, case.x, case.dy, "ln", dgamma=dgamma, dbeta=dbeta, **options)
    dx[0, 0, 0] *= 1 + 2.0**-10
    with pytest.raises(AssertionError, match=r"1 of 48 values differs(.|\n)*bounds of two-pass:float32"):
        assert_backward_matches(dx, case.x, case.dy, "ln", **options)
    far = next(case for case in provocations("ln", "float32") if str(case).startswith("edge"))
    with pytest.raises(AssertionError, match="promises nothing of 8 of 8 groups"):
        assert_backward_matches(far.dy, far.x, far.dy, "ln", accumulate="float32", **far.options)


@pytest.mark.slow
def test_bounds_are_asked_for_by_the_dtype_of_the_sums():
    y = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + np.float32(1e-5))
    assert_matches(y, X, "ln", accumulate="float32")
    assert_matches(y, X, "ln", accumulate="float32", algorithm="pairwise")
    wrong = y.copy()
    wrong[2, 5] *= 1 + 2.0**-12
    with pytest.raises(AssertionError) as caught:
        assert_matches(wrong, X, "ln", accumulate="float32", algorithm="pairwise")
    message = str(caught.value)
    assert message.startswith("ln: 1 of 1,800 values differs, by up to ")
    assert "bounds of pairwise:float32" in message
    assert "at        n=2 c=5   group n=2" in message
    bound = next(line for line in message.splitlines() if line.startswith("bound"))
    assert 1.0 < float(bound.split()[1]) < 100.0


def test_a_cast_before_gamma_is_allowed_for_and_llama_is_one():
    x, gamma = X.astype(np.float16), RNG.normal(1.0, 0.5, 300).astype(np.float16)
    wide = x.astype(np.float32)
    xhat = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + np.float32(1e-6))
    y = gamma * xhat.astype(np.float16)
    options = {"gamma": gamma, "accumulate": "float32"}
    assert_matches(y, x, "rms", cast="before gamma", eps=1e-6, **options)
    assert_matches(y, x, "rms", cast="before gamma", like="llama", **options)
    with pytest.raises(AssertionError, match="differ"):
        assert_matches(y, x, "rms", eps=1e-6, **options)


@pytest.mark.parametrize(
    ("name", "sums", "case"),
    [
        ("one-pass", "float32", "mean 4096 times"),
        ("two-pass", "float32", "edge of float32"),
        ("one-pass", "float16", "squares beyond float16"),
        ("two-pass", "bfloat16", "group size 1024"),
    ],
)
def test_what_an_algorithm_promises_nothing_of_fails_whatever_the_values(name, sums, case):
    dtype = "float16" if sums == "float16" else sums
    (found,) = (one for one in provocations("ln", dtype) if str(one).startswith(case))
    exact = normalize(found.x, "ln", **found.options).normalized
    with pytest.raises(
        AssertionError, match=rf"ln: {name}:{sums} promises nothing of (\d) of \1 groups, the first n=0"
    ):
        assert_matches(exact, found.x, "ln", accumulate=sums, algorithm=name, **found.options)


@pytest.mark.slow
def test_values_that_are_not_finite_are_judged_as_without_bounds():
    x = np.array([[np.nan, 1, 2, 4], [np.inf, 1, 2, 4], [1, 2, 3, 7]], np.float32)
    y = normalize(x, "ln").normalized
    assert_matches(y, x, "ln", accumulate="float32")
    y[0, 3] = 0.5
    with pytest.raises(AssertionError, match="1 of 12 values differs"):
        assert_matches(y, x, "ln", accumulate="float32")


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["bn", "gn", "in", "wn", "mvn"])
def test_groups_lie_along_any_axes(norm):
    """Bounds are of each value's own group: those of constant groups beside others are far smaller."""
    for case in provocations(norm, "float16"):
        if str(case) in ("rank 4", "transposed", "groups unlike each other", "rank 5"):
            y = normalize(case.x, norm, **case.options).normalized
            assert_matches(y, case.x, norm, accumulate="float64", **case.options)


@pytest.mark.parametrize(
    ("norm", "options", "message"),
    [
        ("ln", {"algorithm": "one-pass"}, "give --accumulate"),
        ("ln", {"accumulate": "float32", "max_ulp": 1}, "takes the place of --max-ulp"),
        ("ln", {"accumulate": "float16"}, "float16 does not hold every float32"),
        (
            "ln",
            {"accumulate": "float32", "algorithm": "onepass"},
            "no algorithm 'onepass'; did you mean one-pass",
        ),
        ("robust", {"accumulate": "float32"}, "robust: bounds are derived for means and squares"),
        ("ln", {"accumulate": "float32", "mask": X > 0}, "bounds are derived"),
    ],
)
@pytest.mark.all_quick
def test_what_has_no_bounds_is_refused(norm, options, message):
    with pytest.raises(UsageError, match=message):
        assert_matches(X, X, norm, **options)
