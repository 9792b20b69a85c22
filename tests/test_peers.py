"""normcli beside the frameworks, live. Needs the [peers] extra; with NORMCLI_REQUIRE_PEERS=1 nothing is skipped."""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np
import pytest

from normcli.tensors.random.torch_stream import TorchStream

pytestmark = [
    pytest.mark.peers,
    # What the frameworks themselves warn of when they are imported is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

SEEDS = (0, 1, 2, 3, 42)


def peer(name):
    if os.environ.get("NORMCLI_REQUIRE_PEERS"):
        return import_module(name)
    return pytest.importorskip(name)


@pytest.fixture(scope="module")
def torch():
    return peer("torch")


def test_torch_is_the_version_that_was_read(torch):
    assert torch.__version__.split("+")[0] == "2.13.0"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_torch_stream_to_the_bit(seed, dtype, torch):
    stream, kind = TorchStream(seed), getattr(torch, dtype)
    torch.manual_seed(seed)
    for count in (3, 1, 7, 15, 2):
        draws = [
            (torch.randn(count, dtype=kind), stream.normal(count, dtype)),
            (torch.rand(count, dtype=kind), stream.uniform(0, 1, count, dtype)),
            (torch.empty(count, dtype=kind).uniform_(-1.3, 7.7), stream.uniform(-1.3, 7.7, count, dtype)),
            (torch.randint(-3, 9, (count,)), stream.integers(-3, 9, count)),
            (torch.randint(0, 2**28, (count,)), stream.integers(0, 2**28, count)),
        ]
        for expected, drawn in draws:
            np.testing.assert_array_equal(drawn, expected.numpy())


@pytest.fixture
def torch_with_avx2(torch):
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("torch has other normal values on this CPU")
    return torch


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [16, 17, 31, 32, 33, 1000, 16_385, 10**6])
def test_blocks_of_normal_values_to_the_bit(seed, count, torch_with_avx2):
    torch_with_avx2.manual_seed(seed)
    drawn, expected = TorchStream(seed).normal(count, None), torch_with_avx2.randn(count).numpy()
    np.testing.assert_array_equal(drawn.view(np.uint32), expected.view(np.uint32))


def _bring_together(layer, torch):
    from normcli.running.fold import Layer

    weight, bias = (None if a is None else a.detach().numpy() for a in (layer.weight, layer.bias))
    return Layer(
        weight, bias, getattr(layer, "groups", 1), isinstance(layer, torch.nn.modules.conv._ConvTransposeNd)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_a_folded_layer_does_what_torch_s_two_do(name, groups, bias, dtype, torch):
    from normcli.numerics.statistics.solution import Given
    from normcli.running.fold import Affine, fold

    torch.manual_seed(3)
    kind, dimensions = getattr(torch, dtype), 0 if name == "Linear" else int(name[-2])
    shape = {} if name == "Linear" else {"kernel_size": 3, "padding": 1, "stride": 2, "groups": groups}
    layer, one = (getattr(torch.nn, name)(4, 6, dtype=kind, bias=has, **shape) for has in (bias, True))
    norm = getattr(torch.nn, f"BatchNorm{max(1, dimensions)}d")(6, dtype=kind).eval()
    for values in (norm.running_mean, norm.weight.data, norm.bias.data):
        values.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    given = Given(norm.running_mean.numpy(), norm.running_var.numpy())
    affine = Affine(given, norm.eps, norm.weight.data.numpy(), norm.bias.data.numpy())
    folded = fold(_bring_together(layer, torch), affine)
    x = torch.randn(3, 4, *[7] * dimensions, dtype=kind)
    expected = norm(layer(x)).detach()
    one.weight.data, one.bias.data = torch.from_numpy(folded.weight), torch.from_numpy(folded.bias)
    tolerance = {"float32": 2e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(one(x).detach().numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)
