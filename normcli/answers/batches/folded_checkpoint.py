"""The answer of `normcli fold --checkpoint`: which norms of a state dict went into which layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.batches.folded_layer import describe_proof, tell_proofs
from normcli.documents.document import SCHEMA, Facts, Table, TableRow, flatten_records
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.running.checkpoint_fold import FoldedPair, NormedLayer

_COLUMNS = ("layer", "norm", "weight")


@dataclass(frozen=True)
class CheckpointFolding:
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

        table = Table(None, _COLUMNS, (False,) * len(_COLUMNS))
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

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line per pair."""
        return flatten_records({name: record[name] for name in ("layer", "norm")} for record in self.records())
