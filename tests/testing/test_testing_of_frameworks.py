"""Tensors of the frameworks themselves: on their own autograd, and in dtypes that NumPy has no name for."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.testing import assert_backward_matches, assert_matches

pytestmark = pytest.mark.peers

RNG = np.random.default_rng(17)
X, DY = RNG.normal(3.0, 2.0, (2, 3, 16)), RNG.normal(1.0, 1.0, (2, 3, 16))
GAMMA = RNG.normal(1.0, 0.5, 16)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_torch_forward_and_backward(dtype):
    torch = pytest.importorskip("torch")
    x, dy, gamma = (torch.tensor(a).to(getattr(torch, dtype)) for a in (X, DY, GAMMA))
    x.requires_grad_()
    gamma.requires_grad_()
    y = torch.nn.functional.layer_norm(x, (16,), gamma)
    assert y.requires_grad
    y.backward(dy)
    assert_matches(y, x, "ln", gamma=gamma)
    loose = {"atol": 2.0**-4 if dtype == "bfloat16" else 2.0**-7} if x.element_size() == 2 else {}
    assert_backward_matches(x.grad, x, dy, "ln", gamma=gamma, dgamma=gamma.grad, **loose)
    with pytest.raises(AssertionError, match="its sign is turned"):
        assert_backward_matches(-x.grad, x, dy, "ln", gamma=gamma)
    with pytest.raises(AssertionError, match=f"ulp of {dtype}"):
        assert_matches(y + 1, x, "ln", gamma=gamma)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_jax_forward_and_backward(dtype):
    jax = pytest.importorskip("jax")

    def normalize(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    x, dy = (jax.numpy.asarray(a, dtype=dtype) for a in (X, DY))
    wide = jax.numpy.asarray(x, dtype="float32")
    y, pull = jax.vjp(normalize, wide)
    (dx,) = pull(jax.numpy.asarray(dy, dtype="float32"))
    assert_matches(y.astype(dtype), x, "ln")
    assert_backward_matches(dx.astype(dtype), x, dy, "ln")
    with pytest.raises(AssertionError, match="ddof 1"):
        assert_matches((y * (15 / 16) ** 0.5).astype(dtype), x, "ln", eps=1e-5)
