"""The answer of `normcli restore`: whether gamma and beta undid a norm, as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import Blocks, Line, describe_members, describe_value
from normcli.documents.excerpt import iterate_long, pick_from
from normcli.documents.matrix_blocks import build_blocks, build_slices
from normcli.documents.number_format import format_statistic
from normcli.documents.plan_header import build_header, describe_plan, describe_tensor, list_facts, name_inputs
from normcli.printable import agree, format_count
from normcli.teach.restore import ATOL
from normcli.teach.value_index import format_index
from normcli.tensors.formats.json_lists import to_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.teach.restore import Restoration
    from normcli.tensors.tensor import Tensor


@dataclass(frozen=True)
class RestorationAnswer:
    """The document of `normcli restore`: whether gamma and beta can undo a norm.

    Parameters
    ----------
    restoration : Restoration
    tensor : Tensor
        The tensor that was normalized.
    """

    restoration: Restoration
    tensor: Tensor

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header with gamma and beta, the tensors, the verdict and the reason."""
        result = self.restoration.result
        title = f"restore {result.plan.norm.name} · can gamma and beta undo it?"
        parameters = name_inputs(result.inputs)
        more = (("with", self._list_parameters()),)
        yield build_header(title, result.plan, list_facts(self.tensor, result.dtype), view, parameters, more)
        yield from self._list_tensors(view)
        yield self._build_verdict()
        yield Line((self.restoration.why,))

    def data(self) -> Mapping[str, Any]:
        """Return the attempt as a JSON object: plan, gamma, beta, tolerance, `recovered`, `why` and values."""
        result, closeness = self.restoration.result, self.restoration.closeness
        return {
            **describe_plan(result.plan, {"input": describe_tensor(self.tensor)}),
            "parameter_axes": list(result.plan.parameters.axes),
            "dtype": result.dtype.name,
            **describe_members(result, "gamma", "beta"),
            **describe_members(self.restoration, "rtol", "atol"),
            "atol_scaled": self.restoration.scaled,
            "recovered": self.restoration.recovered,
            **describe_members(closeness, "compared", "different", "max_abs"),
            "max_abs_at": describe_value(closeness.place),
            **describe_members(self.restoration, "aligned", "why"),
            "normalized_without_affine": describe_value(result.standardized),
            "restored": describe_value(result.normalized),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per value: its index by axis, the input, x̂ and the restored value."""
        grid, tensors = self.restoration.result.plan.grid, self._tensors
        for index in np.ndindex(grid.shape):
            place = dict(zip(grid.layout.names, index, strict=True))
            yield place | {name: to_lists(values[index]) for name, values in tensors.items()}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one per value: index, input, x̂, restored value; names come first."""
        grid = self.restoration.result.plan.grid
        columns = {name: pick_from(values) for name, values in self._tensors.items()}
        return iterate_long(grid.layout.names, grid.shape, columns)

    @property
    def _tensors(self) -> dict[str, NDArray[Any]]:
        found = self.restoration.result
        own = {"input": found.input, "normalized_without_affine": found.standardized}
        return {**own, "restored": found.normalized}

    def _list_parameters(self) -> tuple[str, ...]:
        """Return texts on gamma and beta: the statistics that they are set to, and the axes of these."""
        attempt, plan = self.restoration, self.restoration.result.plan
        names = plan.grid.layout.names
        over = [name for axis, name in enumerate(names) if axis not in plan.parameters.axes]
        places = f"each over {' '.join(over)}" if over else "each of one value"
        offset = f" − {plan.spec.gamma_offset}" if plan.spec.gamma_offset else ""
        beta = f"beta = {attempt.centre or '0, as nothing is subtracted'}"
        return (f"gamma = {attempt.spread}{offset}", *((beta,) if plan.norm.takes_beta else ()), places)

    def _list_tensors(self, view: View) -> Iterator[Blocks]:
        result = self.restoration.result
        titles = ("input", "x̂, before gamma and beta", "restored")
        tensors = dict(zip(titles, self._tensors.values(), strict=True))
        if result.input.ndim > 2 or view.full or not result.input.size:
            for title, values in tensors.items():
                yield build_blocks(title, values, result, view)
            return
        coloured = {title: (values, result) for title, values in tensors.items()}
        yield build_slices("tensors", coloured, result.plan.grid, view)

    def _build_verdict(self) -> Line:
        """Return a line with the number of recovered values and the largest error; marked right if all are."""
        attempt = self.restoration
        closeness = attempt.closeness
        of = f" = {ATOL:g} × the largest |x|" if attempt.scaled else ""
        limits = f"rtol {attempt.rtol:g}, atol {attempt.atol:g}{of}"
        if closeness.place is None:
            return Line(("nothing to recover: the tensor has no values",))
        place = format_index(closeness.place, attempt.result.plan.grid.layout)
        at = f" at {place}" if place and closeness.max_abs else ""
        largest = f"largest difference {format_statistic(closeness.max_abs, 3)}{at}"
        values = format_count(closeness.compared, "value")
        found = f"recovered: {agree(closeness.compared, 'the one value', f'all {values}')}"
        if not attempt.recovered:
            those = agree(closeness.compared, "the one value", f"{closeness.different:,} of {values}")
            found = f"not recovered: {those} {agree(closeness.different, 'differs', 'differ')}"
        return Line((f"{found} ({limits})", largest), attempt.recovered)
