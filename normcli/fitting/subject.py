"""The subject of statistics: a norm over tensors that differ in their number of samples only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type, is_real
from normcli.errors import DataError, UsageError
from normcli.norms.layout import find_layout, make_layout
from normcli.norms.options import find_option
from normcli.norms.plan import make_plan
from normcli.norms.request import Choices
from normcli.norms.rules import EpsRule
from normcli.printable import make_printable
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.tensors.tables.numerals import Label
    from normcli.tensors.tensor import Tensor

_GROUPED = "NGC"
"""The layout of grouped rows."""

_LENGTHS = (2.0, math.inf)
"""The exponents p whose ℓp length follows from sums of squares or from extremes."""


class Subject(NamedTuple):
    """The norm, shape, dtype and columns that statistics are of; those with equal ones can be merged.

    Parameters
    ----------
    request : Request
        The norm and its options, with the axes as numbers; options that the caller left open are None.
    shape : tuple of int
        The shape of the tensors, with 0 for the batch axis.
    dtype : str
        The dtype of the tensors by name.
    columns : tuple of str or None
        The names of the columns, which lie along the tensors' last axis; None without names.
    by : tuple of str or None
        The names of the columns by which rows are grouped, each group with statistics of its own; None if rows
        are not grouped.
    labels : tuple of Label
        The names of the groups, as `sort_labels` sorts them; empty if rows are not grouped.
    """

    request: Request
    shape: tuple[int, ...]
    dtype: str
    columns: tuple[str, ...] | None = None
    by: tuple[str, ...] | None = None
    labels: tuple[Label, ...] = ()

    def has_columns(self) -> bool:
        """Whether the last axis can have names: False if it is the axis of the samples."""
        plan = make_plan(self.request, self.shape, np.dtype(find_type(self.dtype)))
        return plan.grid.layout.batch != len(self.shape) - 1

    def plan(self, samples: int) -> Plan:
        """Return the plan for a tensor with a number of samples.

        If rows are grouped by columns (`by`), it is the plan of a tensor with three axes: rows, groups,
        columns.
        """
        dtype = np.dtype(find_type(self.dtype))
        if self.by is not None:
            request = self.request._replace(layout=_GROUPED)
            return make_plan(request, (samples, len(self.labels), self.shape[-1]), dtype, self.columns)
        batch = make_plan(self.request, self.shape, dtype).grid.layout.batch
        shape = tuple(samples if axis == batch else n for axis, n in enumerate(self.shape))
        return make_plan(self.request, shape, dtype, self.columns)

    def name_group(self, number: int) -> str:
        """Return the name of a group by its flat number: `c=1 price`, or of grouped rows `shop=north price`."""
        grid = self.plan(1).grid
        if self.by is None:
            return grid.group_name(number)
        row, place = divmod(number, self.shape[-1])
        column = str(place) if self.columns is None else self.columns[place]
        cells = (f"{name}={cell or ''}" for name, cell in zip(self.by, self.labels[row], strict=True))
        return make_printable(f"{' '.join(cells)} {column}")


def name_dtype(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, without its byte order."""
    return dtype.newbyteorder("=").name


def is_dtype_name(name: str) -> bool:
    """Whether a text is the name of a dtype of real numbers as `name_dtype` writes it, as `float32`."""
    try:
        dtype = np.dtype(find_type(name))
    except (TypeError, ValueError, SyntaxError):  # NumPy also parses lists of fields, as Python code
        return False
    return is_real(dtype) and name_dtype(dtype) == name


def choose_subject(request: Request, tensor: Tensor) -> Subject:
    """Return the `Subject` of statistics that are fitted to a tensor: norm, options, shape, dtype and columns.

    All tensors whose statistics are merged later must have an equal one.

    Raises
    ------
    UsageError
        If the request does not fit the tensor, `fit` has no statistics for it (`require_fittable`), or its rows
        are grouped and cannot be (`require_groupable`).
    """
    shape, dtype = tensor.values.shape, tensor.dtype
    request = request.adopt_layout(find_layout(tensor.dimensions))
    if request.iterates:  # a u of a wrong length must not be reported before the norm is refused
        require_fittable(make_plan(request._replace(iterations=None, u=None, v=None), shape, dtype))
    plan = make_plan(request, shape, dtype)
    require_fittable(plan)
    if tensor.by is not None:
        require_groupable(plan)
    layout, features = plan.grid.layout, request.feature_axes
    resolved = request._replace(
        norm=plan.norm.name,
        axes=plan.grid.axes,
        keep=None,
        feature_axes=None if features is None else layout.resolve(features, "feature_axes"),
        layout=layout.text,
        p=plan.spec.p if find_option("p").belongs_to(plan.norm) else None,
        dtype=None,
    )
    lengths = tuple(0 if axis == layout.batch else n for axis, n in enumerate(shape))
    subject = Subject(resolved, lengths, name_dtype(dtype))
    subject = subject._replace(columns=tensor.columns) if subject.has_columns() else subject
    return subject if tensor.by is None else subject._replace(by=tensor.by.names)


def require_groupable(plan: Plan) -> None:
    """Raise `UsageError` unless rows can be grouped: a plan of two axes that reduces the first alone."""
    grid = plan.grid
    if len(grid.shape) != 2 or grid.kept != (1,) or grid.split or plan.request.feature_axes is not None:
        raise UsageError("--by groups the rows of a table of two axes, and reduces the first alone")
    if Choices(plan.request).pick("eps") is EpsRule.ROOT_COUNT:
        raise UsageError(f"eps of {plan.spec.like} follows from the number of rows of a group; give --eps")


def require_fittable(plan: Plan) -> None:
    """Raise `UsageError` if `fit` has no statistics for a plan.

    That is the case for a tensor without axes, if each sample has statistics of its own, for a largest singular
    value, for an ℓp length of a p other than 2 and inf, and with the option `over`. Quantiles pass, although
    the quantiles of several files do not follow from the quantiles of each.
    """
    name, batch = plan.norm.name, plan.grid.layout.batch
    if batch is None:
        raise UsageError(f"{name} of a tensor without axes has no samples: there is nothing to fit")
    if plan.groups_overlap or batch in plan.grid.kept:
        sample = plan.grid.layout.name(batch)
        message = f"{name} has statistics of each sample (along {sample}): there is nothing to fit"
        raise UsageError(message if plan.groups_overlap else f"{message}; --axes or --keep choose other groups")
    if plan.spec.rows is not None:
        size = plan.norm.divisor.size
        raise UsageError(
            f"{name} has the {size} of a whole matrix, which does not follow from those of its parts"
        )
    if plan.request.over is not None:
        raise UsageError("fit has statistics of whole groups: leave out over")
    if plan.spec.p is not None and plan.spec.p not in _LENGTHS:
        raise UsageError(f"fit has lengths of p = 2 and inf, not of p = {plan.spec.p:g}")


def require_alike(
    subject: Subject, shape: tuple[int, ...], dtype: np.dtype[Any], name: str, first: str
) -> None:
    """Raise `DataError` unless a tensor has a subject's dtype, and its shape except for the number of samples.

    Parameters
    ----------
    subject : Subject
    shape, dtype
        The shape and the dtype of the tensor.
    name, first : str
        The names, in the message, of the tensor, and of the first one, from which the subject was taken.
    """
    batch = subject.plan(1).grid.layout.batch
    agrees = len(shape) == len(subject.shape) and all(
        axis == batch or a == b for axis, (a, b) in enumerate(zip(shape, subject.shape, strict=True))
    )
    if not agrees:
        wanted = ", ".join("N" if axis == batch else str(n) for axis, n in enumerate(subject.shape))
        raise DataError(
            f"{name} has the shape {shape}, and {first} ({wanted}): all axes but the batch must agree"
        )
    if name_dtype(dtype) != subject.dtype:
        cure = f"save x.astype({subject.dtype!r})"
        found = f"{name} is {name_dtype(dtype)}, and {first} {subject.dtype}"
        raise DataError(f"{found}: all must be of one dtype; {cure} in its place")


def require_order(subject: Subject, dimensions: Sequence[str] | None, name: str) -> None:
    """Raise `DataError` if a tensor's axes have the same names as the subject's, but in another order.

    `dimensions` are the names of the tensor's axes, `name` is the tensor's own in the message. Nothing is
    raised if either has no names of axes, or if some names are not the same.
    """
    mine, theirs = subject.request.layout, find_layout(dimensions)
    if mine is None or theirs is None or len(dimensions or ()) != len(subject.shape):
        return
    wanted, found = (make_layout(layout, len(subject.shape)).names for layout in (mine, theirs))
    if wanted != found and sorted(wanted) == sorted(found):
        raise DataError(f"{name} has the axes {', '.join(found)}; the statistics are of {', '.join(wanted)}")


def find_positions(plan: Plan) -> tuple[int, ...]:
    """Return the axes of the view that are reduced, without the batch axis."""
    return tuple(axis for axis in plan.grid.view_axes if axis != find_batch(plan))


def find_batch(plan: Plan) -> int:
    """Return the number of the view's batch axis; a channel axis split into groups counts as two axes."""
    batch, channel = plan.grid.layout.batch or 0, plan.grid.layout.channel
    return batch + (plan.grid.groups is not None and channel is not None and channel < batch)


def has_images(plan: Plan) -> bool:
    """Whether each sample has a deviation of its own, whose mean over samples is the statistic `image_std`.

    It has if the norm divides by a deviation about the mean, and axes besides the batch axis are reduced.
    """
    return plan.norm.divisor.about_mean and bool(find_positions(plan))
