"""The tables of algorithms, of cast orders, and of frameworks' practices. To add one, add a row.

A common computation is named `ALGORITHM:DTYPE`, or `ALGORITHM:DTYPE:CAST`: two-pass:float32.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from normcli.algorithms import moment_formulas as moments
from normcli.algorithms import row_formula as elements
from normcli.algorithms import summation_orders as sums
from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.algorithms.moment_formulas import Measure
    from normcli.algorithms.row_formula import Write
    from normcli.algorithms.summation_orders import Add


Item = TypeVar("Item")


class Algorithm(NamedTuple):
    """An algorithm that accumulates mean and variance.

    Parameters
    ----------
    name : str
    words : str
        The algorithm's words in a sentence.
    add : Add
        The function that adds up each row, in the algorithm's order.
    measure : Measure
        The function that returns mean and variance of rows, for norms that centre.
    squares : str
        The words for norms without mean, which add only squares; empty if these cannot use the algorithm.
    in_turn : bool
        True if values are added from first to last, so that the value at which a sum overflows can be named.
    """

    name: str
    words: str
    add: Add
    measure: Measure
    squares: str = ""
    in_turn: bool = False


_ALGORITHMS = (
    Algorithm(
        "one-pass", "E[x²] − E[x]² in one pass", sums.add_in_turn, moments.measure_one_pass,
        squares="squares added in turn", in_turn=True,
    ),
    Algorithm(
        "one-pass-clamped", "E[x²] − E[x]² in one pass, at least 0", sums.add_in_turn,
        moments.measure_one_pass_clamped, in_turn=True,
    ),
    Algorithm(
        "shifted", "one pass over x less the first value", sums.add_in_turn, moments.measure_shifted,
        in_turn=True,
    ),
    Algorithm(
        "two-pass", "the mean first, then E[(x − mean)²]", sums.add_in_turn, moments.measure_two_pass,
        in_turn=True,
    ),
    Algorithm(
        "tree", "two passes, each half added to the other", sums.add_by_halves, moments.measure_two_pass,
        squares="squares added by halves",
    ),
    Algorithm("pairwise", "two passes, added as NumPy does", sums.add_pairwise, moments.measure_two_pass,
        squares="squares added as NumPy does",),
    Algorithm("welford", "Welford's recurrence", sums.add_in_turn, moments.measure_welford),
    Algorithm(
        "chunked-welford", "Welford's recurrence in 32 threads, merged by halves", sums.add_by_halves,
        moments.measure_chunked_welford,
    ),
)  # fmt: skip

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType({row.name: row for row in _ALGORITHMS})
"""The common algorithms by name, the cheapest first: by operations for each value, then by reads."""

DTYPES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes of sums, the cheapest first."""


KERNELS = (
    Algorithm(
        "torch-cpu", "added as in torch's CPU kernels with AVX2", sums.add_in_vectors, moments.measure_cascade,
        squares="squares added as in torch's CPU kernels with AVX2",
    ),
    Algorithm(
        "torch-cpu-half", "added as in torch's CPU kernels with AVX2 of half precision", sums.add_in_vectors,
        moments.measure_cascade_of_halves,
    ),
    Algorithm(
        "torch-cpu-batch", "added in float64 as in torch's CPU kernel for batch norm", sums.add_in_turn,
        moments.measure_in_float64,
    ),
)  # fmt: skip
"""The algorithms of kernels whose source was read, reproduced to the bit; each is a form of a common one."""


class Cast(NamedTuple):
    """An order of casts: which values a kernel rounds when, from the statistics to the result.

    Parameters
    ----------
    name : str
    words : str
        The order's words in a sentence.
    write : Write
        The function that calculates y in this order.
    needs_gamma : bool
        True if, without a gamma, the order gives the same as the usual one.
    narrows : bool
        True if, for sums in the dtype of the result, the order gives the same as the usual one.
    """

    name: str
    words: str
    write: Write
    needs_gamma: bool = False
    narrows: bool = False

    @property
    def rounds_statistics(self) -> bool:
        """Whether mean and divisor are rounded to the dtype of the result."""
        return self.narrows and not self.needs_gamma

    def differs(self, *, widens: bool, has_gamma: bool) -> bool:
        """Whether results may differ from the usual order's; `widens` if sums are wider than the result."""
        return (has_gamma or not self.needs_gamma) and (widens or not self.narrows)


_CASTS = (
    Cast("once", "rounded once at the end", elements.write_once),
    Cast("statistics", "mean and divisor rounded first", elements.write_from_rounded, narrows=True),
    Cast("before-gamma", "x̂ rounded before gamma", elements.write_before_gamma, needs_gamma=True, narrows=True),
)

CASTS: Mapping[str, Cast] = MappingProxyType({row.name: row for row in _CASTS})
"""The orders of casts by name, the usual one first."""

FORMS = (
    Cast("divided", "divided by the root itself", elements.write_divided),
    Cast("gamma-first", "gamma over the root first", elements.write_scaled, needs_gamma=True),
    Cast("folded", "as x · a + b", elements.write_folded),
    Cast("fused", "gamma and beta in one rounding", elements.write_fused, needs_gamma=True),
    Cast("folded-fused", "as x · a + b in one rounding", elements.write_folded_fused),
    Cast("wide-root", "the root taken in float64", elements.write_wide_root),
    Cast("folded-wide-root", "as x · a + b, the root taken in float64", elements.write_folded_wide_root),
    Cast(
        "stored", "mean and divisor rounded first, then x · a + b in one rounding", elements.write_from_stored,
        narrows=True,
    ),
    Cast(
        "stored-sums", "mean, sum of squares and divisor rounded first, then x · a + b in one rounding",
        elements.write_from_stored_sums, narrows=True,
    ),
)  # fmt: skip
"""Other orders of the operations from statistics to y, whose results differ in the last place."""


def find_algorithm(name: str) -> Algorithm:
    """Return a common algorithm (not one of a single framework) by its name.

    Raises
    ------
    UsageError
        If there is none with this name; the message has similar names.
    """
    return _find(name, ALGORITHMS, "algorithm")


def find_cast(name: str) -> Cast:
    """Return the order of casts of a name; raise `UsageError`, with similar names, if there is none."""
    return _find(name, CASTS, "cast order")


def find_dtype(name: str) -> str:
    """Return `name` if it is a dtype of sums; raise `UsageError`, with similar names, if it is not."""
    return _find(name, {dtype: dtype for dtype in DTYPES}, "dtype of sums")


def _find(name: str, rows: Mapping[str, Item], what: str) -> Item:
    if name in rows:
        return rows[name]
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), rows, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(rows)}"
    raise UsageError(f"there is no {what} {name!r}; {hint}")


class Held(enum.Enum):
    """The way in which a row of `PRACTICES` was compared with the framework itself."""

    BITS = "to the bit (float32)"
    VARIANCES = "variances, not bits"
    READ = "read, not run"


class Practice(NamedTuple):
    """The algorithm by which a framework's kernel computes the statistics of norms.

    Parameters
    ----------
    framework : str
        The framework, with the device if the algorithm depends on it.
    norms : tuple of str
        The short names of the norms.
    computation : str
        The common algorithm and the dtype of its sums for tensors of up to 32 bits.
    held : Held
        The way in which it was compared with the framework.
    source : str
        The version and the file of the framework.
    kernel : str
        The computation that reproduces the kernel's float32 results bit for bit, such as
        `torch-cpu:float32:fused`; empty without one.
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
"""The algorithms of all frameworks whose kernels were read; `test_table_practices.py` calls those that run."""


def list_practices(norm: str) -> tuple[Practice, ...]:
    """Return the algorithms of the frameworks whose kernel for a norm was read, by the norm's short name.

    Examples
    --------
    >>> [row.computation for row in list_practices("rms")]
    ['pairwise:float32', 'pairwise:float32']
    """
    return tuple(row for row in PRACTICES if norm in row.norms)
