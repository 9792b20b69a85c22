"""The answers of `normcli fold`: a folded layer, or all of a state dict, and how far its output moved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import (
    SCHEMA,
    Facts,
    Line,
    RecordDocument,
    Table,
    TableRow,
    describe_members,
    describe_value,
)
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape, format_statistic
from normcli.documents.plan_header import list_facts
from normcli.printable import format_count, make_printable
from normcli.running.fold import arrange, divide, format_divisor, format_outgoing, is_rounding, spread
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.running.checkpoint_fold import FoldedPair, NormedLayer
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
class Folding(RecordDocument):
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


_OF_PAIRS = ("layer", "norm", "weight")


@dataclass(frozen=True)
class CheckpointFolding(RecordDocument):
    """The pairs of a state dict, and what became of them.

    Parameters
    ----------
    pairs : sequence of NormedLayer
    folded : sequence of FoldedPair
        Empty where nothing was to be folded.
    shapes : mapping of str to tuple of int
        The shape of each layer's weight.
    left : sequence of str
        Norms that stay, as no layer was found before them.
    saved : mapping of str to ndarray
        The state dict that is written.
    source, eps : str
        The name of the file, and eps with where it is from.
    """

    pairs: Sequence[NormedLayer]
    folded: Sequence[FoldedPair]
    shapes: Mapping[str, tuple[int, ...]]
    left: Sequence[str]
    saved: Mapping[str, NDArray[Any]]
    source: str
    eps: str
    row_names = ("layer", "norm")

    def sections(self, view: View) -> Iterator[Section]:
        """Return a header, the pairs, the proof."""
        yield Facts(
            "fold · batch normalization into the layers before it",
            (
                ("formula", ("weight · factor, (bias − mean) · factor + beta", self.eps)),
                ("file", (make_printable(self.source), format_count(len(self.pairs), "pair"))),
            ),
        )

        def make_row(number: int) -> TableRow:
            pair = self.pairs[number]
            shape = format_shape(self.shapes[pair.layer]) + (" transposed" if pair.transposed else "")
            return TableRow((make_printable(pair.layer), make_printable(pair.norm), shape))

        table = Table(None, _OF_PAIRS, (False,) * len(_OF_PAIRS))
        yield build_excerpt(table, make_row, len(self.pairs), "pair", view)
        if self.folded:
            yield tell_proofs([each.folded for each in self.folded], [each.proof for each in self.folded])

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        return {"schema": SCHEMA, "norm": "bn", "pairs": [*self.records()], "left": list(self.left)}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object per pair."""
        proofs = {each.pair: describe_proof(each.folded, each.proof) for each in self.folded}
        for pair in self.pairs:
            shape = list(self.shapes[pair.layer])
            yield {
                "layer": pair.layer,
                "norm": pair.norm,
                "shape": shape,
                "transposed": pair.transposed,
                "proof": proofs.get(pair),
            }
