"""`NORM --quantize FORMAT` on the command line: scales, codes and what they lose."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from normcli import normalize, quantize
from normcli.quantizing.formats import FORMATS
from tests.conftest import require_refusal

CODES = ("--actual", "q.npz:codes", "--actual-scale", "q.npz:scales")
RECIPE = ("--shape", "4,64", "--dist", "normal", "--dtype", "float32", "--seed", "7")


@pytest.fixture
def x(normcli, here):
    assert normcli("generate", *RECIPE, "-o", "x.npy").code == 0
    return np.load("x.npy")


@pytest.mark.parametrize("name", FORMATS)
def test_json_has_codes_scales_and_losses(name, x, normcli):
    found = quantize(x, "ln", name)
    ran = normcli("ln", "-i", "x.npy", "--quantize", name, "-f", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["quantize"]["format"] == name
    assert np.array_equal(ran.json["codes"], found.codes)
    assert np.array_equal(ran.json["scales"], found.scales)
    assert np.array_equal(ran.json["dequantized"], found.values)
    assert ran.json["tensor_scale"] == float(found.tensor_scale)
    exact = normalize(x, "ln", dtype="float64").normalized
    assert ran.json["error"] == np.abs(np.array(ran.json["dequantized"]) - exact).max()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".json"])
def test_arrays_are_saved_under_their_names(suffix, x, normcli):
    ran = normcli("rms", "-i", "x.npy", "--quantize", "nvfp4", "-o", f"q{suffix}")
    assert (ran.code, ran.raw, ran.err) == (0, b"", "")
    found = quantize(x, "rms", "nvfp4")
    for key in ("codes", "scales", "tensor_scale"):
        read = normcli("maxabs", "-i", f"q{suffix}:{key}", "-f", "json")
        assert read.json["input"]["shape"] == list(getattr(found, key).shape)
    if suffix == ".npz":
        with np.load("q.npz") as saved:
            assert saved["codes"].dtype == np.uint8
            assert np.array_equal(saved["codes"], found.codes)


def test_a_table_says_what_is_lost(normcli):
    ran = normcli("rms", "--data", "[[3,-6,0,1],[0,0,0,0]]", "--quantize", "int8", "-q")
    assert (ran.code, ran.err) == (0, "")
    assert (
        "int8: codes of int8, at most 127   a scale per token   2 scales   scale rounding: nearest" in ran.out
    )
    assert "   63 -127    0   21\n" in ran.out
    assert ran.lines[-1].startswith("largest error 0.006966   signal to noise 48.7 dB   0.000% saturated")
    assert normcli("rms", "--shape", "2,4", "--quantize", "int8", "--show", "check").out.count("\n\n") == 1


def test_what_is_not_lost_is_said(normcli):
    ran = normcli("rms", "--data", "[[0,0]]", "--quantize", "int8", "--show", "check", "-q")
    assert ran.lines[-1].startswith("largest error 0   nothing is lost")
    told = normcli("rms", "--data", "[[0,0]]", "--quantize", "int8", "-f", "json", "-q").json
    assert told["signal_to_noise"] == "inf"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ln --per token", "--per is of results in few bits: give --quantize int8"),
        ("ln --quantize int8 --scale-rounding even", "--scale-rounding is of powers of two"),
        ("ln --quantize int8 --per row", "--per 'row' is none of tensor, token, channel, block:N"),
        ("ln --quantize mxfp4 --per token", "scales of mxfp4 are of blocks, such as block:32"),
        ("ln --quantize int8 --per block:7", "do not divide into blocks of 7; try 1, 2, 4, 8, 16, 32, 64"),
        ("ln --quantize int8 -f html", "--quantize has no --format html: it has table, json"),
        ("ln --quantize int8 --emit numpy", "--emit is of a result that is not quantized"),
        ("check ln --quantize int8", "there is nothing to check: give --actual FILE with codes"),
        ("check ln --quantize int8 --actual x.npy --rtol 0", "--rtol is of a result that is not quantized"),
        ("check ln --clip-output -1,1 --actual x.npy", "--clip-output is checked of codes: give --quantize"),
        ("check ln --quantize int8 --actual x.npy --backward", "--backward is of a result that is not"),
        ("identify --actual x.npy --actual-scale x.npy", "--quantize says of which format"),
        ("identify --quantize int8 --actual x.npy", "give --actual-scale"),
        ("identify --quantize int8 --actual x.npy --actual-scale x.npy --suggest", "--suggest is of a result"),
    ],
)
def test_what_does_not_go_together_is_one_line(line, message, x, normcli):
    require_refusal(normcli(*line.split(), "-i", "x.npy"), 2, message)
    assert not list(Path().glob("q.*"))


@pytest.mark.usefixtures("x")
def test_check_says_which_rule_made_scales(normcli):
    words = ("rms", "-i", "x.npy", "--quantize", "mxfp8")
    assert normcli(*words, "--scale-rounding", "ceil", "-o", "q.npz").code == 0
    ran = normcli("check", *words, *CODES)
    assert (ran.code, ran.err) == (1, "")
    assert "✗ scales are rounded by ceil   8 of 8 scales differ\n  reproduce   --scale-rounding ceil" in ran.out
    assert "✓ all of 256 codes follow from the scales that are given" in ran.out
    told = normcli("check", *words, *CODES, "-f", "json").json
    assert (told["ok"], told["checked"][0]["fault"]) == (False, "scale-rounding")
    right = normcli("check", *words, *CODES, "--scale-rounding", "ceil", "-f", "csv")
    assert (right.code, right.lines[1]) == (0, "scales,True,8,0,,,,,,False,,,,")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "norm"), [("fp8-e4m3", "rms"), ("int8", "ln"), ("mxfp8", "rms"), ("nvfp4", "ln")]
)
def test_the_norm_of_codes_is_identified(name, norm, x, normcli):
    assert normcli(norm, "-i", "x.npy", "--eps", "1e-6", "--quantize", name, "-o", "q.npz").code == 0
    whole = ("--actual-tensor-scale", "q.npz:tensor_scale") if name == "nvfp4" else ()
    ran = normcli("identify", "-i", "x.npy", "--quantize", name, *CODES, *whole, "-f", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["norm"] == norm
    eps = [ran.json["eps"], *(other.rpartition(" ")[2] for other in ran.json["also"])]
    assert any(float(one) >= 1e-6 for one in eps)


@pytest.mark.parametrize(("per", "count"), [("tensor", 1), ("token", 4), ("channel", 64), ("block:16", 16)])
def test_the_groups_of_scales_are_read_from_their_shape(per, count, x, normcli):
    assert normcli("ln", "-i", "x.npy", "--quantize", "fp8-e5m2", "--per", per, "-o", "q.npz").code == 0
    ran = normcli("identify", "-i", "x.npy", "--quantize", "fp8-e5m2", *CODES, "-f", "json")
    assert (ran.code, ran.json["norm"], ran.json["quantize"]["per"]) == (0, "ln", per)
    assert ran.json["checked"][0]["total"] == count


def test_a_rule_of_scales_is_named_beside_the_norm(x, normcli):
    y = normalize(x, "ln", dtype="float64").normalized
    scales = (np.abs(y).max(-1, keepdims=True) / 240.0).astype(np.float32)
    np.savez("q.npz", codes=(y / scales).astype(ml_dtypes.float8_e4m3fn).view(np.uint8), scales=scales)
    ran = normcli("identify", "-i", "x.npy", "--quantize", "fp8-e4m3", *CODES)
    assert ran.code == 1
    assert ran.lines[0] == "identify ln · fp8-e4m3"
    assert "✗ scales are amax / 240   4 of 4 scales differ" in ran.lines


def test_codes_of_nothing_known_are_no_norm_s(x, normcli):
    draw = np.random.default_rng(0)
    np.savez("q.npz", codes=draw.integers(-127, 128, x.shape).astype(np.int8), scales=np.full(4, 0.03))
    ran = normcli("identify", "-i", "x.npy", "--quantize", "int8", *CODES)
    assert ran.code == 1
    assert ran.lines[-1].startswith("✗ nothing known explains these codes")


def test_codes_of_a_single_value_are_of_no_norm(normcli, here):
    np.save("x.npy", np.float32(2.0))
    np.savez("q.npz", codes=np.int8(1), scales=np.float32(1.0))
    require_refusal(
        normcli("identify", "-i", "x.npy", "--quantize", "int8", *CODES), 3, "no norm is there to try"
    )


def test_a_kernel_of_float32_passes_within_its_ulps_and_no_other(x, normcli):
    y = normalize(x, "rms").normalized
    assert y.dtype == np.float32
    scales = np.abs(y).max(-1, keepdims=True) / np.float32(448)
    codes = (y / scales).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    arguments = ("check", "rms", "-i", "x.npy", "--quantize", "fp8-e4m3", *CODES)
    np.savez("q.npz", codes=codes, scales=scales)
    ran = normcli(*arguments)
    assert (ran.code, "  accept   --max-ulp 0.5" in ran.lines) == (1, True)
    ran = normcli(*arguments, "--max-ulp", "0.5", "-f", "json")
    assert ran.code == 0
    assert [(part["ok"], part["beyond"]) for part in ran.json["checked"]] == [(True, 0), (True, 0)]
    assert ran.json["checked"][0]["different"] > 0
    codes[2, 5] ^= 1
    np.savez("q.npz", codes=codes, scales=scales)
    ran = normcli(*arguments, "--max-ulp", "0.5", "-f", "json")
    assert (ran.code, ran.json["checked"][1]["beyond"]) == (1, 1)


def test_wrong_codes_are_judged_without_the_library_of_bfloat16(x, normcli, monkeypatch):
    np.savez("q.npz", codes=np.zeros(x.shape, np.int8), scales=np.ones((4, 1), np.float32))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    ran = normcli("check", "ln", "-i", "x.npy", "--quantize", "int8", *CODES)
    assert (ran.code, ran.err) == (1, "")


@pytest.mark.usefixtures("x")
@pytest.mark.parametrize(
    ("right", "wrong", "cause"),
    [
        pytest.param(("--gate", "z.npy"), (), "the gate was left out", id="gate"),
        pytest.param(
            ("--gate", "z.npy"),
            ("--gate", "z.npy", "--gate-act", "relu"),
            "the gate's activation is relu, not silu",
            id="activation",
        ),
        pytest.param(("--clip-output", "-1,1"), (), "the clip was left out", id="clip"),
        pytest.param(("--eps", "1e-2"), ("--eps", "1e-3"), "eps is 0.001, not 0.01", id="eps"),
    ],
)
def test_check_names_another_request_that_made_codes(right, wrong, cause, rng, normcli):
    np.save("z.npy", rng.normal(size=(4, 64)).astype("f4"))
    words = ("rms", "-i", "x.npy", "--quantize", "fp8-e4m3")
    assert normcli(*words, *wrong, "-o", "q.npz").code == 0
    told = normcli("check", *words, *right, *CODES, "-f", "json").json
    assert (told["ok"], told["checked"][0]["cause"]) == (False, cause)
