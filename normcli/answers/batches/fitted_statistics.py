"""The answer of `normcli fit` and `normcli merge`: statistics over files, as a document and as code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.answers.calculating.grouped_rows import LABELS, GroupedAnswer, find_field
from normcli.codegen.task import write_numbers
from normcli.documents.document import Line, describe_members, describe_value, flatten_records
from normcli.documents.number_format import format_shape
from normcli.documents.plan_header import build_header, describe_column, describe_plan, list_groups
from normcli.errors import UsageError
from normcli.fitting.statistics import find_moments, warn
from normcli.numerics.statistics.solution import solve
from normcli.printable import format_count, make_printable
from normcli.tensors.formats.json_lists import to_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.fitting.statistics import Rounded, Stats
    from normcli.norms.plan import Plan

_VALUES = ("rstd", "count", "nan_count", "min", "max", "image_std")
"""The fields of the second table; the first has all others."""


_DEVIATIONS = (
    "std: of all values of a channel together",
    "per-image std: the mean of each sample's own, as often quoted for ImageNet",
)
"""The explanations of the two deviations (`std`, `image_std`) in the answer on images."""

_PLACES = {"h", "w"}
"""The axes by which images are recognized."""


class StatisticsAnswer:
    """The document of `normcli fit` and `normcli merge`: statistics over files.

    Parameters
    ----------
    stats : Stats
        The exact sums.
    rounded : Rounded
        The plan, and the statistics by name, rounded to float64.
    """

    def __init__(self, stats: Stats, rounded: Rounded) -> None:
        self.stats = stats
        self.plan, self.fields = rounded

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, two tables with a row for each group and, for images, a line on two kinds of std.

        The second table has rstd, counts, extremes and `image_std`, the first all other statistics. If
        `image_std` was measured and the layout has the axes h and w, a line tells the std over all values of a
        channel from `image_std`, the mean of the std of each image alone.
        """
        stats, norm = self.stats, self.plan.norm
        source = (*_count_files(stats), format_shape(self.plan.grid.shape), stats.subject.dtype)
        counted = f"{self.fields['count'].sum():,} of {format_count(math.prod(self.plan.grid.shape), 'value')}"
        more = (("counting", (counted, "NaN does not")),) if stats.omits_nan else ()
        yield build_header(f"{norm.name} · {norm.title}", self.plan, source, view, more=more)
        has_images = set(self.plan.grid.layout.names) >= _PLACES
        labels = LABELS if has_images else LABELS | {"image_std": "per-sample std"}
        first = [name for name in self.fields if name not in _VALUES]
        for names in (first, [name for name in _VALUES if name in self.fields]):
            yield list_groups(self.plan, {labels.get(name, name): self.fields[name] for name in names}, view)
        if has_images and "image_std" in self.fields:
            yield Line(_DEVIATIONS)

    def data(self) -> Mapping[str, Any]:
        """Return the statistics as a JSON object: plan, files, samples, and under `stats` each by name."""
        subject = describe_members(self.stats.subject, "shape", "dtype")
        return {
            **describe_plan(self.plan, describe_members(self.stats, "files", "samples") | subject),
            "nan": "omit" if self.stats.omits_nan else "propagate",
            **({} if self.stats.partial is None else {"shards": self.stats.partial._asdict()}),
            "stats": describe_value(self.fields),
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one JSON object per group: `group`, its index, and its statistics by name."""
        columns = [to_lists(values.reshape(-1)) for values in self.fields.values()]
        for number, values in enumerate(zip(*columns, strict=True)):
            index = self.plan.grid.group_index(number)
            column = describe_column(self.plan.grid, index)
            yield {"group": index, **column, **dict(zip(self.fields, values, strict=True))}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table: names first, then the index and statistics of each group."""
        grid = self.plan.grid
        column = describe_column(grid, grid.group_index(0)) if grid.group_count else {}
        return flatten_records(self.records(), (*grid.kept_names, *column, *self.fields))

    def field(self, name: str) -> NDArray[np.generic]:
        """Return one field, or raise `UsageError` if there is none of that name."""
        return find_field(self.fields, name)


def answer_fit(stats: Stats, rounded: Rounded) -> StatisticsAnswer | GroupedAnswer:
    """Return the document of statistics over files: a `GroupedAnswer` if rows are grouped by a column."""
    subject, plan = stats.subject, rounded.plan
    if subject.by is None:
        return StatisticsAnswer(stats, rounded)
    source = (*_count_files(stats), subject.dtype)
    columns = subject.columns or tuple(map(str, range(subject.shape[-1])))
    return GroupedAnswer(plan.norm, source, subject.by, subject.labels, columns, rounded.fields, warn(stats))


def _count_files(stats: Stats) -> tuple[str, ...]:
    """Return the numbers of files and samples in words; if shards are missing, the held shards first."""
    files = format_count(stats.files, "file") if stats.files else "part of a file"  # another part counts it
    shards = () if stats.partial is None else (str(stats.partial),)
    return (*shards, files, format_count(stats.samples, "sample"))


def _require(answer: StatisticsAnswer, framework: str, axes: int | None = None) -> Plan:
    plan = answer.plan
    if not {"mean", "std"} <= answer.fields.keys():
        raise UsageError(f"--emit {framework} takes a mean and a deviation; {plan.norm.name} has none")
    if plan.norm.is_partial:
        raise UsageError(f"--emit {framework} has both steps; these statistics were fitted for one or none")
    if axes is not None and len(plan.grid.kept) != axes:
        raise UsageError(
            f"--emit {framework} takes one mean a channel; there is one for {plan.grid.kept_names or 'all'}"
        )
    return plan


def _emit_torchvision(answer: StatisticsAnswer) -> str:
    _require(answer, "torchvision", 1)
    mean, std = (write_numbers(answer.fields[name]) for name in ("mean", "std"))
    lines = ["from torchvision import transforms", "", f"transforms.Normalize(mean={mean}, std={std})"]
    lines += _name_columns(answer)
    if "image_std" in answer.fields:
        image_std = write_numbers(answer.fields["image_std"])
        lines.append(f"# the mean of each image's own std is another number: {image_std}")
    if 0.0 in answer.fields["std"]:
        lines.append("# a channel is constant: torchvision refuses its std of 0; 1 leaves it centred")
    return "\n".join(lines)


def _emit_keras(answer: StatisticsAnswer) -> str:
    plan = _require(answer, "keras")
    axis = repr(plan.grid.kept[0] if len(plan.grid.kept) == 1 else plan.grid.kept) if plan.grid.kept else None
    mean, var = (write_numbers(answer.fields[name]) for name in ("mean", "var"))
    call = f"keras.layers.Normalization(axis={axis}, mean={mean}, variance={var})"
    return "\n".join(["import keras", "", call, *_name_columns(answer)])


_SCALERS = {
    "std": ("StandardScaler", {"mean_": "mean", "var_": "var"}, "with_mean", "with_std"),
    "range": ("MinMaxScaler", {"data_min_": "min", "data_max_": "max", "data_range_": "range"}, "", ""),
    "norm": ("MaxAbsScaler", {"max_abs_": "norm"}, "", ""),
    "iqr": ("RobustScaler", {"center_": "median"}, "with_centering", "with_scaling"),
    "half_range": ("RobustScaler", {"center_": "middle"}, "with_centering", "with_scaling"),
}
"""Divisor → scikit-learn's scaler, statistics by attribute, options for centring and scaling ("" for none)."""


def _emit_sklearn(answer: StatisticsAnswer) -> str:
    """Return Python code that makes a fitted scaler of scikit-learn.

    Raises `UsageError` if scikit-learn has no scaler for the norm.
    """
    spread, request = str(answer.plan.norm.divisor.spread), answer.stats.subject.request
    fields = {name: values.reshape(-1) for name, values in answer.fields.items()}
    spread = "iqr" if spread == "q_range" else spread
    if spread not in _SCALERS or (spread == "norm" and answer.plan.spec.p != math.inf):
        raise UsageError(
            f"--emit sklearn has no scaler for {request.norm}; it has zscore, minmax, maxabs, robust"
        )
    scaler, held, *steps = _SCALERS[spread]
    left_out = dict(zip(steps, (request.no_mean, request.no_scale), strict=True))
    options = [f"{name}=False" for name, is_left_out in left_out.items() if is_left_out]
    scale = solve(answer.plan, find_moments(answer.plan, answer.stats)).divisor.hi.reshape(-1)
    attributes: dict[str, NDArray[Any]] = {name: fields[statistic] for name, statistic in held.items()}
    attributes["scale_"] = scale
    if request.no_mean:
        attributes.pop("center_", None)
    if spread == "range":
        low, high = request.range or (0.0, 1.0)
        options += [f"feature_range=({low!r}, {high!r})"] if request.range else []
        factor = (high - low) / scale
        attributes |= {"scale_": factor, "min_": low - np.multiply(fields["min"], factor)}
    lines = [f"scaler.{name} = np.array({write_numbers(values)})" for name, values in attributes.items()]
    lines.append(f"scaler.n_features_in_ = {len(scale)}")
    if scaler != "RobustScaler":
        counts = fields["count"]
        seen = repr(int(counts[0])) if (counts == counts[:1]).all() else f"np.array({counts.tolist()})"
        lines.append(f"scaler.n_samples_seen_ = {seen}")
    columns = answer.plan.grid.columns
    if columns is not None:
        lines.append(f"scaler.feature_names_in_ = np.array({list(columns)}, dtype=object)")
    return f"""import numpy as np
from sklearn.preprocessing import {scaler}

scaler = {scaler}({", ".join(options)})
""" + "\n".join(lines)


def _emit_json(answer: StatisticsAnswer) -> str:
    import json

    columns = answer.plan.grid.columns
    named = {} if columns is None else {"columns": list(columns)}
    fields = {name: to_lists(values) for name, values in answer.fields.items()}
    return json.dumps({**named, **fields}, allow_nan=False)


def _name_columns(answer: StatisticsAnswer) -> list[str]:
    """Return a comment line of Python with the names of the table's columns; no line if they have no names."""
    columns = answer.plan.grid.columns
    return [] if columns is None else [f"# columns: {', '.join(map(make_printable, columns))}"]


EMITTERS: Mapping[str, Callable[[StatisticsAnswer], str]] = {
    "torchvision": _emit_torchvision,
    "keras": _emit_keras,
    "sklearn": _emit_sklearn,
    "json": _emit_json,
}
"""Framework → the function that returns statistics as code; it raises `UsageError` if there is no such code."""
