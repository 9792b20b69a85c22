"""The backward pass beside torch's own, in float64 and over its OpInfo samples."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward

pytestmark = pytest.mark.peers


def differentiate(function, dy, *arrays):
    """Return torch's derivatives of Σ dy · function(arrays) by each array."""
    import torch

    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    function(*tensors).backward(torch.tensor(dy))
    return [t.grad.numpy() for t in tensors]


def functional(name):
    import torch

    return getattr(torch.nn.functional, name)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf, -np.inf, -1.0])
def test_corners_of_lengths_are_those_of_torch(p):
    x = np.random.default_rng(3).integers(-3, 4, (6, 8)).astype(float)
    x[0], x[1, :4] = 0.0, 0.0
    if p < 0:
        x = np.where(x == 0.0, 2.0, x)  # of a 0 torch has NaN
    dy = np.random.default_rng(4).normal(size=x.shape)
    (expected,) = differentiate(lambda t: functional("normalize")(t, p, -1), dy, x)
    np.testing.assert_allclose(backward(x, dy, "lp", p=p).dx, expected, rtol=1e-12, atol=1e-13)


def test_a_constant_group_with_eps_outside_is_that_of_torch():
    import torch

    x, dy = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]]), np.array([[1.0, 3.0, 0.0], [1.0, 0.0, 5.0]])

    def normalize(t):
        return (t - t.mean(-1, keepdim=True)) / (t.std(-1, correction=0, keepdim=True) + 0.5)

    (expected,) = differentiate(normalize, dy, x)
    assert torch.isfinite(torch.tensor(expected)).all()
    np.testing.assert_allclose(backward(x, dy, "ln", eps=0.5, eps_mode="outside").dx, expected, rtol=1e-12)


def read_batch_norm(mean, var, gamma, beta, training=False, momentum=0.1, eps=1e-5):
    """Return the norm, options that are not differentiated by, and those that may be."""
    running = {} if training else {"running_mean": mean, "running_var": var}
    return "bn", {}, {"gamma": gamma, "beta": beta, "eps": eps, **running}


def read_instance_norm(momentum=0.1, use_input_stats=True, running_mean=None, running_var=None, **named):
    assert use_input_stats
    return "in", {}, named


READ = {
    "nn.functional.batch_norm": read_batch_norm,
    "nn.functional.instance_norm": read_instance_norm,
    "nn.functional.layer_norm": lambda shape, *rest, **k: (
        "ln", {"axes": tuple(range(-len(shape), 0))}, dict(zip(("gamma", "beta", "eps"), rest, strict=False)) | k
    ),
    "nn.functional.group_norm": lambda groups, *rest, **k: (
        "gn", {"groups": groups}, dict(zip(("gamma", "beta", "eps"), rest, strict=False)) | k
    ),
    "nn.functional.rms_norm": lambda shape, *rest, **k: (
        "rms", {"axes": tuple(range(-len(shape), 0))}, dict(zip(("gamma", "eps"), rest, strict=False)) | k
    ),
    "nn.functional.normalize": lambda *rest, **k: ("lp", {"axes": 1}, dict(zip(("p", "axes"), rest, strict=False)) | k),
    "nn.functional.local_response_norm": lambda *rest, **k: (
        "lrn", {}, dict(zip(("size", "alpha", "exponent", "k"), rest, strict=False)) | k
    ),
}  # fmt: skip
"""What the arguments of torch's functions are here."""

LEAST_AXES = {"bn": 2}

WORDS = {"weight": "gamma", "bias": "beta", "dim": "axes", "beta": "exponent"}


@pytest.mark.parametrize("operator", READ)
def test_torch_s_own_samples(operator):
    import torch

    pytest.importorskip("expecttest", reason="torch's samples need it")
    from torch.testing._internal.common_methods_invocations import op_db

    info = next(entry for entry in op_db if entry.name == operator)
    torch.manual_seed(0)
    compared = 0
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=True):
        norm, options, named = READ[operator](*sample.args, **sample.kwargs)
        given = {
            WORDS.get(k, k) if norm == "lrn" or k != "beta" else k: v for k, v in named.items() if v is not None
        }
        by = {
            "dx": sample.input,
            **{f"d{k}": given[k] for k in ("gamma", "beta") if k in given and norm != "lrn"},
        }
        given = {k: v.detach().numpy() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
        if given.get("eps", 0.0) < 0.0 or sample.input.ndim < LEAST_AXES.get(norm, 1):
            continue  # a negative eps, axes of a number, and a batch without channels, are refused here
        y = info.op(sample.input, *sample.args, **sample.kwargs)
        dy = torch.randn_like(y)
        expected = torch.autograd.grad(y, list(by.values()), dy)
        x, options = sample.input.detach().numpy(), {**options, **given, "like": "torch"}
        found = backward(x, dy.numpy(), norm, **options)
        for name, exact in zip(by, expected, strict=True):
            np.testing.assert_allclose(found.field(name), exact.numpy(), rtol=1e-8, atol=1e-9, equal_nan=True)
        compared += 1
    assert compared
