"""The answer of `normcli compare NORM --residual FILE`: a norm after the addition, and before the sublayer.

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
from normcli.documents.document import (
    SCHEMA,
    Page,
    Table,
    TableRow,
    flatten_records,
)
from normcli.documents.matrix_blocks import list_slices
from normcli.documents.number_format import CELL_DIGITS, format_statistic
from normcli.documents.plan_header import build_header, describe_tensor, list_facts, name_inputs
from normcli.teach.side_by_side import measure_whole
from normcli.tensors.formats.json_lists import describe_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Facts, Section, View
    from normcli.documents.scene import Scene
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor


POST, PRE = "post-norm", "pre-norm"
"""The two positions of the norm in a block of layers: after the addition, or before the sublayer."""

_PLACES = (
    ("stands", "the norm stands", "behind the addition", "before the sublayer"),
    ("works_on", "the norm works on", "x + r", "r"),
    ("sublayer", "the sublayer f works on", "r, so that x = f(r)", "norm(r)"),
    ("block", "the block hands on", "norm(r + f(r)) = norm(x + r)", "r + f(norm(r))"),
    ("passes", "the residual r", "is normalized with the sum", "passes on as it is"),
    ("used_by", "used by", "the first Transformer, BERT", "GPT-2, LLaMA"),
)
"""Differences of the two places: a key in JSON, the label of a row, and the words for each place."""


@dataclass(frozen=True)
class PlacementAnswer:
    """The document of one norm as post-norm, after the residual addition, and as pre-norm, before the sublayer.

    Parameters
    ----------
    post, pre : Result
        The norm of the sum (post-norm), and the norm of the residual (pre-norm).
    total, residual : Tensor
        The two tensors that are normalized: the sum, and the residual.
    """

    post: Result
    pre: Result
    total: Tensor
    residual: Tensor

    @property
    def columns(self) -> tuple[tuple[str, Result, Tensor], ...]:
        """(name, result, normalized tensor) of post-norm and of pre-norm."""
        return (POST, self.post, self.total), (PRE, self.pre, self.residual)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and as far as the view shows them, a table of differences and the matrices of values.

        The matrices are x + r, r, and the y of each placement side by side; in a full view, each whole y.
        """
        yield self._build_header(view)
        if view.shows("facts"):
            yield self._tabulate(view)
        if not view.shows("y"):
            return
        shown = {
            "x + r": (self.post.input, None),
            POST: (self.post.normalized, self.post),
            "r": (self.pre.input, None),
            PRE: (self.pre.normalized, self.pre),
        }
        yield from list_slices("what goes into the norm, and y", shown, self.post.plan.grid, view)

    def _build_header(self, view: View) -> Facts:
        facts = list_facts(self.total, self.post.dtype)
        more = [("r", list_facts(self.residual, self.pre.dtype))]
        return build_header(self._title(), self.post.plan, facts, view, name_inputs(self.post.inputs), more)

    def _title(self) -> str:
        norm = self.post.plan.norm
        return f"{norm.name} · {norm.title} · {POST}, {PRE}"

    def _tabulate(self, view: View) -> Table:
        rows = [TableRow(tuple(words)) for _, *words in _PLACES]
        measured = [_measure(result) for _, result, _ in self.columns]
        rows += [
            TableRow(
                (label, *(format_statistic(numbers[label], view.digits or CELL_DIGITS) for numbers in measured))
            )
            for label in measured[0]
        ]
        return Table(None, ("", POST, PRE), (False,) * 3, rows, wraps=True)

    def data(self) -> Mapping[str, Any]:
        """Return the answer as a JSON object: both tensors, and `columns`, an object for each placement."""
        return {
            "schema": SCHEMA,
            "input": describe_tensor(self.total),
            "residual": describe_tensor(self.residual),
            "columns": list(self.records()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object each for post-norm and pre-norm: facts, means, variances, the whole answer."""
        for described, (_, result, tensor) in zip(self._describe(), self.columns, strict=True):
            yield {**described, **Answer(result, tensor).describe()}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one for post-norm, one for pre-norm, without values; names first."""
        return flatten_records(self._describe())

    def _describe(self) -> Iterator[dict[str, Any]]:
        """Yield, for post-norm and pre-norm, a mapping of name, facts in words, means and variances."""
        names = ("input_mean", "input_var", "output_mean", "output_var")
        for place, (name, result, _) in enumerate(self.columns):
            numbers = map(describe_number, _measure(result).values())
            told = {member: words[place] for member, _, *words in _PLACES}
            yield {"name": name, **told, **dict(zip(names, numbers, strict=True))}

    def page(self) -> Page:
        """Return the page of post-norm, with both places below."""
        page = Page(self._title(), [self.post], self.total, names=[POST], picture=self.scene())
        return page._replace(further=lambda view: itertools.islice(self.sections(view), 1, None))

    def scene(self) -> Scene:
        """Return the picture of both places side by side."""
        from normcli.pictures.draw import draw

        return draw([self.post, self.pre], self.total, names=[f"{POST}: x + r", f"{PRE}: r"])


def _measure(result: Result) -> dict[str, float]:
    """Return the means and variances of a norm's input and output, by the labels of the table's rows."""
    of_input = measure_whole(result.input, selection=result.selection)
    of_output = measure_whole(result.normalized, selection=result.selection)
    labels = ("input's mean", "input's variance", "output's mean", "output's variance")
    return dict(zip(labels, (*of_input, *of_output), strict=True))
