"""The call that each framework has for a norm, and what of a request it cannot express: `calls.toml`."""

from __future__ import annotations

import enum
import pkgutil
import tomllib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from normcli.norms.conventions import find_convention
from normcli.norms.grid import Grid, Split
from normcli.norms.rules import Refusal
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.norms.conventions import Convention
    from normcli.norms.plan import Plan


class GroupKind(enum.Enum):
    """The groups that a call makes; the value is their name in a sentence."""

    ONE_KEPT = "one axis is kept"
    ONE_REDUCED = "one axis is reduced"
    REDUCED = "whole axes are reduced"
    BATCH_AND_CHANNEL = "batch and channel are kept"
    BATCH_AND_GROUPS = "batch and groups of channels are kept"
    WINDOW = "there is a window along an axis"
    ALL = "all axes are reduced"
    ANY = "axes are reduced or kept"


class Call(NamedTuple):
    """The call that a framework has for a norm.

    Parameters
    ----------
    framework : str
        Its name for `--emit`.
    norm : str
    source : str
        The file and version in which the call was read.
    follows : str
        The row of conventions that describes the call: its framework, and its norm if that is another.
    groups : GroupKind
    named : str
        What is called, where the call's own first word does not say it.
    call : str
        The call, as a template of Python. `normcli.codegen.own_call` says what stands in it.
    layer : str
        Instead of it, the layer that is made.
    build : sequence of str
        The lines that make the layer's parameters.
    run : str
        How the layer is called.
    assign : mapping of str to str
        How the layer is given `gamma`, `beta`, and the running `mean` and `var`.
    measure : str
        A line that measures what the call is given, unless it is known.
    batch, channel, reduced : str or None
        Where these axes have to stand: first, second or last; None where the call takes their number.
    affine : str
        The parameters that it takes, with a comma between.
    needs_affine : bool
        Whether it takes them always.
    eps : float or None
        The only eps that it has; None where it takes any.
    evaluates : bool
        Whether it takes running statistics.
    fault : str
        Why it is left alone without them: where what runs it gives something else.
    iterates : str
        The vector that its power iterations start from.
    odd_windows : bool
        Whether it takes windows of an odd size alone.
    dtypes : tuple of str
        Those that it takes; empty where it takes every float.
    least_rank, most_rank : int
    """

    framework: str
    norm: str
    source: str
    follows: str
    groups: GroupKind
    named: str = ""
    call: str = ""
    layer: str = ""
    build: Sequence[str] = ()
    run: str = ""
    assign: Mapping[str, str] = MappingProxyType({})
    measure: str = ""
    batch: Literal["first"] | None = None
    channel: Literal["second", "last"] | None = None
    reduced: Literal["last"] | None = None
    affine: str = ""
    needs_affine: bool = False
    eps: float | None = None
    evaluates: bool = False
    fault: str = ""
    iterates: str = ""
    odd_windows: bool = False
    dtypes: tuple[str, ...] = ()
    least_rank: int = 0
    most_rank: int = 64

    @property
    def name(self) -> str:
        """The name of the function or class that is called."""
        return self.named or (self.layer or self.call).partition("(")[0]

    @property
    def convention(self) -> Convention:
        """The row of conventions that describes the call."""
        framework, _, norm = self.follows.partition(" ")
        return find_convention(framework, norm or self.norm)

    def takes_parameters(self, plan: Plan) -> bool:
        """Whether gamma and beta of a plan are the call's own: they lie along its axes, and gamma is plain."""
        lies_along = {
            GroupKind.ONE_KEPT: plan.grid.kept,
            GroupKind.ONE_REDUCED: plan.grid.axes,
            GroupKind.REDUCED: plan.grid.axes,
        }.get(self.groups, (plan.grid.layout.channel,))
        is_plain = (
            not plan.spec.gamma_offset and not plan.spec.rounds_before_gamma and plan.parameters.own is None
        )
        return bool(self.affine) and is_plain and plan.parameters.axes == lies_along

    def list_obstacles(self, plan: Plan, *, evaluation: bool) -> Iterator[str]:
        """Yield the options of a plan that the call cannot express, each with the call's own choice.

        Parameters
        ----------
        plan : Plan
        evaluation : bool
            Whether running statistics are given.
        """
        spec, convention, rank = plan.spec, self.convention, len(plan.grid.shape)
        if not self.least_rank <= rank <= self.most_rank:
            yield f"a tensor of {rank} axes"
        if not self._has_groups(plan.grid):
            yield f"axes: it is for where {self.groups.value}"
        dtype = plan.choose_output_dtype(plan.tensor_dtype).name
        if self.dtypes and dtype not in self.dtypes:
            yield f"{dtype}: it takes {', '.join(self.dtypes)}"
        if self.needs_affine and not self.takes_parameters(plan):
            yield "gamma and beta along these axes"
        if self.affine and not plan.spreads_parameters:
            yield "a gamma for each group: it has one for each channel"
        if evaluation and not self.evaluates:
            yield "eval: it takes no running statistics"
        if spec.eps and spec.eps_mode != convention.eps_mode:
            has = "it has no eps" if convention.eps_mode is None else f"its eps is {convention.eps_mode}"
            yield f"eps, {spec.eps_mode}: {has}"
        if self.eps is not None and spec.eps != self.eps:
            yield f"eps {spec.eps:g}: it has {self.eps:g}"
        if spec.ddof != (convention.ddof or 0):
            yield f"ddof {spec.ddof}: it has {convention.ddof or 0}"
        if spec.p is not None and convention.exponents and spec.p not in convention.exponents:
            yield f"p {spec.p:g}: it has {', '.join(f'{p:g}' for p in convention.exponents)}"
        yield from self._list_refused(plan, evaluation=evaluation)

    def _list_refused(self, plan: Plan, *, evaluation: bool) -> Iterator[str]:
        grid, window, refuses = plan.grid, plan.spec.window, self.convention.refuses
        rows, iteration = plan.spec.rows, plan.spec.iteration
        if self.iterates and (iteration is None or iteration.start != self.iterates):
            asked = (
                "the largest singular value itself"
                if iteration is None
                else f"iterations from {iteration.start}"
            )
            yield f"{asked}: it divides by what power iterations from {self.iterates} come to"
        if rows is not None and len(rows) != 1:
            yield f"rows along {len(rows)} axes: it has one"
        if window is not None:
            before = self.convention.extra_neighbour == "before"
            sides = (window.size // 2, (window.size - 1) // 2)
            if (window.before, window.after) != (sides if before else sides[::-1]):
                yield f"size {window.size} with {window.before} channels before and {window.after} after"
            if (self.odd_windows or self.convention.extra_neighbour is None) and not window.size % 2:
                yield f"size {window.size}: its windows are odd"
        if evaluation:
            return
        if self.fault:
            yield self.fault
        samples = 1 if grid.layout.batch is None else grid.shape[grid.layout.batch]
        refused = {Refusal.ONE_IN_GROUP: grid.group_size, Refusal.ONE_IN_BATCH: grid.group_size * samples}
        if any(count == 1 for refusal, count in refused.items() if refusal in refuses):
            yield "one value a group: it refuses to train on that"
        if Refusal.EPS_0 in refuses and not plan.spec.eps:
            yield "eps 0: it refuses to train with that"

    def _has_groups(self, grid: Grid) -> bool:
        """Whether the groups of a grid are of the call's kind."""
        batch, channel = grid.layout.batch, grid.layout.channel
        both = batch is not None and channel is not None and batch != channel
        is_whole = grid.split is None and grid.reach is None
        match self.groups:
            case GroupKind.ONE_KEPT:
                return is_whole and len(grid.kept) == 1
            case GroupKind.ONE_REDUCED:
                return is_whole and len(grid.axes) == 1
            case GroupKind.REDUCED:
                return is_whole and bool(grid.axes)
            case GroupKind.BATCH_AND_CHANNEL:
                return is_whole and both and set(grid.kept) == {batch, channel}
            case GroupKind.BATCH_AND_GROUPS:
                neighbours = grid.split is not None and grid.split == Split(*grid.split[:2])
                return neighbours and both and set(grid.kept) == {batch, channel}
            case GroupKind.WINDOW:
                return grid.reach is not None
            case GroupKind.ALL:
                return is_whole and not grid.kept
            case GroupKind.ANY:
                return is_whole and bool(grid.axes)


def _read_rows() -> tuple[Call, ...]:
    table = tomllib.loads((pkgutil.get_data("normcli.norms", "calls.toml") or b"").decode())
    rows = ({**table["frameworks"][row["framework"]], **row} for row in table["rows"])
    return tuple(_read_row(row, norm) for row in rows for norm in row["norms"])


def _read_row(row: Mapping[str, Any], norm: str) -> Call:
    fields = {name: value for name, value in row.items() if name != "norms"}
    kind = GroupKind[row["groups"].upper().replace(" ", "_")]
    return Call(**{**fields, "norm": norm, "groups": kind})


CALLS: Mapping[tuple[str, str], Call] = MappingProxyType(
    {(row.framework, row.norm): row for row in _read_rows()}
)
"""Framework and norm → the call; none where the framework has none."""
