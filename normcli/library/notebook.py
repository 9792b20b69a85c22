"""Results as a notebook shows them: the command's tables in HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.answers.calculating.calculation import Answer
from normcli.documents.document import View
from normcli.tensors.tensor import Tensor
from normcli.writers.table import write_html

if TYPE_CHECKING:
    from normcli.results.result import Result


def show_result(result: Result) -> str:
    """Return the tables of a result as HTML, each group in its own colour."""
    return write_html(Answer(result, Tensor(result.input, "x", result.plan.grid.columns)), View())
