"""Golden files: a norm's input, parameters and exact results as `.npy`, with a manifest of how they were made.

With a dy, the files have the gradients of a backward pass too. They are meant for the tests of other projects.
A folder is complete: the manifest has the request, so that the results can be calculated again.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED, Checked, check
from normcli.checking.gradient_check import CheckedGradients, check_gradients
from normcli.checking.ulp import ROUNDED_ONCE, choose_tolerance
from normcli.dtypes import is_bfloat16, is_short_float
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError
from normcli.golden.manifest import (
    DY,
    HASH,
    INPUT,
    MANIFEST,
    MASK,
    PARAMETERS,
    RUNNING,
    SCHEMA,
    Manifest,
    digest_members,
)
from normcli.norms.options import find_option
from normcli.norms.request import NanRule
from normcli.numerics.statistics.solution import Given
from normcli.results.arguments import make_problem
from normcli.results.backward import calculate_backward
from normcli.tensors.files import load
from normcli.tensors.formats.npy import start_npy, write_npy
from normcli.tuples import NamedTuple
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem
    from normcli.results.result import Result

_LONG_ULP = 1.0
"""The tolerance of golden values of 64 bits, in ulp: older versions were off by 0.51 ulp."""


class Golden(NamedTuple):
    """The result of verifying a folder of golden files.

    Parameters
    ----------
    problem : Problem
        The plan, its input and its parameters, and dy if there is a backward pass.
    checked : Checked
        The comparison of the golden values with newly calculated ones.
    gradients : CheckedGradients or None
        The comparison of the golden gradients; None if the folder has none.
    note : str or None
        The remark that the manifest's hash is wrong; None if it is right.
    """

    problem: Problem
    checked: Checked
    gradients: CheckedGradients | None = None
    note: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return self.checked.ok and (self.gradients is None or self.gradients.ok)


def write_golden(folder: Path, problem: Problem, recipe: Mapping[str, Any] | None = None) -> Result:
    """Calculate a norm, write inputs, results and manifest to an empty folder, and return the result.

    Parameters
    ----------
    folder : Path
    problem : Problem
        The plan, its input and its parameters, and dy if there is a backward pass. Gamma and beta are written
        in the dtype of the result if it holds them exactly, otherwise in their own; dgamma and dbeta in the
        same dtypes.
    recipe : mapping or None
        The seeds and options from which input, parameters and dy were generated; None if they were files.

    Raises
    ------
    UsageError
        If the input, dy or the result is bfloat16, for which `.npy` has no name, or there is a dy and the norm
        has no derivative.
    DataError
        If dy does not have the shape of the input.
    """
    plan, tensor, inputs, dy = *problem[:3], problem.dy
    values, dtype = tensor.values, plan.choose_output_dtype(tensor.values.dtype)
    if any(map(is_bfloat16, (dtype, values.dtype, *([] if dy is None else [dy.values.dtype])))):
        raise UsageError(
            "golden files are .npy, which has no bfloat16: give inputs as float32, which holds their values, "
            "and --dtype float32; normcli NORM … -o FILE.safetensors writes results in bfloat16"
        )
    gamma, beta = (None if array is None else _narrow(array, dtype) for array in (inputs.gamma, inputs.beta))
    inputs, outs = inputs._replace(gamma=gamma, beta=beta), {}
    if isinstance(values, np.memmap):  # a result too large for memory is written while it is calculated
        for name in (NORMALIZED, *(() if dy is None else ("dx",))):
            with _locate(folder, name).open("w+b") as stream:
                outs[name] = start_npy(stream, plan.grid.shape, dtype)
    problem = problem._replace(inputs=inputs)
    result = problem.calculate(out=outs.get(NORMALIZED))
    files: dict[str, NDArray[Any] | None] = {
        INPUT: values,
        **inputs.parameters,
        **dict(zip(RUNNING, inputs.given or (), strict=False)),
        MASK: None if inputs.selection is None else inputs.selection.mask,
        NORMALIZED: result.normalized,
        **result.statistics,
    }
    if dy is not None:
        gradients = calculate_backward(problem, out=outs.get("dx"))
        files |= {DY: dy.values, **{name: gradients.field(name) for name in plan.norm.gradient_names}}
    arrays = {name: array for name, array in files.items() if array is not None}
    for name in arrays.keys() - outs.keys():
        with _locate(folder, name).open("wb") as stream:
            write_npy(stream, arrays[name])
    members = _describe(problem, arrays, {name: _digest_file(_locate(folder, name)) for name in arrays})
    files_last = {"source": tensor.source, "recipe": recipe, "files": members.pop("files")}
    manifest = {"schema": SCHEMA, "normcli": __version__, **members, **files_last}
    manifest[HASH] = digest_members(manifest)
    (folder / MANIFEST).write_text(f"{json.dumps(manifest, indent=2, allow_nan=False)}\n", encoding="utf-8")
    return result


def verify_golden(folder: Path, effort: Effort = DEFAULT_EFFORT) -> Golden:
    """Read a folder of golden files, and compare its results with the exact ones.

    Files that differ from the manifest are errors; values that differ from the exact ones are not: `Golden.ok`
    is then False.

    Parameters
    ----------
    folder : Path
    effort : Effort

    Raises
    ------
    DataError
        If the manifest is missing or malformed; if files are missing or changed (all are named); if the
        manifest states anything that does not follow from its norm, options, recipe and files; or if all values
        agree and yet its own hash is wrong.
    """
    manifest = Manifest(folder / MANIFEST)
    digests = _require_whole(folder, manifest.files)
    tensors = {name: load(str(_locate(folder, name))) for name in manifest.files}
    arrays = {name: saved.values for name, saved in tensors.items()}
    parameters = {name: arrays[name] for name in PARAMETERS if name in arrays}
    running = Given(*(arrays[name] for name in RUNNING)) if RUNNING[0] in arrays else None
    tensor, dy = tensors[INPUT], tensors.get(DY)
    try:
        selection = manifest.read_selection(arrays.get(MASK))
        problem = make_problem(
            manifest.request, tensor, lambda _: (parameters, running, selection), effort=effort
        )._replace(dy=dy)
    except (UsageError, DataError) as error:
        raise DataError(f"{manifest.path} does not fit its files: {error}") from error
    plan, gradients = problem.plan, None
    manifest.require_agreement(json.loads(json.dumps(_describe(problem, arrays, digests))))  # with no tuples
    manifest.require_origin(problem)
    forward, backward = (
        {name: arrays[name] for name in names if name in arrays}
        for names in ((NORMALIZED, *plan.norm.statistics), plan.norm.gradient_names)
    )
    try:
        checked = check(problem, forward, _choose_tolerance)
        if dy is not None:
            gradients = check_gradients(problem, backward, _choose_tolerance)
    except (UsageError, DataError) as error:
        raise DataError(f"{manifest.path} does not fit its files: {error}") from error
    golden = Golden(problem, checked, gradients, manifest.note)
    if golden.ok and manifest.note is not None:  # nothing else shows that the manifest was changed
        raise DataError(f"{folder}: {manifest.note}, although the values agree with it")
    return golden


def _describe(
    problem: Problem, arrays: Mapping[str, NDArray[Any]], digests: Mapping[str, str]
) -> dict[str, Any]:
    """Return the members of a manifest that follow from a problem and the arrays of its folder.

    `norm` and `options` are the request, `convention` the plan's resolved choices, `selection` (left out
    without one) the rules for NaN and for values that do not count, and `files` the arrays, of whose files
    `digests` are the SHA-256 sums.
    """
    plan, selection = problem.plan, problem.inputs.selection
    described: dict[str, Any] = {
        "norm": plan.request.norm,
        "options": plan.request.describe(),
        "convention": _describe_convention(plan),
    }
    if selection is not None:
        rule = NanRule.OMIT if selection.omits_nan else NanRule.PROPAGATE
        described["selection"] = {"nan": rule.value, "fill": selection.fill.value}
    described["files"] = {
        name: {"file": f"{name}.npy", "shape": array.shape, "dtype": array.dtype.name, HASH: digests[name]}
        for name, array in arrays.items()
    }
    return described


def _describe_convention(plan: Plan) -> dict[str, Any]:
    """Return the member `convention` of a manifest: a plan's resolved choices, such as axes and eps."""
    grid, spec = plan.grid, plan.spec
    return {
        "name": plan.norm.name,
        "formula": plan.formula,
        "layout": grid.layout.text,
        **{name: getattr(grid, name) for name in ("axes", "kept", "groups", "group_count", "group_size")},
        **{name: getattr(spec, name) for name in ("eps", "eps_mode", "ddof")},
        "p": find_option("p").describe(spec.p),
        "window": None if spec.window is None else spec.window._asdict(),
        "like": spec.like,
    }


def _digest_file(path: Path) -> str:
    """Return the SHA-256 sum of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, HASH).hexdigest()


def _locate(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


def _narrow(parameter: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a parameter in the dtype given if that holds each of its values exactly, otherwise as it is."""
    with np.errstate(all="ignore"):
        narrow = parameter.astype(dtype)
    return narrow if np.array_equal(narrow, parameter, equal_nan=True) else parameter


def _choose_tolerance(dtype: np.dtype[Any], scale: float = 1.0) -> Tolerance:
    """Return the tolerance for golden values of a dtype; older versions of normcli were a little less exact."""
    return choose_tolerance(dtype, max_ulp=ROUNDED_ONCE if is_short_float(dtype) else _LONG_ULP, scale=scale)


def _require_whole(folder: Path, files: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 sums of files; raise `DataError`, which names all, if some are missing or changed."""
    paths = {name: _locate(folder, name) for name in files}
    digests = {name: _digest_file(path) for name, path in paths.items() if path.is_file()}
    missing = [path.name for name, path in paths.items() if name not in digests]
    damaged = [paths[name].name for name, found in digests.items() if found != files[name].get(HASH)]
    wrong = {"missing": missing, "not what was written (sha256)": damaged}
    if missing or damaged:
        faults = "; ".join(f"{', '.join(names)}: {what}" for what, names in wrong.items() if names)
        raise DataError(f"{folder}: {faults}")
    return digests
