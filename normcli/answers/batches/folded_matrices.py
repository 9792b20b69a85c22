"""The answer of `normcli fold sn`: the weights without spectral normalization, and what σ was of each."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.batches.folded_layer import describe_proof, tell_proofs
from normcli.documents.document import (
    SCHEMA,
    Facts,
    Line,
    Table,
    TableRow,
    describe_value,
    flatten_records,
)
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape, format_statistic
from normcli.norms.table import OF_MATRICES
from normcli.printable import format_count, make_printable
from normcli.running.matrix_fold import divides_in_evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.norms.spec import Iteration
    from normcli.running.matrix_fold import FoldedMatrix

_COLUMNS = ("weight", "rows", "sigma", "largest", "off")

_FAR = 0.01
"""A σ so large a part off is of vectors far from the singular ones: of few iterations, or of another weight."""

_ROUNDED = 2.0**-20
"""What vectors of float32 leave, at most, of a σ that is the largest singular value."""


@dataclass(frozen=True)
class MatrixFolding:
    """Weights that spectral normalization was folded into.

    Parameters
    ----------
    folded : sequence of FoldedMatrix
    saved : mapping of str to ndarray
        The arrays of the file that is written.
    source : str
        The name of the file of the weights.
    like : str or None
        The framework whose conventions hold; None for none.
    """

    folded: Sequence[FoldedMatrix]
    saved: Mapping[str, NDArray[Any]]
    source: str
    like: str | None = None

    def sections(self, view: View) -> Iterator[Section]:
        """Return a header, the weights with their σ, how far that is off, the proof."""
        lines: list[tuple[str, tuple[str, ...]]] = [
            ("formula", ("weight / σ, the bias as it is", self._tell_sigma()))
        ]
        if not divides_in_evaluation(self.like):
            told = f"evaluation of {self.like} divides by nothing: this is what its next training step makes"
            lines.append(("note", (told,)))
        dtypes = dict.fromkeys(each.folded.weight.dtype.name for each in self.folded)
        shape = format_shape(self.folded[0].weight.shape)
        count = shape if len(self.folded) == 1 else format_count(len(self.folded), "weight")
        lines.append(("weight", (make_printable(self.source), count, ", ".join(dtypes))))
        yield Facts("fold · spectral normalization into the weight that it divides", tuple(lines))
        yield self._list_weights(view)
        yield self._judge_sigmas()
        yield tell_proofs([each.folded for each in self.folded], self._proofs)

    @functools.cached_property
    def _proofs(self) -> list[tuple[float, float]]:
        return [each.prove() for each in self.folded]

    @property
    def _iteration(self) -> Iteration | None:
        """What estimates σ; None if of no weight anything does. Of a weight of one axis nothing does."""
        return next((each.iteration for each in self.folded if each.iteration is not None), None)

    @property
    def _is_of_evaluation(self) -> bool:
        """Whether σ is of the vectors as they are, by which a model divides in evaluation."""
        iteration = self._iteration
        return iteration is not None and not iteration.steps and divides_in_evaluation(self.like)

    def _tell_sigma(self) -> str:
        iteration = self._iteration
        if iteration is None:
            return "σ is its largest singular value"
        if not iteration.steps:
            return "σ = uᵀXv of u and v as they are"
        return f"σ = uᵀXv of {format_count(iteration.steps, 'power iteration')} from {iteration.start}"

    def _list_weights(self, view: View) -> Table:
        def make_row(number: int) -> TableRow:
            each = self.folded[number]
            numbers = (format_statistic(value, view.digits) for value in (each.sigma, each.largest))
            rows = ",".join(map(str, each.rows))
            return TableRow((make_printable(each.name), rows, *numbers, _format_off(each)))

        numeric = (False, *(True,) * (len(_COLUMNS) - 1))
        return build_excerpt(Table(None, _COLUMNS, numeric), make_row, len(self.folded), "weight", view)

    def _judge_sigmas(self) -> Line:
        """Return a line on the largest singular values of the folded weights: 1 where σ was exact."""
        worst = max(self.folded, key=lambda each: abs(each.off))
        is_near = abs(worst.off) <= _FAR
        if is_near:
            worst = min(self.folded, key=lambda each: each.off)  # the largest afterwards
        after = f"{1.0 / (1.0 + worst.off):.6g}"
        if is_near:
            if len(self.folded) == 1:
                told = f"folded, its largest singular value is {after}"
            else:
                told = f"folded, their largest singular values are {after} at most"
            return Line((told,), mark=True)
        name, share = make_printable(worst.name), f"{100.0 * abs(worst.off):.3g} %"
        beside = (
            f"σ of {name} is {share} below the largest singular value"
            if worst.off < 0.0
            else f"σ of {name} is {share} above the largest singular value"
        )
        others = sum(abs(each.off) > _FAR for each in self.folded) - 1
        facts = (
            beside,
            f"that of the folded weight is {after}, not 1",
            *(("in evaluation the model divides by the same σ",) if self._is_of_evaluation else ()),
            "its vectors are far from the singular ones",
            *((f"of {others} more it is off by over 1 %",) if others else ()),
        )
        return Line(facts)  # no mark: the fold is right, as it does what the model does

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        return {"schema": SCHEMA, "norm": OF_MATRICES, "like": self.like, "weights": [*self.records()]}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object per weight."""
        for each, proof in zip(self.folded, self._proofs, strict=True):
            iteration = each.iteration
            bias = {} if each.folded.bias is None else {"bias": describe_value(each.folded.bias)}
            yield {
                "name": each.name,
                "shape": list(each.weight.shape),
                "dtype": each.weight.dtype.name,
                "rows": list(each.rows),
                "iterations": None if iteration is None else iteration.steps,
                "sigma": each.sigma,
                "largest": each.largest,
                "off": each.off,
                "proof": describe_proof(each.folded, proof),
                "weight": describe_value(each.weight),
                **bias,
            }

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line per weight."""
        names = ("name", "sigma", "largest", "off")
        return flatten_records({name: record[name] for name in names} for record in self.records())


def _format_off(each: FoldedMatrix) -> str:
    """Return by how many per cent σ is off; 0 if only rounding is."""
    return "0" if abs(each.off) <= _ROUNDED else f"{100.0 * each.off:+.3g} %".replace("-", "−")
