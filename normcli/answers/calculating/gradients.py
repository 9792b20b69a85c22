"""The answer of `normcli backward`: dx, dgamma and dbeta as a document."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import Table, TableRow, describe_members, describe_value
from normcli.documents.excerpt import build_excerpt, iterate_long, locate_last, pick_from
from normcli.documents.matrix_blocks import build_blocks
from normcli.documents.number_format import format_statistic
from normcli.documents.plan_header import (
    build_header,
    describe_column,
    describe_plan,
    describe_selection,
    describe_tensor,
    list_facts,
    list_selection,
    name_inputs,
)
from normcli.errors import UsageError
from normcli.printable import format_count
from normcli.results.result import Result
from normcli.tensors.pieces import forget, iterate_pieces
from normcli.writers import GRADIENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.results.backward import Gradients
    from normcli.tensors.tensor import Tensor


@dataclass(frozen=True)
class GradientsAnswer:
    """The document of `normcli backward`: dx, dgamma, dbeta and dgate.

    Parameters
    ----------
    gradients : Gradients
    tensor, dy : Tensor
        The input and dy, with their sources.
    """

    gradients: Gradients
    tensor: Tensor
    dy: Tensor

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and the sections on the input, dy and the gradients that the view shows."""
        found, plan = self.gradients, self.gradients.plan
        title = f"backward {plan.norm.name} · {plan.norm.title}"
        selection = list_selection(plan, found.input, found.inputs.selection, None)
        more = (("dy", list_facts(self.dy)), *selection)
        source = list_facts(self.tensor, found.dx.dtype)
        yield build_header(title, plan, source, view, name_inputs(found.inputs), more)
        result = Result(plan, found.input, {}, found.inputs)  # whose groups colour the cells
        for name in ("input", "dy", "dx", "dgate"):
            values = getattr(found, name)
            if values is not None and view.shows(name):
                is_whole = values.shape == found.input.shape
                yield build_blocks(name, values, result, view) if is_whole else self._list_gate(values, view)
        if view.shows("parameters") and found.dgamma is not None:
            columns = {name: self.field(name) for name in plan.norm.gradient_names[1:]}
            yield self._list(
                "parameter",
                columns,
                lambda number: {plan.grid.layout.name(a): i for a, i in plan.parameters.locate(number).items()},
                view,
            )

    def data(self) -> Mapping[str, Any]:
        """Return the gradients as a JSON object: the plan, the input, dy, each gradient, and warnings."""
        found, plan = self.gradients, self.gradients.plan
        return {
            **describe_plan(plan, {"input": describe_tensor(self.tensor), "dy": describe_tensor(self.dy)}),
            "dtype": found.dx.dtype.name,
            **({"evaluation": found.inputs.given is not None} if plan.norm.tracks else {}),
            **describe_selection(found.inputs.selection),
            **describe_members(found, *GRADIENTS[: len(GRADIENTS) - (found.dgate is None)]),
            "warnings": list(self.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per group: its index `group`, a named column as `column`, its gradient `dx`."""
        grid = self.gradients.plan.grid
        view = self.gradients.dx.reshape(grid.view_shape)
        for index, place in grid.walk_groups():
            dx = describe_value(np.asarray(view[place]))
            yield {"group": index, **describe_column(grid, index), "dx": dx}
        forget(view)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one per value: its index, input, dy, dx, dgate; names come first.

        There is no dgate without a gate. A dgate of another shape than the tensor's is broadcast to it.
        """
        found, grid = self.gradients, self.gradients.plan.grid
        columns = {"input": found.input, "dy": found.dy, "dx": found.dx}
        columns |= {} if found.dgate is None else {"dgate": np.broadcast_to(found.dgate, grid.shape)}
        picked = {name: pick_from(values) for name, values in columns.items()}
        return iterate_long(grid.layout.names, grid.shape, picked)

    def field(self, name: str) -> NDArray[Any]:
        """Return the gradient that `--print NAME` prints.

        Raises
        ------
        UsageError
            If the norm has no such parameter, or there is no gate.
        """
        values = self.gradients.field(name)
        if values is None:
            norm = self.gradients.plan.norm
            raise UsageError(
                f"--print {name}: {norm.name} has no "
                f"{'gate; give --gate' if name == 'dgate' else name.removeprefix('d')}"
            )
        return values

    @functools.cached_property
    def warnings(self) -> tuple[str, ...]:
        """One line, with a count and the cause, if dx is NaN for some values; otherwise empty."""
        count = sum(int(np.count_nonzero(np.isnan(piece))) for piece in iterate_pieces(self.gradients.dx))
        if not count:
            return ()
        values = format_count(self.gradients.dx.size, "value")
        why = "groups of numbers that are not finite, or divided by 0, have no derivative"
        if self.gradients.plan.spec.rows is not None:
            why = "matrices of 0, of what is not finite, or with two largest singular values have none"
        return (f"dx is NaN for {count:,} of {values}: {why}",)

    def _list_gate(self, dgate: NDArray[Any], view: View) -> Table:
        """Return the table of dgate, for a gate that broadcasts to the tensor."""
        names = self.gradients.plan.grid.layout.names
        return self._list("gate", {"dgate": dgate}, lambda n: locate_last(names, dgate.shape, n), view)

    def _list(
        self,
        noun: str,
        columns: Mapping[str, NDArray[Any]],
        locate: Callable[[int], Mapping[str, int]],
        view: View,
    ) -> Table:
        """Return a table of gradients of one shape, a row per element.

        Parameters
        ----------
        noun : str
            The name of an element, for the first column.
        columns : mapping of str to ndarray
            The gradients by name.
        locate : callable
            Returns the index by axis name of an element, given its number in C order.
        view : View
        """

        def make_row(number: int) -> TableRow:
            place = " ".join(f"{axis}={i}" for axis, i in locate(number).items()) or "all"
            numbers = (float(values.flat[number]) for values in columns.values())
            return TableRow((place, *(format_statistic(value, view.digits) for value in numbers)))

        table = Table(None, (noun, *columns), (False, *(True,) * len(columns)))
        return build_excerpt(table, make_row, next(iter(columns.values())).size, noun, view)
