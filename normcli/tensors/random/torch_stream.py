"""torch's CPU random stream, without torch.

It follows ATen/core/DistributionsHelper.h, ATen/core/MT19937RNGEngine.h and
ATen/native/cpu/DistributionTemplates.h; tests compare it with torch 2.13.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import UsageError
from normcli.tensors.random.mersenne_jump import advance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Singles = NDArray[np.float32]


_FLOAT_BITS = 24
_DOUBLE_BITS = 53
_WORD_MASK = 2**32 - 1

_WIDE_RANGE = 2**28
"""The range of integers from which on torch draws 64 bits for each (2.13; in older releases 2³²)."""

_AT_ONCE = 1 << 14
"""The number of normal values made at once; intermediate arrays then stay in the L2 cache."""

_LARGEST_SEED = 2**64 - 1
_SMALLEST_SEED = -(2**63)


class TorchStream:
    """The stream that `torch.manual_seed(seed)` starts on the CPU.

    Parameters
    ----------
    seed : int
        A seed from −2⁶³ to 2⁶⁴ − 1, as in torch; the engine uses its low 32 bits.

    Raises
    ------
    UsageError
        If the seed is out of range.

    Notes
    -----
    Integers, uniform values and fewer than 16 normal values equal torch's to the bit. 16 or more float32 normal
    values equal, to the bit, those of torch on x86 CPUs with AVX2 or AVX-512, whatever the CPU here. On ARM,
    Apple silicon and x86 without AVX2, torch calls the C library and rounds angles differently: about 60 % of
    its values equal those made here, the others differ by up to 3e-6. On POWER, torch uses another library.

    16 or more float64 normal values equal torch's to the bit if NumPy calls the C library's logarithm. On CPUs
    with AVX-512, NumPy has its own, and 0.2 % of the values differ, by 1 or 2 ulp.

    Examples
    --------
    >>> TorchStream(0).normal(3, None)
    array([ 1.5409961, -0.2934289, -2.1787894], dtype=float32)
    """

    def __init__(self, seed: int) -> None:
        if not _SMALLEST_SEED <= seed <= _LARGEST_SEED:
            raise UsageError(f"seed {seed}: torch takes −2⁶³ to 2⁶⁴ − 1")
        self._engine = np.random.RandomState(seed & _WORD_MASK)
        self._leftover: float | None = None

    def pass_over(self, count: int, dist: str, span: float, dtype: str | None) -> None:
        """Skip a number of values of a distribution, as if one call had drawn them.

        Parameters
        ----------
        count : int
        dist : {"randint", "uniform", "normal"}
        span : float
            high − low, which counts for `randint` only.
        dtype : str or None
            The dtype of the values, float32 or float64; None for float32.
        """
        if dist == "normal" and count < BLOCK:
            self.normal(count, dtype)
            return
        takes_two = span >= _WIDE_RANGE if dist == "randint" else _check_dtype(dtype) == np.float64
        drawn = count + BLOCK if dist == "normal" and count % BLOCK else count
        advance(self._engine, 2 * drawn if takes_two else drawn)

    def integers(self, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Draw int64 values from `low` to `high − 1`, as `torch.randint(low, high, (count,))` does."""
        span = high - low
        bits = self._draw_words(count).astype(np.uint64) if span < _WIDE_RANGE else self._draw_wide(count)
        # Unsigned arithmetic wraps round as torch's does, so that every 64-bit low and high is right.
        return (bits % np.uint64(span) + np.uint64(low & (2**64 - 1))).astype(np.int64)

    def uniform(self, low: float, high: float, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw values as `torch.empty(count, dtype=dtype).uniform_(low, high)`; float32 if `dtype` is None.

        A dtype other than float32 and float64 raises `UsageError`.
        """
        kind = _check_dtype(dtype)
        bounds = np.array([low, high], dtype=kind)
        span, start = float(bounds[1] - bounds[0]), float(bounds[0])
        values = _multiply_add(self._draw_unit(count, kind).astype(np.float64), span, start).astype(kind)
        # A value rounded up to `high`, which is excluded, becomes the lowest one (older releases keep it).
        values[values == bounds[1]] = bounds[0]
        return values

    def normal(self, count: int, dtype: str | None) -> NDArray[Any]:
        """Draw values as `torch.randn(count, dtype=dtype)` does; float32 if `dtype` is None.

        A dtype other than float32 and float64 raises `UsageError`.
        """
        kind = _check_dtype(dtype)
        values = self._draw_few(count) if count < BLOCK else self._draw_blocks(count, kind)
        return values.astype(kind, copy=False)

    def _draw_few(self, count: int) -> NDArray[np.float64]:
        """Draw fewer than 16 normal values by Box–Muller in float64, in pairs.

        If the count is odd, the second value of the last pair is saved for the next call.
        """
        values = [] if self._leftover is None else [self._leftover]
        while len(values) < count:
            first, second = self._draw_unit(2, np.dtype(np.float64)).tolist()
            radius = math.sqrt(-2.0 * math.log1p(-second))
            angle = 2.0 * math.pi * first
            values += [radius * math.cos(angle), radius * math.sin(angle)]
        self._leftover = values.pop() if len(values) > count else None
        return np.array(values, dtype=np.float64)

    def _draw_blocks(self, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """Draw 16 or more normal values by Box–Muller in blocks of 16.

        If the count is no multiple of 16, the last 16 values of the result are drawn anew, from 16 more uniform
        values, as torch does.
        """
        values = np.empty(count, dtype=kind)
        whole = count - count % BLOCK
        for start in range(0, whole, _AT_ONCE):
            self._fill(values[start : min(start + _AT_ONCE, whole)])
        if whole != count:
            self._draw_unit(count - whole, kind)
            self._fill(values[-BLOCK:])
        return values

    def _fill(self, values: NDArray[Any]) -> None:
        values[:] = self._draw_unit(len(values), values.dtype)
        fill_blocks(values)

    def _draw_unit(self, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """Draw uniform values from [0, 1): multiples of 2⁻²⁴ (float32) or 2⁻⁵³ (float64)."""
        bits: NDArray[Any]
        if kind == np.float32:
            bits, precision = self._draw_words(count), _FLOAT_BITS
        else:
            bits, precision = self._draw_wide(count), _DOUBLE_BITS
        bits &= bits.dtype.type(2**precision - 1)
        unit = bits.astype(kind)
        unit *= 2.0**-precision
        return unit

    def _draw_wide(self, count: int) -> NDArray[np.uint64]:
        words = self._draw_words(2 * count).astype(np.uint64)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def _draw_words(self, count: int) -> NDArray[np.uint32]:
        return self._engine.randint(0, 2**32, size=count, dtype=np.uint32)


def _multiply_add(factor: NDArray[np.float64], multiplier: float, summand: float) -> NDArray[np.float64]:
    """Return factor · multiplier + summand rounded once, as torch's fused instruction does."""
    product = factor * multiplier
    # Veltkamp's splitting and Dekker's product: `product` + `error` is the exact product.
    high, multiplier_high = _split(factor), float(_split(np.float64(multiplier)))
    low, multiplier_low = factor - high, multiplier - multiplier_high
    error = low * multiplier_low - (
        product - high * multiplier_high - low * multiplier_high - high * multiplier_low
    )
    total = product + summand
    rest = total - product
    fused: NDArray[np.float64] = total + ((product - (total - rest)) + (summand - rest) + error)
    return fused


def _split(values: Any) -> Any:
    shifted = values * (2.0**27 + 1.0)
    return shifted - (shifted - values)


def _check_dtype(dtype: str | None) -> np.dtype[Any]:
    if dtype not in (None, "float32", "float64"):
        raise UsageError(f"rng torch draws float32 or float64, not {dtype}")
    return np.dtype(dtype or np.float32)


BLOCK = 16
"""The number of values in a block: the first 8 determine the lengths, the last 8 the angles."""

_LOG = np.array(
    [
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    ],
    dtype=np.float32,
)  # fmt: skip
"""The polynomial of log(1 + x) = x − x²/2 + x³ · polynomial(x), √½ ≤ 1 + x < √2; the highest power first."""

_LOG_2 = np.array([0.693359375, -2.12194440e-4], dtype=np.float32)
"""log 2 as a sum of two numbers; the first has 9 bits, so that its product with an exponent is exact."""

_COS = np.array([2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2], dtype=np.float32)
"""The polynomial of cos x = 1 − x²/2 + x⁴ · polynomial(x²), |x| ≤ π/4; the highest power first."""

_SIN = np.array([-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1], dtype=np.float32)
"""The polynomial of sin x = x + x³ · polynomial(x²), |x| ≤ π/4; the highest power first."""

_QUARTER_TURN = np.array([1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8], dtype=np.float32)
"""π/2 as a sum of three numbers; the first two have 8 and 11 bits: their products with 0 … 4 are exact."""

_HALF_QUARTER_TURNS = np.float32(4 / np.pi)


def fill_blocks(values: NDArray[Any]) -> None:
    """Turn uniform values from [0, 1) into standard normal ones, in place.

    Parameters
    ----------
    values : ndarray of float32 or float64, one axis
        A contiguous array whose length is a multiple of 16; each value is a multiple of 2⁻²⁴ (float32) or 2⁻⁵³
        (float64).
    """
    halves = values.reshape(-1, 2, BLOCK // 2)
    uniform: NDArray[Any] = 1 - halves[:, 0]
    angle: NDArray[Any] = 2 * np.pi * halves[:, 1]
    if values.dtype == np.float32:
        logarithm, (cosine, sine) = _take_log(uniform), _turn(angle)
    else:
        logarithm, cosine, sine = np.log(uniform), np.cos(angle), np.sin(angle)
    length = np.sqrt(-2 * logarithm)
    # torch adds the mean 0, which turns −0 into 0.
    halves[:, 0] = length * cosine + 0
    halves[:, 1] = length * sine + 0


def _take_log(values: Singles) -> Singles:
    """Return the natural logarithm of positive float32 values up to 1, none of them subnormal."""
    mantissa, powers = np.frexp(values)
    is_small = mantissa < np.float32(np.sqrt(0.5))
    x = np.where(is_small, 2 * mantissa, mantissa) - 1
    exponent = powers.astype(np.float32) - is_small
    square = x * x
    tail = x * _evaluate(_LOG, x)
    tail = _fuse(tail, square, exponent * _LOG_2[1]) - square / 2
    logarithm: Singles = x + tail + exponent * _LOG_2[0]
    return logarithm


def _turn(angle: Singles) -> tuple[Singles, Singles]:
    """Return the cosine and the sine of float32 angles from 0 to 2π."""
    quarters = ((angle * _HALF_QUARTER_TURNS).astype(np.int32) + 1) >> 1
    turns = quarters.astype(np.float32)
    x = angle - turns * _QUARTER_TURN[0] - turns * _QUARTER_TURN[1]
    x = _fuse(turns, -_QUARTER_TURN[2], x)
    square = x * x
    cosine = _fuse(_evaluate(_COS, square) * square, square, -square / 2) + 1
    sine = _fuse(_evaluate(_SIN, square) * square, x, x)
    is_odd = (quarters & 1).astype(bool)
    return (
        np.where(is_odd, sine, cosine) * (1 - (quarters + 1 & 2)).astype(np.float32),
        np.where(is_odd, cosine, sine) * (1 - (quarters & 2)).astype(np.float32),
    )


def _evaluate(coefficients: Iterable[np.float32], x: Singles) -> Singles:
    """Evaluate a polynomial (highest power first) by Horner's rule, with a fused multiply-add for each step."""
    highest, *others = coefficients
    wide = x.astype(np.float64)
    value = np.full_like(x, highest)
    for coefficient in others:
        value = _fuse(wide, value, coefficient)
    return value


def _fuse(factor: Any, multiplier: Any, summand: Any) -> Singles:
    """Return factor · multiplier + summand rounded once to float32, as a fused instruction does.

    The product is exact in float64. The sum is rounded to float64 and then to float32. That differs from
    rounding once only where float64 holds the sum inexactly and halfway between two values of float32. No
    uniform value of 24 bits leads there: a test tries them all.
    """
    total = np.multiply(factor, multiplier, dtype=np.float64)
    total += summand
    fused: Singles = total.astype(np.float32)
    return fused
