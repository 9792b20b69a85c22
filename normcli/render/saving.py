"""Answers on their way to files: the normalized tensor, and the statistics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from normcli.tensors.files import Saved, require_saveable, save
from normcli.tensors.nested import to_lists
from normcli.tensors.npz import write_npz
from normcli.tensors.tensor import STANDARD_STREAM
from normcli.tensors.whole import open_whole

if TYPE_CHECKING:
    from normcli.render.answer import Answer

STATISTICS_SUFFIXES = (".json", ".npz")
"""The files that statistics are saved in."""


def require_saveable_answer(output: str | None, stats_output: str | None) -> None:
    """Raise `UsageError` where either file could not be written: a check before any work."""
    if output not in (None, STANDARD_STREAM):
        require_saveable(output, "--output")
    if stats_output is not None:
        require_saveable(stats_output, "--stats-output", STATISTICS_SUFFIXES)


def save_answer(answer: Answer, output: str | None, stats_output: str | None) -> None:
    """Save the normalized tensor, the statistics, or both."""
    if output is not None:
        save_normalized(answer, output)
    if stats_output is not None:
        save_statistics(answer, stats_output)


def save_normalized(answer: Answer, path: str) -> None:
    """Save the normalized tensor; a text file of more than two axes gets the lines of `--format csv`."""
    save(
        path,
        Saved(
            answer.result.normalized,
            key="normalized",
            columns=answer.tensor.columns,
            axis_names=answer.axis_names,
            describe=answer.columns,
        ),
    )


def save_statistics(answer: Answer, path: str) -> None:
    """Save the statistics under their names, as arrays in `.npz` and as nested lists in `.json`."""
    statistics = answer.result.statistics
    with open_whole(path) as stream:
        if path.lower().endswith(".npz"):
            write_npz(stream, statistics)
            return
        lists = {name: to_lists(array) for name, array in statistics.items()}
        stream.write(json.dumps(lists, allow_nan=False).encode() + b"\n")
