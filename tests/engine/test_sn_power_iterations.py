"""Power iterations: what they divide by, against rationals, mpmath and the frameworks that make them."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from normcli import normalize
from normcli.engine.sn.power_iterations import _bound_stretch, enclose_estimate, iterate
from normcli.errors import DataError, UsageError
from normcli.norms.spec import Iteration

LINES = [pytest.param("u", id="from u"), pytest.param("v", id="from v")]


def draw_start(x, name, rng):
    return rng.normal(size=x.shape[0] if name == "u" else x.shape[1])


def iterate_exactly(matrix, start, count, name):
    """Return σ², by the definition, in rationals."""
    rows = [[Fraction(value) for value in row] for row in matrix.tolist()]
    turns = [rows, list(zip(*rows, strict=True))] if name == "v" else [list(zip(*rows, strict=True)), rows]
    vector = [Fraction(value) for value in start]
    for step in range(2 * count):
        before, lines = vector, turns[step % 2]
        vector = [sum(a * b for a, b in zip(line, before, strict=True)) for line in lines]
    return sum(a * a for a in vector) / sum(a * a for a in before)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("count", [1, 2, 17])
@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (1, 3), (3, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_against_rationals(dtype, shape, count, name, rng):
    x = rng.normal(size=shape).astype(dtype)
    start = draw_start(x, name, rng)
    square = iterate_exactly(x, start, count, name)
    iteration = Iteration(count, **{"u": None, "v": None} | {name: tuple(start)})
    for bits in (110, 400):
        low, high = enclose_estimate(iteration, x, bits)
        assert low <= square <= high
        assert (high - low) * 2**bits <= square
    result = normalize(x, "sn", iterations=count, **{name: start})
    with mpmath.workdps(60):
        sigma = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        assert result.sigma == float(sigma)
        exact = [[float(mpmath.mpf(value) / sigma) for value in row] for row in x.tolist()]
    np.testing.assert_array_equal(result.normalized, np.array(exact).astype(dtype), strict=True)


def test_a_start_at_a_right_angle_to_the_first_vector_never_finds_it():
    """What an error would make of it grows a millionfold in every step."""
    assert normalize(np.diag([1e6, 1.0]), "sn", iterations=40, u=[0, 1]).sigma == 1.0


def test_a_length_of_the_start_changes_nothing(rng):
    x, u = rng.normal(size=(4, 3)), rng.integers(-5, 5, 4) + 0.5
    expected = normalize(x, "sn", u=u).normalized
    np.testing.assert_array_equal(normalize(x, "sn", u=u * 2.0**-900).normalized, expected)


def test_given_vectors_are_taken_as_they_are():
    found = normalize([[3, 0], [4, 5]], "sn", u=[0.5, 1.0], v=[1.0, 2.0])
    assert found.sigma == 0.5 * 3 + 14
    with pytest.raises(DataError, match="uᵀXv is -3, and estimates no singular value"):
        normalize([[3, 0], [4, 5]], "sn", u=[1, 0], v=[-1, 0])


@pytest.mark.parametrize("given", [{"u": [0, 1]}, {"v": [0, 1]}, {"u": [0, 1], "v": [1, 1]}])
def test_nothing_left_is_0(given):
    x = np.array([[2.0, 0.0], [0.0, 0.0]])
    assert normalize(x, "sn", **given).sigma == 0.0
    np.testing.assert_array_equal(normalize(x, "sn", **given).normalized, x)
    over_0 = normalize(x, "sn", like="torch", **given).normalized
    np.testing.assert_array_equal(over_0, [[np.inf, np.nan], [np.nan, np.nan]])


def test_arrays_of_any_shape_are_starts(rng):
    """Keras and Flax keep u as (1, n)."""
    x, u = rng.normal(size=(4, 3)).astype("f4"), rng.normal(size=(1, 3)).astype("f4")
    assert normalize(x, "sn", like="keras", u=u).sigma == normalize(x, "sn", rows=1, u=u[0].tolist()).sigma


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 3}, "iterations start from a vector: give u"),
        ({"u": [1, 2, 3]}, "u has 3 numbers, and the matrix 2 rows"),
        ({"u": [1]}, "u has 1 number, and the matrix 2 rows"),
        ({"v": [1, 2]}, "v has 2 numbers, and the matrix 3 columns"),
        ({"u": [0, 0]}, "u is not a list of finite numbers of which one at least is not 0"),
        ({"v": [1, np.nan, 0]}, "v is not a list of finite numbers"),
        ({"u": "one"}, "u 'one' is not a list of numbers"),
        ({"u": [1, 2], "v": [1, 2, 3], "iterations": 1}, "iterations start from one of u and v"),
        ({"u": [1, 2], "iterations": 0}, "iterations 0 is uᵀXv of a u and a v as they are: give both"),
        ({"u": [1, 2], "iterations": 1001}, "iterations 1001 is not a number of iterations from 0 to 1000"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        normalize(np.ones((2, 3)), "sn", **options)


@pytest.mark.parametrize("text", ["1,0.5", "[1, 0.5]", "[[1], [0.5]]", "u.npy", "u.json"])
def test_a_start_is_a_file_or_typed(text, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("u.npy", np.array([[1.0, 0.5]], "f4"))
    (tmp_path / "u.json").write_text("[1, 0.5]")
    said = normcli("sn", "--data", "[[3,0],[4,5]]", "--u", text, "--iterations", "2", "--print", "sigma")
    assert said.out == f"{float(normalize([[3, 0], [4, 5]], 'sn', u=[1, 0.5], iterations=2).sigma)!r}\n"


def test_the_answer_says_what_was_iterated(normcli):
    ran = normcli("sn", "--data", "[[3,0],[4,5]]", "--u", "1,0", "--iterations", "3")
    assert "x / uᵀXv   rows of X along n, 3 power iterations from u" in ran.out
    found = normcli("sn", "--data", "[[3,0],[4,5]]", "--u", "1,0", "-f", "json").json
    assert (found["iterations"], found["u"], found["stats"]["sigma"]) == (1, [1.0, 0.0], 5.0)
    assert "of u and v as they are" in normcli("sn", "--data", "[[3,0],[4,5]]", "--u", "1,0", "--v", "1,0").out


# -- as frameworks do it


def assert_within_float32(x, y, **options):
    np.testing.assert_allclose(y, normalize(x, "sn", **options).normalized, rtol=3e-6)


@pytest.mark.peers
@pytest.mark.parametrize("count", [1, 3])
def test_torch_from_u(count, rng):
    torch = pytest.importorskip("torch")
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(7, 5, bias=False), n_power_iterations=count)
    x, u = layer.weight_orig.detach().numpy().copy(), layer.weight_u.numpy().copy()
    layer.train()(torch.zeros(7))
    assert_within_float32(x, layer.weight.detach().numpy(), iterations=count, u=u, like="torch")
    u, v = layer.weight_u.numpy().copy(), layer.weight_v.numpy().copy()
    layer.eval()(torch.zeros(7))
    assert_within_float32(x, layer.weight.detach().numpy(), u=u, v=v, like="torch")


@pytest.mark.peers
@pytest.mark.parametrize("count", [1, 3])
def test_torch_from_v(count, rng):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(7, 5, bias=False)
    x = layer.weight.detach().numpy().copy()
    torch.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=count)
    kept = layer.parametrizations.weight[0]
    v = rng.normal(size=7).astype("f4")
    kept._v.copy_(torch.nn.functional.normalize(torch.tensor(v), dim=0))
    assert_within_float32(x, layer.weight.detach().numpy(), iterations=count, v=v, like="torch")


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:__array__")
@pytest.mark.parametrize("count", [1, 3])
def test_keras(count, rng, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    layer = keras.layers.Dense(5, use_bias=False)
    module = keras.layers.SpectralNormalization(layer, power_iterations=count)
    module.build((1, 7))
    x = keras.ops.convert_to_numpy(layer.kernel).copy()
    u = keras.ops.convert_to_numpy(module.vector_u).copy()
    module(np.eye(7, dtype="f4"), training=True)
    y = keras.ops.convert_to_numpy(layer.kernel)
    assert_within_float32(x, y, iterations=count, u=u, like="keras")


def test_fit_refuses_a_start_of_any_length_as_it_refuses_the_norm(normcli, tmp_path):
    np.save(tmp_path / "w.npy", np.eye(2))
    ran = normcli("fit", "sn", "-i", tmp_path / "w.npy", "--u", "[1]", "-o", tmp_path / "stats.npz")
    assert ran.code == 2
    assert "does not follow from those of its parts" in ran.err


@pytest.mark.parametrize("closely", [True, False])
@pytest.mark.parametrize("exponent", [0, 600, -600])
@pytest.mark.parametrize("left", [[1], [1, 2], [3, -1, 2], [5, 5, 7, 0]])
def test_a_matrix_stretches_no_vector_more_than_its_bound(left, exponent, closely):
    """The largest singular value of one of rank 1 is its length, and no bound is nearer than doubles tell."""
    matrix = np.ldexp(np.outer(left, [2.0, -3.0, 1.0]), exponent)
    square = sum(Fraction(value) ** 2 for value in matrix.ravel())
    bound = _bound_stretch(matrix, closely=closely)
    assert square <= bound * bound <= square * Fraction(1001, 1000)
    bound = _bound_stretch(
        np.kron(np.eye(2), matrix), closely=closely
    )  # two largest values: closely, 2^(1/8) of one
    assert square <= bound * bound <= square * Fraction(120 if closely else 202, 100)


@pytest.mark.parametrize("name", LINES)
def test_starts_that_are_nearly_at_a_right_angle(name):
    """Of the bits that are there at first nothing is left."""
    matrix = np.diag([1.0, 2.0**-600])
    start = (2.0**-600, 1.0) if name == "u" else (2.0**-900, 1.0)
    iteration = Iteration(1, **({"u": None, "v": None} | {name: start}))
    square = iterate_exactly(matrix, start, 1, name)
    low, high = enclose_estimate(iteration, matrix, 100)
    assert low <= square <= high
    assert (high - low) * 2**100 <= square
    found = iterate(iteration, matrix, 100)
    for column in found:
        assert column.error << 100 <= column.whole.find_size()
