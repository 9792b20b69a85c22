"""What a page shows, as plain data: the excerpt of the tensor, and for each result its groups and numbers."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.answers.calculation import count_values
from normcli.documents.numbers import CELL_DIGITS, STATISTIC_DIGITS, format_shape
from normcli.documents.plans import format_reduction
from normcli.engine.inputs import Inputs
from normcli.engine.run import run
from normcli.norms.divisors import ORDER_STATISTICS, format_statistic
from normcli.norms.table import Centre
from normcli.printable import make_printable
from normcli.tensors.nested import to_lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Page, View
    from normcli.norms.plan import Plan
    from normcli.results.result import Result

MOST_CELLS = 4096
"""A tensor of at most so many values is shown whole: more is slow to move over, and no lesson."""

SLICE_CELLS = 1024
"""Of a larger one so many cells are shown at most: sixteen matrices of eight by eight."""

LONGEST_SIDE = 32
"""Of a slice, along one axis."""


class Stretch(NamedTuple):
    """A contiguous part of an axis: the positions start … stop − 1."""

    start: int
    stop: int


def choose_slice(shape: Sequence[int], at: Sequence[int] | None = None) -> tuple[Stretch, ...]:
    """Return the part of a tensor that a page shows: all of a small one.

    Of a larger one it is a block whose sides are doubled in turn, the innermost first, as long as it holds no
    more than `SLICE_CELLS`; so it shows several positions along every axis.

    Parameters
    ----------
    shape : sequence of int
    at : sequence of int, optional
        An index that the block must hold; without it, the block begins at the tensor's first value.

    Examples
    --------
    >>> [stretch.stop for stretch in choose_slice((8, 64, 32, 32))]
    [4, 4, 8, 8]
    >>> choose_slice((100_000,), at=(77_777,))
    (Stretch(start=77760, stop=77792),)
    """
    if math.prod(shape) <= MOST_CELLS:
        return tuple(Stretch(0, length) for length in shape)
    sides = [1] * len(shape)
    growing = True
    while growing:
        growing = False
        for axis in reversed(range(len(shape))):
            longer = min(2 * sides[axis], shape[axis], LONGEST_SIDE)
            if longer > sides[axis] and math.prod(sides) // sides[axis] * longer <= SLICE_CELLS:
                sides[axis], growing = longer, True
    places = at if at is not None else (0,) * len(shape)
    starts = [
        min(place // side * side, length - side)
        for place, side, length in zip(places, sides, shape, strict=True)
    ]
    return tuple(Stretch(start, start + side) for start, side in zip(starts, sides, strict=True))


def make_content(page: Page, view: View) -> dict[str, Any]:
    """Return all that the page's script reads, as strict JSON can hold it.

    Parameters
    ----------
    page : Page
    view : View
        How many digits are wished.
    """
    first = page.results[0]
    shape = first.plan.grid.shape
    stretches = choose_slice(shape, page.at)
    indices = [np.arange(stretch.start, stretch.stop) for stretch in stretches]
    grid = np.ix_(*indices) if indices else ()
    names = [first.plan.grid.layout.name(axis) for axis in range(len(shape))]
    values = first.input[grid] if grid else first.input
    return {
        "title": page.title,
        "source": make_printable(page.tensor.source),
        "shape": list(shape),
        "shapeText": format_shape(shape),
        "dtype": first.input.dtype.name,
        "names": names,
        "start": [stretch.start for stretch in stretches],
        "size": [stretch.stop - stretch.start for stretch in stretches],
        "slice": _name_slice(shape, stretches, names),
        "columns": _pick_columns(page, stretches),
        "at": None if page.at is None else list(page.at),
        "cellDigits": view.digits or CELL_DIGITS,
        "digits": view.digits or STATISTIC_DIGITS,
        "input": _list(values.astype(np.float64)),
        "results": [
            _describe_result(result, grid, name)
            for result, name in zip(page.results, page.names or itertools.repeat(None), strict=False)
        ],
    }


def _name_slice(shape: Sequence[int], stretches: Sequence[Stretch], names: Sequence[str]) -> str | None:
    """Return what part of the tensor is shown, as a person says it; None where it is all."""
    if all(stretch == (0, length) for stretch, length in zip(stretches, shape, strict=True)):
        return None
    parts = []
    for name, (start, stop), length in zip(names, stretches, shape, strict=True):
        span = f"{start}…{stop - 1}" if stop - start > 1 else f"{start}"
        parts.append(f"{name}={span} of {length:,}")
    return ", ".join(parts)


def _pick_columns(page: Page, stretches: Sequence[Stretch]) -> list[str] | None:
    columns = page.tensor.columns
    if columns is None or not stretches:
        return None
    return [make_printable(name) for name in columns[slice(*stretches[-1])]]


def _describe_result(result: Result, grid: tuple[NDArray[np.intp], ...], name: str | None) -> dict[str, Any]:
    """Return a result's choices, and of the cells in the excerpt: owner, parameters, normalized value."""
    plan = result.plan
    numbers = plan.grid.locate_groups(grid) if grid else np.zeros((), dtype=np.intp)
    shown, owner = np.unique(numbers.reshape(-1), return_inverse=True)
    normalized = result.normalized[grid] if grid else result.normalized
    return {
        "norm": plan.norm.name,
        "name": name or plan.norm.name,
        "normTitle": plan.norm.title,
        "formula": plan.formula,
        "reduction": list(format_reduction(plan)),
        "like": plan.spec.like,
        "dtype": result.dtype.name,
        "centre": None if plan.norm.centre is Centre.NOTHING else plan.norm.centre.value,
        "divisor": plan.norm.divisor.name,
        "spread": plan.norm.divisor.spread,
        "order": _describe_order(plan),
        "eps": plan.spec.eps,
        "epsMode": plan.spec.eps_mode if plan.spec.eps is not None else None,
        "ddof": plan.spec.ddof,
        "zeroRule": plan.spec.zero_rule.value,
        "p": None if plan.spec.p is None else _spell(plan.spec.p),
        "window": _describe_window(plan),
        "given": result.running is not None,
        "gammaOffset": plan.spec.gamma_offset,
        "groupCount": plan.grid.group_count,
        "groups": [plan.grid.group_name(int(group)) for group in shown],
        "numbers": shown.tolist(),
        "counts": count_values(result).flat[shown].tolist(),
        "statistics": {name: _list(array.reshape(-1)[shown]) for name, array in result.statistics.items()},
        "owner": owner.reshape(-1).tolist(),
        "gamma": _pick_parameter("gamma", result.gamma, plan, grid),
        "beta": _pick_parameter("beta", result.beta, plan, grid),
        "normalized": _list(normalized),
        "rounded": _round_before_gamma(result, grid),
        "warnings": list(result.warnings),
    }


def _round_before_gamma(result: Result, grid: tuple[NDArray[np.intp], ...]) -> list[Any] | None:
    """Return x̂ as gamma and beta found it, where it was rounded before them to less than a double; or None."""
    plan = result.plan
    if not (plan.spec.rounds_before_gamma and result.inputs.scales) or result.dtype == np.float64:
        return None
    rounded = run(plan, result.input, Inputs(given=result.running), effort=result.effort)[0]
    return _list(rounded[grid] if grid else rounded)


def _describe_order(plan: Plan) -> list[dict[str, Any]] | None:
    """Return the statistics that go by the order of values; None where the norm's do not."""
    if not plan.norm.divisor.is_by_order:
        return None
    rows = (ORDER_STATISTICS[name] for name in plan.norm.statistics)
    return [{"name": row.name, "means": format_statistic(row.name), "of": row.combination} for row in rows]


def _describe_window(plan: Plan) -> dict[str, Any] | None:
    if plan.spec.window is None:
        return None
    return {**plan.spec.window._asdict(), "axis": plan.grid.axes[0]}


def _pick_parameter(
    name: str, parameter: NDArray[Any] | None, plan: Plan, grid: tuple[NDArray[np.intp], ...]
) -> Mapping[str, Any] | None:
    """Return what each cell is multiplied by or moved by: the values in use, once each, and which is whose."""
    if parameter is None:
        return None
    places = np.arange(parameter.size).reshape(plan.parameters.view_shape)
    spread = np.broadcast_to(places, plan.grid.view_shape)
    if grid:  # by way of the view, in which the channel may stand split
        flat = np.ravel_multi_index(grid, plan.grid.shape)
        spread = spread[np.unravel_index(flat, plan.grid.view_shape)]
    used, owner = np.unique(spread.reshape(-1), return_inverse=True)
    index = np.unravel_index(used, parameter.shape) if parameter.ndim else ()
    names = [f"{name}[{', '.join(map(str, place))}]" for place in zip(*index, strict=True)] or [name]
    return {
        "values": _list(parameter.reshape(-1)[used]),
        "names": names,
        "owner": owner.reshape(-1).tolist(),
    }


def _list(values: NDArray[Any]) -> list[Any]:
    """Return values in C order, as the JSON of an answer holds them."""
    listed: list[Any] = to_lists(np.asarray(values).reshape(-1))
    return listed


def _spell(value: float) -> Any:
    return to_lists(np.asarray(value))
