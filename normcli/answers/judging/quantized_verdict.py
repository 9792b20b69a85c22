"""The answer of `check NORM --quantize FORMAT`: whether codes and scales are those of the exact result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.document import Line, flatten_records
from normcli.documents.plan_header import build_header, describe_plan, describe_tensor, list_facts, name_inputs
from normcli.printable import make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantized
    from normcli.tensors.tensor import Tensor


@dataclass(frozen=True)
class QuantizedVerdict:
    """Codes and scales, checked.

    Parameters
    ----------
    found : Quantized
        The exact ones.
    tensor : Tensor
        The input.
    sources : tuple of str
        Where codes and scales came from.
    parts : sequence of QuantizedPart
    """

    found: Quantized
    tensor: Tensor
    sources: tuple[str, ...]
    parts: Sequence[QuantizedPart]

    @property
    def ok(self) -> bool:
        """Whether codes and scales are the exact ones."""
        return all(part.ok for part in self.parts)

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header, and a line for codes and for scales."""
        plan, asked = self.found.exact.plan, self.found.asked
        more = (
            ("actual", tuple(map(make_printable, self.sources))),
            ("format", (asked.row.name, f"a scale per {asked.per}", f"scale rounding: {asked.rounding_name}")),
        )
        title = f"check {plan.norm.name} · {asked.row.name}"
        yield build_header(
            title, plan, list_facts(self.tensor), view, name_inputs(self.found.exact.inputs), more
        )
        for part in self.parts:
            facts = (part.text,) if part.cause is None else (part.cause, part.text)
            details = () if part.remedy is None else (("try", part.remedy),)
            yield Line(facts, mark=part.ok, details=details)

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as one object."""
        asked = self.found.asked
        return {
            **describe_plan(self.found.exact.plan, {"input": describe_tensor(self.tensor)}),
            "quantize": {"format": asked.row.name, "per": asked.per, "scale_rounding": asked.rounding_name},
            "ok": self.ok,
            "checked": list(self.records()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object for codes and one for scales."""
        for part in self.parts:
            yield {"name": part.name, "ok": part.ok, **part._asdict()}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for codes and one for scales, the header first."""
        return flatten_records(self.records())
