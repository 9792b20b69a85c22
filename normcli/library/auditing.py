"""Recorded runs of models, judged: every norm of one run, or the first layer at which two runs differ."""

from __future__ import annotations

import functools
import os
import tempfile
from typing import TYPE_CHECKING

import numpy as np

from normcli.answers.judging.audit_report import AuditReport
from normcli.answers.judging.run_comparison import RunReport
from normcli.auditing import audit as auditing
from normcli.auditing.layer import add_weights, choose_layers, open_dump, pair_tensors
from normcli.auditing.onnx_run import SUFFIX, record_onnx
from normcli.auditing.runs import RunComparison, compare_runs
from normcli.checking.ulp import choose_tolerance
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import UsageError
from normcli.library.judgement import Judgement
from normcli.norms.request import parse_norm_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.auditing.layer import RecordedLayer
    from normcli.auditing.layer_verdict import Audit
    from normcli.engine.walk import Effort

Path = str | os.PathLike[str]


def audit(
    dump: Path | None = None,
    *,
    against: Path | None = None,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    pairs: str | None = None,
    weights: Path | None = None,
    norm: str | None = None,
    inputs: Path | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    max_ulp: float | None = None,
    effort: Effort = DEFAULT_EFFORT,
) -> Judgement[Audit] | Judgement[RunComparison]:
    """Judge every norm of a recorded run of a model, or compare two recorded runs of one model.

    Parameters
    ----------
    dump : path
        A file that `record` wrote, another kind of dump that `normcli help dumps` lists, or an ONNX model,
        which is run. Give either `dump` or `pairs`.
    against : path, optional
        A second run of the same model; the two runs are then compared.
    only, skip : sequence of str
        Patterns of layers' names, such as `layers.*.norm`: layers to judge, and layers to leave out.
    pairs : str, optional
        `FILE:*.input=*.output`: the file, and the patterns of a layer's input and output in it.
    weights : path, optional
        A file of `NAME.weight` and `NAME.bias`, for layers of which none were recorded.
    norm : str, optional
        The norm of layers whose settings the dump does not hold, such as `rms:eps=1e-6`; None: it is
        identified from the data.
    inputs : path, optional
        The inputs of an ONNX model by name, in the form that `record_onnx` takes; None: they are drawn.
    seed : int
        The seed of drawn inputs.
    rtol, atol, max_ulp : float, optional
        The tolerance, as in `check`.
    effort : Effort
        The number of threads; no verdict depends on it.

    Returns
    -------
    Judgement
        True if every layer agrees. Its `found` is an `Audit`: `found.layers` are the verdicts, `found.first` is
        the first bad one. With `against` it is a `RunComparison`: `found.parting` is the first layer at which
        the runs differ.

    Raises
    ------
    UsageError
        If options contradict each other, both or neither of `dump` and `pairs` are given, or no layer is left.
    DataError
        If a file cannot be read or holds no recorded run, or an ONNX model cannot be run.
    """
    if (dump is None) == (pairs is None):
        raise UsageError("audit takes a DUMP, or --pairs FILE:*.input=*.output; give one of them")
    models = [path for path in (dump, against) if path is not None and str(path).lower().endswith(SUFFIX)]
    if inputs is not None and not models:
        raise UsageError("--inputs are of an ONNX model; a dump has its own")
    if weights is not None and models:
        raise UsageError("--weights are of a dump or of --pairs; an ONNX model has its own")
    default = None if norm is None else parse_norm_spec(norm)
    tolerate = functools.partial(choose_tolerance, rtol=rtol, atol=atol, max_ulp=max_ulp)
    tolerate(np.dtype(np.float32))  # which refuses limits that are none
    with tempfile.TemporaryDirectory() as folder:

        def choose(layers: list[RecordedLayer]) -> list[RecordedLayer]:
            full = layers if weights is None else add_weights(layers, str(weights))
            return choose_layers(full, only, skip)

        def open_layers(path: str) -> list[RecordedLayer]:
            if path.lower().endswith(SUFFIX):
                made = os.path.join(folder, f"{len(os.listdir(folder))}.safetensors")  # noqa: PTH118, PTH208
                record_onnx(path, made, None if inputs is None else str(inputs), seed)
                path = made
            return choose(open_dump(path, default))

        if pairs is None:
            source, layers = str(dump), open_layers(str(dump))
        else:
            source, layers = pairs, choose(pair_tensors(pairs, default))
        if against is None:
            found = auditing.audit(layers, tolerate, effort)
            return Judgement(found.ok, found, AuditReport(found, source))
        compared = compare_runs(layers, open_layers(str(against)), tolerate, effort)
        return Judgement(compared.ok, compared, RunReport(compared, (source, str(against))))
