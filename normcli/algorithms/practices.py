"""Frameworks' kernels: the algorithm of each, the source where it was read, and how closely it was compared.

To add one, add a row, and its call to `tests/algorithms/test_practices.py` where it runs.
"""

from __future__ import annotations

import enum

from normcli.tuples import NamedTuple


class Held(enum.Enum):
    """How closely a row was compared with the framework itself."""

    BITS = "to the bit (float32)"
    VARIANCES = "variances, not bits"
    READ = "read, not run"


class Practice(NamedTuple):
    """The algorithm of a framework.

    Parameters
    ----------
    framework : str
        The framework, with the device if that matters.
    norms : tuple of str
    computation : str
        The common algorithm and the dtype of its sums for tensors of up to 32 bits.
    held : Held
    source : str
    kernel : str
        The computation that reproduces the kernel's float32 results bit for bit, as
        `torch-cpu:float32:fused`; empty where none does.
    """

    framework: str
    norms: tuple[str, ...]
    computation: str
    held: Held
    source: str
    kernel: str = ""


PRACTICES = (
    Practice(
        "torch (x86, AVX2)", ("ln",), "chunked-welford:float32", Held.BITS,
        "PyTorch 2.13: aten/src/ATen/native/cpu/layer_norm_kernel.cpp, moments_utils.h",
        "torch-cpu:float32:fused",
    ),
    Practice(
        "torch (x86, AVX2)", ("gn",), "chunked-welford:float32", Held.BITS,
        "PyTorch 2.13: aten/src/ATen/native/cpu/group_norm_kernel.cpp, moments_utils.h",
        "torch-cpu:float32:wide-root",
    ),
    Practice(
        "torch (x86, AVX2)", ("rms",), "pairwise:float32", Held.BITS,
        "PyTorch 2.13: torch/_decomp/decompositions.py, _fused_rms_norm; SumKernel.cpp, cascade_sum",
        "torch-cpu:float32",
    ),
    Practice(
        "torch (AVX2), images", ("bn",), "two-pass:float32", Held.BITS,
        "PyTorch 2.13: aten/src/ATen/native/cpu/batch_norm_kernel.cpp, contiguous, with spatial axes: sums are "
        "kept in float64, mean and deviations in float32; of (N, C) the order goes by the threads",
        "torch-cpu-batch:float32:folded-wide-root",
    ),
    Practice(
        "torch (CUDA)", ("ln",), "chunked-welford:float32", Held.READ,
        "PyTorch: aten/src/ATen/native/cuda/layer_norm_kernel.cu, cuWelfordOnlineSum, cuWelfordCombine",
    ),
    Practice(
        "flax", ("ln", "bn"), "one-pass-clamped:float32", Held.VARIANCES,
        "flax 0.12.8: flax/linen/normalization.py, _compute_stats, use_fast_variance=True",
    ),
    Practice(
        "keras (torch)", ("ln",), "chunked-welford:float32", Held.BITS,
        "keras 3.15.1: keras/src/ops/nn.py, _layer_normalization, which calls torch's",
        "torch-cpu:float32:fused",
    ),
    Practice(
        "onnxruntime (CPU)", ("ln",), "two-pass:float32", Held.VARIANCES,
        "onnxruntime 1.31.1, run: older ones had E[x²] − E[x]², core/providers/cpu/nn/layer_norm_impl.cc",
    ),
    Practice(
        "NumPy's mean and var", ("ln", "rms"), "pairwise:float32", Held.BITS,
        "NumPy 2.4: numpy/_core/_methods.py, _var; loops_utils.h.src, pairwise_sum",
        "pairwise:float32:divided",
    ),
)  # fmt: skip
"""The algorithms of all frameworks whose kernels were read."""


def list_practices(norm: str) -> tuple[Practice, ...]:
    """Return the rows of frameworks that calculate a norm, by its short name.

    Examples
    --------
    >>> [row.computation for row in list_practices("rms")]
    ['pairwise:float32', 'pairwise:float32']
    """
    return tuple(row for row in PRACTICES if norm in row.norms)
