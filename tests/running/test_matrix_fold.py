"""Spectral normalization folded into weights, one or those of a state dict."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from normcli.errors import DataError
from normcli.norms.request import Request
from normcli.running.fold import Layer, prove
from normcli.running.matrix_fold import find_rows, fold_matrix, fold_state
from normcli.tensors.formats.safetensors import write_named
from tests.conftest import save
from tests.reference.rounding import measure_ulp


def fold(weight, *, layer=None, like=None, transposed=False, **options):
    request = Request.collect("", options | {"like": like})
    layer = Layer(weight, transposed=transposed, framework=like)
    return fold_matrix(layer.take_weight(weight), request, "w")


def draw_vectors(weight, axis, rng):
    matrix = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    u, v = (values / np.linalg.norm(values) for values in map(rng.uniform, (0, 0), (1, 1), matrix.shape))
    return matrix, u, v


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_weight_over_sigma_is_rounded_once(dtype, axis, rng):
    weight = rng.uniform(0.1, 1.0, (4, 3, 2, 2)).astype(dtype)
    matrix, u, v = draw_vectors(weight, axis, rng)
    found = fold(weight, u=u, v=v, transposed=bool(axis))
    assert (found.rows, found.weight.dtype) == ((axis,), weight.dtype)
    assert found.sigma == pytest.approx(u @ matrix.astype(np.float64) @ v, rel=1e-14)
    exact = (weight.astype(np.float64) / found.sigma).ravel().tolist()
    errors = [measure_ulp(y, e, dtype) for y, e in zip(found.weight.flat, exact, strict=True)]
    assert max(errors) <= 0.51 + (dtype == "float64")


@pytest.mark.parametrize("transposed", [False, True])
def test_a_random_batch_proves_it_and_refutes_another_weight(transposed, rng):
    weight = rng.normal(size=(4, 4, 3))
    found = fold(weight, transposed=transposed)
    assert found.proof.ok
    layer = Layer(weight, transposed=transposed)
    wrong = layer.take_weight(found.weight * 1.001)
    assert prove(layer, lambda output: output / found.sigma, wrong).ok is False


@pytest.mark.parametrize(
    ("weight", "options", "message"),
    [
        pytest.param(np.zeros((2, 2)), {}, "σ is 0", id="zeros"),
        pytest.param(np.array([[1.0, np.nan]]), {}, "NaN or an infinity", id="NaN"),
        pytest.param(np.ones(3), {}, "a linear layer's has 2 axes", id="a vector"),
        pytest.param(np.eye(2), {"u": [1, 0], "v": [-1, 0]}, "u and v are of another matrix", id="negative"),
        pytest.param(np.float16([[1, 300]]), {"u": [1], "v": [1e-3, 0]}, "beyond float16", id="too large"),
    ],
)
@pytest.mark.all_quick
def test_what_cannot_be_folded(weight, options, message):
    with pytest.raises(DataError, match=message):
        fold(weight, **options)


# -- state dicts

HOOK = {"conv.weight_orig": (4, 3, 2), "conv.weight_u": (4,), "conv.weight_v": (6,)}
PARAMETRIZED = {
    "a.parametrizations.weight.original": (3, 5),
    "a.parametrizations.weight.0._u": (3,),
    "a.parametrizations.weight.0._v": (5,),
}

HOOKED = ["a.weight_orig", "a.weight_u", "a.weight_v"]


def test_both_forms_are_folded_and_all_else_stays(rng):
    shapes = {"a.bias": (3,)} | PARAMETRIZED | HOOK | {"fc.weight_orig": (2, 2), "fc.weight_mask": (2, 2)}
    arrays = {name: rng.uniform(0.5, 1.0, shape) for name, shape in shapes.items()}
    folded, after = fold_state(arrays)
    assert [*after] == ["a.bias", "a.weight", "conv.weight", "fc.weight_orig", "fc.weight_mask"]
    assert [each.name for each in folded] == ["a.weight", "conv.weight"]
    assert after["a.bias"] is arrays["a.bias"]
    u, v = arrays["conv.weight_u"], arrays["conv.weight_v"]
    expected = arrays["conv.weight_orig"] / (u @ arrays["conv.weight_orig"].reshape(4, -1) @ v)
    np.testing.assert_allclose(after["conv.weight"], expected, rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(4, 3, 2), (4, 4, 2)], ids=["lengths tell", "the vectors tell"])
def test_the_rows_are_those_that_u_and_v_are_of(axis, shape, rng):
    weight = rng.normal(size=shape)
    matrix = np.moveaxis(weight, axis, 0).reshape(shape[axis], -1)
    left, _, right = np.linalg.svd(matrix)
    arrays = {"weight_orig": weight, "weight_u": left[:, 0], "weight_v": right[0]}
    folded, after = fold_state(arrays)
    assert folded[0].rows == (axis,)
    np.testing.assert_allclose(after["weight"], weight / np.linalg.norm(matrix, 2), rtol=1e-12)


def iterate(matrix, rng, *, hooked=True):
    """Return u and v of one step of torch's, in float32: its hook makes v before u, its parametrization after."""
    start = rng.normal(size=matrix.shape[0]).astype("float32")
    v = matrix.T @ (start / np.linalg.norm(start))
    v /= np.linalg.norm(v)
    u = matrix @ v
    u /= np.linalg.norm(u)
    if not hooked:
        v = matrix.T @ u
        v /= np.linalg.norm(v)
    return u, v


def make_square(axis, count, rng):
    """Return a state dict of square weights, a step of training old."""
    arrays = {}
    for number in range(count):
        size = 2 + number % 3
        weight = rng.uniform(-1, 1, (size, size, 1)[: 2 + axis]).astype("float32")
        matrix = np.moveaxis(weight, axis, 0).reshape(size, -1)
        u, v = iterate(matrix, rng, hooked=number % 2 == 0)
        arrays |= {f"{number}.weight_orig": weight, f"{number}.weight_u": u, f"{number}.weight_v": v}
    return arrays


@pytest.mark.parametrize("axis", [0, 1])
def test_one_step_of_training_tells_the_rows_of_a_square_weight(axis, rng):
    arrays = make_square(axis, 6, rng)
    folded, after = fold_state(arrays, 1 - axis)
    assert [(each.rows, each.has_open_rows) for each in folded] == [((axis,), False)] * 6
    weight, u, v = (arrays[f"5.weight_{part}"] for part in ("orig", "u", "v"))
    matrix = np.moveaxis(weight, axis, 0).reshape(len(u), -1)
    np.testing.assert_allclose(after["5.weight"], weight / (u @ matrix @ v), rtol=1e-5)


def test_a_negative_product_along_rows_that_are_open_says_so():
    kept = {"w_orig": np.array([[1.0, -2.0], [3.0, 1.0]]), "w_u": np.eye(2)[0], "w_v": np.eye(2)[1]}
    with pytest.raises(DataError, match="another matrix; its rows could be axis 1 as well: --rows 1$"):
        fold_state(kept)
    assert fold_state(kept, 1)[0][0].sigma == 3.0
    with pytest.raises(DataError, match="NaN or an infinity$"):
        fold_state(kept | {"w_orig": np.array([[1.0, np.nan], [3.0, 1.0]])})


def test_rows_are_open_where_a_weight_moved_since_and_is_not_symmetric(rng):
    weight = rng.uniform(-1, 1, (3, 3))
    u, v = iterate(weight, rng)
    moved = weight + 1e-3 * rng.uniform(-1, 1, (3, 3))
    for rows in (0, 1):
        assert find_rows(weight, u, v, rows) == (0, False)
        assert find_rows(moved, u, v, rows) == (rows, True)
    assert find_rows(moved + moved.T, np.array([0.6, 0.8, 0.0]), np.array([1.0, 0.0, 0.0]), 1) == (1, False)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(["w", "b"], "no layer keeps spectral normalization", id="none"),
        pytest.param(["w_orig", "w_mask"], "no layer keeps", id="pruned"),
        pytest.param(["w_orig", "w_u"], "w_orig has w_u and no w_v", id="an old torch"),
        pytest.param(["w_orig", "w_u", "w_v", "w"], "there are w_orig and w", id="there already"),
        pytest.param([*PARAMETRIZED, "a.parametrizations.weight.1._u"], "another parametrization", id="two"),
        pytest.param(["w_orig", "w_v"], "w_orig has w_v and no w_u$", id="no u"),
        pytest.param([*PARAMETRIZED][:2], r"has a\.\S+0\._u and no a\.\S+0\._v$", id="no v"),
        pytest.param([*PARAMETRIZED, *HOOKED], "a.weight is to be made of both", id="both forms"),
        pytest.param(["parametrizations.w.original"], "no layer keeps", id="another parametrization alone"),
    ],
)
@pytest.mark.all_quick
def test_what_is_no_such_state_dict(names, message):
    with pytest.raises(DataError, match=message):
        fold_state({name: np.ones((3, 5)) for name in names})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"w_u": np.ones(2)}, "u has 2 numbers", id="short"),
        pytest.param({"w_u": np.zeros(3)}, "u is not a list of finite numbers", id="zero"),
        pytest.param({"w_v": np.full(5, np.nan)}, "v is not a list of finite numbers", id="NaN"),
        pytest.param({"w_orig": np.ones(5), "w_u": np.ones(1)}, "u has 1 number, and the matrix 5", id="axis"),
        pytest.param({"w_orig": np.ones((0, 5)), "w_u": np.ones(0)}, "it holds no values", id="empty"),
    ],
)
@pytest.mark.all_quick
def test_a_state_dict_of_bad_numbers_is_bad_data(changed, message):
    kept = {"w_orig": np.ones((3, 5)), "w_u": np.ones(3), "w_v": np.ones(5)}
    with pytest.raises(DataError, match=f"w_orig: .*{message}"):
        fold_state(kept | changed)


def test_a_weight_of_one_axis_is_divided_by_its_length():
    arrays = {"n.bias": np.ones(2), "n.parametrizations.weight.original": np.array([3.0, -4.0])}
    folded, after = fold_state(arrays)
    assert (folded[0].sigma, [*after]) == (5.0, ["n.bias", "n.weight"])
    np.testing.assert_array_equal(after["n.weight"], [0.6, -0.8])
    with pytest.raises(DataError, match="torch divides by 1e-12 at least"):
        fold_state({"parametrizations.weight.original": np.array([1e-13])})


# -- the command


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    weight = rng.normal(size=(4, 3, 2))
    left, _, right = np.linalg.svd(weight.reshape(4, -1))
    arrays = {"weight_orig": weight, "weight_u": left[:, 0], "weight_v": right[0], "bias": np.ones(4)}
    save(**{name.removeprefix("weight_"): values for name, values in arrays.items()})
    np.savez("model.npz", **arrays)
    return arrays


def test_a_weight_from_file_to_file(normcli, folder):
    line = ("--conv-weight", "orig.npy", "--conv-bias", "bias.npy", "--u", "u.npy", "--v", "v.npy")
    ran = normcli("fold", "sn", *line, "-o", "f.npz")
    assert "✓ folded, its largest singular value is 1\n" in ran.out
    assert "✓ on a random batch" in ran.out
    with np.load("f.npz") as saved:
        expected = folder["weight_orig"] / np.linalg.norm(folder["weight_orig"].reshape(4, -1), 2)
        np.testing.assert_allclose(saved["weight"], expected, rtol=1e-12)
        np.testing.assert_array_equal(saved["bias"], np.ones(4))


@pytest.mark.parametrize(
    ("rows", "sigma", "told"),
    [
        ([], 3.2, "open.npz: the rows of a.w, b.w, c.w, d.w, e.w, … could be axis 0 or axis 1"),
        (["--rows", "1"], 4.8, ""),
    ],
)
def test_what_leaves_the_rows_open_is_told_and_chosen(rows, sigma, told, normcli, folder):
    parts = {"orig": [[4.0, 1.0], [3.0, 2.0]], "u": [1.0, 0.0], "v": [0.6, 0.8]}
    arrays = {f"{name}.w_{part}": np.array(values) for name in "abcdef" for part, values in parts.items()}
    np.savez("open.npz", **arrays)
    ran = normcli("fold", "sn", "--checkpoint", "open.npz", "-f", "csv", *rows)
    assert [float(row.split(",")[1]) for row in ran.lines[1:]] == [pytest.approx(sigma)] * 6
    assert told in ran.err
    assert ran.err.endswith("--rows 1 takes the other one\n" if told else "")
    assert bool(ran.err) == bool(told)


def test_what_other_parametrizations_do_is_told(normcli, folder):
    others = {f"g.parametrizations.weight.original{n}": np.ones(2) for n in (0, 1)}
    np.savez("several.npz", **{"n.parametrizations.weight.original": np.ones(4)}, **others, **folder)
    ran = normcli("fold", "sn", "--checkpoint", "several.npz", "-o", "plain.npz")
    assert "σ = uᵀXv of u and v as they are" in ran.out
    assert "several.npz: n.weight is of one axis and without vectors" in ran.err
    assert ran.err.endswith("several.npz: other parametrizations stay as they are: g.weight\n")
    with np.load("plain.npz") as plain:
        assert {*plain} == {"n.weight", "weight", "bias", *others}
        np.testing.assert_array_equal(plain["n.weight"], np.full(4, 0.5))


def test_vectors_that_are_far_off_are_told(normcli, folder):
    np.savez("late.npz", **folder | {"weight_u": folder["weight_u"] * 0.9})
    ran = normcli("fold", "sn", "--checkpoint", "late.npz")
    assert (
        "\nσ of weight is 10 % below the largest singular value   that of the folded weight is 1.11111"
        in ran.out
    )
    assert "in evaluation the model divides by the same σ   its vectors are far" in ran.out
    assert (ran.code, "✗" in ran.out) == (0, False)
    answer = normcli("fold", "sn", "--checkpoint", "late.npz", "-f", "json").json
    (weight,) = answer["weights"]
    assert (answer["norm"], weight["name"], weight["rows"], weight["iterations"]) == ("sn", "weight", [0], 0)
    assert (weight["off"], weight["proof"]["ok"]) == (pytest.approx(-0.1), True)
    assert np.shape(weight["weight"]) == (4, 3, 2)


def test_a_file_that_does_not_hold_the_weight_is_refused(normcli, tmp_path):
    kept = {"weight_orig": np.ones((2, 2)), "weight_u": np.ones(2), "weight_v": np.ones(2)}
    with (tmp_path / "w.safetensors").open("wb") as stream:
        write_named(stream, {name: values.astype(find_type("bfloat16")) for name, values in kept.items()})
    ran = normcli("fold", "sn", "--checkpoint", tmp_path / "w.safetensors", "-o", tmp_path / "y.npz")
    assert (ran.code, ran.out, "bfloat16" in ran.err) == (2, "", True)
    assert not (tmp_path / "y.npz").exists()


def test_a_batch_beyond_float64_proves_nothing(normcli):
    line = ("fold", "sn", "--conv-weight", "[[1e308,1e308],[1e308,0]]")
    assert "nothing to compare" in normcli(*line).out
    assert normcli(*line, "-f", "json").json["weights"][0]["proof"]["ok"] is None


def test_keras_divides_by_nothing_in_evaluation(normcli, folder):
    told = normcli("fold", "sn", "--conv-weight", "orig.npy", "--like", "keras", "--u", "1,1").out
    assert "evaluation of keras divides by nothing" in told
    assert "1 power iteration from u" in told


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param("sn", 2, "--conv-weight FILE", id="nothing"),
        pytest.param("ln --conv-weight orig.npy", 2, "ln is no norm that a layer takes up; bn and sn are", id="ln"),
        pytest.param("sn --conv-weight orig.npy --gamma 1", 2, "--gamma is of bn", id="gamma"),
        pytest.param("sn --conv-weight orig.npy --eps 1", 2, "sn has no option eps", id="eps"),
        pytest.param("--conv-weight orig.npy --u u.npy", 2, "bn has no option u", id="u of bn"),
        pytest.param("sn --checkpoint model.npz --dry-run", 2, "--dry-run is of bn", id="pairs of sn"),
        pytest.param("sn --checkpoint model.npz --u u.npy", 2, "--u goes with --conv-weight", id="both"),
        pytest.param("sn --checkpoint model.npz --conv-weight u.npy", 2, "are two sources", id="both weights"),
        pytest.param("sn --checkpoint model.npz --rows 1", 2, "of this checkpoint none are open", id="rows"),
        pytest.param("sn --checkpoint model.npz --rows 2", 2, "--rows is 0 or 1", id="rows 2"),
        pytest.param("sn --checkpoint u.npy", 2, "holds no arrays by name", id="no archive"),
        pytest.param("sn --checkpoint model.npz -o y.json", 2, ".npz, .safetensors are known", id="suffix"),
        pytest.param("sn --checkpoint gone.npz", 3, "there is no such file", id="no file"),
        pytest.param("sn --conv-weight orig.npy --u v.npy", 2, "u has 6 numbers, and the matrix 4 rows", id="length"),
    ],
)  # fmt: skip
@pytest.mark.all_quick
def test_refusals(line, code, message, normcli, folder):
    ran = normcli("fold", *line.split())
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
