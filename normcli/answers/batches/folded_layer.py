"""The answer of `normcli fold`: the folded layer, and how far it is from the two layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import (
    SCHEMA,
    Facts,
    Line,
    Table,
    TableRow,
    describe_members,
    describe_value,
    flatten_records,
)
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_statistic
from normcli.documents.plan_header import list_facts
from normcli.printable import make_printable
from normcli.running.fold import arrange, divide, format_divisor, format_outgoing, is_rounding, spread
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.running.fold import Affine, Layer

_COLUMNS = ("channel", "mean", "var", "factor", "bias")


def tell_proofs(folded: Sequence[Layer], proofs: Sequence[tuple[float, float]]) -> Line:
    """Return a line on what `prove` returned of folded layers: the largest difference beside its values."""
    if not all(math.isfinite(value) for proof in proofs for value in proof):
        return Line(("on a random batch values leave float64: there is nothing to compare",))
    largest, size = max(proofs, key=lambda proof: proof[0] / (proof[1] or 1.0))
    told = f"on a random batch: largest difference {largest:.2g}, where values reach {size:.3g}"
    return Line((told,), all(map(is_rounding, folded, proofs)))


def describe_proof(folded: Layer, proof: tuple[float, float]) -> Mapping[str, Any]:
    """Return what `prove` returned of a folded layer, for JSON."""
    largest, size = describe_value(proof)
    ok = is_rounding(folded, proof) if all(map(math.isfinite, proof)) else None
    return {"max_abs": largest, "largest": size, "ok": ok}


@dataclass(frozen=True)
class Folding:
    """A layer, the norm behind it, and the one layer that replaces both.

    Parameters
    ----------
    layer : Layer
    norm : Affine
    folded : Layer
    proof : tuple of float
        The largest difference on a random batch, and the largest value that came out.
    source : str
        Where the weight came from.
    eps_from : str or None
        Where eps was given; None for the norm's default.
    order : tuple of str
        The axes of the weight as it was given, which the folded one has too.
    """

    layer: Layer
    norm: Affine
    folded: Layer
    proof: tuple[float, float]
    source: str
    eps_from: str | None = None
    order: tuple[str, ...] = ("out", "in", "…")

    def sections(self, view: View) -> Iterator[Section]:
        """Return a header, the channels, the proof."""
        weight, norm, channels = self.layer.weight, self.norm, self.layer.channels
        kind = "linear layer" if weight.ndim == 2 else f"{weight.ndim - 2}-D convolution"
        kinds = (
            f"transposed {kind}" if self.layer.transposed else kind,
            *((f"{self.layer.groups} groups",) if self.layer.groups > 1 else ()),
            format_outgoing(channels),
            f"({', '.join(self.order)})",
        )
        origin = "" if self.eps_from is None else f" ({make_printable(self.eps_from)})"
        factor = f"factor = gamma / {format_divisor(norm)}", f"eps {norm.eps:g}{origin}"
        formula = ("weight · factor, (bias − mean) · factor + beta", *factor)
        given = list_facts(Tensor(self._arrange_back(weight), self.source), self.folded.weight.dtype)
        lines = (("formula", formula), ("weight", given), ("layer", kinds))
        yield Facts("fold · batch normalization into the layer before it", lines)
        yield self._list_channels(view)
        yield tell_proofs([self.folded], [self.proof])

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        return {
            "schema": SCHEMA,
            **describe_members(self.norm, "eps", "eps_mode"),
            "eps_from": self.eps_from,
            **describe_members(self.layer, "groups", "transposed"),
            "dtype": self.folded.weight.dtype.name,
            "shape": list(self.arrays()["weight"].shape),
            "proof": describe_proof(self.folded, self.proof),
            **describe_value(self.arrays()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object per channel."""
        for channel, values in enumerate(self._channels()):
            yield dict(zip(_COLUMNS, (channel, *describe_value(tuple(values))), strict=True))

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line per channel."""
        return flatten_records(self.records())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return weight and bias under their names, as they are saved."""
        bias = self.folded.bias
        weight = self._arrange_back(self.folded.weight)
        return {"weight": weight, **({} if bias is None else {"bias": bias})}

    def _arrange_back(self, weight: NDArray[Any]) -> NDArray[Any]:
        arranged = arrange(weight, self.order, transposed=self.layer.transposed, back=True)
        return np.ascontiguousarray(arranged)

    def _channels(self) -> list[list[float]]:
        """Return mean, variance, factor and bias of each channel."""
        mean, var, _, _ = spread(self.norm, self.layer.channels)
        with np.errstate(all="ignore"):
            factor = divide(self.norm, self.layer.channels)
        bias = np.zeros(mean.shape) if self.folded.bias is None else self.folded.bias.astype(np.float64)
        channels: list[list[float]] = np.stack([mean, var, factor, bias], axis=1).tolist()
        return channels

    def _list_channels(self, view: View) -> Table:
        channels = self._channels()

        def make_row(number: int) -> TableRow:
            texts = (format_statistic(value, view.digits) for value in channels[number])
            return TableRow((str(number), *texts))

        table = Table(None, _COLUMNS, (True,) * len(_COLUMNS))
        return build_excerpt(table, make_row, len(channels), "channel", view)
