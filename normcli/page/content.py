"""What a page shows, as plain data: the excerpt of the tensor, and for each result its groups and numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.answers.calculation import count_values
from normcli.documents.numbers import CELL_DIGITS, STATISTIC_DIGITS, format_shape
from normcli.documents.plans import format_formula, format_reduction
from normcli.engine.inputs import Inputs
from normcli.engine.run import run
from normcli.norms.table import EpsMode
from normcli.printable import make_printable
from normcli.teach.definitions import define_group, define_value
from normcli.teach.expression import Constant, Maximum, Sum, Symbol
from normcli.tensors.nested import to_lists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Page, View
    from normcli.norms.plan import Plan
    from normcli.results.result import Result
    from normcli.teach.definitions import Definition
    from normcli.teach.expression import Expression

    Places = tuple[NDArray[np.intp], ...]

MOST_CELLS = 4096
"""A tensor of at most so many values is shown whole: more is slow to move over, and no lesson."""

SLICE_CELLS = 1024
"""Of a larger one so many cells are shown at most: sixteen matrices of eight by eight."""

LONGEST_SIDE = 32
"""Of a slice, along one axis."""

_LEAST_SQUARE = 1e-290
"""Squares below are taken to have lost digits."""

_EPS_PLACES = {
    EpsMode.INSIDE: "inside the root",
    EpsMode.OUTSIDE: "added to the root",
    EpsMode.FLOOR: "the least divisor",
    EpsMode.SQUARE_FLOOR: "the least square",
}

_RSTD_NOTE = "rstd is 1/divisor at the eps that was given."

_CONSTANTS = ("size", "alpha", "exponent", "k")
"""The options of a window that its arithmetic calls by name."""


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
    grid = np.ix_(*indices)
    names = [first.plan.grid.layout.name(axis) for axis in range(len(shape))]
    return {
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
        "input": _list(first.input[grid].astype(np.float64)),
        "results": [
            _describe_result(result, grid, label)
            for result, label in zip(page.results, _label_results(page), strict=True)
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


def _label_results(page: Page) -> list[str]:
    """Return what each result is called: its own name, and what tells it from others of that name."""
    plans = [result.plan for result in page.results]
    names = page.names or [plan.norm.name for plan in plans]
    longer = [
        f"{plan.norm.name} {format_reduction(plan)[1]}{f' like {plan.spec.like}' if plan.spec.like else ''}"
        for plan in plans
    ]

    def label(place: int) -> str:
        if names.count(names[place]) == 1:
            return names[place]
        text = longer[place]
        return text if longer.count(text) == 1 else f"{text} ({1 + longer[:place].count(text)})"

    return [label(place) for place in range(len(plans))]


def _describe_result(result: Result, grid: Places, label: str) -> dict[str, Any]:
    """Return a result's groups and arithmetic, and of each shown cell its group, parameters and results."""
    plan, spec = result.plan, result.plan.spec
    numbers = plan.grid.locate_groups(grid) if grid else np.zeros((), dtype=np.intp)
    shown, owner = np.unique(numbers.reshape(-1), return_inverse=True)
    parameters = {
        name: None if parameter is None else _pick_parameter(name, parameter, plan, grid)
        for name, parameter in (("gamma", result.gamma), ("beta", result.beta))
    }
    given = {name for name, parameter in parameters.items() if parameter is not None}
    rounds_twice = bool(spec.rounds_before_gamma and given) and result.dtype != np.float64
    statistics = {name: array.reshape(-1)[shown] for name, array in result.statistics.items()}
    variants, variant = _choose_variants(result, statistics)
    twice, once = "before gamma and again", "once"
    return {
        "label": label,
        "title": f"{plan.norm.title}{'' if spec.like is None else f' like {spec.like}'}",
        "formula": format_formula(plan, given),
        "facts": list(format_reduction(plan)),
        "dtype": result.dtype.name,
        "rounding": None if result.dtype == np.float64 else twice if rounds_twice else once,
        "centre": plan.norm.centre.statistic,
        "eps": spec.eps,
        "epsPlace": None if spec.eps is None or spec.eps_mode is None else _EPS_PLACES[spec.eps_mode],
        "window": _describe_window(plan),
        "constants": {} if spec.window is None else {name: getattr(spec.window, name) for name in _CONSTANTS},
        "groupArithmetic": variants,
        "variants": variant,
        "valueArithmetic": list(map(_describe_definition, define_value(plan, given, result.dtype.name))),
        "groupCount": plan.grid.group_count,
        "groups": [plan.grid.group_name(int(group)) for group in shown],
        "numbers": shown.tolist(),
        "counts": count_values(result).flat[shown].tolist(),
        "statistics": {name: _list(array) for name, array in statistics.items()},
        "owner": owner.reshape(-1).tolist(),
        **parameters,
        "normalized": _list(result.normalized[grid]),
        "rounded": _round_before_gamma(result, grid) if rounds_twice else None,
        "notes": [_RSTD_NOTE] if spec.eps is not None and "rstd" in statistics else [],
        "warnings": list(result.warnings),
    }


def _choose_variants(
    result: Result, statistics: Mapping[str, NDArray[np.float64]]
) -> tuple[list[list[Any]], list[int]]:
    """Return the kinds of arithmetic that groups have, and which of them each has."""
    plan, given = result.plan, result.running is not None
    root = statistics.get(plan.norm.divisor.spread or "", np.zeros(len(next(iter(statistics.values())))))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        square = root * root
    beyond = np.isfinite(root) & (root > 0.0) & ~((square > _LEAST_SQUARE) & np.isfinite(square))
    variants, variant = np.unique(beyond, return_inverse=True)
    arithmetic = [define_group(plan, given=given, beyond=bool(flag)) for flag in variants]
    return [list(map(_describe_definition, some)) for some in arithmetic], variant.tolist()


def _describe_definition(definition: Definition) -> dict[str, Any]:
    described = definition._asdict()
    for name in ("formula", "value"):
        described[name] = None if described[name] is None else _describe_tree(described[name])
    return {name: value for name, value in described.items() if value}


def _describe_tree(tree: Expression) -> Any:
    """Return an expression as nested lists: an operation with what it is done to; a name; a number."""
    match tree:
        case Constant(value):
            return value
        case Symbol(text, value=value):
            return text if value is None else ["worked", _describe_tree(value), text]
        case Sum(total=total, each=each) if each is not None:
            return ["series", None if total is None else _describe_tree(total), _describe_tree(each)]
        case Sum(terms) | Maximum(terms):
            parts = list(terms)
        case _:
            parts = [getattr(tree, field) for field in tree.__slots__]
    return [type(tree).__name__.lower(), *map(_describe_tree, parts)]


def _round_before_gamma(result: Result, grid: Places) -> list[Any]:
    """Return x̂ as gamma and beta found it, where it was rounded before them."""
    rounded = run(result.plan, result.input, Inputs(given=result.running), effort=result.effort)[0]
    return _list(rounded[grid])


def _describe_window(plan: Plan) -> dict[str, int] | None:
    window = plan.spec.window
    if window is None:
        return None
    return {"axis": plan.grid.axes[0], "before": window.before, "after": window.after}


def _pick_parameter(name: str, parameter: NDArray[Any], plan: Plan, grid: Places) -> Mapping[str, Any]:
    """Return what each cell is multiplied by or moved by: the values in use, once each, and which is whose."""
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
