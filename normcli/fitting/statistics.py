"""Statistics over files: exact sums of each group, the statistics rounded once from them, and their merging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, name_subject
from normcli.fitting.by_column import number_groups_of, sort_labels
from normcli.fitting.shards import join_shards
from normcli.fitting.subject import has_images
from normcli.fitting.sums import Sums, find_ends, find_image_std, solve_sums
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import solve
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.fitting.shards import Shards
    from normcli.fitting.subject import Subject
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.order_statistics import Quantiles
    from normcli.numerics.statistics.solution import Measured
    from normcli.tensors.tables.numerals import Label


_NAMED = 3
"""The most groups that a warning names."""


class Stats(NamedTuple):
    """Statistics over files.

    Parameters
    ----------
    subject : Subject
    omits_nan : bool
        Whether NaN is left out.
    files, samples : int
        The numbers of files and of samples.
    sums : Sums
        The exact sums of each group.
    quantiles : Quantiles or None
        The quantiles of norms that divide by a range of quantiles; they cannot be merged.
    shards : Shards or None
        The parts of a fit by several commands that these statistics hold; None for a whole fit.
    """

    subject: Subject
    omits_nan: bool
    files: int
    samples: int
    sums: Sums
    quantiles: Quantiles | None = None
    shards: Shards | None = None

    @property
    def partial(self) -> Shards | None:
        """`shards` if some shards of the fit are missing; None if none is, or the fit was not divided."""
        return self.shards if self.shards is not None and self.shards.missing else None

    def take_columns(self, names: tuple[str, ...]) -> Stats:
        """Return the statistics of the columns with these names, in this order.

        `self` is returned unchanged if columns have no statistics of their own (the last axis is reduced, or
        split into groups), or if a name belongs to no column or to several.
        """
        grid = self.subject.plan(self.samples).grid
        columns = grid.group_columns or ()
        if any(columns.count(name) != 1 for name in names):
            return self
        numbers = np.arange(grid.group_count).reshape(grid.stats_shape)
        places = numbers[..., [columns.index(name) for name in names]].reshape(-1)
        subject = self.subject._replace(columns=names, shape=(*self.subject.shape[:-1], len(names)))
        return self.take(places, subject)

    def take(self, groups: NDArray[np.intp], subject: Subject) -> Stats:
        """Return the statistics of groups, chosen by their numbers in C order, for another subject.

        `subject` is the norm, shape and columns of the result; that it fits the chosen groups is not checked.
        """
        quantiles = self.quantiles
        if quantiles is not None:
            count = quantiles.count if np.ndim(quantiles.count) == 0 else quantiles.count[groups]
            values, parts = quantiles.values.map(lambda part: part[groups]), quantiles.parts[groups]
            quantiles = quantiles._replace(count=count, values=values, parts=parts)
        return self._replace(subject=subject, sums=self.sums.take(groups), quantiles=quantiles)

    def add(self, other: Stats) -> Stats:
        """Return the statistics over the files of `self` and `other`.

        Both must have the same subject, except for the labels of grouped rows. The sums of `self` are changed
        in place, unless `other` has new labels.

        Raises
        ------
        DataError
            If `self` and `other` hold the same shard, or are not shards of one fit.
        """
        shards = join_shards(self.shards, other.shards)
        files, samples = self.files + other.files, self.samples + other.samples
        labels = sort_labels({*self.subject.labels, *other.subject.labels})
        added = self.spread(labels)
        added.sums.merge(other.spread(labels).sums)
        return added._replace(files=files, samples=samples, shards=shards)

    def spread(self, labels: tuple[Label, ...]) -> Stats:
        """Return statistics whose grouped rows have these `labels`, which must include all present labels.

        The groups of new labels have no values. The result is `self` if the labels are the present ones;
        otherwise its sums are new arrays.
        """
        if labels == self.subject.labels:
            return self
        numbers, width = {label: number for number, label in enumerate(labels)}, self.subject.shape[-1]
        sums = Sums.zeros(len(labels) * width)
        sums.merge(self.sums, number_groups_of([numbers[label] for label in self.subject.labels], width))
        return self._replace(subject=self.subject._replace(labels=labels), sums=sums)


class Rounded(NamedTuple):
    """Statistics of each group, rounded once, each of the shape `Grid.stats_shape`.

    Parameters
    ----------
    plan : Plan
        The plan for a tensor of all samples.
    fields : dict of ndarray
        Name → values: the norm's own statistics with its ddof; for a norm with a deviation `var0`, `std0`
        (ddof 0) and `var1`, `std1` (ddof 1), except for its own ddof; `image_std`, the mean of the samples' own
        standard deviations, if samples have several values of a group; `min`, `max`, `count`, `nan_count`.
    """

    plan: Plan
    fields: dict[str, NDArray[np.generic]]


def round_stats(stats: Stats) -> Rounded:
    """Return the statistics that follow from exact sums or quantiles, by name, each rounded once."""
    plan = stats.subject.plan(stats.samples)
    ends = find_ends(stats.sums, omits_nan=stats.omits_nan)
    with np.errstate(all="ignore"):
        measured = find_moments(plan, stats)
        fields: dict[str, NDArray[np.generic]] = dict(solve(plan, measured).statistics)
        if "std" in fields:
            for ddof in {0, 1} - {plan.spec.ddof}:
                found = solve(plan.change_spec(ddof=ddof), measured).statistics
                fields |= {f"{name}{ddof}": found[name] for name in ("var", "std")}
        if has_images(plan):
            fields["image_std"] = find_image_std(stats.sums, omits_nan=stats.omits_nan)
    count = ends.count.astype(np.int64)
    fields |= {"min": ends.low, "max": ends.high, "count": count, "nan_count": stats.sums.nan}
    shape = plan.grid.stats_shape
    return Rounded(plan, {name: values.reshape(shape) for name, values in fields.items()})


def warn(stats: Stats) -> tuple[str, ...]:
    """Return warnings about groups, a line for each kind that there is; an empty tuple if all groups are sound.

    The kinds are groups without a name, without values, with NaN (unless it is omitted), with infinities, with
    at most ddof values, and with all values equal.
    """
    sums = stats.sums
    spread = sums.nan > 0
    infinite = (sums.above + sums.below) > 0
    counts = sums.count + sums.above + sums.below
    empty = (counts == 0) & (stats.omits_nan | (sums.nan == 0))
    few, ddof = find_few(stats), stats.subject.plan(1).spec.ddof
    constant = ~find_varying(sums) & ~infinite & ~empty & ~few
    kinds = (
        (empty, "no values"),
        (spread & (not stats.omits_nan), "NaN spreads; --nan omit leaves such values out"),
        (infinite, "infinite values"),
        (few, f"at most {format_count(ddof, 'value')} against ddof {ddof}, so the variance is NaN"),
        (constant, "constant"),
    )
    is_unnamed = any(not cell for label in stats.subject.labels for cell in label)
    unnamed = ("rows whose group has no name make one group",) if is_unnamed else ()
    return (*unnamed, *(_format_warning(stats.subject, chosen, kind) for chosen, kind in kinds if chosen.any()))


def find_few(stats: Stats) -> NDArray[np.bool_]:
    """Return, for each group, whether it has values but at most ddof of them, so that its variance is NaN."""
    count = stats.sums.count
    return np.asarray((count > 0) & (count <= stats.subject.plan(1).spec.ddof))


def find_varying(sums: Sums) -> NDArray[np.bool_]:
    """Return, for each group, whether it holds two values that differ."""
    return np.asarray((sums.low.hi != sums.high.hi) | (sums.low.lo != sums.high.lo))


def warn_of_nan(stats: Stats) -> tuple[str, ...]:
    """Return warnings that name the groups whose statistics are NaN, one for each reason; () without any."""
    spread = (stats.sums.nan > 0) & (not stats.omits_nan)
    few, ddof = find_few(stats) & ~spread, stats.subject.plan(1).spec.ddof
    values = format_count(ddof, "value")
    kinds = (
        (spread, "the statistics are NaN, and so is all that they are used on; fit --nan omit leaves NaN out"),
        (few, f"at most {values} against ddof {ddof}, so all that they are used on is NaN"),
    )
    return tuple(_format_warning(stats.subject, chosen, kind) for chosen, kind in kinds if chosen.any())


def _format_warning(subject: Subject, chosen: NDArray[np.bool_], kind: str) -> str:
    numbers = np.flatnonzero(chosen)
    names = ", ".join(subject.name_group(int(number)) for number in numbers[:_NAMED])
    more = f", … ({len(numbers)} groups)" if len(numbers) > _NAMED else ""
    return f"{names}{more}: {kind}"


def find_moments(plan: Plan, stats: Stats) -> Measured:
    """Return the moments or quantiles of fitted statistics, unrounded, to normalize a tensor with.

    They are pairs of doubles, hi + lo. The plan may be for any number of samples.
    """
    if stats.quantiles is not None:
        return stats.quantiles
    with np.errstate(all="ignore"):
        return solve_sums(plan, stats.sums, omits_nan=stats.omits_nan)


def merge_stats(first: Stats, other: Stats, first_name: str, name: str) -> Stats:
    """Return the statistics over all tensors of two `Stats` together: exact, the same in either order.

    The sums of `first` may be changed in place. Columns of `other` are put in the order of those of `first`.

    Parameters
    ----------
    first, other : Stats
    first_name, name : str
        The names of `first` and `other` in messages.

    Raises
    ------
    DataError
        If the two differ in norm, options, shape, columns, dtype or rule for NaN, hold quantiles, or hold the
        same shard.
    """
    other = _arrange(other, first.subject.columns, name)
    mine, theirs = first.subject, other.subject
    for what, a, b in (
        ("norm", mine.request.norm, theirs.request.norm),
        ("shape", mine.shape, theirs.shape),
        ("dtype", mine.dtype, theirs.dtype),
        ("the column that groups rows", *(", ".join(one.by or ("none",)) for one in (mine, theirs))),
        ("NaN", *("omitted" if stats.omits_nan else "propagated" for stats in (first, other))),
        *((field, getattr(mine.request, field), getattr(theirs.request, field)) for field in Request._fields),
    ):
        if a != b:
            raise DataError(
                f"{name} and {first_name} differ in {what}: {_format_choice(b)} and {_format_choice(a)}; "
                "they cannot be merged"
            )
    if first.quantiles is not None:
        raise DataError(
            f"{name} and {first_name} hold quantiles, from which those of both do not follow; fit all at once"
        )
    with name_subject(f"{first_name} and {name}"):
        added = first.add(other)
    return added._replace(subject=added.subject._replace(columns=mine.columns or theirs.columns))


def _arrange(stats: Stats, wanted: tuple[str, ...] | None, name: str) -> Stats:
    """Return statistics with their columns in the wanted order; unchanged if columns or `wanted` have no names.

    Parameters
    ----------
    stats : Stats
    wanted : tuple of str or None
    name : str
        The name of the statistics in messages.

    Raises
    ------
    DataError
        If the columns have other names than the wanted ones, or their order differs and either a name is there
        twice or columns have no statistics of their own.
    """
    names = stats.subject.columns
    if wanted is None or names is None or names == wanted:
        return stats
    arranged = stats.take_columns(wanted)
    if sorted(names) != sorted(wanted) or arranged is stats:
        raise DataError(f"{name} is of the columns {', '.join(names)}, not of {', '.join(wanted)}")
    return arranged


def _format_choice(value: Any) -> str:
    return "the norm's own" if value is None else str(value)
