"""The function or layer that each framework has for a norm, and the options that it cannot express.

The table is `calls.toml`.
"""

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
    """The kinds of groups that a framework's function normalizes, such as the values of a channel.

    The members' values are words that end the message "it is for where …".
    """

    ONE_KEPT = "one axis is kept"
    ONE_REDUCED = "one axis is reduced"
    REDUCED = "whole axes are reduced"
    BATCH_AND_CHANNEL = "batch and channel are kept"
    BATCH_AND_GROUPS = "batch and groups of channels are kept"
    WINDOW = "there is a window along an axis"
    ALL = "all axes are reduced"
    ANY = "axes are reduced or kept"


class Call(NamedTuple):
    """The call of a framework's own function or layer for a norm.

    Parameters
    ----------
    framework : str
        The framework's name in the option `--emit`.
    norm : str
        The short name of the norm.
    source : str
        The source file and line, or the operator and version, from which the call was read.
    follows : str
        The row of conventions that describes the call: the framework's name, and the norm's name if it is not
        `norm` (`tensorflow-moments bn`).
    groups : GroupKind
        The kind of groups that the call normalizes.
    named : str
        The name of the function or class; empty where it is the text before the first parenthesis of `layer` or
        `call`.
    call : str
        The function call, as a template of Python code, whose placeholders `normcli.codegen.own_call` fills.
    layer : str
        The call that makes a layer, as a template, for frameworks that need a layer in place of a function.
    build : sequence of str
        The lines that create the layer's parameters.
    run : str
        The call of the layer, as a template.
    assign : mapping of str to str
        `gamma`, `beta`, running `mean` or `var` → the line that assigns it to the layer.
    measure : str
        A line that calculates mean and variance before the call, unless running ones are given.
    batch, channel, reduced : str or None
        The position that the call requires of these axes: first, second or last; None where it takes any.
    affine : str
        The parameters that the call takes, separated by a comma: `gamma, beta`.
    needs_affine : bool
        Whether the call cannot do without these parameters.
    eps : float or None
        The only eps that the call has; None where it takes any.
    evaluates : bool
        Whether the call takes running statistics.
    fault : str
        The defect for which the call is refused when no running statistics are given; empty for none.
    iterates : str
        The vector that the call's power iterations start from, `u` or `v`; empty where it has none.
    odd_windows : bool
        Whether the call takes only windows of an odd size.
    dtypes : tuple of str
        The names of the dtypes that the call takes; empty where it takes every float.
    least_rank, most_rank : int
        The fewest and most axes of a tensor that the call takes.
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
        """Whether this call can apply a plan's gamma and beta.

        They must be in the norm's own shape, along the axes that the call's kind of groups has them on, without
        an offset and without a rounding before gamma.
        """
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
        """Yield a text for each option of a plan that this call cannot express, with the call's own choice.

        Nothing is yielded if the call does what the plan says.

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
        """Yield a text for each matrix or window option of a plan that this call cannot express.

        Unless `evaluation` (running statistics are given), texts are also yielded for training that the call
        refuses.
        """
        grid, window, refuses = plan.grid, plan.spec.window, self.convention.refuses
        rows, iteration = plan.spec.rows, plan.spec.iteration
        if self.iterates and (iteration is None or iteration.start != self.iterates):
            asked = f"iterations from {iteration.start}" if iteration else "the largest singular value itself"
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
        """Whether a grid's groups are of the kind `groups` of this call."""
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
"""(Framework, norm) → its call; pairs without a call are left out."""
