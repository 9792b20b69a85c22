"""Answers on their way to files: the normalized tensor, and the statistics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from normcli.render.answer import SCHEMA
from normcli.tensors.files import Saved, require_saveable, save
from normcli.tensors.nested import to_lists
from normcli.tensors.npz import write_npz
from normcli.tensors.whole import open_whole

if TYPE_CHECKING:
    from normcli.render.answer import Answer

STATISTICS_SUFFIXES = (".json", ".npz")
"""The files that statistics are saved in."""


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
    """Save the statistics under their names: arrays in `.npz`; in `.json` with norm, axes and kept axes."""
    require_saveable(path, "--stats-output", STATISTICS_SUFFIXES)
    result = answer.result
    with open_whole(path) as stream:
        if path.lower().endswith(".npz"):
            write_npz(stream, result.statistics)
            return
        lists = {name: to_lists(array) for name, array in result.statistics.items()}
        head = {"schema": SCHEMA, "norm": result.plan.norm.name, "axes": result.axes, "kept": result.kept}
        stream.write(json.dumps({**head, **lists}, allow_nan=False).encode() + b"\n")
