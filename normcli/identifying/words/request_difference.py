"""The differences of a match from a request, and the options that remove them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from normcli.checking.ulp import choose_counting_dtype
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.search.affine_step import ESTIMATED, WAYS
from normcli.identifying.search.groups import measure_equality
from normcli.identifying.search.match_names import try_plan
from normcli.identifying.words.match_words import (
    find_factor,
    format_axes,
    format_fitted,
    format_range,
    format_steps,
    list_unused,
)
from normcli.norms.options import find_option
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode, GroupOrder
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.identifying.question import Identification, Question
    from normcli.identifying.reproduction import Reproduction
    from normcli.identifying.search.match import Match
    from normcli.norms.grid import Grid
    from normcli.norms.layout import Layout
    from normcli.norms.plan import Plan

_ABOUT = 1e-6
"""Two eps count as equal up to this relative difference, as one may be rounded to float32."""

_NEAR = 0.01
"""Two p, ddof or constants of a window count as equal up to this relative difference, as they are fitted."""

_WINDOW = ("size", "alpha", "exponent", "k")


class OtherChoice(NamedTuple):
    """An option in which a match differs from a request.

    Parameters
    ----------
    words : str
        The match's choice: `eps is 1e-06`.
    asked : str
        The request's choice: `1e-05`; empty if the words imply it.
    option : str or None
        The option on the command line with the match's choice; None without such an option.
    """

    words: str
    asked: str = ""
    option: str | None = None

    @property
    def contrast(self) -> str:
        """Both choices in one clause: `eps is 1e-06, not 1e-05`."""
        return f"{self.words}, not {self.asked}" if self.asked else self.words


def list_other_choices(plan: Plan, match: Match, asked: Question) -> list[OtherChoice] | None:
    """Return the options in which a match differs from a plan; empty if in none.

    None if no options of the plan's norm lead to the match.

    Parameters
    ----------
    plan : Plan
        The plan of the request.
    match : Match
    asked : Question
        The question, with the given gamma and beta.
    """
    row, norm = NORMS[match.norm], plan.norm
    is_same = match.norm == norm.name and match.rows is not None  # whatever estimates its singular value
    is_other = not is_same and (row.divisor, row.centre) != (norm.divisor, norm.centre)
    takes_none = norm.eps is None and plan.spec.eps is None and match.eps_range[0] > 0.0  # no eps
    if is_other or takes_none or norm.p not in (None, match.p):
        return None
    grouped = _compare_groups(plan, match, asked)
    if grouped is None:
        return None
    return [*grouped, *_compare_numbers(plan, match), *_compare_parameters(plan, match, asked)]


def find_remedy(plan: Plan, match: Match, asked: Question, differences: Sequence[OtherChoice]) -> str | None:
    """Return the command whose result is a match: with one option, a framework's name, or several options.

    None if no framework's name is enough and a difference has no option.

    Parameters
    ----------
    plan : Plan
        The plan of the request.
    match : Match
    asked : Question
        The question, with the given gamma and beta.
    differences : sequence of OtherChoice
        The differences of the match from the plan.
    """
    name, groups = plan.norm.name, plan.request.groups
    options = [difference.option for difference in differences]
    if len(options) != 1 or not all(options):
        for framework in match.like if differences and match.norm == name else ():
            theirs = try_request(Request(name, layout=asked.layout, like=framework, groups=groups), asked)
            if theirs is not None and list_other_choices(theirs, match, asked) == []:
                return f"normcli {name} … --like {framework}"
    return " ".join([f"normcli {name} …", *filter(None, options)]) if all(options) else None


def find_own_command(match: Match, asked: Question) -> str | None:
    """Return the shortest command whose result is a match; None if no command has that result."""
    request = Request(match.norm, layout=asked.layout, groups=match.groups)
    plan = try_request(request, asked)
    differences = None if plan is None else list_other_choices(plan, match, asked)
    if plan is None or differences is None:
        return None
    command = find_remedy(plan, match, asked, differences)
    if command is None:
        return None
    groups = f" --groups {match.groups}" if match.groups else ""
    return f"{command}{groups}{_place_parameters(plan, match, asked)}"


def _place_parameters(plan: Plan, match: Match, asked: Question) -> str:
    """Return the option, after a space, for the axes of gamma and beta; an empty text if it is not needed."""
    wanted = plan.request._replace(axes=match.axes) if plan.grid.axes != match.axes else plan.request
    moved = try_request(wanted, asked)
    step = None if match.hypothesis is None else match.hypothesis.affine
    placed = None if step is None else next((p for p in (step.scale, step.shift) if p is not None), None)
    if moved is None or placed is None:
        return ""
    shapes = moved.adopt_parameters({"gamma": asked.gamma, "beta": asked.beta}).parameters
    axes = tuple(axis for axis, n in enumerate(placed.shape) if n > 1)
    known = axes in ((), tuple(axis for axis, n in enumerate(shapes.full_shape) if n > 1))
    return "" if known else f" {_name_axes('feature-axes', axes, (), plan.grid.layout).option}"


def try_request(request: Request, asked: Question) -> Plan | None:
    """Return the plan of a request for a question's input; None if the norm or framework refuses its shape."""
    return try_plan(request, asked.x.shape, asked.x.dtype)


def _compare_groups(plan: Plan, match: Match, asked: Question) -> list[OtherChoice] | None:
    """Return the difference between a match's groups and a plan's, in a list that is empty if they are equal.

    None if no option of the plan's norm leads to the match's groups.
    """
    layout = plan.grid.layout
    if match.window is not None or match.rows is not None:
        pair = (match.axes, plan.grid.axes) if match.rows is None else (match.rows, plan.spec.rows or ())
        word = "axes" if match.rows is None else "rows"
        return [] if pair[0] == pair[1] else [_name_axes(word, *pair, layout)]
    theirs = try_request(match.make_request()._replace(layout=asked.layout), asked)
    if theirs is None:
        return None
    if plan.request.over is not None:  # a match is of whole groups
        asked_for = find_option("over").format(plan.request.over)
        return [OtherChoice("statistics are over all values", asked_for)]
    there, own = theirs.grid.canonical, plan.grid.canonical
    if match.hypothesis is not None:  # tried on a part of a large tensor, perhaps
        there = replace(match.hypothesis.sample.grid, shape=own.shape)
    if there == own:
        return []
    split = there.split
    if plan.norm.needs_groups or (plan.norm.takes_groups and {split, own.split} != {None}):
        order = GroupOrder.CONTIGUOUS if split is None else split.order
        for groups in (split.groups,) if split else (1, -1):
            other = try_request(plan.request._replace(groups=groups, group_order=order), asked)
            if other is not None and other.grid.canonical == there:
                return [_name_groups(groups, order, plan.grid)]
    if split is not None and not plan.norm.needs_groups:
        return None
    if split is not None and there != theirs.grid.canonical:
        return [OtherChoice(f"groups are {split.groups} parts of {layout.name(split.axis)}")]
    return [_name_axes("axes", there.axes, own.axes, layout)]


def _name_groups(groups: int, order: GroupOrder, grid: Grid) -> OtherChoice:
    if groups == grid.groups:
        return OtherChoice(f"groups are {order}", str(grid.group_order or ""), f"--group-order {order}")
    groups = grid.shape[grid.layout.channel or 0] if groups < 0 else groups
    return OtherChoice(f"groups are {groups}", str(grid.groups or 1), f"--groups {groups}")


def _name_axes(word: str, there: Sequence[int], here: Sequence[int], layout: Layout) -> OtherChoice:
    numbers = ",".join(map(str, there)) or "'()'"
    letters = "".join(layout.letters[axis] for axis in there) if layout.letters else ""
    words = f"{word} are {format_axes(there, layout)}"
    return OtherChoice(words, format_axes(here, layout), f"--{word} {letters or numbers}")


def _compare_numbers(plan: Plan, match: Match) -> Iterator[OtherChoice]:
    """Yield the differences of a match from a plan in eps, p, ddof, a window's constants, power iterations."""
    spec, window = plan.spec, match.window
    if match.takes_eps and spec.eps is not None:
        yield from _compare_eps(spec.eps, spec.eps_mode, match)
    numbers = {"p": (match.p, spec.p)}
    if match.affine != ESTIMATED and plan.norm.divisor.about_mean:
        numbers["ddof"] = match.ddof, spec.ddof
    if window is not None and spec.window is not None:
        numbers |= {name: (getattr(window, name), getattr(spec.window, name)) for name in _WINDOW}
    for name, (there, here) in numbers.items():
        if there is not None and here is not None and not math.isclose(there, here, rel_tol=_NEAR):
            yield OtherChoice(f"{name} is {there:g}", f"{here:g}", f"--{name} {there:g}")
    steps, iteration = match.steps, spec.iteration
    if steps is not None and iteration is None and not steps.is_largest:
        yield OtherChoice(f"σ is {format_steps(steps)}", option=f"--iterations {steps.fewest}")
    if iteration is not None and match.rows is not None:
        if steps is None:
            yield OtherChoice("σ is the largest singular value")
        elif not steps.fewest <= iteration.steps <= (steps.most or math.inf):
            said = f"σ is {format_steps(steps)}"
            yield OtherChoice(said, str(iteration.steps), f"--iterations {steps.fewest}")


def _compare_eps(eps: float, mode: EpsMode | None, match: Match) -> Iterator[OtherChoice]:
    """Yield the difference of a match from a requested eps and eps mode; nothing if both fit the match."""
    low, high = match.eps_range
    is_off = not low * (1.0 - _ABOUT) <= eps <= high * (1.0 + _ABOUT)
    moved = match.eps_mode != mode and match.eps_mode is not None and low > 0.0
    if not is_off and not moved:
        return
    value = f"--eps {match.eps:g}"
    eps_is = f"eps is at most {high:g}" if low < high and not low else f"eps is {format_range(match)}"
    if not moved:
        yield OtherChoice(eps_is, f"{eps:g}", value)
    elif match.p is not None:
        yield OtherChoice("eps is added to the length")
    elif is_off:
        options = f"{value} --eps-mode {match.eps_mode}"
        yield OtherChoice(f"{eps_is} {match.eps_mode} the root", f"{eps:g}", options)
    else:
        yield OtherChoice(f"eps is {match.eps_mode} the root", option=f"--eps-mode {match.eps_mode}")


def _compare_parameters(plan: Plan, match: Match, asked: Question) -> Iterator[OtherChoice]:
    """Yield the differences of a match from a plan in gamma and beta, and in the order of y's axes."""
    adds_one, way = plan.spec.gamma_offset == 1, match.affine
    unused = list_unused(way, asked)
    if way == ESTIMATED:
        factor = find_factor(match)
        takes = factor is not None and "gamma" in plan.norm.parameter_names
        option = f"--gamma {factor:.5g}" if takes else None
        yield OtherChoice(f"y has {format_fitted(match, asked)}", option=option)
    elif unused:
        both = "gamma and beta are not applied"
        yield OtherChoice(both if len(unused) > 1 else f"{unused[0]} is not applied")
    elif way == "swapped":
        yield OtherChoice("gamma and beta are exchanged")
    if "gamma" in WAYS[way] and way not in (ESTIMATED, "swapped") and way.startswith("1 +") != adds_one:
        factors = ("gamma", "1 + gamma") if adds_one else ("1 + gamma", "gamma")
        yield OtherChoice(f"{factors[0]} multiplies", factors[1], f"--gamma-offset {int(not adds_one)}")
    if match.order != tuple(sorted(match.order)):
        yield OtherChoice(f"axes of y are in the order {match.order}")


def narrow_eps(match: Match, found: Identification, asked: float | None = None) -> Match:
    """Return a match whose eps and range of eps are the usual ones that give every bit of y.

    The bits are those of the exact result or of a known computation. The match itself is returned if no usual
    eps gives them, or if its range of eps does not begin at 0: y then shows the eps.

    Parameters
    ----------
    match : Match
    found : Identification
        The identification that has the match.
    asked : float or None
        A requested eps, which is tried in addition to the usual ones; None without one.
    """
    low, high = match.eps_range
    if not low == 0.0 < high:
        return match
    told = [one.match for one in found.reproductions if one.is_certain and one.is_of(match)]
    if told and asked in (None, *COMMON_EPS):  # which alone were tried
        return match._replace(eps=told[0].eps, eps_range=told[0].eps_range)
    if match.hypothesis is None:
        return match
    sample, dtype = match.hypothesis.sample, choose_counting_dtype(found.question.y.dtype)
    usual = (eps for eps in dict.fromkeys((asked, *COMMON_EPS)) if eps is not None and low <= eps <= high)
    exact = [
        eps for eps in usual if measure_equality(sample.actual, match.hypothesis.predict(eps), dtype) == 1.0
    ]
    if not exact:
        return match
    return match._replace(eps=match.eps if match.eps in exact else exact[0], eps_range=(min(exact), max(exact)))


def is_twice(plan: Plan, match: Match) -> bool:
    """Whether a match's eps, which is not the requested one, may be twice that, in its place."""
    low, high = match.eps_range
    asked = plan.spec.eps or 0.0
    return not low <= asked <= high and low <= 2.0 * asked <= high and match.eps_mode == plan.spec.eps_mode


_TOLD = 8
"""The fewest values by which an exact match is preferred to one with fewer differences."""


def choose_request(
    requests: Sequence[tuple[Match, list[OtherChoice]]], told: Sequence[Reproduction]
) -> tuple[Match, list[OtherChoice]]:
    """Return the match with the fewest differences from the request; an exact match may be preferred.

    It is if the first has 8 or more inexact values. If no match is exact, a match that a certain reproduction
    in `told` computes is preferred in its place, as the eps and ddof of the others do not give every bit.
    """
    first = min(requests, key=lambda pair: len(pair[1]))
    missed = (1.0 - first[0].equal) * first[0].compared
    exact = [pair for pair in requests if pair[0].equal == 1.0]
    if not exact and not is_computed(first[0], told):
        exact = [pair for pair in requests if is_computed(pair[0], told)]
    return min(exact if missed >= _TOLD else (), key=lambda pair: len(pair[1]), default=first)


def is_computed(match: Match, told: Sequence[Reproduction]) -> bool:
    """Whether a reproduction in `told` gives every bit of y with the options of a match."""
    return any(one.is_certain and one.is_of(match) for one in told)
