"""Bounds and a gate around a norm: exact values, rounded once; frameworks; refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import mpmath
import numpy as np
import pytest

from normcli import normalize
from normcli.codegen.arrays import FRAMEWORKS, ONNX
from normcli.errors import DataError, UsageError
from normcli.norms.rules import GateActivationName
from normcli.numerics.deciding import PRECISIONS, round_to
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from normcli.teach.explain.surrounding_steps import _DEFINITIONS
from tests.marks import costly

ACTIVATIONS = {
    "silu": lambda z: z / (1 + mpmath.exp(-z)),
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "gelu": lambda z: z * mpmath.erfc(-z / mpmath.sqrt(2)) / 2,
    "gelu-tanh": lambda z: (
        z / (1 + mpmath.exp(-mpmath.sqrt(8 / mpmath.pi) * (z + mpmath.mpf(44715) / 10**6 * z**3)))
    ),
    "relu": lambda z: max(z, mpmath.mpf(0)),
    "tanh": mpmath.tanh,
    "none": lambda z: z,
}
"""The published definitions."""


def find_slope(act, z):
    """Return the derivative of an activation, of its definition."""
    sigmoid = ACTIVATIONS["sigmoid"]
    match act:
        case "sigmoid":
            return sigmoid(z) * sigmoid(-z)
        case "silu":
            return sigmoid(z) * (1 + z * sigmoid(-z))
        case "tanh":
            return mpmath.sech(z) ** 2
        case "gelu":
            return mpmath.ncdf(z) + z * mpmath.npdf(z)
        case "gelu-tanh":
            c = mpmath.mpf(44715) / 10**6
            t, by = mpmath.sqrt(8 / mpmath.pi) * (z + c * z**3), mpmath.sqrt(8 / mpmath.pi) * (1 + 3 * c * z**2)
            return sigmoid(t) + z * by * sigmoid(t) * sigmoid(-t)
    return mpmath.mpf(act == "none" or z > 0)


def round_mpf(value, dtype):
    """Return a number of many digits rounded once."""
    sign, mantissa, exponent, _ = value._mpf_
    exact = Fraction(mantissa) * Fraction(2) ** exponent * (-1) ** sign
    return round_to(exact, PRECISIONS[dtype])


def normalize_exactly(values, eps):
    """Return x / √(mean square + eps) of a row, in 400 bits."""
    square = sum(Fraction(v) ** 2 for v in values) / len(values) + Fraction(eps)
    root = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
    return [mpmath.mpf(v) / root for v in values]


@pytest.fixture(autouse=True)
def _many_bits():
    with mpmath.workprec(400):
        yield


def make_tensors(dtype, rows=3, width=8):
    rng = np.random.default_rng(3)
    x, z = rng.standard_normal((2, rows, width))
    z[0] *= 8.0
    z[1, :4] = [0.0, 30.0, -30.0, 1e-9]
    return x.astype(dtype), z.astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("act", ACTIVATIONS)
def test_a_gate_behind_the_norm_gives_the_exact_product_rounded_once(act, dtype):
    x, z = make_tensors(dtype, width=8 if dtype != "float64" else 4)
    y = normalize(x, "rms", gate=z, gate_act=act).normalized
    for row, gates, found in zip(x.tolist(), z.tolist(), y.tolist(), strict=True):
        exact = [
            a * ACTIVATIONS[act](mpmath.mpf(g))
            for a, g in zip(normalize_exactly(row, 1e-5), gates, strict=True)
        ]
        assert found == [round_mpf(value, dtype) for value in exact]


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_a_gate_before_the_norm_multiplies_the_tensor_which_is_rounded_to_float32(act):
    x, z = make_tensors("float32")
    product = [
        [
            round_mpf(mpmath.mpf(a) * ACTIVATIONS[act](mpmath.mpf(g)), "float32")
            for a, g in zip(*pair, strict=True)
        ]
        for pair in zip(x.tolist(), z.tolist(), strict=True)
    ]
    expected = normalize(np.array(product, np.float32), "rms").normalized
    found = normalize(x, "rms", gate=z, gate_act=act, gate_order="before").normalized
    assert found.tobytes() == expected.tobytes()


def test_a_product_of_half_precision_is_of_float32_and_the_output_of_half():
    x, z = make_tensors("float16")
    wide = normalize(x.astype("f4"), "rms", gate=z.astype("f4"), gate_order="before", dtype="float16")
    found = normalize(x, "rms", gate=z, gate_order="before")
    assert found.dtype == np.float16
    assert found.normalized.tobytes() == wide.normalized.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_x_is_the_mean_the_gate_multiplies_beta_and_that_is_rounded_once(dtype):
    z, beta = np.random.default_rng(1).normal(0.0, 3.0, (2, 99))
    y = normalize(np.arange(3.0)[:, None].repeat(99, 1).astype(dtype), "bn", beta=beta, gate=z[None]).normalized
    exact = [mpmath.mpf(b) * ACTIVATIONS["silu"](mpmath.mpf(g)) for b, g in zip(beta, z, strict=True)]
    assert y[1].tolist() == [round_mpf(value, dtype) for value in exact]


def test_products_that_lie_between_two_floats_go_to_the_even_one():
    x = np.array([[3.0, 3.0]], np.float32)  # x̂ is 1 without eps
    z = np.array([[1.0 + 2.0**-24, 1.0 + 3 * 2.0**-24]])
    y = normalize(x, "rms", gate=z, gate_act="none", eps=0.0).normalized
    assert y.tolist() == [[1.0, 1.0 + 2.0**-22]]
    half = normalize(x, "rms", gate=np.zeros((1, 2)), gate_act="sigmoid", gamma=1.0 + 2.0**-24, eps=0.0)
    assert half.normalized.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("silu", [np.inf, -0.0, np.nan]), ("sigmoid", [1.0, 0.0, np.nan]), ("gelu", [np.inf, -0.0, np.nan]),
        ("none", [np.inf, -np.inf, np.nan]), ("gelu-tanh", [np.inf, -0.0, np.nan]),
        ("relu", [np.inf, 0.0, np.nan]), ("tanh", [1.0, -1.0, np.nan]),
    ],
)  # fmt: skip
def test_gates_that_are_not_finite_are_limits(act, expected):
    x = np.array([[3.0, 3.0, 3.0]], np.float32)
    y = normalize(x, "rms", gate=np.array([np.inf, -np.inf, np.nan]), gate_act=act, eps=0.0).normalized
    np.testing.assert_array_equal(y[0], np.array(expected, np.float32))


@pytest.mark.parametrize("z", [-1e6, -5000.0, -64.0, -20.5, -1.0, -1e-8, 1e-8, 0.3, 7.0, 40.0, 1e20])
@pytest.mark.parametrize("act", ACTIVATIONS)
def test_activations_and_their_slopes_are_known_to_any_number_of_bits(act, z):
    for is_slope, define in ((False, ACTIVATIONS[act]), (True, lambda z: find_slope(act, z))):
        value, error = Activation(act).evaluate_exactly(Fraction(z), 300, slope=is_slope)
        with mpmath.workprec(5000):
            exact = define(mpmath.mpf(z))
            found = mpmath.mpf(value.numerator) / value.denominator
            assert abs(found - exact) <= mpmath.mpf(error.numerator) / error.denominator


@costly
@pytest.mark.parametrize("act", ACTIVATIONS)
@pytest.mark.parametrize("is_slope", [False, True])
def test_activations_in_pairs_keep_their_bounds(act, is_slope):
    z = np.concatenate(
        [np.linspace(-60, 60, 41), np.linspace(-3, 3, 20), [-1e5, -999.0, -1e-300, 0.0, 1e-12, 1e5]]
    )
    factor = Gated(z, Activation(act), is_slope=is_slope).evaluate(53).factor
    errors, exponents = (np.broadcast_to(a, z.shape) for a in (factor.error, factor.exponent))
    for number, hi, lo, k, error in zip(z.tolist(), *factor.value, exponents, errors, strict=True):
        with mpmath.workprec(3000):
            exact = find_slope(act, mpmath.mpf(number)) if is_slope else ACTIVATIONS[act](mpmath.mpf(number))
            found = mpmath.ldexp(mpmath.mpf(float(hi)) + mpmath.mpf(float(lo)), int(k))
            assert (
                error == np.inf
                or abs(found - exact) <= abs(exact) * error
                or abs(exact) < mpmath.mpf(2) ** -2900
            )


def test_x_hat_and_the_check_are_of_the_norm_without_its_gate():
    x, z = make_tensors("float32")
    result = normalize(x, "rms", gate=z, clip_output=(-0.5, 0.5))
    assert result.standardized.tobytes() == normalize(x, "rms").normalized.tobytes()
    assert result.check[0].ok
    assert np.abs(result.normalized).max() == 0.5


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("like", "module", "name", "arguments", "options"),
    [
        ("mamba2", "mamba2", "MambaRMSNormGated", {"group_size": 8, "eps": 1e-5}, {"groups": 2}),
        ("falcon-h1", "falcon_h1", "FalconH1RMSNormGated", {"n_groups": 2, "eps": 1e-5}, {"groups": 2}),
        ("qwen3-next", "qwen3_next", "Qwen3NextRMSNormGated", {}, {}),
    ],
)
def test_gated_norms_of_transformers(like, module, name, arguments, options, dtype):
    torch = pytest.importorskip("torch")
    models = pytest.importorskip(f"transformers.models.{module}.modeling_{module}")
    torch.manual_seed(0)
    x, z = torch.randn(2, 2, 5, 16).to(getattr(torch, dtype))
    layer = getattr(models, name)(16, **arguments)
    layer.weight.data = torch.linspace(0.5, 1.5, 16)
    theirs = layer.to(x.dtype)(x, z).detach().float()
    given = {"like": like, "gate": z, **options}
    ours = normalize(x, "rms", gamma=layer.weight.detach(), **given).normalized.float()
    torch.testing.assert_close(ours, theirs, rtol=1e-6 if dtype == "float32" else 2**-7, atol=1e-6)
    other = normalize(x, "rms", gate_order="after" if like == "mamba2" else "before", **given).normalized
    assert (other.float() - theirs).abs().max() > 0.1


def test_clipping_as_of_ct_images():
    """The lines of CTNormalization of nnU-Net 2.5: clip to percentiles, subtract, divide; here of the image itself."""
    x = np.random.default_rng(0).integers(-1000, 2000, (40, 5)).astype(np.float32)
    low, high = np.percentile(x, [0.5, 99.5])
    clipped = np.clip(x, np.float32(low), np.float32(high))
    found = normalize(x, "zscore", clip=("0.5%", "99.5%"), axes=(0, 1)).normalized
    np.testing.assert_allclose(found, (clipped - clipped.mean()) / clipped.std(), rtol=1e-4, atol=1e-6)
    assert (normalize(x, "zscore", clip="-100,100").input == np.clip(x, -100, 100)).all()


@pytest.mark.parametrize(
    ("norm", "options", "error", "words"),
    [
        pytest.param("ln", {"gate_act": "silu"}, UsageError, "give --gate too", id="act-alone"),
        pytest.param("ln", {"gate": [1.0, 2.0], "gate_act": "swish"}, UsageError, "none of silu", id="act"),
        pytest.param("ln", {"gate": [1.0, 2.0], "gate_order": "x"}, UsageError, "none of after", id="order"),
        pytest.param("ln", {"gate": [1.0, 2.0, 3.0]}, DataError, "does not broadcast", id="shape"),
        pytest.param("ln", {"clip": (2, 1)}, UsageError, "two ascending", id="descending"),
        pytest.param("ln", {"clip": "1"}, UsageError, "two ascending", id="one"),
        pytest.param("ln", {"clip": ("-1%", "5%")}, UsageError, "two ascending", id="share"),
        pytest.param(
            "ln", {"clip_output": ("1%", "5%")}, UsageError, "two ascending numbers", id="output-share"
        ),
        pytest.param("lrn", {"gate": 2.0}, UsageError, "no gate", id="windows"),
    ],
)
@pytest.mark.all_quick
def test_refusals(norm, options, error, words):
    with pytest.raises(error, match=words):
        normalize([[1.0, 2.0]], norm, **options)


def test_every_activation_is_named_where_it_is_needed():
    names = [act.value for act in Activation]
    assert [*get_args(GateActivationName)] == names
    assert all({*names} <= {*arrays.templates} for arrays in (*FRAMEWORKS.values(), ONNX))
    assert {*_DEFINITIONS} == {*Activation} - {Activation.NONE}
