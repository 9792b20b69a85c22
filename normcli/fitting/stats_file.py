"""The stats file: exact sums between calls, in an `.npz` that NumPy reads without pickle.

Its members are

- `schema` ("normcli-stats/1");
- what the statistics are of: `norm`, `axes`, `shape` (0 for the batch axis), `dtype`, `nan` (propagate or
  omit), and every other option by its name, where NaN, -1 and "" stand for the norm's own number, integer and
  word;
- where the tensors were tables with names, `columns`: the names of the places of the last axis;
- `files` and `samples`, how many;
- what is kept of each group, with the shape of the statistics as the last axes: `count` (finite values),
  `nan_count`, `inf_count` (of inf, then -inf), `min`, `max`, `images`; and as integers the exact sums of x,
  of x² and of the samples' own deviations, Σ digit · 2^(32 · (low + place)):
  `sum`, `square`, `image_std_sum` (places first),
  each with its `…_low`;
- where the norm divides by quartiles, `quartile_values` and `quartile_quarters`: for each of them the values
  that it lies between, and how many quarters of the way;
- for other readers, rounded from these: `mean`, `var` and what else the norm has (a length as `norm_length`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.errors import DataError, NormError
from normcli.fitting.subject import Subject, require_fittable
from normcli.fitting.sums import Sums
from normcli.norms.divisors import Measurement
from normcli.norms.options import OPTIONS, OptionKind
from normcli.norms.request import Request
from normcli.numerics.fixed import Fixed
from normcli.numerics.order_statistics import Quartiles
from normcli.tensors.npz import load_members, require_member, write_npz
from normcli.tensors.whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.norms.options import Option

SCHEMA = "normcli-stats/1"

_STORED = tuple(option for option in OPTIONS if option.kind not in (OptionKind.AXES, OptionKind.DTYPE))
"""The options that are stored by their names; axes are, as numbers, and a dtype is that of the tensors."""

_OPEN: Mapping[OptionKind, float] = {OptionKind.INTEGER: -1, OptionKind.NUMBER: np.nan}
"""What stands for an option that the caller left open; of words, the empty one."""

_COUNTS = {"count": "count", "nan": "nan_count", "images": "images"}
_EXACT = {"total": "sum", "square": "square", "deviation": "image_std_sum"}


class Stats(NamedTuple):
    """Statistics over files.

    Parameters
    ----------
    subject : Subject
    omits_nan : bool
        Whether NaN does not count.
    files, samples : int
        Over how many.
    sums : Sums
    quartiles : Quartiles or None
        Where the norm divides by their range; they cannot be merged.
    """

    subject: Subject
    omits_nan: bool
    files: int
    samples: int
    sums: Sums
    quartiles: Quartiles | None = None

    def add(self, other: Stats) -> Stats:
        """Return the statistics over the files of both, which have one subject; the sums are added in place."""
        self.sums.merge(other.sums)
        return self._replace(files=self.files + other.files, samples=self.samples + other.samples)


def write_stats(path: str, stats: Stats, rounded: Mapping[str, NDArray[Any]]) -> None:
    """Write a stats file, whole or not at all.

    Parameters
    ----------
    path : str
    stats : Stats
    rounded : mapping
        What readers that know nothing of exact sums find beside them.

    Raises
    ------
    DataError
        If writing fails; what stood there before still does.
    """
    with open_whole(path) as stream:
        members = _describe(stats)
        write_npz(stream, {**members, **{_name_rounded(n, members): array for n, array in rounded.items()}})


def _name_rounded(name: str, members: Mapping[str, Any]) -> str:
    """Return the member that a rounded statistic is: a length is called `norm`, as is the name of the norm."""
    return f"{name}_length" if name in members and name == "norm" else name


def _describe(stats: Stats) -> dict[str, NDArray[Any]]:
    request, sums = stats.subject.request, stats.sums
    shape = stats.subject.plan(1).grid.stats_shape
    members: dict[str, Any] = {
        "schema": SCHEMA,
        "norm": request.norm,
        "axes": np.array(request.axes, dtype=np.int64),
        "shape": np.array(stats.subject.shape, dtype=np.int64),
        "dtype": stats.subject.dtype,
        "nan": "omit" if stats.omits_nan else "propagate",
        "files": stats.files,
        "samples": stats.samples,
        **{option.name: _store(option, getattr(request, option.name)) for option in _STORED},
        "inf_count": np.stack([sums.above, sums.below]).reshape(2, *shape),
        "min": sums.low.reshape(shape),
        "max": sums.high.reshape(shape),
    }
    if stats.subject.columns is not None:
        members["columns"] = np.array(stats.subject.columns, dtype=np.str_)
    if stats.quartiles is not None:
        members["quartile_values"] = stats.quartiles.values.reshape(*shape, -1)
        members["quartile_quarters"] = stats.quartiles.quarters.reshape(*shape, -1)
    members |= {name: getattr(sums, field).reshape(shape) for field, name in _COUNTS.items()}
    for field, name in _EXACT.items():
        settled = getattr(sums, field).settle()
        members[name] = settled.digits.reshape(-1, *shape)
        members[f"{name}_low"] = settled.low
    return {name: np.asarray(member) for name, member in members.items()}


def _store(option: Option, value: Any) -> Any:
    return _OPEN.get(option.kind, "") if value is None else value


def _restore(option: Option, members: Mapping[str, NDArray[Any]]) -> Any:
    """Return an option's value; None if it was left open, as are those that files of earlier versions lack."""
    if option.name not in members:
        return None
    value = members[option.name].item()
    return None if value == _store(option, None) or value != value else option.read(value)  # NaN is not itself


def read_stats(path: str) -> Stats:
    """Return what a stats file holds.

    Raises
    ------
    DataError
        If there is no such file, or it is damaged, of another version, or no stats file.
    """
    try:
        members = load_members(path, "stats", SCHEMA)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    try:
        return _read_members(members)
    except (NormError, KeyError, ValueError, TypeError) as error:
        raise DataError(f"{path} is no stats file of normcli: its members do not fit together") from error


def _read_members(members: Mapping[str, NDArray[Any]]) -> Stats:
    def text(name: str) -> str:
        return str(members[name][()])

    options = {option.name: _restore(option, members) for option in _STORED}
    request = Request(text("norm"), axes=tuple(members["axes"].tolist()), **options)
    lengths, columns = tuple(members["shape"].tolist()), members.get("columns")
    if columns is not None and (columns.dtype.kind != "U" or columns.shape != lengths[-1:]):
        raise ValueError("columns")
    names = None if columns is None else tuple(columns.tolist())
    subject = Subject(request, lengths, text("dtype"), names)
    plan = subject.plan(1)
    require_fittable(plan)
    shape = plan.grid.stats_shape

    def take(name: str, dtype: type[np.generic], *more: int) -> NDArray[Any]:
        return require_member(members, name, dtype, (*more, *shape)).reshape(*more, -1)

    def take_exact(name: str) -> Fixed:
        return Fixed(take(name, np.int64, len(members[name])), int(members[f"{name}_low"]))

    above, below = take("inf_count", np.int64, 2)
    total, square, deviation = map(take_exact, _EXACT.values())
    count, nan_count, images = (take(name, np.int64) for name in _COUNTS.values())
    low, high = take("min", np.float64), take("max", np.float64)
    if any((array < 0).any() for array in (above, below, count, nan_count, images)):
        raise ValueError("a count is negative")
    sums = Sums(total, square, count, nan_count, above, below, low, high, deviation, images)
    nan = text("nan")
    if nan not in ("omit", "propagate"):
        raise ValueError(nan)
    quartiles = None
    if plan.norm.divisor.measurement is Measurement.QUARTILES:
        quartiles = _read_quartiles(members, shape, sums)
    return Stats(subject, nan == "omit", int(members["files"]), int(members["samples"]), sums, quartiles)


def _read_quartiles(members: Mapping[str, NDArray[Any]], shape: tuple[int, ...], sums: Sums) -> Quartiles:
    values = require_member(members, "quartile_values", np.float64, (*shape, 6))
    quarters = require_member(members, "quartile_quarters", np.int64, (*shape, 3))
    if ((quarters < 0) | (quarters > 3)).any():
        raise ValueError("quartile_quarters")
    count = (sums.count + sums.above + sums.below).astype(np.float64)
    return Quartiles(count, values.reshape(-1, 6), quarters.reshape(-1, 3))


def merge_stats(first: Stats, other: Stats, first_name: str, name: str) -> Stats:
    """Return the statistics over the files of both: exact, so that their order does not matter.

    Raises
    ------
    DataError
        If they are not of the same norm, options, shape, columns and dtype.
    """
    other = _arrange(other, first.subject.columns, name)
    mine, theirs = first.subject, other.subject
    for what, a, b in (
        ("norm", mine.request.norm, theirs.request.norm),
        ("shape", mine.shape, theirs.shape),
        ("dtype", mine.dtype, theirs.dtype),
        ("NaN", *("omitted" if stats.omits_nan else "propagated" for stats in (first, other))),
        *((field, getattr(mine.request, field), getattr(theirs.request, field)) for field in Request._fields),
    ):
        if a != b:
            raise DataError(
                f"{name} and {first_name} differ in {what}: {_format_choice(b)} and {_format_choice(a)}; "
                "they cannot be merged"
            )
    if first.quartiles is not None:
        raise DataError(
            f"{name} and {first_name} hold quartiles, from which those of both do not follow; fit all at once"
        )
    added = first.add(other)
    return added._replace(subject=mine._replace(columns=mine.columns or theirs.columns))


def _arrange(stats: Stats, wanted: tuple[str, ...] | None, name: str) -> Stats:
    """Return statistics with their columns in the order in which the names of these are wanted.

    Raises
    ------
    DataError
        If there are others.
    """
    names, grid = stats.subject.columns, stats.subject.plan(1).grid
    if wanted is None or names is None or names == wanted:
        return stats
    last = len(grid.shape) - 1
    if sorted(names) != sorted(wanted) or len(set(names)) < len(names) or last not in grid.kept or grid.groups:
        raise DataError(f"{name} is of the columns {', '.join(names)}, not of {', '.join(wanted)}")
    order = [names.index(column) for column in wanted]
    groups = (
        np.arange(grid.group_count).reshape(grid.stats_shape).take(order, grid.kept.index(last)).reshape(-1)
    )
    return stats._replace(subject=stats.subject._replace(columns=wanted), sums=stats.sums.take(groups))


def _format_choice(value: Any) -> str:
    return "the norm's own" if value is None else str(value)
