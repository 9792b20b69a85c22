"""A norm's exact result as scales and codes, held against fractions and against ml_dtypes."""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction

import numpy as np
import pytest

from normcli import NormError, normalize
from normcli.numerics.workspace import Workspace
from normcli.quantizing import quantize as room
from normcli.quantizing import tile_sinks
from normcli.quantizing.blocks import Rounder, make_codes
from normcli.quantizing.codes import round_quotients
from normcli.quantizing.formats import E2M1, E4M3, E5M2, FORMATS, INT8, NumberGrid, ScaleRounding
from normcli.quantizing.quantize import quantize
from normcli.quantizing.scales import find_scales


def list_numbers(grid: NumberGrid) -> list[Fraction]:
    """Return a grid's numbers from 0 up, by their definition."""
    if grid.is_integer:
        return [Fraction(n) for n in range(128)]
    found, exponent = (
        [Fraction(n) * Fraction(2) ** (grid.least - grid.digits) for n in range(1 << grid.digits)],
        grid.least,
    )
    while found[-1] < grid.largest:
        found += [
            Fraction(n + (1 << grid.digits)) * Fraction(2) ** (exponent - grid.digits)
            for n in range(1 << grid.digits)
        ]
        exponent += 1
    return [number for number in found if number <= grid.largest]


def round_exactly(value: Fraction, numbers: list[Fraction]) -> int:
    """Return the place of the number that is nearest to a magnitude; of two, the even place."""
    above = bisect.bisect_left(numbers, abs(value))
    near = range(max(above - 1, 0), min(above + 1, len(numbers)))
    return min(near, key=lambda n: (abs(numbers[n] - abs(value)), n % 2))


@pytest.mark.parametrize(
    ("scale", "midpoint", "toward", "number"),
    [
        pytest.param(0.9233265, 1.0625, np.inf, 1.125, id="above"),
        pytest.param(1.2535131, 1.1875, 0.0, 1.125, id="below"),
    ],
)
def test_a_quotient_that_is_rounded_to_a_midpoint_keeps_its_side(scale, midpoint, toward, number):
    divisor = 1.0 / float(np.float32(scale))
    value = np.nextafter(midpoint * divisor, toward)
    found = round_quotients(np.array([value]), divisor, E4M3)
    assert value / divisor == midpoint
    assert (found.values, found.is_midpoint) == (number, False)


@pytest.mark.parametrize(
    ("rounding", "powers"),
    [("floor", [0, 0, 0, 1]), ("ceil", [0, 1, 1, 1]), ("rceil", [0, 0, 1, 1]), ("even", [0, 0, 1, 1])],
)
def test_a_power_of_two_is_chosen_by_its_rule(rounding: str, powers: list[int]):
    assert {*ScaleRounding} == {"floor", "ceil", "rceil", "even"}
    found = find_scales(np.array([4.0, 6.0, 7.0, 8.0]), FORMATS["mxfp4"], rounding)
    assert np.log2(found.values).tolist() == powers


def test_nvfp4_has_a_scale_of_the_tensor_and_e4m3_ones_of_blocks():
    x = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    y = normalize(x, "ln", dtype="float64").normalized
    found = quantize(x, "ln", "nvfp4")
    assert found.tensor_scale == np.float32(np.abs(y).max() / (448 * 6))
    numbers = list_numbers(E4M3)
    largest = np.abs(y).reshape(4, 4, 16).max(axis=-1)
    ts = Fraction(float(found.tensor_scale))
    places = [round_exactly(Fraction(v) / (6 * ts), numbers) for v in largest.ravel()]
    assert found.scales.ravel().tolist() == places
    grid = list_numbers(E2M1)
    scales = np.repeat(found.scales, 16, axis=-1).ravel()
    codes = [
        round_exactly(Fraction(v) / (numbers[s] * ts), grid) for v, s in zip(y.ravel(), scales, strict=True)
    ]
    assert (found.codes.ravel() & 7).tolist() == codes


def test_a_value_that_rounds_to_a_boundary_is_asked_on_which_side_it_lies():
    # y = 2.5 + 2^-60 · z of the scale 1: float64 gives 2.5, whose code is 2; the exact value's is 3 above it.
    for z, code in ((1.0, 3), (0.0, 2), (-1.0, 2)):
        x = np.array([[127.0, 1.0]])
        options = {"running_mean": [0.0, 0.0], "running_var": [1.0, 1.0], "eps": 0.0}
        gamma, beta = np.array([1.0, z * 2.0**-60]), np.array([0.0, 2.5])
        found = quantize(x, "bn", "int8", gamma=gamma, beta=beta, per="tensor", **options)
        assert found.codes.tolist() == [[127, code]]


def test_a_scale_lies_below_a_power_of_two_that_the_exact_result_does_not_reach():
    x = np.array([[1.0] * 32])
    options = {"running_mean": [0.0] * 32, "running_var": [1.0] * 32, "eps": 0.0}
    beta, below = np.full(32, 4.0), np.full(32, -(2.0**-60))
    assert quantize(x, "bn", "mxfp4", gamma=np.zeros(32), beta=beta, **options).scales.tolist() == [[127]]
    assert quantize(x, "bn", "mxfp4", gamma=below, beta=beta, **options).scales.tolist() == [[126]]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fp6", {}, "is none of int8"),
        ("int8", {"per": "row"}, "is none of tensor"),
        ("mxfp4", {"per": "token"}, "scales of mxfp4 are of blocks"),
        ("int8", {"scale_rounding": "ceil"}, "of powers of two"),
        ("mxfp8", {"scale_rounding": "up"}, "is none of floor"),
        ("mxfp8", {"per": "block:7"}, "do not divide into blocks of 7"),
        ("int8", {"norm": "lrn", "size": 3}, "quantize takes no windows: lrn is of windows"),
    ],
)
def test_what_does_not_go_together_is_refused(name: str, options: dict[str, object], message: str):
    with pytest.raises(NormError, match=message):
        quantize(np.ones((2, 32)), format_name=name, **{"norm": "ln"} | options)


@pytest.mark.costly
@pytest.mark.parametrize("name", ["int8", "fp8-e4m3", "mxfp8"])
def test_what_is_rounded_before_gamma_is_quantized_from_its_own_dtype(name: str):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    random = np.random.default_rng(4)
    x = (random.standard_normal((4, 64)) * 3).astype(ml_dtypes.bfloat16)
    gamma = random.standard_normal(64).astype(ml_dtypes.bfloat16)
    y = normalize(x, "rms", like="llama", gamma=gamma).normalized.astype(np.float64)
    found = quantize(x, "rms", name, like="llama", gamma=gamma)
    largest = np.abs(y).reshape((*found.factors.shape, -1)).max(axis=-1)
    numbers = list_numbers(FORMATS[name].grid)
    if name != "mxfp8":
        assert (found.factors == (largest / FORMATS[name].grid.largest).astype(np.float32)).all()
    each = np.repeat(found.factors, 64 // found.factors.shape[-1], axis=-1)
    places = [round_exactly(Fraction(v) / Fraction(f), numbers) for v, f in zip(y.flat, each.flat, strict=True)]
    assert np.abs(found.numbers).ravel().tolist() == [float(numbers[place]) for place in places]
    assert found.exact.dtype == x.dtype


PLAIN = {"running_mean": [0.0] * 8, "running_var": [1.0] * 8, "eps": 0.0, "per": "tensor"}
"""Of bn: y is x."""


@pytest.mark.parametrize("act", ["silu", "sigmoid", "gelu", "tanh", "none"])
def test_a_gated_value_that_rounds_to_a_boundary_is_asked_on_which_side_it_lies(act: str):
    mpmath = pytest.importorskip("mpmath")
    formulas = {
        "silu": lambda z: z / (1 + mpmath.exp(-z)),
        "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
        "gelu": lambda z: z * mpmath.ncdf(z),
        "tanh": mpmath.tanh,
        "none": lambda z: z,
    }
    z = np.random.default_rng(3).uniform(0.5, 2.0, 7)
    with mpmath.workprec(300):
        factors = [formulas[act](mpmath.mpf(one)) for one in z]
        x = [float(mpmath.mpf(2.5) / factor) for factor in factors]
        sides = [mpmath.mpf(one) * factor > 2.5 for one, factor in zip(x, factors, strict=True)]
        last = float(128 / formulas[act](mpmath.mpf(2)))  # 127 behind bounds
    gate, values = np.array([[*z, 2.0]]), np.array([[*x, last]])
    options = PLAIN | {"gate": gate, "gate_act": act}
    plain = {name: value for name, value in options.items() if name != "per"}
    assert normalize(values, "bn", dtype="float64", **plain).normalized.tolist()[0].count(2.5) > 3
    bounds = quantize(values, "bn", "int8", clip_output=(-127.0, 127.0), **options)
    assert bounds.factors.item() == 1.0
    assert bounds.codes.tolist() == [[*(3 if side else 2 for side in sides), 127]]


def test_a_product_with_a_gate_may_be_a_boundary_itself():
    x, gate = np.array([[5.0, 127.0, 2.5, -5.0, 0.0, 1.0, 1.0, 1.0]]), np.array([[0.0] * 8])
    options = PLAIN | {"gate": gate, "gate_act": "sigmoid"}  # which is 1/2 at 0
    assert quantize(2 * x, "bn", "int8", **options).codes.tolist() == [[5, 127, 2, -5, 0, 1, 1, 1]]
    assert quantize(x, "bn", "int8", **options).factors.item() == 0.5


def test_a_beta_that_differs_from_a_boundary_by_more_digits_than_a_double_has_is_subtracted_exactly():
    """3.4 + 0.1 in doubles is 3.5, halfway between two codes; the exact sum of both doubles is below that."""
    given = {"running_mean": [0.0, 0.0], "running_var": [1.0, 1.0], "eps": 0.0}
    found = quantize([[127.0, 3.4]], "bn", "int8", beta=[0.0, 0.1], **given)
    assert 3.4 + 0.1 == 3.5
    assert found.codes.tolist() == [[127, 3]]


def test_a_value_beyond_a_bound_is_the_bound():
    x = np.array([[127.0, *[1.0] * 7]])
    beta = np.array([0.0, -2.5, -2.5, -2.5, -9.0, 2.5, 2.5, 2.5])
    gamma = np.array([1.0, 2.0**-60, 0.0, -(2.0**-60), 0.0, 2.0**-60, 0.0, -(2.0**-60)])
    for clip, codes in (
        ((-2.5, 200.0), [127, -2, -2, -2, -2, 3, 2, 2]),  # -2.5 - 2^-60 has the code -3, and is no more there
        ((-200.0, 200.0), [127, -2, -2, -3, -9, 3, 2, 2]),
    ):
        found = quantize(x, "bn", "int8", gamma=gamma, beta=beta, clip_output=clip, **PLAIN)
        assert found.codes.tolist() == [codes]
    beta, x[0, 0] = -beta, -127.0
    found = quantize(
        x, "bn", "int8", gamma=-gamma * [-1, *[1] * 7], beta=beta, clip_output=(-200, 2.5), **PLAIN
    )
    assert found.codes.tolist() == [[-127, 2, 2, 2, 2, -3, -2, -2]]


@pytest.mark.parametrize("name", ["int8", "mxfp4", "nvfp4"])
def test_a_gated_and_bounded_result_is_the_one_that_is_quantized(name: str):
    random = np.random.default_rng(9)
    x, gate = random.standard_normal((2, 4, 64)).astype("f4")
    options = {"gate": gate, "gate_act": "gelu", "clip_output": (-0.5, 0.75), "clip": (-1, 1)}
    y = normalize(x, "rms", dtype="float64", **options).normalized
    found = quantize(x, "rms", name, **options)
    each = np.repeat(found.factors, 64 // found.factors.shape[-1], axis=-1)
    numbers = list_numbers(FORMATS[name].grid)
    places = [round_exactly(Fraction(v) / Fraction(f), numbers) for v, f in zip(y.flat, each.flat, strict=True)]
    assert np.abs(found.numbers).ravel().tolist() == [float(numbers[place]) for place in places]


@pytest.mark.usefixtures("either_kernel")
@pytest.mark.parametrize("grid", [E4M3, E5M2, E2M1, INT8], ids=["e4m3", "e5m2", "e2m1", "int8"])
def test_a_block_is_rounded_as_fractions_are_by_either_kernel(grid: NumberGrid):
    numbers, random = list_numbers(grid), np.random.default_rng(5)
    factors = np.array([[np.float32(random.uniform(0.01, 3))], [2.0**-126], [2.0**100], [0.0]], np.float64)
    edges = np.array([float((a + b) / 2) for a, b in itertools.pairwise(numbers)])
    beyond = [grid.largest, grid.largest * 1.01, grid.largest * 1.2, float(numbers[1]) / 3, 0.0, -0.0]
    near = np.concatenate([edges, -edges])
    y = np.concatenate([near, beyond, random.standard_normal(100) * grid.largest / 3]) * np.where(
        factors, factors, 1
    )
    y = np.concatenate([np.nextafter(y[:, : near.size], -np.inf), np.nextafter(y, np.inf)], axis=1)
    y[:, 7::9] = -0.0
    codes, rounder = make_codes(y.shape, grid), Rounder(grid, y.shape[1])
    assert rounder.round(y, factors, codes, Workspace()) is None
    found = np.zeros(y.shape)
    for (row, column), value in np.ndenumerate(y[:3]):
        place = round_exactly(Fraction(value) / Fraction(factors[row, 0]), numbers)
        found[row, column] = np.copysign(float(numbers[place]), value)
        size = (
            abs(int(codes[row, column])) if grid.is_integer else codes[row, column] & (1 << grid.sign_place) - 1
        )
        assert size == place
    signs = codes < 0 if grid.is_integer else codes >> grid.sign_place == 1
    assert (signs == (np.signbit(y) & ((codes != 0) | (not grid.is_integer)))).all()
    step = 2.0 * (grid.largest - float(numbers[-2]))
    quotients = np.abs(y[:3]) / factors[:3]
    losses = rounder.losses
    assert round(losses.saturated * y.size) == np.count_nonzero(quotients >= grid.largest + step / 4)
    assert round(losses.flushed * y.size) == np.count_nonzero(
        (y[:3] != 0) & (found[:3] == 0)
    ) + np.count_nonzero(y[3])
    assert losses.error == np.abs(found * factors - y).max()
    y[1, 5] = edges[3] * factors[1, 0]
    is_midpoint = rounder.round(y, factors, codes, Workspace())
    assert is_midpoint is not None
    assert np.argwhere(is_midpoint).tolist() == [[1, 5]]


@pytest.mark.usefixtures("either_kernel")
@pytest.mark.parametrize(
    ("norm", "shape", "options", "is_tiled"),
    [
        ("ln", (64, 96), {}, True),
        ("rms", (8, 8, 96), {"gamma": np.linspace(-2.0, 2.0, 96)}, True),
        ("gn", (6, 8, 4, 32), {"groups": 2, "layout": "NCHW"}, True),
        ("bn", (6, 8, 4, 32), {"layout": "NCHW"}, True),
        ("bn", (128, 64), {}, False),
    ],
)
@pytest.mark.parametrize(
    ("name", "per"), [("int8", "token"), ("fp8-e4m3", "block:32"), ("mxfp4", None), ("nvfp4", None)]
)
def test_tiles_have_the_codes_of_the_whole(name, per, norm, shape, options, is_tiled, monkeypatch):
    x = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
    whole = quantize(x, norm, name, per=per, **options)
    monkeypatch.setattr(room, "TILE", 1000)
    found = quantize(x, norm, name, per=per, threads=2, **options)
    assert (whole.exact.is_normalized, found.exact.is_normalized) == (True, not is_tiled)
    assert found.losses == whole.losses
    for key, array in whole.arrays.items():
        assert array.dtype == found.arrays[key].dtype
        assert np.array_equal(array, found.arrays[key])
    assert np.array_equal(found.factors, whole.factors)
    assert found.exact.warnings == whole.exact.warnings


@pytest.mark.usefixtures("either_kernel")
@pytest.mark.parametrize(
    ("norm", "shape", "options"),
    [
        ("ln", (64, 96), {}),
        ("rms", (8, 8, 96), {"gamma": np.linspace(-2.0, 2.0, 96), "layout": "nld"}),
        ("ln", (8, 8, 96), {"layout": "ncl"}),
        ("gn", (6, 8, 4, 32), {"groups": 2, "layout": "NCHW"}),
        ("bn", (6, 8, 4, 32), {"layout": "NCHW"}),
        ("ln", (16, 4, 32), {"axes": (0, 2), "layout": "cnl"}),
    ],
)
@pytest.mark.parametrize("per", ["tensor", "channel"])
@pytest.mark.parametrize("name", ["int8", "fp8-e4m3"])
def test_scales_of_more_than_a_row_are_found_tile_by_tile(name, per, norm, shape, options, monkeypatch):
    x = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
    whole = quantize(x, norm, name, per=per, **options)
    monkeypatch.setattr(room, "TILE", 1000)
    monkeypatch.setattr(tile_sinks, "BLOCK", 500)
    found = quantize(x, norm, name, per=per, threads=2, **options)
    assert (whole.exact.is_normalized, found.exact.is_normalized) == (True, False)
    assert found.losses == whole.losses
    assert np.array_equal(found.codes, whole.codes)
    assert np.array_equal(found.scales, whole.scales)
    assert found.scales.shape == whole.scales.shape
    assert np.array_equal(found.values, whole.values)


def test_a_value_that_is_not_finite_has_no_scale_of_its_channel(monkeypatch):
    monkeypatch.setattr(room, "TILE", 1000)
    x = np.random.default_rng(8).standard_normal((64, 32))
    x[40, 3] = np.inf
    for per in ("tensor", "channel"):
        with pytest.raises(NormError, match="takes a finite"):
            quantize(x, "ln", "int8", per=per)


def test_a_tile_with_a_boundary_or_an_error_is_left_to_the_whole(monkeypatch):
    monkeypatch.setattr(room, "TILE", 1000)
    x = np.tile([[127.0, 1.0] * 16], (64, 1))
    options = {"running_mean": [0.0] * 32, "running_var": [1.0] * 32, "eps": 0.0, "per": "token"}
    gamma, beta = np.tile([1.0, 2.0**-60], 16), np.tile([0.0, 2.5], 16)  # 3 lies above the midpoint 2.5
    found = quantize(x, "bn", "int8", gamma=gamma, beta=beta, **options)
    assert found.exact.is_normalized
    assert found.codes.tolist() == [[127, 3] * 16] * 64
    for name, row in (("int8", 1e300), ("nvfp4", 1e300), ("nvfp4", np.nan)):
        x[3] = row
        with pytest.raises(NormError, match="takes a finite" if row != row else "has no scale in float32"):
            quantize(x, "bn", name, **options | {"per": None})
