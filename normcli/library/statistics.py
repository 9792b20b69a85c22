"""Exact statistics over any number of tensors: fitted, merged, saved, and used to normalize other tensors."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import TYPE_CHECKING, Any

from normcli.answers.batches.fitted_statistics import answer_fit
from normcli.documents.document import View
from normcli.engine.walk import Effort
from normcli.errors import MissingStatisticError, UsageError
from normcli.fitting.shards import require_all
from normcli.fitting.statistics import merge_stats, round_stats, warn
from normcli.fitting.stats_file import describe_stats, write_stats
from normcli.fitting.use import Use, use_stats
from normcli.library.intake import arrange_axes, fit_sums, group_rows, refuse_groups
from normcli.norms.divisors import Measurement
from normcli.norms.request import NanRule
from normcli.printable import format_count
from normcli.results.arguments import name_output_dtype, read_numbers
from normcli.results.arrays import find_lazy, take_columns
from normcli.tensors.tensor import Tensor
from normcli.writers.table import format_text, write_html

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from normcli.fitting.statistics import Rounded, Stats
    from normcli.norms.plan import Plan
    from normcli.norms.rules import NanName

_RENAMED = {"norm": "norm_length"}
"""The name of a statistic → the attribute of `Statistics` that holds it, where the name itself is taken."""


class Statistics:
    """Statistics of a norm over any number of tensors, from exact sums; `fit` and `load` return them.

    The statistics are equal to the bit however the data are split and ordered.

    Each statistic of the norm is an attribute, an array of the shape of the groups: `mean`, `var`, `std`,
    `rstd` of `bn` and `zscore`, `min`, `max`, `range` of `minmax`, and so on; where there is a variance,
    `var0`, `std0` and `var1`, `std1` with the divisors n and n − 1; `min`, `max`, `count` and `nan_count` of
    every norm. A length is called `norm_length`. A mean is in the unit of the data, a variance in its square,
    an `rstd` in its inverse. An attribute that the norm does not have raises `MissingStatisticError`.

    Two objects are equal if all bits of their sums are, over however many tensors. A pickle holds no data of
    the tensors.

    Examples
    --------
    >>> from normcli import fit
    >>> stats = fit([[1.0, 2.0], [3.0, 6.0]], "zscore")
    >>> stats.mean
    array([2., 4.])
    >>> stats.apply([[2.0, 8.0]])
    array([[0., 2.]])
    >>> both = fit([[1.0, 2.0]], "zscore") | fit([[3.0, 6.0]], "zscore")
    >>> both == stats
    True
    """

    __hash__ = None  # type: ignore[assignment]  # `update` changes it

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    # -- what they are of

    @property
    def norm(self) -> str:
        """The short name of the norm."""
        return self._stats.subject.request.norm

    @property
    def samples(self) -> int:
        """The number of samples, along the batch axis."""
        return self._stats.samples

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of a table's columns, along the last axis; None without names."""
        return self._stats.subject.columns

    @property
    def groups(self) -> tuple[Any, ...] | None:
        """The groups of rows, one for each row of the statistics; None where rows were not grouped.

        A group is a text, or None for rows whose label is missing; where several columns group rows, it is a
        tuple of these. Missing labels come first, then numbers by their size, then texts.
        """
        labels = self._stats.subject.labels
        return None if not labels else tuple(label if label[1:] else label[0] for label in labels)

    @property
    def plan(self) -> Plan:
        """The norm with its axes, groups, eps and other choices, for one tensor of all samples."""
        return self._rounded.plan

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each kind of degenerate group there is: without values, constant, not finite."""
        return warn(self._stats)

    @functools.cached_property
    def _rounded(self) -> Rounded:
        return round_stats(self._stats)

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        fields = self._name_fields()
        if name not in fields:
            raise MissingStatisticError(f"{self.norm} has no statistic {name}; it has {', '.join(fields)}")
        return fields[name]

    def _name_fields(self) -> dict[str, NDArray[Any]]:
        return {_RENAMED.get(name, name): array for name, array in self._rounded.fields.items()}

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._name_fields()})

    def __repr__(self) -> str:
        lengths = ", ".join(
            "N" if axis == self.plan.grid.layout.batch else str(n)
            for axis, n in enumerate(self._stats.subject.shape)
        )
        grouped = "" if self.groups is None else f", {format_count(len(self.groups), 'group')}"
        return f"<Statistics: {self.norm} of ({lengths}), {self.samples:,} samples{grouped}>"

    def __str__(self) -> str:
        return format_text(answer_fit(self._stats, self._rounded), View())

    def _repr_html_(self) -> str:
        return write_html(answer_fit(self._stats, self._rounded), View())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Statistics):
            return NotImplemented
        mine, theirs = (
            {name: (array.dtype, array.shape, array.tobytes()) for name, array in members.items()}
            for members in (
                describe_stats(one._stats._replace(files=0, shards=one._stats.partial)) for one in (self, other)
            )
        )
        return mine == theirs

    def __getstate__(self) -> dict[str, Any]:
        return {"_stats": self._stats}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._stats = copy.deepcopy(state["_stats"])  # arrays of its own: those of joblib may be read-only

    # -- more data

    def update(
        self,
        x: Any,
        *,
        by: Sequence[Any] | None = None,
        nan: NanName | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Add another tensor to these statistics, in place, and return `self`.

        Parameters
        ----------
        x : array_like
            A tensor of the earlier tensors' dtype and shape; the number of samples may differ. The columns of a
            table are matched by name.
        by : sequence, optional
            The group of each row; required if rows are grouped, refused otherwise.
        nan : {"raise"}, optional
            "raise" refuses NaN in `x`. None: the rule for NaN is that of the earlier tensors.
        threads : int, optional
            The most threads to work with; None: all processors.

        Raises
        ------
        UsageError
            If the statistics are quantiles, which follow from no sums.
        DataError
            If shape, columns, dtype or grouping of `x` differ from the earlier tensors', or a NaN is refused;
            the statistics are then unchanged.
        """
        subject = self._stats.subject
        if subject.plan(1).norm.divisor.measurement is Measurement.QUANTILES:
            raise UsageError(f"{self.norm} has quantiles, which follow from no sums: fit all data at once")
        rule = NanRule.OMIT if self._stats.omits_nan else NanRule.PROPAGATE
        added = fit_sums(x, subject.request, nan or rule, threads, subject.columns, by, is_update=True)
        if len(added.subject.by or ()) == len(subject.by or ()):
            added = added._replace(subject=added.subject._replace(by=subject.by))
        self._stats = merge_stats(self._stats, added, "the statistics", "x")
        self.__dict__.pop("_rounded", None)
        return self

    def __or__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        return Statistics(merge_stats(copy.deepcopy(self._stats), other._stats, "the one", "the other"))

    # -- their use

    def apply(
        self,
        x: Any,
        *,
        by: Sequence[Any] | None = None,
        gamma: ArrayLike | None = None,
        beta: ArrayLike | None = None,
        eps: float | None = None,
        dtype: DTypeLike | None = None,
        threads: int | None = None,
        partial: bool = False,
    ) -> Any:
        """Normalize a tensor with these statistics.

        Parameters
        ----------
        x : array_like
            A tensor with the groups of these statistics, such as their channels; the reduced axes may have
            other lengths. The columns of a table are matched by name; further columns pass through.
        by : sequence, optional
            The group of each row; required if rows are grouped, refused otherwise.
        gamma, beta : array_like, optional
            Scale and shift: y = gamma · x̂ + beta.
        eps : float, optional
            An eps in place of the one that the statistics were fitted with.
        dtype : dtype, optional
            The dtype of the result. Default: that of `x`, or float64 for integers.
        threads : int, optional
            The most threads to work with; None: all processors.
        partial : bool
            True: the statistics may lack shards of `normcli fit --shard I/N`. False: that is an error.

        Returns
        -------
        ndarray, or a tensor of the library of `x`
            The normalized tensor, in the shape of `x`; each element is exact, rounded once.

        Raises
        ------
        UsageError
            If `by` is missing or is given to statistics of all rows.
        DataError
            If `x` has other groups, lacks a column, or has a row of a group without statistics; if shards are
            missing.
        """
        return self._use(locals(), inverts=False)

    def invert(self, y: Any, **options: Any) -> Any:
        """Undo `apply`: return x = (y − beta) / gamma · divisor + mean, each value rounded once.

        `options` are the keyword arguments of `apply`, and the errors are the same. A gamma of 0 raises
        `UsageError`: the values that it multiplied are lost.
        """
        given = inspect.signature(Statistics.apply).bind(self, y, **options)
        given.apply_defaults()
        return self._use(given.arguments, inverts=True)

    def _use(self, given: Mapping[str, Any], *, inverts: bool) -> Any:
        """Return a tensor normalized with these statistics, or with `inverts` restored from normalized values.

        `given` has the arguments of `apply`.
        """
        x, by = given["x"], given["by"]
        if not given["partial"]:
            require_all(self._stats.shards, "use")
        affine = {name: given[name] for name in ("gamma", "beta")}
        loaded = {name: None if a is None else read_numbers(a, name) for name, a in affine.items()}
        if (by is None) != (self._stats.subject.by is None):
            rows = "groups of rows: give" if by is None else "all rows: leave out"
            raise UsageError(f"these statistics are of {rows} by")
        output = None if given["dtype"] is None else name_output_dtype(given["dtype"])
        use = Use(self._stats, loaded["gamma"], loaded["beta"], given["eps"], output)
        lazy = find_lazy(x)
        taken = take_columns(x, "x", use.wanted) if lazy is None else lazy.taken
        taken = arrange_axes(taken, self._stats.subject.request.layout)
        if lazy is not None:
            refuse_groups(by)
            return taken.give(lazy.work.use_statistics(use, taken.values, inverts=inverts))
        tensor = Tensor(taken.values, "x", by=group_rows(by, taken.values))
        return taken.give(use_stats(use, tensor, None, Effort(threads=given["threads"]), inverts=inverts)[0])

    # -- kept

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a stats file (`.npz`), which `load` and the command line read.

        Raises
        ------
        DataError
            If writing fails; a file that was there before is unchanged.
        """
        write_stats(str(path), self._stats, self._rounded.fields)
