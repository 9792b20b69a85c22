"""The answer of `check` and `identify` with `--quantize`: given codes and scales, and the exact ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.document import Line, RecordDocument, describe_value
from normcli.documents.number_format import format_shape
from normcli.documents.plan_header import build_header, describe_plan, describe_tensor, list_facts, name_inputs
from normcli.identifying.question import label_remedy
from normcli.printable import make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantized
    from normcli.tensors.tensor import Tensor


_OF_WORST = ("place", "expected", "actual", "ulp")


@dataclass(frozen=True)
class QuantizedVerdict(RecordDocument):
    """The document of `check` and `identify` with `--quantize`: given codes and scales, and the exact ones.

    Parameters
    ----------
    found : Quantized
        The exact codes and scales.
    tensor : Tensor
        The input.
    sources : tuple of str
        The files of the given codes and scales.
    parts : sequence of QuantizedPart
        The comparisons of codes and of scales.
    also : sequence of Quantized or None
        For `identify`, the exact results of other norms that reproduce as many codes and scales as `found`;
        None for `check`.
    is_near : bool
        True if at least half of the given codes, or half of the scales, are exact.
    """

    found: Quantized
    tensor: Tensor
    sources: tuple[str, ...]
    parts: Sequence[QuantizedPart]
    also: Sequence[Quantized] | None = None
    is_near: bool = True

    @property
    def ok(self) -> bool:
        """Whether codes and scales agree with the exact ones."""
        return all(part.ok for part in self.parts)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a line each on scales and codes with cause and remedy, and the other norms.

        If the norm is not near (`is_near`), one line says that nothing is known to explain the codes.
        """
        plan, asked = self.found.exact.plan, self.found.asked
        more = (
            ("actual", tuple(map(make_printable, self.sources))),
            ("format", (asked.row.name, f"a scale per {asked.per}", f"scale rounding: {asked.rounding_name}")),
        )
        title = f"{'check' if self.also is None else 'identify'} {plan.norm.name} · {asked.row.name}"
        yield build_header(
            title, plan, list_facts(self.tensor), view, name_inputs(self.found.exact.inputs), more
        )
        if not self.is_near:
            yield Line(("nothing known explains these codes", *(part.text for part in self.parts)), mark=False)
            return
        for part in self.parts:
            facts = (part.text,) if part.cause is None else (part.cause, part.text)
            details = [] if part.remedy is None else [(label_remedy(part.remedy), part.remedy)]
            if part.worst is not None:
                at, expected, actual, _ = part.worst
                values = f"expected {expected:.9g}, actual {actual:.9g}"
                details.append(("worst", f"at {format_shape(at)}: {values}"))
            yield Line(facts, mark=part.ok, details=tuple(details))
        if self.also:
            yield Line(("as many are exact with", *self._others))

    @property
    def _others(self) -> list[str]:
        """The other norms that fit, each in words with its eps: `rms, eps 1e-06`.

        If a norm fits with several eps, the least and the largest are named: `rms, eps 1e-06 … 1e-05`.
        """
        plans = [one.exact.plan for one in self.also or ()]
        told = []
        for name in dict.fromkeys(plan.norm.name for plan in plans):
            every = sorted(plan.spec.eps or 0.0 for plan in plans if plan.norm.name == name)
            ends = dict.fromkeys((every[0], every[-1]))
            told.append(f"{name}, eps {' … '.join(format(eps, 'g') for eps in ends)}")
        return told

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as a JSON object: plan, format, `ok`, and `checked`, a list of one object a part.

        The parts are codes and scales. For `identify` there are also `is_near`, and `also`, the other norms in
        words.
        """
        asked = self.found.asked
        return {
            **describe_plan(self.found.exact.plan, {"input": describe_tensor(self.tensor)}),
            "quantize": {"format": asked.row.name, "per": asked.per, "scale_rounding": asked.rounding_name},
            "ok": self.ok,
            **({} if self.also is None else {"is_near": self.is_near, "also": self._others}),
            "checked": list(self.records()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object for scales and one for codes, as far as they were compared."""
        for part in self.parts:
            told = part._asdict()
            worst = told.pop("worst")
            yield {"name": part.name, "ok": part.ok, **told} | {
                name: None if worst is None else describe_value(getattr(worst, name)) for name in _OF_WORST
            }
