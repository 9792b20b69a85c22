"""Wrong kernels that were published, re-created from their reports: what each report says is wrong, and no more.

Each is written anew after the words of its report, in NumPy, for tensors normalized over their last axis unless it
says otherwise. None of the projects' own code is here. Of wrong forward passes `tests/plants/faults/` has the kernels, by the id of
the fault; these were published, at github.com:

* stats-padded-variance: triton-lang/triton/issues/9838
* stats-variance: keras-team/keras/issues/21234
* stats-multiplied: mosaicml/llm-foundry/issues/371
* stats-one-pass: openvinotoolkit/openvino/pull/36587
* stats-overflow: nntrainer/nntrainer/issues/3935
* stats-eps-outside: tracel-ai/burn/issues/2185
* stats-ddof: LBANN/lbann/pull/2024
* affine-gamma-plus-one: linkedin/Liger-Kernel/issues/74
* stats-eps-other: apache/tvm/pull/15856
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EPS = 1e-5


@dataclass(frozen=True)
class Wrong:
    """A wrong backward pass.

    Parameters
    ----------
    report : str
        Where it was reported.
    norm : str
    kernel : callable
        Of x, dy and gamma, returns dx, dgamma and dbeta, or None for those that are not wrong.
    case : str
        How the name of a provocation begins that shows it.
    fault : str
        What the message has to say.
    options : dict
        What the kernel is documented to be.
    """

    report: str
    norm: str
    kernel: Callable[..., Any]
    case: str
    fault: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        return self.kernel.__name__


def mean(values):
    return values.mean(-1, keepdims=True)


def standardize(x, eps=EPS):
    """Return x̂ and 1/divisor of layer norm, as they should be."""
    rstd = 1.0 / np.sqrt(x.var(-1, keepdims=True) + x.dtype.type(eps))
    return (x - mean(x)) * rstd, rstd


def sum_rows(values):
    return values.reshape(-1, values.shape[-1]).sum(0)


def subtract_mean_twice(x, dy, gamma):
    xhat, rstd = standardize(x)
    g = dy * gamma
    return rstd * (g - 2 * mean(g) - xhat * mean(g * xhat)), None, None


def keep_statistics_constant(x, dy, gamma):
    """dx of root mean square norm as if it did not depend on x."""
    rstd = 1.0 / np.sqrt(mean(x * x) + EPS)
    return dy * gamma * rstd, None, None


def weigh_term_twice(x, dy, gamma):
    """The term of the mean square is multiplied by gamma once more."""
    rstd = 1.0 / np.sqrt(mean(x * x) + EPS)
    g = dy * gamma
    return g * rstd - gamma * rstd**3 * x * mean(g * x), None, None


def forget_gamma(x, dy, gamma):
    rstd = 1.0 / np.sqrt(mean(x * x) + EPS)
    return dy * rstd - rstd**3 * x * mean(dy * x), None, None


def exchange_parameters(x, dy, gamma):
    xhat, _ = standardize(x)
    return None, sum_rows(dy), sum_rows(dy * xhat)


def drop_last_block(x, dy, gamma):
    """Rows in blocks of two: partial sums are kept of whole blocks alone."""
    xhat, _ = standardize(x)
    whole = len(x) // 2 * 2
    return None, sum_rows((dy * xhat)[:whole]), sum_rows(dy[:whole])


def flatten_to_two_axes(x, dy, gamma):
    """M = shape[0], N = the rest: the means of dx are over all axes but the first."""
    xhat, rstd = standardize(x)
    g = dy * gamma
    axes = tuple(range(1, x.ndim))
    inner = (g * xhat).mean(axes, keepdims=True)
    return rstd * (g - g.mean(axes, keepdims=True) - xhat * inner), None, None


def sum_whole_tile(x, dy, gamma):
    """A program works on all rows of its block, and sums over the whole of it."""
    xhat, rstd = standardize(x)
    g, n = dy * gamma, x.shape[-1]
    return rstd * (g - g.sum() / n - xhat * ((g * xhat).sum() / n)), None, None


def never_write_dgamma(x, dy, gamma):
    """The kernel takes the pointer of dgamma and does not write to it."""
    return None, np.zeros_like(gamma), None


def differentiate_the_batch(x, dy, gamma):
    """Batch norm in evaluation, whose running statistics are constants, differentiated as in training."""
    axes = (0, *range(2, x.ndim))
    shape = [1, -1, *[1] * (x.ndim - 2)]
    g = dy * gamma.reshape(shape)
    centred = x - x.mean(axes, keepdims=True)
    rstd = 1.0 / np.sqrt((centred**2).mean(axes, keepdims=True) + EPS)
    xhat = centred * rstd
    pull = (g * xhat).mean(axes, keepdims=True)
    return rstd * (g - g.mean(axes, keepdims=True) - xhat * pull), None, None


_HUB = "https://github.com"

BACKWARD = (
    Wrong(
        f"{_HUB}/tenstorrent/tt-metal/issues/53204", "ln", subtract_mean_twice, "rank 3",
        "dx: mean(dy · gamma) is subtracted twice",
    ),
    Wrong(
        f"{_HUB}/ooples/AiDotNet/pull/695", "rms", keep_statistics_constant, "rank 3",
        "the statistics are taken as constants: it is dy · gamma / divisor",
    ),
    Wrong(f"{_HUB}/NVIDIA/Megatron-LM/pull/6859", "rms", weigh_term_twice, "rank 3",
        "dx: gamma multiplies the x̂ · mean(dy · gamma · x̂) term once more"),
    Wrong(f"{_HUB}/karpathy/llm.c/pull/763", "rms", forget_gamma, "rank 3", "dx: gamma is left out"),
    Wrong(
        f"{_HUB}/Oneflow-Inc/oneflow/pull/6149", "ln", exchange_parameters, "rank 3",
        "dgamma: it and dbeta are exchanged",
    ),
    Wrong(f"{_HUB}/BobMcDear/attorch/issues/18", "ln", drop_last_block, "group size 33",
        "dgamma: it is summed over n=0 … n=1 alone"),
    Wrong(f"{_HUB}/flagos-ai/FlagGems/issues/5392", "ln", flatten_to_two_axes, "rank 3", "dx: its means are over c×l"),
    Wrong(f"{_HUB}/flagos-ai/FlagGems/pull/59", "ln", sum_whole_tile, "rank 2",
        "dx: its sums are over n×c, and divided by the number of values in a group"),
    Wrong(f"{_HUB}/paiml/trueno/pull/178", "rms", never_write_dgamma, "rank 3", "dgamma: every value is 0"),
    Wrong(f"{_HUB}/pytorch/xla/issues/913", "bn", differentiate_the_batch, "rank 3",
        "dx: the statistics are the batch's, as in training",
        options={"running_mean": np.full(4, 1.5), "running_var": np.full(4, 2.0)}),
)  # fmt: skip
"""The report on llm.c is that of a reviewer on a kernel of their own."""
