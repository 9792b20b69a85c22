"""The functions of calculations; notebooks show their results as the command's tables in HTML."""

from __future__ import annotations

from normcli.results.normalize import normalize
from normcli.results.result import Result

__all__ = ["Result", "normalize"]


def _show_result(result: Result) -> str:
    """Return the tables of a result as HTML, each group in its own colour."""
    from normcli.answers.calculating.calculation import Answer  # on use: most programs are no notebooks
    from normcli.documents.document import View
    from normcli.tensors.tensor import Tensor
    from normcli.writers.table import write_html

    return write_html(Answer(result, Tensor(result.input, "x", result.plan.grid.columns)), View())


Result.show_html = _show_result
