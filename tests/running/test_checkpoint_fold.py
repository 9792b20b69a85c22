"""`normcli fold --checkpoint`: which norms of a state dict are taken for those behind its layers, and what is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.norms.rules import EpsMode
from normcli.numerics.statistics.solution import Given
from normcli.running.checkpoint_fold import fold_checkpoint
from normcli.running.fold import Affine, Layer, fold
from normcli.running.norm_pairs import NormedLayer, find_pairs

RNG = np.random.default_rng(11)


def make_layer(name, *shape, bias=False):
    """Return the members of a convolution or a linear layer."""
    members = {f"{name}.weight": RNG.standard_normal(shape).astype(np.float32)}
    return members | ({f"{name}.bias": RNG.standard_normal(shape[0]).astype(np.float32)} if bias else {})


def make_norm(name, channels):
    """Return the members of a batch normalization after training."""
    weight, bias, mean = RNG.standard_normal((3, channels)).astype(np.float32)
    var = RNG.uniform(0.5, 2.0, channels).astype(np.float32)
    values = {"weight": weight, "bias": bias, "running_mean": mean, "running_var": var}
    return {f"{name}.{member}": array for member, array in values.items()} | {
        f"{name}.num_batches_tracked": np.array(3)
    }


def tell(arrays, *, is_ordered=True):
    return [(pair.layer, pair.norm) for pair in find_pairs(arrays, is_ordered=is_ordered)]


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("layer", "norm"),
    [
        ("conv1", "bn1"), ("a.conv", "a.bn"), ("a.convolution", "a.normalization"), ("fc2", "norm2"), ("a.0.linear", "a.0.batchnorm"),
        ("a.conv_dw", "a.batch_norm_dw"), ("net.3", "net.4"), ("0", "1"),
    ],
)  # fmt: skip
def test_names_tell_a_layer_and_its_norm(layer, norm):
    assert tell(make_layer(layer, 4, 3) | make_norm(norm, 4)) == [(layer, norm)]


@pytest.mark.all_quick
@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param(make_norm("norm1", 4) | make_layer("conv1", 4, 4, 1), id="a norm before its layer"),
        pytest.param(make_layer("conv1", 5, 3) | make_norm("bn1", 4), id="other channels"),
        pytest.param(make_layer("conv1", 8, 4, 1) | make_norm("bn1", 4), id="channels of what goes in"),
        pytest.param(make_layer("0", 4, 3) | make_norm("2", 4), id="something between"),
        pytest.param({"0.weight": np.ones(4)} | make_norm("1", 4), id="a weight of one axis"),
        pytest.param(make_layer("a.conv1", 4, 3) | make_norm("b.bn1", 4), id="another module"),
    ],
)
def test_what_names_do_not_tell_is_left(arrays):
    assert tell(arrays) == []


def make_blocks(widths, *, first, inner=3):
    """Return a stem and blocks of two layers and two norms, `first` ("conv" or "bn") the first in each block."""
    arrays, entering = make_layer("conv1", widths[0], inner, 7, 7) | make_norm("bn1", widths[0]), widths[0]
    for number, width in enumerate(widths):
        for place, taken in (("1", entering), ("2", width)):
            arrays |= make_layer(f"{number}.conv{place}", width, taken, 3, 3)
            arrays |= make_norm(f"{number}.bn{place}", width if first == "conv" else taken)
        entering = width
    return dict(sorted(arrays.items()))


@pytest.mark.all_quick
@pytest.mark.parametrize("inner", [3, 1])
def test_a_layer_that_fits_only_before_its_norm_speaks_for_modules_of_such_names(inner):
    pairs = find_pairs(make_blocks([4, 4, 8], first="conv", inner=inner), is_ordered=False)
    assert len(pairs) == 7
    sure = {"2.conv1"} | ({"conv1"} if inner == 3 else set())  # 1 channel in may be 4 groups
    assert {pair.layer for pair in pairs if not pair.is_assumed} == sure


def test_a_norm_that_fits_only_before_its_layer_speaks_against_them():
    assert tell(make_blocks([4, 4, 8], first="bn"), is_ordered=False) == []


@pytest.mark.parametrize("first", ["conv", "bn"])
def test_where_channels_fit_both_ways_the_pairs_are_asked_for(first, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", **make_blocks([4, 4], first=first))
    ran = normcli("fold", "--checkpoint", "m.npz", "-o", "y.npz")
    assert (ran.code, ran.raw) == (3, b"")
    assert "0.bn1 may stand behind 0.conv1 or before it: the file has no order of modules" in ran.err
    told = ran.err.split("'")[1]
    assert told == "*conv1=*bn1,*.conv2=*.bn2"
    assert "5 pairs" in normcli("fold", "--checkpoint", "m.npz", "--pairs", told).out


def test_pairs_that_no_star_gives_are_asked_for_by_name():
    arrays = make_layer("a.conv", 4, 4, 3, 3) | make_norm("a.bn", 4) | make_layer("b.conv", 4, 4, 3, 3)
    arrays |= make_norm("b.bn", 4) | make_norm("c.bn", 4)
    with pytest.raises(DataError, match="give --pairs 'a.conv=a.bn,b.conv=b.bn', otherwise others"):
        find_pairs(arrays, is_ordered=False)


def test_the_answer_says_what_was_assumed(normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", **make_blocks([4, 8], first="conv"))
    told = normcli("fold", "--checkpoint", "m.npz", "--full").out
    assert "each layer is first and its norm second, by their names" in told
    assert "3 pairs fit the other way round by channels, too, as 0.conv1=0.bn1" in told
    listed = normcli("fold", "--checkpoint", "m.npz", "--dry-run", "-f", "json").json["pairs"]
    assert [pair["layer"] for pair in listed if pair["assumed"]] == ["0.conv1", "0.conv2", "1.conv2"]


def test_a_transposed_convolution_is_told_by_its_place_and_shape():
    (pair,) = find_pairs(make_layer("0", 3, 4, 2, 2) | make_norm("1", 4), is_ordered=True)
    assert pair == NormedLayer("0", "1", transposed=True)
    (pair,) = find_pairs(make_layer("0", 4, 4, 2, 2) | make_norm("1", 4), is_ordered=True)
    assert pair == NormedLayer("0", "1", is_open=True)


@pytest.fixture
def square(tmp_path, monkeypatch):
    """A state dict of a square convolution, which may be transposed, and of a linear layer."""
    monkeypatch.chdir(tmp_path)
    arrays = (
        make_layer("0", 4, 4, 2, 2, bias=True) | make_norm("1", 4) | make_layer("2", 5, 4) | make_norm("3", 5)
    )
    np.savez("m.npz", **arrays)
    return arrays


def fold_alone(arrays, layer, norm, eps=1e-5, **how):
    """Fold one layer of a state dict by itself."""
    members = [arrays[f"{norm}.{member}"] for member in ("running_mean", "running_var", "weight", "bias")]
    whole = Layer(arrays[f"{layer}.weight"], arrays.get(f"{layer}.bias"), **how)
    return fold(whole, Affine(Given(*members[:2]), eps, *members[2:]))


@pytest.mark.parametrize("named", ["0", "*,0"])
def test_a_square_transposed_convolution_is_folded_along_its_outputs(named, normcli, square):
    ran = normcli("fold", "--checkpoint", "m.npz", "--transposed", named, "-o", "y.npz")
    assert "could be transposed" not in ran.err
    assert "(4, 4, 2, 2) transposed" in ran.out
    alone = fold_alone(square, "0", "1", transposed=True)
    with np.load("y.npz") as saved:
        np.testing.assert_array_equal(saved["0.weight"], alone.weight)
        np.testing.assert_array_equal(saved["0.bias"], alone.bias)
    told = "0 could be transposed: taken for ordinary, (out, in, …); --transposed NAME"
    assert told in normcli("fold", "--checkpoint", "m.npz").err


def test_a_layer_before_two_norms_is_refused():
    arrays = make_layer("conv", 4, 3) | make_norm("bn", 4) | make_norm("norm", 4)
    with pytest.raises(DataError, match="conv may stand before bn and norm; --pairs says which"):
        find_pairs(arrays, is_ordered=True)


def test_each_layer_is_folded_as_by_itself_and_the_rest_stays():
    arrays = make_layer("conv1", 4, 3, 3, bias=True) | make_norm("bn1", 4) | make_layer("0", 5, 4)
    arrays |= make_norm("1", 5) | make_norm("last", 2)
    pairs = find_pairs(arrays, is_ordered=True)
    proofs, after = fold_checkpoint(arrays, pairs, 1e-3, EpsMode.INSIDE)
    for proof, (layer, norm) in zip(proofs.values(), [("conv1", "bn1"), ("0", "1")], strict=True):
        alone = fold_alone(arrays, layer, norm, 1e-3)
        np.testing.assert_array_equal(after[f"{layer}.weight"], alone.weight)
        np.testing.assert_array_equal(after[f"{layer}.bias"], alone.bias)
        assert proof.max_abs < 1e-5 * proof.largest
    kept = {name for name in arrays if name.startswith("last.")}
    assert {*after} == kept | {"conv1.weight", "conv1.bias", "0.weight", "0.bias"}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = make_layer("a.conv", 4, 3, 1) | make_norm("a.bn", 4)
    arrays |= make_layer("b.conv", 4, 3, 1) | make_norm("b.after", 4)
    np.savez("model.npz", **arrays)
    return arrays


@pytest.mark.usefixtures("model")
def test_the_command_lists_folds_and_says_what_it_left(normcli):
    listed = normcli("fold", "--checkpoint", "model.npz", "--dry-run", "-f", "json")
    (pair,) = listed.json["pairs"]
    assert (pair["layer"], pair["norm"], pair["proof"]) == ("a.conv", "a.bn", None)
    assert listed.json["left"] == ["b.after"]
    assert "1 norm left: b.after" in listed.err
    assert "it keeps no eps: 1e-05 is taken" in listed.err
    pairs = "*.conv=*.bn,b.conv=b.after"
    ran = normcli("fold", "--checkpoint", "model.npz", "--pairs", pairs, "--eps", "1e-3", "-o", "y.npz")
    assert (ran.code, ran.err) == (0, "")
    assert "✓ each pair alone, on a random batch" in ran.out
    assert sorted(np.load("y.npz")) == ["a.conv.bias", "a.conv.weight", "b.conv.bias", "b.conv.weight"]


@pytest.mark.usefixtures("model")
@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param("--pairs a.conv", 2, "give LAYER=NORM", id="no norm"),
        pytest.param("--pairs *.conv=a.bn", 2, "one \\* in both or in none", id="one star"),
        pytest.param("--pairs a.conv=a.x", 2, "nothing with running statistics is called a.x", id="no such norm"),
        pytest.param("--pairs x=a.bn", 2, "there is no x.weight", id="no such layer"),
        pytest.param("--pairs a.conv=a.bn,a.conv=b.after", 2, "a.conv is folded into once", id="twice"),
        pytest.param("--dry-run -o y.npz", 2, "leave --output out", id="a run that writes"),
        pytest.param("--transposed", 2, "give the names of the layers", id="no layer's name"),
        pytest.param("--transposed a.conv", 2, "its weight is (out, in, …) by its shape", id="an ordinary layer"),
        pytest.param("--conv-weight w.npy", 2, "are two sources of weights", id="two sources"),
        pytest.param("--transposed ?", 2, "--transposed ?: no pair has a layer of this name", id="no such layer's name"),
        pytest.param("--gamma 1", 2, "--gamma goes with --conv-weight", id="gamma"),
        pytest.param("-o y.json", 2, "has the suffix .json", id="suffix"),
    ],
)  # fmt: skip
def test_what_is_refused(line, code, message, normcli):
    ran = normcli("fold", "--checkpoint", "model.npz", *line.split())
    assert (ran.code, ran.raw) == (code, b"")
    assert message.replace("\\", "") in ran.err


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("changed", "alone", "told"),
    [
        pytest.param({"a.bn.running_var": -np.ones(4)}, False, "a.conv: ", id="a negative variance"),
        pytest.param({"a.bn.running_var": None}, False, "a.bn keeps a running mean without", id="none"),
        pytest.param({"x": np.ones(3)}, True, "no module keeps running statistics", id="no norm"),
        pytest.param(
            make_norm("norm", 4), True, "no name tells the layer before norm; --pairs LAYER", id="untold"
        ),
    ],
)
def test_damaged_members_are_refused_by_name(changed, alone, told, normcli, model):
    arrays = changed if alone else model | changed
    np.savez("bad.npz", **{name: values for name, values in arrays.items() if values is not None})
    ran = normcli("fold", "--checkpoint", "bad.npz")
    assert (ran.code, ran.raw) == (3, b"")
    assert told in ran.err


@pytest.mark.parametrize("shape", [(2,), (0, 3)], ids=["some", "none"])
@pytest.mark.parametrize("dtype", ["complex64", "float8_e8m0fnu"])
def test_tensors_of_an_unknown_dtype_are_written_as_they_were(dtype, shape, normcli, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    saving = pytest.importorskip("safetensors.torch")
    monkeypatch.chdir(tmp_path)
    arrays = {"c.weight": torch.ones(2, 3), "n.running_mean": torch.ones(2), "n.running_var": torch.ones(2)}
    other = torch.full(shape, 2.0).to(getattr(torch, dtype))
    saving.save_file(arrays | {"e": other}, "a.safetensors")
    ran = normcli("fold", "bn", "--checkpoint", "a.safetensors", "--pairs", "c=n", "-o", "b.safetensors", "-q")
    assert ran.code == 0, ran.err
    kept = saving.load_file("b.safetensors")["e"]
    assert (kept.dtype, kept.shape, kept.tolist()) == (other.dtype, other.shape, other.tolist())


def test_complex_arrays_of_an_archive_are_passed_over_and_kept(normcli, model):
    np.savez("a.npz", **model, z=np.array([1 + 2j], "c8"))
    ran = normcli("fold", "bn", "--checkpoint", "a.npz", "-o", "b.npz", "-q")
    assert ran.code == 0, ran.err
    with np.load("b.npz") as saved:
        assert saved["z"].tolist() == [1 + 2j]


def _build(header, size=8):
    data = json.dumps(header).encode()
    return len(data).to_bytes(8, "little") + data + bytes(size)


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [("F4", [16], 8), ("C64", [1] * 70, 8), ("C64", [0, 2**62, 2**62], 0)],
    ids=["half a byte each", "70 axes", "more than NumPy can index"],
)
def test_tensors_that_numpy_cannot_hold_are_refused(dtype, shape, size, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    (tmp_path / "a.safetensors").write_bytes(_build({"x": entry}, size))
    ran = normcli("fold", "--checkpoint", "a.safetensors")
    assert (ran.code, ran.err.count("\n")) == (3, 1)
