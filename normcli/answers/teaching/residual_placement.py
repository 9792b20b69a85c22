"""The answer of `normcli compare NORM --residual FILE`: a norm behind the addition, and before the sublayer.

References
----------
Vaswani et al. 2017, arXiv:1706.03762, section 3.1: post-norm, LayerNorm(x + Sublayer(x)).
Xiong et al. 2020, arXiv:2002.04745, table 1: the two places side by side.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.calculating.calculation import Answer
from normcli.documents.document import SCHEMA, Page, Table, TableRow, describe_members, flatten_records
from normcli.documents.matrix_blocks import build_blocks, build_slices
from normcli.documents.number_format import CELL_DIGITS, format_statistic
from normcli.documents.plan_header import build_header, describe_tensor, list_facts, name_inputs
from normcli.teach.side_by_side import measure_whole
from normcli.tensors.formats.json_lists import describe_number
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Facts, Section, View
    from normcli.documents.scene import Scene
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor


class NormPlacement(NamedTuple):
    """A place of the norm in a block of layers, in words and formulas.

    Parameters
    ----------
    name : str
    stands : str
    works_on : str
        The tensor that is normalized.
    sublayer : str
        The input of the sublayer f.
    block : str
        The output of the block.
    passes : str
        How the residual passes through the block.
    used_by : str
    """

    name: str
    stands: str
    works_on: str
    sublayer: str
    block: str
    passes: str
    used_by: str


POST = NormPlacement(
    "post-norm",
    "behind the addition",
    "x + r",
    "r, so that x = f(r)",
    "norm(r + f(r)) = norm(x + r)",
    "is normalized with the sum",
    "the first Transformer, BERT",
)
PRE = NormPlacement(
    "pre-norm",
    "before the sublayer",
    "r",
    "norm(r)",
    "r + f(norm(r))",
    "passes on as it is",
    "GPT-2, LLaMA",
)
_LABELS = {
    "the norm stands": "stands",
    "the norm works on": "works_on",
    "the sublayer f works on": "sublayer",
    "the block hands on": "block",
    "the residual r": "passes",
    "used by": "used_by",
}


@dataclass(frozen=True)
class PlacementAnswer:
    """One norm in both places.

    Parameters
    ----------
    post, pre : Result
        Of the sum, and of the residual.
    total, residual : Tensor
        The two tensors that are normalized.
    """

    post: Result
    pre: Result
    total: Tensor
    residual: Tensor

    @property
    def columns(self) -> tuple[tuple[NormPlacement, Result, Tensor], ...]:
        """Each place, with its result and the tensor that was normalized."""
        return (POST, self.post, self.total), (PRE, self.pre, self.residual)

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header, a table of what goes where, and the values side by side."""
        yield self._build_header(view)
        if view.shows("facts"):
            yield self._tabulate(view)
        if not view.shows("y"):
            return
        if view.full:
            for place, result, _ in self.columns:
                yield build_blocks(f"y of {place.name}", result.normalized, result, view)
            return
        shown = {
            "x + r": (self.post.input, None),
            POST.name: (self.post.normalized, self.post),
            "r": (self.pre.input, None),
            PRE.name: (self.pre.normalized, self.pre),
        }
        yield build_slices("what goes into the norm, and y", shown, self.post.plan.grid, view)

    def _build_header(self, view: View) -> Facts:
        facts = list_facts(self.total, self.post.dtype)
        more = [("r", list_facts(self.residual, self.pre.dtype))]
        return build_header(self._title(), self.post.plan, facts, view, name_inputs(self.post.inputs), more)

    def _title(self) -> str:
        norm = self.post.plan.norm
        return f"{norm.name} · {norm.title} · {POST.name}, {PRE.name}"

    def _tabulate(self, view: View) -> Table:
        rows = [
            TableRow((label, *(getattr(place, field) for place, *_ in self.columns)))
            for label, field in _LABELS.items()
        ]
        measured = [_measure(result) for _, result, _ in self.columns]
        rows += [
            TableRow(
                (label, *(format_statistic(numbers[label], view.digits or CELL_DIGITS) for numbers in measured))
            )
            for label in measured[0]
        ]
        return Table(None, ("", POST.name, PRE.name), (False,) * 3, rows, wraps=True)

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON: the sum, and a column for each place with all that a norm's own has."""
        return {
            "schema": SCHEMA,
            "input": describe_tensor(self.total),
            "residual": describe_tensor(self.residual),
            "columns": list(self.records()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object per place."""
        for place, result, tensor in self.columns:
            own = Answer(result, tensor).data()
            members = {key: value for key, value in own.items() if key not in ("schema", "input")}
            yield {**_describe(place, result), **members}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line per place, without values."""
        return flatten_records(_describe(place, result) for place, result, _ in self.columns)

    def page(self) -> Page:
        """Return the page of post-norm, with both places below."""
        return Page(
            self._title(),
            [self.post],
            self.total,
            names=[POST.name],
            further=lambda view: itertools.islice(self.sections(view), 1, None),
            picture=self.scene(),
        )

    def scene(self) -> Scene:
        """Return the picture of both places side by side."""
        from normcli.pictures.draw import draw

        return draw([self.post, self.pre], self.total, names=[f"{POST.name}: x + r", f"{PRE.name}: r"])


def _measure(result: Result) -> dict[str, float]:
    """Return mean and variance of what goes into a norm and of what comes out, by the labels of the rows."""
    of_input = measure_whole(result.input, selection=result.selection)
    of_output = measure_whole(result.normalized, selection=result.selection)
    labels = ("input's mean", "input's variance", "output's mean", "output's variance")
    return dict(zip(labels, (*of_input, *of_output), strict=True))


def _describe(place: NormPlacement, result: Result) -> Mapping[str, Any]:
    numbers = map(describe_number, _measure(result).values())
    names = ("input_mean", "input_var", "output_mean", "output_var")
    return {**describe_members(place, *place._fields), **dict(zip(names, numbers, strict=True))}
