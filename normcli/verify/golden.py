"""Golden files: a norm's input, parameters and exact results as `.npy`, with a manifest of how they were made.

For the test suite of another project. The folder stands for itself: what was calculated is in the manifest, so
that it can be calculated again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_bfloat16, is_short_float
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError
from normcli.norms.options import OPTIONS, find_option
from normcli.norms.plan import make_plan
from normcli.norms.request import NanRule, Request
from normcli.numerics.solution import Given
from normcli.results.inputs import SelectionRequest, fit_inputs
from normcli.results.result import calculate
from normcli.tensors.files import load
from normcli.tensors.npy import start_npy, write_npy
from normcli.verify.check import NORMALIZED, Checked, check
from normcli.verify.ulp import ROUNDED_ONCE, choose_tolerance
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor
    from normcli.verify.ulp import Tolerance

SCHEMA = "normcli-golden/1"
"""The version of the manifest."""

MANIFEST = "manifest.json"

INPUT, PARAMETERS, RUNNING, MASK = "input", ("gamma", "beta"), ("running_mean", "running_var"), "mask"
"""The files of what goes in; those of the statistics and of what comes out have the names of `check`."""

_LONG_ULP = 6.0
"""How far golden float64 may be from that calculated anew: each is within 3 ulp, on every machine."""


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
    """

    plan: Plan
    tensor: Tensor
    inputs: Inputs
    checked: Checked


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
    manifest = {
        **_describe(result),
        "source": tensor.source,
        "recipe": recipe,
        "convention": _describe_convention(plan),
        "files": {name: _describe_file(_locate(folder, name), array) for name, array in arrays.items()},
    }
    text = json.dumps(manifest, indent=2, allow_nan=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
    return result


def verify_golden(folder: Path, effort: Effort = DEFAULT_EFFORT) -> Golden:
    """Check that the files of a folder are those of its manifest, and right.

    Parameters
    ----------
    folder : Path
    effort : Effort

    Raises
    ------
    DataError
        If the manifest is missing or malformed, or files are missing or not what was written; all are named.
    """
    manifest = _read_manifest(folder / MANIFEST)
    request, files = _read_request(manifest, folder / MANIFEST), manifest["files"]
    _require_whole(folder, files)
    tensors = {name: load(str(_locate(folder, name))) for name in files}
    for name, saved in tensors.items():
        _require_described(folder, name, saved.values, files[name])
    tensor = tensors.pop(INPUT)
    parameters = {name: tensors.pop(name).values for name in PARAMETERS if name in tensors}
    running = [tensors.pop(name).values for name in RUNNING if name in tensors]
    mask = tensors.pop(MASK).values if MASK in tensors else None
    actual = {name: other.values for name, other in tensors.items()}
    try:
        selection = _read_selection(manifest, mask)
        plan = make_plan(request, tensor.values.shape, tensor.values.dtype)
        inputs = fit_inputs(
            plan, tensor.values, parameters, Given(*running) if len(running) == 2 else None, selection
        )
        checked = check(plan, tensor.values, actual, inputs, _choose_tolerance, effort)
    except (UsageError, DataError) as error:
        raise DataError(f"{folder / MANIFEST} does not fit its files: {error}") from error
    return Golden(plan, tensor, inputs, checked)


def _locate(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


def _narrow(parameter: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        narrow = parameter.astype(dtype)
    return narrow if np.array_equal(narrow, parameter, equal_nan=True) else parameter


def _choose_tolerance(dtype: np.dtype[Any]) -> Tolerance:
    return choose_tolerance(dtype, max_ulp=ROUNDED_ONCE if is_short_float(dtype) else _LONG_ULP)


def _describe(result: Result) -> dict[str, Any]:
    """Return what was asked for: the norm, its options, and the rules of the selection beside its mask."""
    request, selection = result.plan.request, result.selection
    given = {option: getattr(request, option.name) for option in OPTIONS}
    described = {
        "schema": SCHEMA,
        "normcli": __version__,
        "norm": request.norm,
        "options": {o.name: o.describe(value) for o, value in given.items() if value is not None},
    }
    if selection is not None:
        rule = NanRule.OMIT if selection.omits_nan else NanRule.PROPAGATE
        described["selection"] = {"nan": rule.value, "fill": selection.fill.value}
    return described


def _describe_convention(plan: Plan) -> dict[str, Any]:
    """Return what was calculated, for a reader; it is not read back."""
    grid, spec = plan.grid, plan.spec
    return {
        "name": plan.norm.name,
        "formula": plan.formula,
        "layout": grid.layout.letters,
        **{name: getattr(grid, name) for name in ("axes", "kept", "groups", "group_count", "group_size")},
        **{name: getattr(spec, name) for name in ("eps", "eps_mode", "ddof")},
        "p": find_option("p").describe(spec.p),
        "window": None if spec.window is None else spec.window._asdict(),
        "like": spec.like,
    }


def _describe_file(path: Path, values: NDArray[Any]) -> dict[str, Any]:
    return {"file": path.name, "shape": values.shape, "dtype": values.dtype.name, "sha256": _digest(path)}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file, so this is no folder of golden files") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise DataError(f"{path} is not the manifest of golden files ({SCHEMA})")
    files = manifest.get("files")
    if not isinstance(files, dict) or not {INPUT, NORMALIZED} <= set(files):
        raise DataError(f"{path} names no files, or neither {INPUT} nor {NORMALIZED}")
    return manifest


def _read_selection(manifest: Mapping[str, Any], mask: NDArray[Any] | None) -> SelectionRequest | None:
    selection = manifest.get("selection")
    if selection is None:
        return None
    if not isinstance(selection, dict):
        raise DataError("its selection is no object of nan and fill")
    return SelectionRequest(mask, None, selection.get("nan"), selection.get("fill"))


def _read_request(manifest: Mapping[str, Any], path: Path) -> Request:
    norm, given = manifest.get("norm"), manifest.get("options")
    if not isinstance(norm, str) or not isinstance(given, dict):
        raise DataError(f"{path} names no norm, or no options")
    options: dict[str, Any] = {}
    for name, value in given.items():
        try:
            options[name] = find_option(name).read(value)
        except (KeyError, UsageError) as error:
            raise DataError(f"{path}: there is no option {name} = {json.dumps(value)}") from error
    return Request(norm, **options)


def _require_described(folder: Path, name: str, values: NDArray[Any], entry: Mapping[str, Any]) -> None:
    """Raise `DataError` unless an array is of the shape and dtype that the manifest names."""
    shape, dtype = entry.get("shape"), entry.get("dtype")
    if shape != list(values.shape) or dtype != values.dtype.name:
        raise DataError(
            f"{_locate(folder, name)} is {values.dtype} of {values.shape}; {MANIFEST} says {dtype} of {shape}"
        )


def _require_whole(folder: Path, files: Mapping[str, Any]) -> None:
    """Raise `DataError` if files are missing or not what was written, with the names of all of them."""
    missing, damaged = [], []
    for name, entry in files.items():
        path = _locate(folder, name)
        if Path(name).name != name or not isinstance(entry, dict):
            raise DataError(f"{folder / MANIFEST}: {name!r} is the name of no golden file")
        if not path.is_file():
            missing.append(path.name)
        elif _digest(path) != entry.get("sha256"):
            damaged.append(path.name)
    wrong = {"missing": missing, "not what was written (sha256)": damaged}
    if missing or damaged:
        faults = "; ".join(f"{', '.join(names)}: {what}" for what, names in wrong.items() if names)
        raise DataError(f"{folder}: {faults}")
