"""The answers of `normcli fold`: a folded layer, the folded layers of a state dict, weights divided by σ."""

from __future__ import annotations

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
    flatten_records,
)
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape, format_statistic
from normcli.documents.plan_header import list_facts
from normcli.norms.table import OF_MATRICES
from normcli.printable import format_count, make_printable
from normcli.running.fold import divide, format_divisor, format_outgoing, spread
from normcli.running.matrix_fold import divides_in_evaluation
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.documents.plan_header import HeaderLine
    from normcli.norms.spec import Iteration
    from normcli.running.fold import Affine, Layer, Proof
    from normcli.running.matrix_fold import FoldedMatrix
    from normcli.running.norm_pairs import NormedLayer


_OF_CHANNELS = ("channel", "mean", "var", "factor", "bias")


def tell_proofs(proofs: Sequence[Proof], *, of_pairs: bool = False) -> Line:
    """Return a line on the largest relative difference in output between layers and folded layers.

    The mark is right if all differences are rounding; there is none if values are beyond float64. `of_pairs`
    says that each layer was run with its norm alone, not the model.
    """
    if any(proof.ok is None for proof in proofs):
        return Line(("on a random batch values leave float64: there is nothing to compare",))
    worst = max(proofs, key=lambda proof: proof.max_abs / (proof.largest or 1.0))
    told = f"on a random batch: largest difference {worst.max_abs:.2g}, where values reach {worst.largest:.3g}"
    told = f"each pair alone, {told}" if of_pairs else told
    return Line((told,), all(proof.ok for proof in proofs))


@dataclass(frozen=True)
class Folding(RecordDocument):
    """The document of a layer, the batch normalization after it, and the one layer that replaces both.

    Parameters
    ----------
    layer, folded : Layer
        The layer, and the one that replaces layer and norm.
    norm : Affine
        The batch normalization, with its running statistics.
    proof : Proof
    source : str
        The file of the weight.
    eps_from : str or None
        The source of eps in words; None for the norm's default.
    """

    layer: Layer
    norm: Affine
    folded: Layer
    proof: Proof
    source: str
    eps_from: str | None = None

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a table of output channels, and a line on the difference on a random batch."""
        weight, norm, channels = self.layer.weight, self.norm, self.layer.channels
        kind = "linear layer" if weight.ndim == 2 else f"{weight.ndim - 2}-D convolution"
        kinds = (
            f"transposed {kind}" if self.layer.transposed else kind,
            *((f"{self.layer.groups} groups",) if self.layer.groups > 1 else ()),
            format_outgoing(channels),
            f"({', '.join(self.layer.order)})",
        )
        origin = "" if self.eps_from is None else f" ({make_printable(self.eps_from)})"
        factor = f"factor = gamma / {format_divisor(norm)}", f"eps {norm.eps:g}{origin}"
        formula = ("weight · factor, (bias − mean) · factor + beta", *factor)
        given = list_facts(Tensor(self.layer.given, self.source), self.folded.weight.dtype)
        lines = (("formula", formula), ("weight", given), ("layer", kinds))
        yield Facts("fold · batch normalization into the layer before it", lines)
        yield self._list_channels(view)
        yield tell_proofs([self.proof])

    def data(self) -> Mapping[str, Any]:
        """Return the folding of a layer as a JSON object: options, `proof`, folded `weight` and `bias`."""
        return {
            "schema": SCHEMA,
            **describe_members(self.norm, "eps", "eps_mode"),
            "eps_from": self.eps_from,
            **describe_members(self.layer, "groups", "transposed"),
            "dtype": self.folded.weight.dtype.name,
            "shape": list(self.saved["weight"].shape),
            "proof": describe_value(self.proof),
            **describe_value(self.saved),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per output channel: `channel`, `mean`, `var`, `factor` and the folded `bias`."""
        for channel, values in enumerate(self._channels()):
            yield dict(zip(_OF_CHANNELS, (channel, *describe_value(tuple(values))), strict=True))

    @property
    def saved(self) -> dict[str, NDArray[Any]]:
        """The folded `weight` and, if there is one, `bias`, as they are saved."""
        bias = {} if self.folded.bias is None else {"bias": self.folded.bias}
        return {"weight": self.folded.given, **bias}

    def _channels(self) -> list[list[float]]:
        """Return [mean, variance, factor, bias] for each output channel."""
        mean, var, _, _ = spread(self.norm, self.layer.channels)
        with np.errstate(all="ignore"):
            factor = divide(self.norm, self.layer.channels)
        bias = np.zeros(mean.shape) if self.folded.bias is None else self.folded.bias.astype(np.float64)
        channels: list[list[float]] = np.stack([mean, var, factor, bias], axis=1).tolist()
        return channels

    def _list_channels(self, view: View) -> Table:
        channels = self._channels()

        def make_row(number: int) -> TableRow:
            return TableRow(
                (str(number), *(format_statistic(value, view.digits) for value in channels[number]))
            )

        table = Table(None, _OF_CHANNELS, (True,) * len(_OF_CHANNELS))
        return build_excerpt(table, make_row, len(channels), "channel", view)


_OF_PAIRS = ("layer", "norm", "weight")


@dataclass(frozen=True)
class CheckpointFolding(RecordDocument):
    """The document of a state dict's layers and the norms folded into them.

    Parameters
    ----------
    pairs : sequence of NormedLayer
        The layers with their norms.
    proofs : mapping of NormedLayer to Proof
        The proof of each pair; empty under `--dry-run`.
    shapes : mapping of str to tuple of int
        The shape of each layer's weight, by the layer's name.
    left : sequence of str
        The names of norms that are not folded, as no layer is known to precede them.
    saved : mapping of str to ndarray
        The state dict after folding.
    source, eps : str
        The name of the file, and eps in words, with its source.
    is_given : bool
        Whether the user or the graph of a model gave the pairs; False if they follow from modules' names.
    """

    pairs: Sequence[NormedLayer]
    proofs: Mapping[NormedLayer, Proof]
    shapes: Mapping[str, tuple[int, ...]]
    left: Sequence[str]
    saved: Mapping[str, NDArray[Any]]
    source: str
    eps: str
    is_given: bool = True
    row_names = ("layer", "norm")

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a table of (layer, norm) pairs and, if any is folded, a line on the proofs."""
        lines: list[HeaderLine] = [
            ("formula", ("weight · factor, (bias − mean) · factor + beta", self.eps)),
            ("file", (make_printable(self.source), format_count(len(self.pairs), "pair"))),
        ]
        if not self.is_given:
            lines.append(("reading", ("each layer is first and its norm second, by their names",)))
        assumed = [pair for pair in self.pairs if pair.is_assumed]
        if assumed:
            count = format_count(len(assumed), "pair")
            example = make_printable(f"{assumed[0].layer}={assumed[0].norm}")
            told = f"{count} fit the other way round by channels, too, as {example}"
            lines.append(("assumed", (told, "taken like others with such names")))
        yield Facts("fold · batch normalization into the layers before it", tuple(lines))

        def make_row(number: int) -> TableRow:
            pair = self.pairs[number]
            shape = format_shape(self.shapes[pair.layer]) + (" transposed" if pair.transposed else "")
            return TableRow((make_printable(pair.layer), make_printable(pair.norm), shape))

        table = Table(None, _OF_PAIRS, (False,) * len(_OF_PAIRS))
        yield build_excerpt(table, make_row, len(self.pairs), "pair", view)
        if self.proofs:
            yield tell_proofs([*self.proofs.values()], of_pairs=True)

    def data(self) -> Mapping[str, Any]:
        """Return the folding of a state dict as a JSON object: `pairs`, and in `left` the norms not folded."""
        return {"schema": SCHEMA, "norm": "bn", "pairs": [*self.records()], "left": list(self.left)}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per pair, with its proof, which is None under `--dry-run`."""
        for pair in self.pairs:
            yield {
                **describe_members(pair, "layer", "norm"),
                "shape": list(self.shapes[pair.layer]),
                "transposed": pair.transposed,
                "assumed": pair.is_assumed,
                "proof": describe_value(self.proofs.get(pair)),
            }


_OF_WEIGHTS = ("weight", "rows", "sigma", "largest", "off")

_FAR = 0.01
"""The relative error above which σ is of vectors far from the singular ones: few iterations, another weight."""

_ROUNDED = 2.0**-20
"""The relative error of σ up to which it is rounding of float32 vectors."""


@dataclass(frozen=True)
class MatrixFolding:
    """The document of weights divided by σ, their spectral normalization folded into them.

    Parameters
    ----------
    folded : sequence of FoldedMatrix
        At least one weight.
    saved : mapping of str to ndarray
        The arrays that are saved: weight and bias, or the state dict after folding.
    source : str
        The name of the file of the weights.
    like : str or None
        The framework whose conventions are followed, if any.
    """

    folded: Sequence[FoldedMatrix]
    saved: Mapping[str, NDArray[Any]]
    source: str
    like: str | None = None

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a table of weights with their σ, a line on the errors of σ, and one on the proofs."""
        lines: list[HeaderLine] = [("formula", ("weight / σ, the bias as it is", self._tell_sigma()))]
        if not divides_in_evaluation(self.like):
            told = f"evaluation of {self.like} divides by nothing: this is what its next training step makes"
            lines.append(("note", (told,)))
        dtypes = dict.fromkeys(each.weight.dtype.name for each in self.folded)
        shape = format_shape(self.folded[0].weight.shape)
        count = shape if len(self.folded) == 1 else format_count(len(self.folded), "weight")
        lines.append(("weight", (make_printable(self.source), count, ", ".join(dtypes))))
        yield Facts("fold · spectral normalization into the weight that it divides", tuple(lines))
        yield self._list_weights(view)
        yield self._judge_sigmas()
        yield tell_proofs([each.proof for each in self.folded])

    @property
    def _iteration(self) -> Iteration | None:
        """The power iteration of the first weight that has one; None if every σ is the exact one."""
        return next((each.iteration for each in self.folded if each.iteration is not None), None)

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

        numeric = (False, *(True,) * (len(_OF_WEIGHTS) - 1))
        return build_excerpt(Table(None, _OF_WEIGHTS, numeric), make_row, len(self.folded), "weight", view)

    def _judge_sigmas(self) -> Line:
        """Return a line on the folded weights' largest singular values, which are 1 where σ was exact."""
        worst = max(self.folded, key=lambda each: abs(each.off))
        if abs(worst.off) <= _FAR:
            after = f"{1.0 / (1.0 + min(each.off for each in self.folded)):.6g}"  # the largest afterwards
            if len(self.folded) == 1:
                return Line((f"folded, its largest singular value is {after}",), mark=True)
            return Line((f"folded, their largest singular values are {after} at most",), mark=True)
        after, iteration = f"{1.0 / (1.0 + worst.off):.6g}", self._iteration
        in_evaluation = iteration is not None and not iteration.steps and divides_in_evaluation(self.like)
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
            *(("in evaluation the model divides by the same σ",) if in_evaluation else ()),
            "its vectors are far from the singular ones",
            *((f"of {others} more it is off by over 1 %",) if others else ()),
        )
        return Line(facts)  # no mark: the fold is right, as it does what the model does

    def data(self) -> Mapping[str, Any]:
        """Return the folded weights as a JSON object; `weights` has the objects of `records`."""
        return {"schema": SCHEMA, "norm": OF_MATRICES, "like": self.like, "weights": [*self.records()]}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per weight: name, shape, rows, iterations, σ, its error, proof and values."""
        for each in self.folded:
            iteration = each.iteration
            bias = {} if each.bias is None else {"bias": describe_value(each.bias)}
            yield {
                "name": each.name,
                "shape": list(each.weight.shape),
                "dtype": each.weight.dtype.name,
                "rows": list(each.rows),
                "iterations": None if iteration is None else iteration.steps,
                **describe_members(each, "sigma", "largest", "off"),
                "proof": describe_value(each.proof),
                "weight": describe_value(each.weight),
                **bias,
            }

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return the rows of a CSV table of weights: `name`, `sigma`, `largest`, `off`; first these names."""
        names = ("name", "sigma", "largest", "off")
        return flatten_records({name: record[name] for name in names} for record in self.records())


def _format_off(each: FoldedMatrix) -> str:
    """Return the relative error of σ in per cent, with a sign; `0` if it is rounding."""
    return "0" if abs(each.off) <= _ROUNDED else f"{100.0 * each.off:+.3g} %".replace("-", "−")
