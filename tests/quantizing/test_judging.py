"""Codes and scales of kernels, each with a way of its own to make them: they are told by it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from normcli import NormError, normalize, quantize
from normcli.identifying.quantized_norm import blame_request
from normcli.quantizing.codes import round_quotients
from normcli.quantizing.formats import E4M3
from normcli.quantizing.judging import judge_quantized

SHAPE = (12, 128)


@pytest.fixture(params=[0.0, 50.0], ids=["centred", "off centre"])
def x(request):
    return (np.random.default_rng(3).standard_normal(SHAPE) * 3 + request.param).astype(np.float32)


def run_kernel(x, *, largest=448.0, eps=0.0, dtype="float32", power=False, axis=-1):
    """Quantize to FP8 as a kernel in float32 does: a scale for each row."""
    y = normalize(x, "ln").normalized.astype(dtype).astype(np.float32)
    amax = np.abs(y).max(axis=axis, keepdims=True) + np.float32(eps)
    scale = amax / np.float32(largest)
    if power:
        scale = np.exp2(np.ceil(np.log2(scale)))
    return (y / scale).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8), scale


@pytest.mark.parametrize(
    ("options", "fault", "words"),
    [
        ({"largest": 240.0}, "scale-largest", "amax / 240, of y rounded to float32"),
        ({"eps": 1e-6}, "scale-eps", "(amax + 1e-06) / 448"),
        ({"dtype": ml_dtypes.bfloat16}, "scale-rounded-y", "of y rounded to bfloat16"),
        ({"dtype": "float16"}, "scale-rounded-y", "of y rounded to float16"),
        ({"power": True}, "scale-power-of-two", "amax / 448, raised to a power of two"),
        ({"axis": None}, "scale-group", "per tensor"),
        ({"axis": 0}, "scale-group", "per channel, of y rounded to float32"),
    ],
)
def test_the_rule_of_scales_is_named(options, fault, words, x):
    scales, _ = judge_quantized(quantize(x, "ln", "fp8-e4m3"), *run_kernel(x, **options))
    assert (scales.ok, scales.fault) == (False, fault)
    assert words in scales.cause


@pytest.mark.parametrize("rounding", ["ceil", "rceil", "even"])
def test_another_rounding_of_powers_of_two_is_named_with_its_option(rounding, x):
    theirs = quantize(x, "ln", "mxfp8", scale_rounding=rounding)
    scales, codes = judge_quantized(quantize(x, "ln", "mxfp8"), theirs.codes, theirs.scales)
    assert (scales.fault, scales.remedy) == ("scale-rounding", f"--scale-rounding {rounding}")
    assert codes.ok  # by the scales beside them


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda y, scale: np.trunc(y / scale), "codes-truncated"),
        (lambda y, scale: np.floor(y / scale), "codes-floored"),
        (lambda y, scale: np.rint(y.astype(ml_dtypes.bfloat16).astype("f8") / scale), "codes-rounded-y"),
        (lambda y, scale: np.rint(y) * 0 + 5, None),
    ],
)
def test_the_rule_of_codes_is_named(make, fault, x):
    found = quantize(x, "ln", "int8")
    y = normalize(x, "ln", dtype="float64").normalized
    for right in (y, y * (1.0 + 2.0**-22)):  # exact, and as a kernel in float32 has it
        (codes,) = judge_quantized(found, make(right, found.factors).clip(-127, 127).astype(np.int8), None)
        assert codes.fault == fault
        assert codes.remedy == (None if fault else "--actual-scale SCALES")
    assert (codes.ok, codes.fault) == (False, fault)
    assert codes.text.endswith("of 1,536 codes differ")


@pytest.mark.parametrize("name", ["int8", "fp8-e4m3", "fp8-e5m2", "mxfp8", "mxfp4", "nvfp4"])
def test_what_is_exact_is_right_as_bits_and_as_numbers(name, x):
    found = quantize(x, "rms", name)
    numbers = (found.numbers, found.factors / float(found.tensor_scale))
    for codes, scales in ((found.codes, found.scales), numbers):
        assert all(part.ok for part in judge_quantized(found, codes, scales))
    wrong = found.codes.copy()
    wrong[3, 5] ^= 1
    assert [part.different for part in judge_quantized(found, wrong, found.scales)] == [0, 1]


def test_a_tensor_scale_that_is_stored_as_its_reciprocal_is_named(x):
    found = quantize(x, "ln", "nvfp4")
    stored = np.float32(1.0) / found.tensor_scale
    scales, codes = judge_quantized(found, found.codes, found.scales, stored)
    assert (scales.ok, scales.fault, codes.ok) == (False, "scale-tensor-inverse", True)
    assert (scales.text, scales.cause) == (
        "96 of 96 scales differ",
        "the tensor scale is 1 / scale: its reciprocal is stored",
    )
    assert not judge_quantized(found, found.codes, found.scales, stored, unit=x * 0 + 1e-7, max_ulp=1.0)[0].ok
    other = judge_quantized(found, found.codes, np.roll(found.scales, 1, 0), stored)[0]
    assert other.fault != "scale-tensor-inverse"


def test_shapes_that_do_not_fit_are_refused(x):
    found = quantize(x, "ln", "int8")
    with pytest.raises(NormError, match=r"scales have the shape \(5, 1\), which does not go with \(12, 128\)"):
        judge_quantized(found, None, np.ones((5, 1)))
    with pytest.raises(NormError, match=r"codes have the shape \(12, 64\), not \(12, 128\)"):
        judge_quantized(found, np.ones((12, 64), np.int8), None)


@pytest.mark.parametrize(
    ("change", "fault", "cause"),
    [
        (
            lambda s, y, x: s * 448 / 240,
            "scale-largest",
            "1.867 times the right one: 240 is the largest number",
        ),
        (lambda s, y, x: s * 2, "scale-ratio", "every scale is 2 times the right one"),
        (lambda s, y, x: 1 / s, "scale-inverse", "their reciprocals are stored"),
        (lambda s, y, x: s, "scale-ulp", "as a kernel's own rounding"),
        (lambda s, y, x: np.exp2(np.floor(np.log2(s))), "scale-lowered", "lowered to a power of two"),
        (lambda s, y, x: s.astype(ml_dtypes.bfloat16), "scale-rounded", "rounded to bfloat16"),
        (lambda s, y, x: y.max(-1, keepdims=True) / 448, "scale-signed", "not of the largest magnitude"),
        (lambda s, y, x: np.abs(x).max(-1, keepdims=True) / 448, "scale-input", "of x, not of y"),
        (lambda s, y, x: np.abs(y / 3).max(-1, keepdims=True) / 448, "scale-bare", "scales are of x̂"),
        (lambda s, y, x: np.roll(s, 1, 0), "scale-shifted", "each scale is of the group before it"),
    ],
)
def test_the_fault_of_scales_is_named_beside_a_kernel_s_own_rounding(change, fault, cause):
    x = (np.random.default_rng(3).standard_normal(SHAPE) * 3).astype(np.float32)
    x[:, 0] = 9.0  # its gamma is another, so that x̂ is no multiple of y
    gamma = np.full(128, 3.0, np.float32)
    gamma[0] = 0.5
    y = normalize(x, "ln", gamma=gamma).normalized * (1.0 + 2.0**-22)  # a few ulp off
    if fault == "scale-bare":
        y = normalize(x, "ln").normalized * np.float32(3.0 * (1.0 + 2.0**-22))
    scale = np.abs(y).max(-1, keepdims=True) / 448
    theirs = change(scale, y, x).astype(np.float32)
    found = quantize(x, "ln", "fp8-e4m3", gamma=gamma)
    meant = theirs.astype("f8") ** (-1 if fault == "scale-inverse" else 1)
    numbers = round_quotients(found.exact.normalized, meant, E4M3).values
    scales, codes = judge_quantized(found, numbers, theirs)
    assert scales.fault == fault
    assert cause in scales.cause
    assert scales.worst.actual == theirs[scales.worst.place]
    assert (codes.different, codes.text) == (0, "all of 1,536 codes follow from the scales that are given")


@pytest.mark.parametrize(
    ("eps", "fault", "remedy"),
    [(1e-5, "codes-ulp", "--max-ulp 0.5"), (1e-3, "request-eps", "--eps 0.001")],
)
def test_another_eps_is_named_only_with_evidence_beyond_chance(eps, fault, remedy):
    x = (np.random.default_rng(5).normal(size=(64, 96)) * 2).astype(np.float32)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(eps))  # as a kernel in float32 does
    scales = np.abs(y).max(-1, keepdims=True) / np.float32(448)
    made = (y / scales).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    found = quantize(x, "rms", "fp8-e4m3", eps=1e-5, per="token")
    assert quantize(x, "rms", "fp8-e4m3", eps=1e-6, per="token").codes.tolist() == made.tolist() or eps == 1e-3
    given = (made, None if eps == 1e-5 else scales, None)
    parts = judge_quantized(found, *given, unit=np.spacing(np.abs(y)).astype(float))
    first, *_ = blame_request(found, given, parts)
    assert (first.ok, first.fault, first.remedy) == (False, fault, remedy)


@pytest.mark.parametrize(
    ("count", "fault"), [(1, "codes-ulp"), (19, "codes-ulp"), (25, "request-eps"), (30, "request-eps")]
)
def test_codes_at_borders_of_rounding_count_for_an_eps_and_against_it(count, fault):
    row = np.array([127.0, *[10.5 * (1.0 + 1e-6)] * 30, 0.0]) / 10.0
    x = np.array([row, row / 2.0]).astype(np.float32)  # of which eps moves the second row past a border
    own, other = (quantize(x, "rms", "int8", per="tensor", eps=eps) for eps in (1e-5, 1e-6))
    assert np.count_nonzero(own.codes != other.codes) == 30
    made = own.codes.copy()
    made[1, 1 : 1 + count] = other.codes[1, 1 : 1 + count]
    parts = judge_quantized(own, made, None)
    (codes,) = blame_request(own, (made, None, None), parts)
    assert (codes.fault, codes.different) == (fault, count)


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4"])
def test_codes_exchanged_in_their_bytes_are_named(name, x):
    found = quantize(x, "ln", name)
    packed = found.codes[:, ::2] << 4 | found.codes[:, 1::2]
    for given in (found.scales, None):
        codes = judge_quantized(found, packed, given)[-1]
        assert (codes.ok, codes.fault) == (False, "codes-swapped")


def tile(scales):
    """Lay scales of (12, 4) out as cuBLAS takes them: of each row of a tile, the first quarter is used."""
    laid = np.full((32, 4, 4), 7, np.uint8)
    laid[:12, 0] = scales
    return laid.reshape(128, 4)


@pytest.mark.parametrize(
    ("change", "fault", "codes_fault"),
    [
        (np.transpose, "scale-transposed", None),
        (tile, "scale-tiled", None),
        (lambda scales: scales + 1, "scale-ratio", "codes-own-scale"),
    ],
)
@pytest.mark.parametrize("name", ["mxfp8", "mxfp4"])
def test_scales_in_another_order_or_with_another_bias_are_named(name, change, fault, codes_fault, x):
    found = quantize(x, "ln", name)
    scales, codes = judge_quantized(found, found.codes, change(found.scales))
    assert (scales.ok, scales.fault, codes.fault) == (False, fault, codes_fault)
    assert codes_fault is None or scales.cause.endswith(": the exponents are off by +1")


@pytest.mark.parametrize("other", ["e5m2", "e4m3fnuz", "e5m2fnuz", "e4m3fn"])
@pytest.mark.parametrize("name", ["fp8-e4m3", "fp8-e5m2"])
def test_codes_of_another_float_of_eight_bits_are_named(name, other, x):
    found, dtype = quantize(x, "ln", name), getattr(ml_dtypes, f"float8_{other}")
    scale = found.scales * np.float32(found.asked.row.grid.largest / float(ml_dtypes.finfo(dtype).max))
    made = (found.exact.normalized / scale).astype(dtype)
    (codes,) = judge_quantized(found, made.view(np.uint8), scale)[1:]
    own = other.startswith(name[4:]) and not other.endswith("uz")
    told = None if own else f"codes are bits of {other.removesuffix('fn').upper()}"
    assert (codes.ok, codes.cause) == (own, told)


@pytest.mark.parametrize("name", ["int8", "mxfp4", "nvfp4"])
def test_scales_of_one_are_named_and_codes_of_the_right_scales(name, x):
    found = quantize(x * 3, "l2", name)
    for whole in (None, np.ones(1, np.float32)):
        scales, codes = judge_quantized(found, found.codes, np.ones(found.scales.shape, np.float32), whole)
        assert (scales.ok, scales.fault) == (False, "scale-one")
        assert (codes.ok, codes.fault) == (False, "codes-own-scale")


@pytest.mark.parametrize("whole", [None, np.ones(1, np.float32)])
def test_scales_without_the_tensor_scale_are_named(whole, x):
    found = quantize(x, "ln", "nvfp4")
    y = found.exact.normalized
    stored = (np.abs(y).reshape(12, 8, 16).max(-1) / 6.0).astype(ml_dtypes.float8_e4m3fn)
    numbers = round_quotients(y, np.repeat(stored.astype(float), 16, 1), found.asked.row.grid).values
    scales, codes = judge_quantized(found, numbers, stored.view(np.uint8), whole)
    assert (scales.ok, scales.fault, codes.ok) == (False, "scale-tensor-none", True)


@pytest.mark.parametrize(("rows", "fault"), [(1, "scale-ulp"), (12, "scale-ulp"), (64, "scale-reciprocal")])
def test_a_rule_of_scales_within_a_kernel_s_rounding_is_named_of_many_scales(rows, fault):
    x = np.random.default_rng(3).standard_normal((rows, 128)).astype(np.float32)
    found = quantize(x, "l2", "int8", per="token")
    made = np.abs(found.exact.normalized).max(-1, keepdims=True).astype(np.float32) * np.float32(1 / 127)
    made[0] = np.nextafter(found.scales[0], np.float32(np.inf)) if rows == 1 else made[0]
    (scales,) = judge_quantized(found, None, made)
    assert (scales.ok, scales.fault) == (False, fault)


@pytest.mark.parametrize(("ulps", "fault"), [(-41, None), (-1000, "scale-ratio")])
def test_scales_beside_the_right_ones_are_no_multiples_of_them(ulps, fault, x):
    found = quantize(x, "ln", "int8", per="token")
    made = found.scales * np.float32(1.0 + (-20 if fault is None else ulps) * 2.0**-23)
    made[0] = found.scales[0] * np.float32(1.0 + ulps * 2.0**-23)
    (scales,) = judge_quantized(found, None, made)
    assert scales.fault == fault
