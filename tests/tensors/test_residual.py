"""x + residual before a norm: in the dtype of frameworks, of files in constant memory, in every verb."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.errors import DataError, UsageError
from normcli.tensors import spool
from normcli.tensors.residual import Addends, ResidualSum, find_sum_dtype
from tests.conftest import save


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("float32", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("int64", "float16", "float16"),
        ("float64", "float32", "float64"),
        ("int8", "bool", "int64"),
        ("float16", ml_dtypes.bfloat16, "float32"),
        (">f4", "int8", "float32"),
    ],
)
def test_sums_have_the_dtype_that_frameworks_give_them(first, second, expected):
    for pair in ((first, second), (second, first)):
        assert find_sum_dtype(*map(np.dtype, pair)) == np.dtype(expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", ml_dtypes.bfloat16])
def test_each_sum_is_rounded_once(dtype, rng):
    x, other = (rng.normal(size=(50, 40)).astype(dtype) for _ in range(2))
    exact = x.astype(np.float64) + other.astype(np.float64)
    assert Addends(x, other).add().tobytes() == exact.astype(dtype).tobytes()


@pytest.mark.peers
def test_torch_adds_alike(rng):
    torch = pytest.importorskip("torch")
    for first, second in (("float16", "float16"), ("float16", "float32"), ("int64", "float32")):
        x, other = (np.round(rng.normal(size=99) * 8).astype(dtype) for dtype in (first, second))
        made = torch.from_numpy(x) + torch.from_numpy(other)
        np.testing.assert_array_equal(Addends(x, other).add(), made.numpy(), strict=True)


@pytest.mark.parametrize("how", ResidualSum)
def test_integers_are_summed_exactly(how):
    large = np.array([2**62, 100], "i8")
    assert Addends(large, large - 1, how).add().tolist() == [2**63 - 1, 199]
    assert Addends(np.array([100], "i1"), np.array([100], "i1"), how).add().tolist() == [200]
    with pytest.raises(DataError, match="beyond int64"):
        Addends(large, large, how).add()


@pytest.mark.parametrize("dtype", ["float16", "float32", ml_dtypes.bfloat16])
def test_exact_sums_round_nothing_before_the_norm(dtype, rng):
    x, other = (rng.normal(size=(4, 5)).astype(dtype) for _ in range(2))
    made = normalize(x, "ln", residual=other, residual_sum="exact")
    exact = x.astype(np.float64) + other.astype(np.float64)
    assert (exact != (x + other).astype(np.float64)).any()
    np.testing.assert_array_equal(made.normalized, normalize(exact, "ln", dtype=dtype).normalized, strict=True)


@pytest.mark.parametrize(
    ("x", "other"), [([1.0], [1e-20]), ([1e308], [1e308]), (np.array([2**53 + 1]), [0.5]), ([0.1], [0.2])]
)
def test_a_sum_that_float64_does_not_hold_is_refused(x, other):
    with pytest.raises(DataError, match="float64 does not hold"):
        normalize(x, "zscore", residual=other, residual_sum="exact")


def test_exact_sums_leave_what_is_not_finite_as_it_is():
    values, other = np.array([np.inf, np.nan, 1.0]), np.array([1.0, 2.0, 0.5])
    np.testing.assert_array_equal(Addends(values, other, ResidualSum.EXACT).add(), [np.inf, np.nan, 1.5])


def test_how_a_sum_is_made_needs_a_residual_and_a_word_that_is_known():
    with pytest.raises(UsageError, match="give that too"):
        normalize([1.0, 2.0], "zscore", residual_sum="exact")
    with pytest.raises(UsageError, match="'near' is none of rounded, exact"):
        normalize([1.0, 2.0], "zscore", residual=[1.0, 1.0], residual_sum="near")


@pytest.mark.parametrize("norm", NORMS)
def test_every_norm_takes_one(norm, rng):
    x, other = rng.normal(size=(2, 2, 2, 4, 6)).astype(np.float32)
    options = {"groups": 2} if norm == "gn" else {}
    made, expected = normalize(x, norm, residual=other, **options), normalize(x + other, norm, **options)
    assert made.normalized.tobytes() == expected.normalized.tobytes()


@pytest.fixture
def files(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    x, r = rng.normal(size=(2, 4, 3, 8)).astype(np.float16)
    save(x=x, r=r, sum=x + r, y=normalize(x + r, "ln").normalized)


@pytest.mark.parametrize(
    "verb",
    [
        "ln --print y", "check ln --actual y.npy -f csv", "identify --actual y.npy", "compare ln rms", "draw ln",
        "restore bn", "doctor ln", "backward ln --dy y.npy --print dx",
    ],
)  # fmt: skip
def test_verbs_work_on_the_sum(verb, files, normcli):
    made = normcli(*verb.split(), "-i", "x.npy", "--residual", "r.npy", "-q")
    expected = normcli(*verb.split(), "-i", "sum.npy", "-q")
    assert made.code == expected.code == 0
    said = made.out.replace("x.npy + r.npy", "sum.npy")
    assert [line.split() for line in said.splitlines()] == [line.split() for line in expected.lines]


def test_files_are_added_piece_by_piece(files, normcli, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 0)
    monkeypatch.setattr(spool, "SMALLEST_SCRATCH", 0)
    assert normcli("ln", "-i", "x.npy", "--residual", "r.npy", "-o", "made.npy").code == 0
    np.testing.assert_array_equal(np.load("made.npy"), np.load("y.npy"))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("ln -i x.npy --residual 1", 3, "the residual has the shape (), and not that of x"),
        ("ln -i x.npy --residual none.npy", 3, "--residual"),
        ("ln -i x.npy --residual-sum exact", 2, "says how --residual is added"),
        ("ln -i - --residual -", 2, "the other needs a file"),
        ("bn -i x.npy -i r.npy --residual r.npy -o out/", 2, "--residual is of one tensor"),
        ("ln -i a.zarr:x -o b.zarr:x --workers 1 --residual r.npy", 2, "--residual"),
    ],
)
def test_what_does_not_fit_is_refused(line, code, message, files, normcli):
    ran = normcli(*line.split())
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
