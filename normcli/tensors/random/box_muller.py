"""Box–Muller as torch computes it on the CPU: standard normal values from uniform ones, in blocks of 16.

For float32 on CPUs with AVX2, torch has its own logarithm, sine and cosine, with fused multiply-adds
(`NormalFill16` of ATen/native/cpu/DistributionTemplates.h). They are reproduced here operation by operation, on
any CPU. The polynomials are from Moshier's Cephes library (`logf`, `sinf`, `cosf`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Singles = NDArray[np.float32]

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
    # torch adds its mean, 0, which makes −0 a 0.
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
