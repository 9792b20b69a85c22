"""The task for which code is written: a plan, its inputs, and the code that makes or loads its tensors."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_bfloat16, is_half
from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.norms.calls import Call
    from normcli.norms.plan import Plan
    from normcli.tensors.random.recipe import Recipe
    from normcli.tensors.tables.tables import FileTable


_MOST_TYPED = 1000
"""Numbers that a module holds itself; more are loaded from a file."""

_MOST_FILLED = 1 << 20
"""The most numbers that are tested for being all equal."""

_ARCHIVE = re.compile(r"(?P<path>.+\.(?P<kind>npz|safetensors)):(?P<key>[^:]+)", re.IGNORECASE)

_GENERATORS = {"numpy": "np.random.default_rng({seed})", "numpy-legacy": "np.random.RandomState({seed})"}
"""The streams that NumPy has."""

_DRAWS = {
    ("randint", "numpy"): "integers({low}, {high}, {shape})",
    ("randint", "numpy-legacy"): "randint({low}, {high}, {shape}, dtype=np.int64)",
    ("normal", "numpy"): "standard_normal({shape})",
    ("normal", "numpy-legacy"): "standard_normal({shape})",
    ("uniform", "numpy"): "uniform({low}, {high}, {shape})",
    ("uniform", "numpy-legacy"): "uniform({low}, {high}, {shape})",
}
"""Distribution and stream → the call that draws a tensor of it."""


class NamedTensor(NamedTuple):
    """A tensor, and where it came from.

    Parameters
    ----------
    name : str
        What it is called in code.
    values : ndarray
    file : str or None
        The file that was named.
    table : FileTable or None
        The table that it holds.
    recipe : Recipe or None
        How it was drawn.
    """

    name: str
    values: NDArray[Any]
    file: str | None = None
    recipe: Recipe | None = None
    table: FileTable | None = None


class TensorCode(NamedTuple):
    """The code of a tensor.

    Parameters
    ----------
    code : str
        An expression of NumPy.
    imports : tuple of str
        What it needs besides.
    numbers : str or None
        The constant that it is made of, in upper case of the tensor's name; None without one.
    """

    code: str
    imports: tuple[str, ...] = ()
    numbers: str | None = None


def write_source(source: NamedTensor) -> TensorCode:
    """Return the code that makes or loads a tensor.

    Raises
    ------
    UsageError
        If it has many numbers, and comes from nowhere that a few lines of Python read.
    """
    made = _write_draw(source.recipe) or _write_load(source)
    if made is not None:
        return made
    values = source.values
    if 1 < values.size <= _MOST_FILLED and (values == values.flat[0]).all():
        return TensorCode(f"np.full({values.shape}, {write_numbers(values.flat[0])})")
    if values.size > _MOST_TYPED:
        raise UsageError(
            f"--emit: code would hold the {values.size:,} numbers of {source.name}; save them first, as .npy"
        )
    constant = source.name.upper()
    shape = "" if values.size else f".reshape{values.shape}"
    return TensorCode(f"np.array({constant}){shape}", numbers=write_numbers(values))


def write_numbers(values: NDArray[Any] | np.generic) -> str:
    """Return an array as code: nested lists, in which NaN and infinities are calls of float."""
    wide = values.astype(np.float32) if is_bfloat16(values.dtype) else values
    return re.sub(r"\b(nan|inf)\b", r'float("\1")', repr(wide.tolist()))


def _write_draw(recipe: Recipe | None) -> TensorCode | None:
    """Return the call that draws a tensor; None where no call of NumPy gives these numbers."""
    if recipe is None or recipe.skip or recipe.dtype not in (None, "float64"):
        return None
    low, high = recipe.bounds
    if recipe.dist == "arange":
        size = int(np.prod(recipe.shape))
        return TensorCode(f"np.arange({low}, {(low or 0) + size}).reshape{recipe.shape}")
    draw = _DRAWS.get((recipe.dist, recipe.rng))
    if draw is None:
        return None
    generator = _GENERATORS[recipe.rng].format(seed=recipe.seed)
    return TensorCode(f"{generator}.{draw.format(low=low, high=high, shape=recipe.shape)}")


def _write_load(source: NamedTensor) -> TensorCode | None:
    """Return the call that loads a tensor as it is; None where that takes more than a call."""
    if source.file is None:
        return None
    if source.table is not None:
        return _write_table(source, source.table)
    file, found = source.file, _ARCHIVE.fullmatch(source.file)
    if found is not None and found["kind"].lower() == "npz":
        return TensorCode(f"np.load({_quote(found['path'])})[{_quote(found['key'])}]")
    if found is not None:
        load = f"safetensors.numpy.load_file({_quote(found['path'])})[{_quote(found['key'])}]"
        return TensorCode(load, ("import safetensors.numpy",))
    return TensorCode(f"np.load({_quote(file)})") if file.lower().endswith(".npy") else None


def _write_table(source: NamedTensor, table: FileTable) -> TensorCode | None:
    """Return the call that reads a delimited file; None where NumPy reads something else in its first rows."""
    if table.delimiter is None or source.file is None:
        return None
    options: dict[str, Any] = {"delimiter": table.delimiter}
    if table.rows.names is not None:
        options["skip_header"] = 1
    if not table.is_whole:
        options["usecols"] = table.chosen
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = np.genfromtxt(source.file, **options, ndmin=2, max_rows=_MOST_TYPED, encoding="utf-8")
    except (ValueError, OSError, Warning):
        return None
    if not np.array_equal(read, source.values[:_MOST_TYPED], equal_nan=True):
        return None
    given = (
        f"{name}={_quote(value) if value is table.delimiter else value}" for name, value in options.items()
    )
    return TensorCode(f"np.genfromtxt({_quote(source.file)}, {', '.join(given)}, ndmin=2)")


def _quote(text: str) -> str:
    """Return a text in double quotes, as formatters have it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if text.isprintable() else repr(text)


class Task(NamedTuple):
    """A request, and where its tensors come from.

    Parameters
    ----------
    plan : Plan
    inputs : Inputs
        Running statistics, if the plan is to be carried out with them.
    sources : sequence of NamedTensor
        The tensor `x`, before a gate; `gate`, `gamma` and `beta` where they are given.
    """

    plan: Plan
    inputs: Inputs
    sources: Sequence[NamedTensor]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of x and y in the code: the output's."""
        return self.plan.choose_output_dtype(self.sources[0].values.dtype)

    @property
    def evaluation(self) -> bool:
        """Whether running statistics are given."""
        return self.inputs.given is not None

    def list_obstacles(self, call: Call | None) -> list[str]:
        """Return the reasons why a framework's call does not fit the request; none without a call."""
        if call is None:
            return []
        wide = self.inputs.gated_input is not None and is_half(self.dtype)
        gated = ["a product with the gate of more digits than x"] if wide else []
        return [*call.list_obstacles(self.plan, evaluation=self.evaluation), *gated]

    def require_whole(self) -> None:
        """Raise `UsageError` unless every value counts."""
        selection, values = self.inputs.selection, self.sources[0].values
        if selection is not None and selection.count(values) < values.size:
            raise UsageError("--emit is of tensors whose values all count, and some of these are left out")
