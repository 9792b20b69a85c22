"""Answers on their way to files: the normalized tensor, and the statistics."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, BinaryIO

from normcli.engine.run import choose_output_dtype
from normcli.errors import UsageError
from normcli.tensors.files import Saved, require_holdable, require_saveable, save
from normcli.tensors.nested import NestedLists
from normcli.tensors.npz import write_npz
from normcli.tensors.tensor import STANDARD_STREAM
from normcli.tensors.whole import open_whole
from normcli.writers.structured import format_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.answers.calculation import Answer
    from normcli.norms.plan import Plan

STATISTICS_SUFFIXES = (".json", ".npz")
"""The files that statistics are saved in."""


def require_saveable_answer(output: str | None, stats_output: str | None) -> None:
    """Raise `UsageError` where either file could not be written, or both are one: a check before any work."""
    if output is not None and output != STANDARD_STREAM:
        require_saveable(output, "--output")
    if stats_output is not None:
        require_saveable(stats_output, "--stats-output", STATISTICS_SUFFIXES)
    if None not in (output, stats_output) and os.path.realpath(str(output)) == os.path.realpath(
        str(stats_output)
    ):
        raise UsageError(f"--output and --stats-output are both {output}; one would overwrite the other")


def require_holdable_answer(output: str, plan: Plan, values: NDArray[Any]) -> None:
    """Raise `UsageError` where the output cannot say of what dtype it is: the check that needs the input."""
    require_holdable(output, "--output", choose_output_dtype(plan, values.dtype))


def save_answer(answer: Answer, output: str | None, stats_output: str | None) -> None:
    """Save the normalized tensor, the statistics, or both: if one fails, neither takes its place.

    Raises
    ------
    DataError
        If writing fails.
    """
    with contextlib.ExitStack() as files:
        if stats_output is not None:
            _write_statistics(files.enter_context(open_whole(stats_output)), answer, stats_output)
        if output == STANDARD_STREAM:
            save(output, _describe(answer))
        elif output is not None:
            file_format = require_saveable(output, "--output")
            least = file_format.measure_least(answer.result.normalized)
            file_format.write(files.enter_context(open_whole(output, least)), _describe(answer))


def _describe(answer: Answer) -> Saved:
    """Return the normalized tensor; as text, one of more than two axes gets the lines of `--format csv`."""
    return Saved(
        answer.result.normalized,
        key="normalized",
        columns=answer.tensor.columns,
        axis_names=answer.axis_names,
        describe=answer.columns,
    )


def _write_statistics(stream: BinaryIO, answer: Answer, path: str) -> None:
    """Write the statistics under their names, as arrays in `.npz` and as nested lists in `.json`."""
    statistics = answer.result.statistics
    if path.lower().endswith(".npz"):
        write_npz(stream, statistics)
        return
    lists = {name: NestedLists(array) for name, array in statistics.items()}
    stream.writelines(piece.encode() for piece in format_json(lists))
    stream.write(b"\n")
