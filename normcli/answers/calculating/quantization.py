"""The answer of `normcli NORM --quantize FORMAT`: scales and codes beside what they lose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import Facts, Line, RecordDocument, Table, TableRow, describe_value
from normcli.documents.excerpt import build_excerpt
from normcli.documents.matrix_blocks import build_blocks
from normcli.documents.number_format import format_shape, format_statistic
from normcli.documents.plan_header import build_header, describe_plan, describe_tensor, list_facts, name_inputs
from normcli.norms.grid import unravel
from normcli.printable import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from normcli.documents.document import Section, View
    from normcli.quantizing.quantize import Quantized
    from normcli.tensors.tensor import Tensor


@dataclass(frozen=True)
class QuantizedAnswer(RecordDocument):
    """The document of `normcli NORM --quantize FORMAT`: scales, codes, and the losses by rounding.

    Parameters
    ----------
    quantized : Quantized
    tensor : Tensor
        The input, with its source.
    """

    quantized: Quantized
    tensor: Tensor
    row_names = ("scale", "value", "stored")

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and the sections on scales, decoded values, codes and losses that the view shows."""
        found = self.quantized
        yield self._build_header(view)
        if view.shows("stats"):
            shape = found.factors.shape

            def make_row(number: int) -> TableRow:
                place = format_shape(unravel(number, shape))
                code = found.scales.flat[number]
                unit = format_statistic(float(found.factors.flat[number]), view.digits)
                return TableRow((place, unit, str(code.dtype) if code.dtype.kind == "f" else f"0x{code:02x}"))

            table = Table(None, ("scale at", "one unit of a code", "stored as"), (False, True, True))
            yield build_excerpt(table, make_row, found.factors.size, "scale", view)
        if view.shows("y"):
            title = "y, as scales and codes give it back"
            yield build_blocks(title, found.values, found.exact, view)
            yield build_blocks("codes, the numbers that they stand for", found.numbers, found.exact, view)
        if view.shows("check"):
            yield Line(tuple(self._list_losses()))

    def _build_header(self, view: View) -> Facts:
        found, plan = self.quantized, self.quantized.exact.plan
        row, asked = found.asked.row, found.asked
        facts = [
            f"{row.name}: codes of {found.codes.dtype}, at most {row.grid.largest:g}",
            f"a scale per {asked.per}",
            format_count(found.scales.size, "scale"),
            f"scale rounding: {asked.rounding_name}",
        ]
        if row.has_tensor_scale:
            facts.append(f"tensor scale {format_statistic(float(found.tensor_scale), view.digits)}")
        title = f"{plan.norm.name} · {plan.norm.title}, quantized"
        own = found.exact.dtype if found.exact.dtype != np.float64 else None  # y is defined in it
        source, more = list_facts(self.tensor, own), (("format", tuple(facts)),)
        return build_header(title, plan, source, view, name_inputs(found.exact.inputs), more)

    def _list_losses(self) -> Iterator[str]:
        found = self.quantized
        yield f"largest error {found.error:.4g}"
        noise = found.signal_to_noise
        yield "nothing is lost" if math.isinf(noise) else f"signal to noise {noise:.4g} dB"
        yield f"{found.saturated:.3%} saturated"
        yield f"{found.flushed:.3%} flushed to 0"

    def data(self) -> Mapping[str, Any]:
        """Return the quantized result as a JSON object: the plan, the format, codes, scales, values and losses.

        `scales` are as stored; `scale_values`, scale · tensor scale, are the numbers that codes are multiplied
        by.
        """
        found = self.quantized
        asked = found.asked
        return {
            **describe_plan(found.exact.plan, {"input": describe_tensor(self.tensor)}),
            "quantize": {
                "format": asked.row.name,
                "per": asked.per,
                "scale_rounding": asked.rounding_name,
                "source": asked.row.source,
            },
            "codes": describe_value(found.codes),
            "scales": describe_value(found.scales),
            "tensor_scale": float(found.tensor_scale),
            "scale_values": describe_value(found.factors),
            "dequantized": describe_value(found.values),
            **{name: describe_value(value) for name, value in found.losses.items()},
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per scale: its index, scale · tensor scale (`value`), and the stored scale."""
        found = self.quantized
        for number in range(found.factors.size):
            yield {
                "scale": list(unravel(number, found.factors.shape)),
                "value": float(found.factors.flat[number]),
                "stored": found.scales.flat[number].item(),
            }
