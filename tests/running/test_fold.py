"""Batch normalization folded into a layer, against the two one after the other."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.norms.conventions import CONVENTIONS
from normcli.numerics.statistics.solution import Given
from normcli.running.fold import Affine, Layer, apply, fold, prove
from tests.reference.real import Real
from tests.reference.rounding import measure_ulp

LAYERS = {
    "linear": Layer(np.ones((5, 3))),
    "1-D": Layer(np.ones((5, 3, 2))),
    "2-D, grouped": Layer(np.ones((6, 2, 3, 2)), groups=3),
    "3-D": Layer(np.ones((4, 2, 2, 1, 2))),
    "transposed": Layer(np.ones((3, 5, 2, 3)), transposed=True),
    "transposed, grouped": Layer(np.ones((6, 2, 3)), groups=2, transposed=True),
}


def randomize(layer, rng, dtype=np.float64, *, bias=True, affine=True):
    c = layer.channels
    layer = layer._replace(weight=rng.normal(size=layer.weight.shape).astype(dtype))
    if bias:
        layer = layer._replace(bias=rng.normal(size=c).astype(dtype))
    gamma, beta = (rng.normal(size=c), rng.normal(size=c)) if affine else (None, None)
    return layer, Affine(Given(rng.normal(size=c), rng.uniform(0.1, 2.0, c)), 1e-5, gamma, beta)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_one_layer_does_the_work_of_two(layer, bias, affine, rng):
    layer, norm = randomize(layer, rng, bias=bias, affine=affine)
    folded = fold(layer, norm)
    largest, size, _ = prove(layer, norm.apply, folded)
    assert folded.weight.shape == layer.weight.shape
    assert folded.bias.shape == (layer.channels,)
    assert largest < 1e-13 < size


def test_a_wrong_fold_is_found_out(rng):
    layer, norm = randomize(LAYERS["2-D, grouped"], rng)
    folded = fold(layer, norm)
    wrong = folded.weight.copy()
    wrong[2, 1, 0, 1] *= 1.001
    assert prove(layer, norm.apply, folded._replace(weight=wrong)).max_abs > 1e-5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["2-D, grouped", "transposed, grouped"])
def test_weight_and_bias_are_rounded_once(dtype, name, rng):
    layer, norm = randomize(LAYERS[name], rng, dtype)
    folded = fold(layer, norm)
    factors = [
        float(g) / (Real.of(float(v)) + norm.eps).root()
        for g, v in zip(norm.gamma, norm.running.var, strict=True)
    ]
    for place in np.ndindex(layer.weight.shape):
        channel = place[0]
        if layer.transposed:
            within = layer.weight.shape[0] // layer.groups
            channel = place[0] // within * layer.weight.shape[1] + place[1]
        exact = float(layer.weight[place]) * factors[channel]
        assert measure_ulp(folded.weight[place], exact, dtype) <= 0.501
    for c, factor in enumerate(factors):
        exact = (Real.of(float(layer.bias[c])) - norm.running.mean[c]) * factor + float(norm.beta[c])
        assert measure_ulp(folded.bias[c], exact, dtype) <= 0.501


@pytest.mark.parametrize(
    "like", [row.framework for row in CONVENTIONS if row.norm == "bn" and row.channel == "last"]
)
@pytest.mark.parametrize("shape", [(3, 3, 3, 3), (2, 3, 4, 5), (4, 6)], ids=["square", "HWIO", "dense"])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_weight_is_read_and_saved_in_the_order_of_its_framework(
    like, shape, transposed, normcli, rng, tmp_path
):
    weight, mean, var = rng.normal(size=shape), *rng.uniform(1.0, 2.0, (2, shape[-1]))
    axis = {"mlx": 0}.get(like, -2 if transposed and not like.startswith("flax") else -1)
    weight = np.moveaxis(weight, -1, axis)
    for name, values in {"w": weight, "m": mean, "v": var}.items():
        np.save(tmp_path / f"{name}.npy", values)
    given = {"--conv-weight": "w.npy", "--running-mean": "m.npy", "--running-var": "v.npy", "-o": "f.npz"}
    paths = [word for option, name in given.items() for word in (option, tmp_path / name)]
    ran = normcli("fold", *paths, "--like", like, "--eps", "0.5", *(["--transposed"] if transposed else []))
    assert ran.code == 0
    with np.load(tmp_path / "f.npz") as folded:
        factor = np.moveaxis((1 / np.sqrt(var + 0.5)).reshape(-1, *(1,) * (len(shape) - 1)), 0, axis)
        np.testing.assert_allclose(folded["weight"], weight * factor, rtol=1e-14)


@pytest.mark.parametrize(
    ("options", "end"),
    [
        ((), "2 channels come out of a weight (out, in, …); --like keras takes (…, in, out)"),
        (("--like", "mlx"), "2 channels come out of a weight (out, …, in); --like keras takes (…, in, out)"),
        (("--transposed",), "3 channels come out of a weight (in, out, …)"),
    ],
)
def test_statistics_of_another_axis_are_refused_with_the_order(options, end, normcli, tmp_path):
    np.save(tmp_path / "w.npy", np.ones((2, 3, 4, 5)))
    statistics = ("--running-mean", "[1,2,3,4,5]", "--running-var", "1")
    ran = normcli("fold", "--conv-weight", tmp_path / "w.npy", *statistics, *options)
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err == f"normcli: --running-mean has the shape (5,); {end}\n"


@pytest.mark.parametrize(
    ("layer", "channels", "told"),
    [
        (Layer(np.ones(3)), 3, "a linear layer's has 2 axes"),
        (Layer(np.ones((4, 2, 1)), groups=3), 4, "3 groups do not divide the 4 channels"),
        (Layer(np.ones((4, 2)), np.ones(3)), 4, r"the bias has the shape \(3,\); 4 channels come out"),
        (Layer(np.ones((4, 2))), 3, r"the running mean has the shape \(3,\); 4 channels"),
    ],
)
def test_what_does_not_fit(layer, channels, told):
    with pytest.raises(DataError, match=told):
        fold(layer, Affine(Given(np.zeros(channels), np.ones(channels)), 1e-5))


def test_a_layer_is_applied_by_its_definition():
    layer = Layer(np.array([[[1.0, 10.0]]]), np.array([0.5]))
    np.testing.assert_array_equal(apply(layer, np.array([[[1.0, 2.0, 3.0]]])), [[[21.5, 32.5]]])
    turned = Layer(np.array([[[1.0, 10.0]]]), transposed=True)
    np.testing.assert_array_equal(apply(turned, np.array([[[1.0, 2.0]]])), [[[1.0, 12.0, 20.0]]])


@pytest.fixture
def files(tmp_path, rng):
    layer, norm = randomize(LAYERS["2-D, grouped"], rng, np.float32)
    given = {
        "--conv-weight": layer.weight, "--conv-bias": layer.bias, "--running-mean": norm.running.mean,
        "--running-var": norm.running.var, "--gamma": norm.gamma, "--beta": norm.beta,
    }  # fmt: skip
    for option, values in given.items():
        np.save(tmp_path / f"{option}.npy", values)
    arguments = [part for option in given for part in (option, tmp_path / f"{option}.npy")]
    return tmp_path, [*arguments, "--groups", "3"], fold(layer, norm)


def test_on_the_command_line(files, normcli):
    folder, arguments, expected = files
    ran = normcli("fold", *arguments, "-o", folder / "folded.npz")
    assert (ran.code, ran.err) == (0, "")
    assert "✓ on a random batch: largest difference" in ran.out
    with np.load(folder / "folded.npz") as saved:
        np.testing.assert_array_equal(saved["weight"], expected.weight)
        np.testing.assert_array_equal(saved["bias"], expected.bias)
    answer = normcli("fold", *arguments, "-f", "json", "-o", folder / "folded.json").json
    assert answer["proof"]["ok"] is True
    np.testing.assert_array_equal(np.float32(answer["weight"]), expected.weight)
    assert json.loads((folder / "folded.json").read_text())["bias"] == answer["bias"]
    lines = normcli("fold", *arguments, "-f", "csv").lines
    assert (lines[0], len(lines)) == ("channel,mean,var,factor,bias", 7)


ONE = "--conv-weight [[1,2]]"
STATISTICS = f"{ONE} --running-mean 0 --running-var"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("", 2, "fold needs --conv-weight FILE"),
        ("--conv-weight 1", 3, "a single number"),
        (ONE, 2, "fold needs running statistics"),
        (f"{STATISTICS} -1", 3, "negative: -1"),
        (f"{STATISTICS} 1 --eps -1", 2, "eps -1"),
        (f"{ONE} --state no.npz", 3, "no.npz: there is no such file"),
        (f"{ONE} --running-mean 0 --state no.npz", 2, "leave out --running-mean"),
        (f"{ONE} -o x.png", 2, ".npz"),
        (f"{STATISTICS} NaN -f json", 3, "channel 0 cannot be folded: the running variance is nan"),
        (f"{ONE} --running-mean Infinity --running-var 1", 3, "the running mean is inf"),
        (f"{STATISTICS} 1 --gamma NaN", 3, "the gamma is nan"),
        (f"{STATISTICS} 0 --eps 0", 3, "√(var + eps) is 0"),
        ("--conv-weight [[1e308]] --running-mean 0 --running-var 0", 3, "beyond float64"),
        ('--conv-weight [["nan"]] --running-mean 0 --running-var 1', 3, "the weight holds NaN"),
        (f"{STATISTICS} 1 --like tensorflow-moments", 2, "eps"),
        (f"{ONE} --transposed bn", 2, "--transposed bn: names of layers go with --checkpoint"),
    ],
)
def test_bad_input(line, code, told, normcli):
    ran = normcli("fold", *line.split())
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)
    assert told in ran.err


@pytest.mark.parametrize("transposed", [False, True])
def test_what_overflows_is_refused_by_channel(transposed):
    weight = np.ones((3, 3, 2), np.float16)
    weight[(1, 2, 0) if transposed else (2, 1, 0)] = 60000.0
    told = "^channel 2 cannot be folded: the folded weight is beyond float16; give the weight in a wider dtype$"
    with pytest.raises(DataError, match=told):
        fold(Layer(weight, transposed=transposed), Affine(Given(np.zeros(3), np.full(3, 0.25)), 1e-5))


def test_an_infinite_variance_folds_into_nothing(normcli):
    options = ("--conv-weight", "[[1,2]]", "--running-mean", "3", "--running-var", "Infinity", "--beta", "0.5")
    answer = normcli("fold", *options, "-f", "json").json
    assert (answer["weight"], answer["bias"], answer["proof"]["ok"]) == ([[0.0, 0.0]], [0.5], True)
    assert json.loads(normcli("fold", *options, "-f", "jsonl").out)["var"] == "inf"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("weight", "var", "gamma"),
    [
        pytest.param(1e-310, 4.0, 3.0, id="subnormal"),
        pytest.param(1e-200, 4e-300, 1e200, id="a small variance"),
        pytest.param(1e-300, 1e-300, 1e250, id="a product beyond float64"),
        pytest.param(1e300, 1e306, 1e-250, id="large"),
        pytest.param(1e308, 1e308, 1.0, id="both large"),
        pytest.param(1e308, 1.0, 1e-300, id="a small gamma"),
        pytest.param(1e-300, 1.0, 1e300, id="a large gamma"),
        pytest.param(1e-308, 1e-300, 1.0, id="both small"),
    ],
)
def test_large_and_small_values_are_folded_to_a_ulp(weight, var, gamma):
    layer = Layer(np.array([[weight]]), np.array([weight / 2]))
    norm = Affine(Given(np.array([-weight / 4]), np.array([var])), 0.0, np.array([gamma]), np.array([0.0]))
    folded, factor = fold(layer, norm), Real.of(gamma) / Real.of(var).root()
    assert measure_ulp(folded.weight[0, 0], factor * weight, "float64") <= 0.501
    assert measure_ulp(folded.bias[0], (Real.of(weight / 2) + weight / 4) * factor, "float64") <= 0.501


def test_a_proof_beyond_float64_is_no_proof(normcli):
    options = ("--conv-weight", "[[1e308,1e308]]", "--running-mean", "0", "--running-var", "1")
    ran = normcli("fold", *options)
    assert (ran.code, ran.err) == (0, "")
    assert "there is nothing to compare" in ran.out
    assert normcli("fold", *options, "-f", "json").json["proof"]["ok"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "eps", "told"),
    [
        ("--state k.npz", 1e-3, "eps 0.001 (of k.npz)"),
        ("--state k.npz --like torch", 1e-5, "eps 1e-05 (like torch)"),
        ("--state k.npz --like torch --eps 0.5", 0.5, "eps 0.5 (--eps)"),
        ("--running-mean 0 --running-var 1", 1e-5, "eps 1e-05"),
        ("--running-mean 0 --running-var 1 --like keras", 1e-3, "eps 0.001 (like keras)"),
    ],
)
def test_eps_is_the_options_the_frameworks_or_the_states(more, eps, told, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    normcli("bn", "--shape", "4,2", "--layout", "NC", "--like", "keras", "--state", "k.npz")
    line = ("fold", "--conv-weight", "[[1,2],[3,4]]", *more.split())
    assert normcli(*line, "-f", "json").json["eps"] == eps
    assert told in normcli(*line).out
