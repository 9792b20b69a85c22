"""Golden files: a norm's input, parameters and exact results as `.npy`, with a manifest of how they were made.

For the test suite of another project. The folder stands for itself: what was calculated is in the manifest, so
that it can be calculated again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_bfloat16, is_short_float
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError
from normcli.norms.plan import make_plan
from normcli.numerics.solution import Given
from normcli.results.inputs import fit_inputs
from normcli.results.result import calculate
from normcli.tensors.files import load
from normcli.tensors.npy import start_npy, write_npy
from normcli.verify.check import NORMALIZED, Checked, check
from normcli.verify.manifest import (
    INPUT,
    MANIFEST,
    MASK,
    PARAMETERS,
    RUNNING,
    Manifest,
    describe_array,
    describe_plan,
    digest_file,
    write_manifest,
)
from normcli.verify.ulp import ROUNDED_ONCE, choose_tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor
    from normcli.verify.ulp import Tolerance

_LONG_ULP = 1.0
"""How far golden float64 may be from that calculated anew: each is within 0.51 ulp, whatever calculates it."""


class Golden(NamedTuple):
    """A golden folder that was verified.

    Parameters
    ----------
    plan : Plan
    tensor : Tensor
        The input.
    inputs : Inputs
        Gamma, beta, running statistics and which values count.
    checked : Checked
        The golden values held against newly calculated ones.
    note : str or None
        What a reader of the manifest should know of it.
    """

    plan: Plan
    tensor: Tensor
    inputs: Inputs
    checked: Checked
    note: str | None = None


def write_golden(
    folder: Path,
    plan: Plan,
    tensor: Tensor,
    inputs: Inputs = NO_INPUTS,
    recipe: Mapping[str, Any] | None = None,
    effort: Effort = DEFAULT_EFFORT,
) -> Result:
    """Calculate, and write what went in and what came out to an empty folder.

    Parameters
    ----------
    folder : Path
    plan : Plan
    tensor : Tensor
    inputs : Inputs
        Gamma and beta are written in the dtype of the result if that holds them exactly, else in their own.
    recipe : mapping or None
        How the input was generated, if it was.
    effort : Effort

    Raises
    ------
    UsageError
        If the input or the result is bfloat16, which `.npy` has no word for.
    """
    values = tensor.values
    dtype = plan.choose_output_dtype(values.dtype)
    if is_bfloat16(dtype) or is_bfloat16(values.dtype):
        raise UsageError("golden files are .npy, which has no bfloat16; choose another dtype")
    out = None
    if isinstance(values, np.memmap):  # what does not fit into memory is written as it is calculated
        with _locate(folder, NORMALIZED).open("w+b") as stream:
            out = start_npy(stream, plan.grid.shape, dtype)
    result = calculate(plan, values, inputs, out=out, effort=effort)
    affine = {"gamma": inputs.gamma, "beta": inputs.beta}
    files: dict[str, NDArray[Any] | None] = {
        INPUT: values,
        **{name: None if array is None else _narrow(array, dtype) for name, array in affine.items()},
        **dict(zip(RUNNING, inputs.given or (), strict=False)),
        MASK: None if inputs.selection is None else inputs.selection.mask,
        NORMALIZED: result.normalized,
        **result.statistics,
    }
    arrays = {name: array for name, array in files.items() if array is not None}
    for name, array in arrays.items():
        if name != NORMALIZED or out is None:
            with _locate(folder, name).open("wb") as stream:
                write_npy(stream, array)
    described = {
        name: {**describe_array(name, array), "sha256": digest_file(_locate(folder, name))}
        for name, array in arrays.items()
    }
    members = {**describe_plan(plan, inputs.selection), "source": tensor.source, "recipe": recipe}
    write_manifest(folder, {**members, "files": described})
    return result


def verify_golden(folder: Path, effort: Effort = DEFAULT_EFFORT) -> Golden:
    """Check that the files of a folder are those of its manifest, that they are right, and that it says so.

    Parameters
    ----------
    folder : Path
    effort : Effort

    Raises
    ------
    DataError
        If the manifest is missing or malformed, files are missing or not what was written (all are named), or
        the manifest says anything that does not follow from its norm, options, recipe and files.
    """
    manifest = Manifest(folder / MANIFEST)
    _require_whole(folder, manifest.files)
    tensors = {name: load(str(_locate(folder, name))) for name in manifest.files}
    arrays = {name: saved.values for name, saved in tensors.items()}
    parameters = {name: arrays[name] for name in PARAMETERS if name in arrays}
    running = Given(*(arrays[name] for name in RUNNING)) if RUNNING[0] in arrays else None
    actual = {name: array for name, array in arrays.items() if name not in (INPUT, *PARAMETERS, *RUNNING, MASK)}
    tensor = tensors[INPUT]
    try:
        selection = manifest.read_selection(arrays.get(MASK))
        plan = make_plan(manifest.request, tensor.values.shape, tensor.values.dtype)
        inputs = fit_inputs(plan, tensor.values, parameters, running, selection)
    except (UsageError, DataError) as error:
        raise DataError(f"{manifest.path} does not fit its files: {error}") from error
    manifest.require_agreement(plan, inputs, arrays)
    manifest.require_origin(plan, tensor, inputs)
    try:
        checked = check(plan, tensor.values, actual, inputs, _choose_tolerance, effort)
    except (UsageError, DataError) as error:
        raise DataError(f"{manifest.path} does not fit its files: {error}") from error
    if checked.ok:
        manifest.require_intact()
    return Golden(plan, tensor, inputs, checked, manifest.note)


def _locate(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


def _narrow(parameter: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        narrow = parameter.astype(dtype)
    return narrow if np.array_equal(narrow, parameter, equal_nan=True) else parameter


def _choose_tolerance(dtype: np.dtype[Any]) -> Tolerance:
    return choose_tolerance(dtype, max_ulp=ROUNDED_ONCE if is_short_float(dtype) else _LONG_ULP)


def _require_whole(folder: Path, files: Mapping[str, Any]) -> None:
    """Raise `DataError` if files are missing or not what was written, with the names of all of them."""
    missing, damaged = [], []
    for name, entry in files.items():
        path = _locate(folder, name)
        if not path.is_file():
            missing.append(path.name)
        elif digest_file(path) != entry.get("sha256"):
            damaged.append(path.name)
    wrong = {"missing": missing, "not what was written (sha256)": damaged}
    if missing or damaged:
        faults = "; ".join(f"{', '.join(names)}: {what}" for what, names in wrong.items() if names)
        raise DataError(f"{folder}: {faults}")
