"""The data of a page: the excerpt of the tensor, and for each result its groups and numbers."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.answers.calculating.calculation import count_group_values
from normcli.documents.axes_words import format_reduction, list_assumed
from normcli.documents.number_format import CELL_DIGITS, STATISTIC_DIGITS, format_shape
from normcli.errors import NormError
from normcli.language import translate
from normcli.norms.options import list_own_options
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from normcli.numerics.rounding import widen
from normcli.page.arithmetic import build_statistics, describe_definitions, list_steps, mark_formula
from normcli.printable import make_printable
from normcli.teach.explain.surrounding_steps import name_factor
from normcli.teach.formulas.definitions import FACTOR, define_group, define_value
from normcli.tensors.formats.json_lists import to_lists
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Page, View
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.results.result import Result

    Places = tuple[NDArray[np.intp], ...]

MOST_CELLS = 4096
"""The most values of a tensor that is shown whole: a page of more is slow."""

SLICE_CELLS = 1024
"""The most cells that are shown of a larger tensor: sixteen matrices of eight by eight."""

LONGEST_SIDE = 32
"""The most positions of a slice along one axis."""

_MOST_KNOWN = 3
"""The most norms that the quiz asks a reader to tell apart."""

_LEAST_SQUARE = 1e-290
"""The size below which squares are taken to have lost digits."""

_EPS_PLACES = {
    EpsMode.INSIDE: "inside the root",
    EpsMode.OUTSIDE: "added to the root",
    EpsMode.FLOOR: "the least divisor",
    EpsMode.SQUARE_FLOOR: "the least square",
}


def choose_slice(shape: Sequence[int], at: Sequence[int] | None = None) -> tuple[range, ...]:
    """Return the part of a tensor that a page shows: all of a small one.

    For a larger tensor it is a block whose sides are doubled in turn, the innermost first, as long as the block
    holds no more than `SLICE_CELLS` cells; so it shows several positions along every axis.

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
    (range(77760, 77792),)
    """
    if math.prod(shape) <= MOST_CELLS:
        return tuple(map(range, shape))
    sides = [1] * len(shape)
    for _ in range(LONGEST_SIDE.bit_length()):
        for axis in reversed(range(len(shape))):
            longer = min(2 * sides[axis], shape[axis], LONGEST_SIDE)
            if longer > sides[axis] and math.prod(sides) // sides[axis] * longer <= SLICE_CELLS:
                sides[axis] = longer
    stretches = []
    for place, side, length in zip(at or (0,) * len(shape), sides, shape, strict=True):
        start = min(place // side * side, length - side)
        stretches.append(range(start, start + side))
    return tuple(stretches)


def make_content(page: Page, view: View) -> dict[str, Any]:
    """Return the data of the page's script, as strict JSON can hold them.

    Parameters
    ----------
    page : Page
    view : View
        Its `digits` are those of the page's numbers; all else is not used.
    """
    first = page.results[0]
    shape = first.plan.grid.shape
    stretches = choose_slice(shape, page.at)
    grid = np.ix_(*stretches)
    names, columns = first.plan.grid.layout.names, page.tensor.columns
    return {
        "source": translate(make_printable(page.tensor.source)),
        "shape": list(shape),
        "shapeText": format_shape(shape),
        "dtype": first.input.dtype.name,
        "names": list(names),
        "start": [stretch.start for stretch in stretches],
        "size": list(map(len, stretches)),
        "slice": _name_slice(shape, stretches, names),
        "columns": None
        if columns is None or not stretches
        else [make_printable(name) for name in columns[stretches[-1].start : stretches[-1].stop]],
        "at": None if page.at is None else list(page.at),
        "cellDigits": view.digits or CELL_DIGITS,
        "digits": view.digits or STATISTIC_DIGITS,
        "input": _list(widen(first.input[grid])),
        "known": _list_known(first.plan, grid),
        "results": [
            _describe_result(result, grid, label)
            for result, label in zip(page.results, _label_results(page), strict=True)
        ],
    }


def _list_known(plan: Plan, grid: Places) -> list[dict[str, Any]]:
    """Return up to three norms whose groups in the shown cells differ, for the reader to choose from.

    Each is a dict of its title, the cells' groups and the facts on its axes. Of norms with equal groups, the
    first in the table is taken. Norms that need an option or another layout, and norms with windows, are passed
    over.
    """
    known: dict[bytes, dict[str, Any]] = {}
    for name, norm in NORMS.items():
        with contextlib.suppress(NormError):  # it needs an option, or another layout
            other = make_plan(Request(name, layout=plan.request.layout), plan.grid.shape, plan.tensor_dtype)
            owner = np.unique(other.grid.locate_groups(grid), return_inverse=True)[1]
            facts = list(map(translate, format_reduction(other)))
            if not other.groups_overlap:
                known.setdefault(
                    owner.tobytes(),
                    {"title": translate(norm.title), "owner": _tabulate(owner, grid), "facts": facts},
                )
    return list(known.values())[:_MOST_KNOWN]


def _name_slice(shape: Sequence[int], stretches: Sequence[range], names: Sequence[str]) -> str | None:
    """Return the shown part of the tensor in words, `n=0…3 of 8`; None if the whole tensor is shown."""
    if tuple(stretches) == tuple(map(range, shape)):
        return None
    parts = []
    for name, stretch, length in zip(names, stretches, shape, strict=True):
        span = f"{stretch.start}…{stretch.stop - 1}" if len(stretch) > 1 else f"{stretch.start}"
        parts.append(f"{name}={span} of {length:,}")
    return ", ".join(parts)


def _label_results(page: Page) -> list[str]:
    """Return a label for each result, all of them different: its name, if no other has that name.

    For results of one name: the norm, its kept axes and its framework, with a number if these are equal too.
    """
    plans = [result.plan for result in page.results]
    names = page.names or [plan.norm.name for plan in plans]
    longer = [f"{plan.norm.name} {format_reduction(plan)[1]}{_format_like(plan)}" for plan in plans]
    labels = []
    for place, (name, text) in enumerate(zip(names, longer, strict=True)):
        number = "" if longer.count(text) == 1 else f" ({1 + longer[:place].count(text)})"
        labels.append(name if names.count(name) == 1 else text + number)
    return labels


def _format_like(plan: Plan) -> str:
    return "" if plan.spec.like is None else f" like {plan.spec.like}"


def _describe_result(result: Result, grid: Places, label: str) -> dict[str, Any]:
    """Return the data of a result: groups, arithmetic, and each shown cell's group, parameters, results."""
    plan, spec, given = result.plan, result.plan.spec, result.inputs.parameters
    shown, owner = np.unique(plan.grid.locate_groups(grid), return_inverse=True)
    window, constants = None, {}
    if spec.window is not None:
        window = {"axis": plan.grid.axes[0], "before": spec.window.before, "after": spec.window.after}
        constants = {name: getattr(spec.window, name) for name in sorted(list_own_options(plan.norm))}
    rounds = result.dtype != np.float64
    rounds_twice = rounds and spec.rounds_before_gamma and result.inputs.scales
    statistics = {name: array.reshape(-1)[shown] for name, array in result.statistics.items()}
    roots = statistics.get(plan.norm.divisor.spread or "", np.zeros(shown.size))
    beyond = list(map(_is_beyond, roots.tolist()))
    are_given = result.running is not None
    factor, place = result.inputs.gate, None if result.inputs.gate is None else "behind"
    formula_of_gate = [(f" · {name_factor(factor)}", list[str]())] if factor is not None else []
    if (before := result.inputs.gated_input) is not None:
        formula_of_gate = [(f" of x · {name_factor(before)}", [])]
    return {
        "label": label,
        "title": translate(plan.norm.title + _format_like(plan)),
        "formula": mark_formula(plan, given) + formula_of_gate,
        "facts": [
            translate(fact)
            for fact in (
                *format_reduction(plan),
                *(fact for _, facts in list_assumed([plan]) for fact in facts),
            )
        ],
        "steps": [step._asdict() for step in list_steps(plan)],
        "dtype": result.dtype.name,
        "rounding": "before gamma and again" if rounds_twice else "once" if rounds else None,
        "centre": plan.norm.centre.statistic,
        "spread": plan.norm.divisor.spread,
        "eps": spec.eps,
        "epsPlace": None if spec.eps is None or spec.eps_mode is None else _EPS_PLACES[spec.eps_mode],
        "window": window,
        "constants": constants,
        "measuring": [] if are_given else list(build_statistics(plan)),
        "groupArithmetic": [
            describe_definitions(define_group(plan, given=are_given, beyond=kind))
            for kind in sorted({False, *beyond})
        ],
        "variants": list(map(int, beyond)),
        "valueArithmetic": describe_definitions(define_value(plan, given, result.dtype.name, place)),
        "movedFormula": mark_formula(plan, plan.norm.parameter_names) + formula_of_gate,
        "movedArithmetic": describe_definitions(
            define_value(plan, plan.norm.parameter_names, result.dtype.name, place)
        ),
        "factor": None if factor is None else _describe_factor(factor, plan, grid),
        "groupCount": plan.grid.group_count,
        "groups": [plan.grid.group_name(int(group)) for group in shown],
        "numbers": shown.tolist(),
        "counts": count_group_values(result).flat[shown].tolist(),
        "statistics": {name: _list(array) for name, array in statistics.items()},
        "owner": _tabulate(owner, grid),
        "given": sorted(given),
        "parameters": _pick_parameters(given, plan, grid),
        "normalized": _list(result.normalized[grid]),
        "standardized": _list(result.standardized[grid]) if result.inputs.scales else None,
        "roundsTwice": bool(rounds_twice),
        "warnings": list(map(translate, result.warnings)),
    }


def _describe_factor(gate: Gated, plan: Plan, grid: Places) -> dict[str, Any]:
    """Return the name of the factor that a gate multiplies by, and its value for each shown cell."""
    here = gate.map(lambda values: np.broadcast_to(fetch(values), plan.grid.shape)[grid])
    return {"name": FACTOR.text, "label": name_factor(gate), "values": _list(here.activate())}


def _is_beyond(root: float) -> bool:
    """Whether the square of a positive finite number overflows or loses digits in float64."""
    return 0.0 < root < math.inf and not _LEAST_SQUARE < root * root < math.inf


def _pick_parameters(given: Mapping[str, NDArray[Any]], plan: Plan, grid: Places) -> Mapping[str, Any]:
    """Return the numbers of gamma and beta that the shown cells use, as three members.

    `places` has their indices, `values` their values by name, and `owner` which of them each cell uses.
    """
    shape = plan.parameters.shape
    places = np.arange(math.prod(shape)).reshape(plan.parameters.view_shape)
    spread = np.broadcast_to(places, plan.grid.view_shape)[tuple(plan.grid.view_indices(grid))]
    used, owner = np.unique(spread, return_inverse=True)
    unchanged = {"gamma": 1.0 - plan.spec.gamma_offset, "beta": 0.0}
    values = {name: given.get(name, np.full(shape, unchanged[name])) for name in plan.norm.parameter_names}
    index = np.unravel_index(used, shape) if shape else ()
    return {
        "places": [f"[{', '.join(map(str, place))}]" for place in zip(*index, strict=True)] or [""],
        "owner": _tabulate(owner, grid),
        "values": {name: _list(array.reshape(-1)[used]) for name, array in values.items()},
    }


def _tabulate(owner: NDArray[np.intp], grid: Places) -> list[list[int]]:
    """Return the numbers in `owner` in a short form: a list of integers for each axis of the tensor.

    A number is the sum of one integer from each list: with two axes, owner[i, j] = lists[0][i] + lists[1][j].
    The numbers say to which group, or which gamma, each shown cell belongs.
    """
    owner = owner.reshape(tuple(along.size for along in grid))
    if not owner.size:
        return [[] for _ in grid]
    first = owner[(0,) * owner.ndim]  # above 0 where a slice begins within a round of interleaved groups
    return [
        (np.moveaxis(owner, axis, -1)[(0,) * (owner.ndim - 1)] - (first if axis else 0)).tolist()
        for axis in range(owner.ndim)
    ]


def _list(values: NDArray[Any]) -> list[Any]:
    """Return values as a flat list in C order, as JSON can hold them."""
    listed: list[Any] = to_lists(np.asarray(values).reshape(-1))
    return listed
