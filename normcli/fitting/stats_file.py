"""The stats file: exact sums between calls, in an `.npz` that NumPy reads without pickle.

Its members are

- `schema`: "normcli-stats/1", or "normcli-stats/2" for grouped rows, which earlier versions refuse;
- the subject: `norm`, `axes`, `shape` (0 for the batch axis), `dtype`, `nan` (propagate or omit), and every
  other option by its name (`range_option`, as a statistic is called `range`), where NaN, -1 and "" stand for
  the norm's own number, integer and word; `feature_axes` as numbers, if they were given;
- if the tensors were tables with names, `columns`: the names of the columns along the last axis;
- if rows were grouped by a column of a table, `by`, the column's name, and `by_values`, its values, along the
  first axis of all statistics; for several columns all their names, and a row of values for each group;
  `by_missing`, 1 for each missing value, if others are empty texts (without it, empty ones are missing);
- `files` and `samples`, their numbers; for a fit by several commands, `shard_count`, the number of all parts,
  `shards`, the numbers of the parts held, and `shard_inputs`, a digest of the inputs that were shared out;
- for each group, with the shape of the statistics as the last axes: `count` (finite values), `nan_count`,
  `inf_count` (inf, then -inf), `min`, `max`, `images` (samples with a deviation); and the exact sums of x, of
  x² and of the samples' deviations as integers, Σ digit · 2^(32 · (low + place)): `sum`, `square`,
  `image_std_sum` (places first), each with its `…_low`;
- if the norm divides by a range of quantiles, `quantile_values` and `quantile_parts`: for the median and both
  quantiles, the two values between which each lies, and the part of the way from the first, as a numerator
  over the least common denominator of the shares: 4 for quartiles, 10 for 10 and 90 per cent;
- if float64 rounds integers of `min`, `max` or `quantile_values`, the rests, each as `…_rest`;
- for other readers, rounded from the above: `mean`, `var` with the norm's ddof and its other statistics (a
  length as `norm_length`), `var0` and `var1` with ddof 0 and 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import MOST_AXES
from normcli.errors import DataError, NormError
from normcli.fitting.by_column import sort_labels
from normcli.fitting.shards import Shards
from normcli.fitting.statistics import Stats, round_stats
from normcli.fitting.stored_sums import COUNTS, EXACT, describe_pair, read_quantiles, read_sums
from normcli.fitting.subject import Subject, is_dtype_name, require_fittable, require_groupable
from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.option_kinds import OptionKind
from normcli.norms.options import OPTIONS
from normcli.norms.request import Request
from normcli.printable import format_count
from normcli.tensors.formats.npz import MOST_COUNTED, FileKind, Members, write_npz
from normcli.tensors.many import list_keys
from normcli.tensors.written_whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from numpy.typing import NDArray

    from normcli.norms.option_kinds import Option

SCHEMA = "normcli-stats/1"

GROUPED_SCHEMA = "normcli-stats/2"

_KIND = FileKind(
    "stats",
    (SCHEMA, GROUPED_SCHEMA),
    "normcli fit NORM FILE… -o STATS.npz writes one; --stats-output keeps no exact sums",
)

_STORED = {
    f"{option.name}_option" if option.name in ORDER_STATISTICS else option.name: option
    for option in OPTIONS
    if option.kind not in (OptionKind.AXES, OptionKind.DTYPE, OptionKind.VECTOR, OptionKind.SLICE)
}
"""Name of a member → the option stored in it; an option with the name of a statistic has `_option` behind it.

Axes are stored as numbers; an output dtype is not stored.
"""

_LARGEST = 2**63 - 1
"""The largest number of int64."""

_KINDS: Mapping[OptionKind, tuple[type, Any, Callable[[Members, str], Any]]] = {
    OptionKind.INTEGER: (int, -1, lambda members, name: members.take_integer(name, -1, _LARGEST)),
    OptionKind.FLAG: (int, -1, lambda members, name: members.take_integer(name, -1, 1)),
    OptionKind.NUMBER: (float, np.nan, lambda members, name: members.take_floats(name, ()).item()),
    OptionKind.PAIR: (float, (np.nan, np.nan), lambda members, name: tuple(members.take_floats(name, (2,)))),
}
"""Kind of an option → the type of its member, the value stored if the caller left it open, and its reader."""

_WORD = str, "", Members.take_word
"""Type, value left open and reader of the members of all other kinds of options: words."""

_NAN_RULES = ("omit", "propagate")

_ROUNDING = 2.0**-50
"""The relative error by which versions of this program may round a statistic differently: 4 ulp."""


def write_stats(path: str, stats: Stats, rounded: Mapping[str, NDArray[Any]]) -> None:
    """Write a stats file, whole or not at all.

    `rounded` has the rounded statistics by name, written for other readers. Raises `DataError` if writing fails
    or there are no groups; the old file is then unchanged.
    """
    members = describe_stats(stats)
    with open_whole(path) as stream:
        write_npz(stream, members | _choose_rounded(rounded, members))


def _choose_rounded(rounded: Mapping[str, NDArray[Any]], members: Container[str]) -> dict[str, NDArray[Any]]:
    """Return the rounded statistics that a stats file holds in addition to exact members, by member name.

    `norm`, a length, is called `norm_length`. Statistics with the name of an exact member are left out: the
    exact `count` counts finite values, and the exact `min` is the least of all values but NaN.
    """
    named = {f"{name}_length" if name == "norm" else name: array for name, array in rounded.items()}
    return {name: array for name, array in named.items() if name not in members}


def describe_stats(stats: Stats) -> dict[str, NDArray[Any]]:
    """Return the members of a stats file that hold statistics exactly, by name, without rounded statistics.

    Raises `DataError` if there are no groups.
    """
    request, sums, by = stats.subject.request, stats.sums, stats.subject.by
    shape = stats.subject.plan(1).grid.stats_shape
    if 0 in shape:
        raise DataError("there are no groups, and so no statistics to keep")
    members: dict[str, Any] = {
        "schema": SCHEMA if by is None else GROUPED_SCHEMA,
        "norm": request.norm,
        "axes": np.array(request.axes, dtype=np.int64),
        "shape": np.array(stats.subject.shape, dtype=np.int64),
        "dtype": stats.subject.dtype,
        "nan": _NAN_RULES[not stats.omits_nan],
        "files": stats.files,
        "samples": stats.samples,
        **{name: _store(option, getattr(request, option.name)) for name, option in _STORED.items()},
        **({} if request.feature_axes is None else {"feature_axes": np.array(request.feature_axes, np.int64)}),
        "inf_count": np.stack([sums.above, sums.below]).reshape(2, *shape),
        **describe_pair("min", sums.low.map(lambda a: a.reshape(shape))),
        **describe_pair("max", sums.high.map(lambda a: a.reshape(shape))),
    }
    if stats.subject.columns is not None:
        members["columns"] = np.array(stats.subject.columns, dtype=np.str_)
    if by is not None:
        cells, width = (
            [cell for label in stats.subject.labels for cell in label],
            (len(by),) if len(by) > 1 else (),
        )
        shown = np.array([cell or "" for cell in cells], dtype=np.str_)
        members |= {"by": np.array(by).reshape(width), "by_values": shown.reshape(-1, *width)}
        if "" in shown:
            members["by_missing"] = np.array([cell is None for cell in cells], np.int64).reshape(-1, *width)
    if stats.shards is not None:
        members |= {"shard_count": stats.shards.of, "shards": np.array(stats.shards.held, np.int64)}
        members |= {"shard_inputs": stats.shards.inputs} if stats.shards.inputs else {}
    if stats.quantiles is not None:
        values = stats.quantiles.values.map(lambda a: a.reshape(*shape, -1))
        members |= describe_pair("quantile_values", values)
        members["quantile_parts"] = stats.quantiles.parts.reshape(*shape, -1)
    members |= {name: getattr(sums, field).reshape(shape) for field, name in COUNTS.items()}
    for field, name in EXACT.items():
        members |= getattr(sums, field).describe(name, shape)
    return {name: np.asarray(member) for name, member in members.items()}


def _store(option: Option, value: Any) -> NDArray[Any]:
    """Return an option's value as it is stored in a member; None is one that the caller of `fit` left open."""
    kind, left_open, _ = _KINDS.get(option.kind, _WORD)
    return np.array(left_open if value is None else value, kind)


def _restore(name: str, option: Option, members: Members) -> Any:
    """Return an option's value; None if the caller of `fit` left it open, or an old file lacks the member."""
    if name not in members:
        return None
    kind, left_open, take = _KINDS.get(option.kind, _WORD)
    value = take(members, name)
    is_open = np.isnan(value).any() if kind is float else value == left_open
    return None if is_open else option.read(value)


def is_stats_file(path: str) -> bool:
    """Whether a file has members with the names `schema`, `files` and `samples`; no member is read."""
    return {"schema", "files", "samples"} <= {*list_keys(path)}


def read_stats(path: str) -> Stats:
    """Return the statistics of a stats file.

    Raises
    ------
    DataError
        If there is no such file, or it is damaged, of another version, or no stats file; the message names the
        member of the archive that is wrong.
    """
    try:
        members = Members(path, _KIND)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    subject = _read_subject(members)
    plan = subject.plan(1)
    files, samples = (members.take_integer(name, 0, MOST_COUNTED) for name in ("files", "samples"))
    omits_nan = members.take_word("nan", _NAN_RULES) == _NAN_RULES[0]
    sums = read_sums(members, plan.grid.stats_shape, samples)
    size = samples * plan.grid.group_size
    counted = sums.size
    if subject.by is not None:  # a row counts in one group only
        counted = counted.reshape(plan.grid.stats_shape).sum(axis=0)
    members.require(
        "count",
        counted == size,
        counted,
        f"with the other counts, and a group has {format_count(size, 'value')}",
    )
    quantiles = None
    if plan.norm.divisor.measurement is Measurement.QUANTILES:
        quantiles = read_quantiles(members, plan, sums)
    stats = Stats(subject, omits_nan, files, samples, sums, quantiles, _read_shards(members))
    _hold_rounded(members, stats)
    return stats.spread(sort_labels(subject.labels))


def _read_shards(members: Members) -> Shards | None:
    """Return the shards that the statistics hold, None for a whole fit; raise `DataError` for wrong ones."""
    if "shards" not in members:
        return None
    count = members.take_integer("shard_count", 2, MOST_COUNTED)
    held = members.take_integers("shards", members.get_shape("shards"), 1, count).reshape(-1)
    members.require("shards", np.diff(held) > 0, held[:-1], "and the next is not larger")
    if not held.size:
        members.refuse("shards", f"names none of {count}")
    inputs = members.take_word("shard_inputs") if "shard_inputs" in members else ""
    return Shards(count, tuple(held.tolist()), inputs)


def _hold_rounded(members: Members, stats: Stats) -> None:
    """Raise `DataError` if a rounded statistic in the file is more than 4 ulp from what its exact sums give."""
    for name, exact in _choose_rounded(round_stats(stats).fields, describe_stats(stats)).items():
        if name in members:
            said = members.take_floats(name, exact.shape)
            right = np.isclose(said, exact, rtol=_ROUNDING, atol=0.0, equal_nan=True)
            members.require(name, right, said, "which is not what its exact sums give")


def _read_subject(members: Members) -> Subject:
    """Return the norm, shape, dtype and columns that the statistics in a file are of.

    Raises `DataError` if these members of the file are wrong or do not fit each other.
    """
    lengths = _take_list(members, "shape")
    rank = len(lengths)
    axes = _take_list(members, "axes", -rank, rank - 1)
    features = _take_list(members, "feature_axes", -rank, rank - 1) if "feature_axes" in members else None
    names = members.take_words("columns", *lengths[-1:]) if "columns" in members and rank else None
    dtype = members.take_word("dtype")
    if not is_dtype_name(dtype):
        members.refuse("dtype", f"is {dtype!r}, and no dtype of real numbers")
    options = {option.name: _restore(name, option, members) for name, option in _STORED.items()}
    request = Request(members.take_word("norm"), axes=axes, feature_axes=features, **options)
    subject, is_grouped = Subject(request, lengths, dtype, names), members.take_word("schema") == GROUPED_SCHEMA
    try:
        plan = subject.plan(1)
        require_fittable(plan)
        if is_grouped:
            require_groupable(plan)
    except NormError as error:
        members.refuse("its norm", f"does not fit the shape and the options: {error}")
    batch = plan.grid.layout.batch or 0
    if lengths[batch]:
        members.refuse("shape", f"is {lengths}, and the length of its batch axis is not 0")
    return _read_groups(members, subject) if is_grouped else subject


def _read_groups(members: Members, subject: Subject) -> Subject:
    """Return a copy of `subject` with the grouping columns and the names of the groups from a file.

    Raises `DataError` unless the names are different and sorted.
    """
    width, count = members.get_shape("by")[:1], (*members.get_shape("by_values"), 0)[0]
    by, values = members.take_words("by", *width), members.take_words("by_values", count, *width)
    missing = [int(not value) for value in values]
    if "by_missing" in members:
        missing = members.take_integers("by_missing", (count, *width), 0, 1).reshape(-1).tolist()
    cells = iter([None if gone else value for gone, value in zip(missing, values, strict=True)])
    labels = tuple(zip(*[cells] * len(by), strict=True))
    of_text = tuple(sorted({*labels}, key=lambda label: [cell or "" for cell in label]))
    if not labels or labels not in (sort_labels({*labels}), "quantile_values" not in members and of_text):
        members.refuse("by_values", "is no sorted list of different values")
    return subject._replace(by=by, labels=labels)


def _take_list(members: Members, name: str, low: int = 0, high: int = MOST_COUNTED) -> tuple[int, ...]:
    """Return a member that is a list of up to 32 integers from low to high, one for each axis."""
    shape = members.get_shape(name)
    if len(shape) != 1 or shape[0] > MOST_AXES:
        members.refuse(name, f"has the shape {shape}, and there are up to {MOST_AXES} axes")
    return tuple(members.take_integers(name, shape, low, high).tolist())
