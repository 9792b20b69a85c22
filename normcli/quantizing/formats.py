"""The table of formats to which a norm's result is quantized."""

from __future__ import annotations

import enum
import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class NumberGrid(NamedTuple):
    """The numbers of a binary format, such as FP8 E4M3.

    Parameters
    ----------
    digits : int
        The number of bits after the leading one, the mantissa.
    least : int
        The exponent of the smallest normal number, 2^least.
    largest : float
        The largest finite number.
    is_integer : bool
        Whether codes are integers in two's complement; otherwise a sign, an exponent and digits.
    """

    digits: int
    least: int
    largest: float
    is_integer: bool = False

    @property
    def sign_place(self) -> int:
        """The position of the sign's bit in a code, counted from the lowest, 0: 7 for E4M3, 3 for E2M1."""
        return self.digits + (math.frexp(self.largest)[1] - self.least).bit_length()


FLOAT32 = NumberGrid(23, -126, (2.0 - 2.0**-23) * 2.0**127)
E4M3 = NumberGrid(3, -6, 448.0)  # OFP8 of OCP, float8_e4m3fn of ml_dtypes: no infinities
E5M2 = NumberGrid(2, -14, 57344.0)
E2M1 = NumberGrid(1, 0, 6.0)
INT8 = NumberGrid(0, 7, 127.0, is_integer=True)  # all are multiples of 1


class ScaleRounding(enum.StrEnum):
    """The rule by which a scale becomes a power of two; names as in torchao's `ScaleCalculationMode`.

    amax is the largest magnitude of the values that share the scale. With p(v) for the largest power of two ≤
    v, `floor`, the rule of OCP's specification, is p(amax) / p(largest code). `ceil` takes the least power of
    two ≥ amax in place of p(amax). `even` first rounds amax to the digits of the codes, halves up. `rceil` is
    the least power of two with which no value is beyond the largest code.
    """

    FLOOR = "floor"
    CEIL = "ceil"
    RCEIL = "rceil"
    EVEN = "even"


class QuantizedFormat(NamedTuple):
    """One row of the table of formats: the numbers of codes and scales, and which values share a scale.

    Parameters
    ----------
    name : str
    grid : NumberGrid
        The numbers of the codes.
    scale : NumberGrid or None
        The numbers of the scales; None: powers of two from 2⁻¹²⁷ to 2¹²⁷ (E8M0).
    block : int or None
        The number of values along the last axis that share a scale by default; None: all of them.
    source : str
        The specification, or the rule for scales.
    """

    name: str
    grid: NumberGrid
    scale: NumberGrid | None
    block: int | None
    source: str

    @property
    def default_per(self) -> str:
        """The default of `--per`, the values that share a scale: `token`, or `block:N`."""
        return "token" if self.block is None else f"block:{self.block}"

    @property
    def has_tensor_scale(self) -> bool:
        """Whether the whole tensor has a scale of its own, a float32, besides the scales of groups in E4M3."""
        return self.scale is E4M3


_OFP8 = "OCP 8-bit Floating Point Specification (OFP8) 1.0"
_MX = "OCP Microscaling Formats (MX) Specification 1.0, sections 5 and 6.3"

FORMATS: Mapping[str, QuantizedFormat] = MappingProxyType(
    {
        row.name: row
        for row in (
            QuantizedFormat("int8", INT8, FLOAT32, None, "symmetric: amax / 127, −128 left out"),
            QuantizedFormat("fp8-e4m3", E4M3, FLOAT32, None, _OFP8),
            QuantizedFormat("fp8-e5m2", E5M2, FLOAT32, None, _OFP8),
            QuantizedFormat("mxfp8", E4M3, None, 32, _MX),
            QuantizedFormat("mxfp4", E2M1, None, 32, _MX),
            QuantizedFormat("nvfp4", E2M1, E4M3, 16, "torchao's nvfp4_tensor: amax / (448 · 6), a float32"),
        )
    }
)  # fmt: skip
"""The formats by name."""


class Quantization(NamedTuple):
    """A format for a result, and the groups that share a scale.

    Parameters
    ----------
    row : QuantizedFormat
    per : str
        The values that share a scale: `tensor`, `token` (those along the last axis), `channel` or `block:N`
        (N along the last axis).
    rounding : str or None
        The name of a `ScaleRounding`; None: the format's own.
    """

    row: QuantizedFormat
    per: str
    rounding: str | None = None

    @property
    def rounding_name(self) -> str:
        """The name of the rule by which a scale is rounded: `nearest`, or a `ScaleRounding`."""
        return "nearest" if self.row.scale is not None else self.rounding or ScaleRounding.FLOOR


def read_quantization(name: str | None, per: str | None, rounding: str | None) -> Quantization:
    """Return the quantization that the options `--quantize`, `--per` and `--scale-rounding` ask for.

    Parameters
    ----------
    name : str or None
        The name of a format. None is an error, since the other options need a format.
    per : str or None
        The values that share a scale: `tensor`, `token`, `channel` or `block:N`; None for the format's default.
    rounding : str or None
        The name of a `ScaleRounding`, if scales are powers of two; None for the format's default.

    Raises
    ------
    UsageError
        If `name` is None or unknown, `per` or `rounding` is unknown, or one of them does not fit the format.
    """
    if name is None:
        given = "--scale-rounding" if per is None else "--per"
        raise UsageError(f"{given} is of results in few bits: give --quantize {', '.join(FORMATS)}")
    row = FORMATS.get(name)
    if row is None:
        raise UsageError(f"--quantize {name!r} is none of {', '.join(FORMATS)}")
    per = per or row.default_per
    kind, _, size = per.partition(":")
    is_block = kind == "block" and size.isascii() and size.isdecimal() and int(size) > 0
    if per not in ("tensor", "token", "channel") and not is_block:
        raise UsageError(f"--per {per!r} is none of tensor, token, channel, block:N")
    if row.block is not None and not is_block:
        raise UsageError(f"--per {per}: scales of {name} are of blocks, such as block:{row.block}")
    if rounding is not None and rounding not in tuple(ScaleRounding):
        raise UsageError(f"--scale-rounding {rounding!r} is none of {', '.join(ScaleRounding)}")
    if rounding is not None and row.scale is not None:
        raise UsageError(f"--scale-rounding is of powers of two, mxfp8 and mxfp4: {name} rounds to nearest")
    return Quantization(row, per, rounding)
