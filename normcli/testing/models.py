"""Assertions on models: every norm of a run is the exact one, or two runs agree."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normcli.auditing.record import record
from normcli.library.auditing import audit

if TYPE_CHECKING:
    import os


def assert_model_matches(
    model: Any, batch: Any, *, also: Mapping[type | str, str] | None = None, **options: Any
) -> None:
    """Fail unless every norm of a PyTorch model gives what it should on a batch.

    Parameters
    ----------
    model : torch.nn.Module
    batch : tensor, tuple or mapping
        What the model is called with: a tuple as arguments, a mapping as named ones.
    also : mapping, optional
        As of `normcli.record`: which norms the classes of your own are.
    **options
        As of `normcli.audit`: `only`, `skip`, `rtol`, `atol`, `max_ulp`.

    Raises
    ------
    AssertionError
        If a norm differs, or could not be judged. The message is the report of `normcli audit`.
    NormError
        As `normcli.record`, `normcli.audit`.
    """
    __tracebackhide__ = True
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.safetensors"
        with record(model, dump, also=also):
            if isinstance(batch, Mapping):
                model(**batch)
            else:
                model(*batch if isinstance(batch, tuple) else (batch,))
        _require(audit(dump, **options))


def assert_runs_match(first: str | os.PathLike[str], second: str | os.PathLike[str], **options: Any) -> None:
    """Fail unless two recorded runs of a model agree at every norm.

    Parameters
    ----------
    first, second : path
        Files that `normcli.record` wrote.
    **options
        As of `normcli.audit`.

    Raises
    ------
    AssertionError
        If they differ. The message names the first norm whose input agrees and whose output does not.
    NormError
        As `normcli.audit`.
    """
    __tracebackhide__ = True
    _require(audit(first, against=second, **options))


def _require(judgement: Any) -> None:
    __tracebackhide__ = True
    if not judgement:
        lines = str(judgement).splitlines()
        raise AssertionError("\n".join([lines[-1].strip(), "", *lines]))
