"""The answer of `normcli fit` and `normcli merge`: statistics over files, as a document and as code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.documents.document import SCHEMA, Facts, Line, Row, Table
from normcli.documents.numbers import format_shape, format_statistic
from normcli.errors import UsageError
from normcli.tensors.nested import to_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.fitting.statistics import Rounded
    from normcli.fitting.stats_file import Stats
    from normcli.norms.plan import Plan

_SHOWN = 8
"""Groups at either end of a long table."""

_LABELS = {
    "var": "var",
    "var1": "var (n − 1)",
    "std1": "std (n − 1)",
    "image_std": "per-image std",
    "nan_count": "NaN",
}

_VALUES = ("rstd", "count", "nan_count", "min", "max", "image_std")
"""What stands in the second table."""


class StatisticsAnswer:
    """Statistics over files.

    Parameters
    ----------
    stats : Stats
    rounded : Rounded
    """

    def __init__(self, stats: Stats, rounded: Rounded) -> None:
        self.stats = stats
        self.plan, self.fields, self.own = rounded

    def sections(self, view: View) -> Iterator[Section]:
        """Return a header, two tables, and what the two deviations of images are."""
        yield self._head()
        first = [name for name in self.fields if name not in _VALUES]
        yield self._list(first, view)
        yield self._list([name for name in _VALUES if name in self.fields], view)
        if "image_std" in self.fields:
            yield Line(
                (
                    "std: of all values of a channel together",
                    "per-image std: the mean of each sample's own, as often quoted for ImageNet",
                )
            )

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        plan = self.plan
        return {
            "schema": SCHEMA,
            "norm": plan.norm.name,
            "formula": plan.formula,
            "files": self.stats.files,
            "samples": self.stats.samples,
            "shape": list(self.stats.subject.shape),
            "dtype": self.stats.subject.dtype,
            "layout": plan.grid.layout.letters,
            "axes": list(plan.grid.axes),
            "kept": list(plan.grid.kept),
            "eps": plan.spec.eps,
            "eps_mode": plan.spec.eps_mode,
            "ddof": plan.spec.ddof if "ddof" in plan.norm.options else None,
            "nan": "omit" if self.stats.omits_nan else "propagate",
            "stats": {name: to_lists(values) for name, values in self.fields.items()},
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object a group."""
        columns = [to_lists(values.reshape(-1)) for values in self.fields.values()]
        for number, values in enumerate(zip(*columns, strict=True)):
            yield {"group": self.plan.grid.group_index(number), **dict(zip(self.fields, values, strict=True))}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line a group."""
        yield (*self.plan.grid.kept_names, *self.fields)
        columns = [values.reshape(-1).tolist() for values in self.fields.values()]
        for number, values in enumerate(zip(*columns, strict=True)):
            yield (*self.plan.grid.group_index(number).values(), *values)

    def field(self, name: str) -> NDArray[np.generic]:
        """Return one field.

        Raises
        ------
        UsageError
            If there is none of that name.
        """
        if name not in self.fields:
            raise UsageError(f"--print {name}: there is no such field; there are {', '.join(self.fields)}")
        return self.fields[name]

    def _head(self) -> Facts:
        stats, plan = self.stats, self.plan
        names = " ".join(map(plan.grid.layout.name, plan.grid.axes))
        eps = () if plan.spec.eps is None else (f"eps {plan.spec.eps:g} {plan.spec.eps_mode}",)
        ddof = (f"ddof {plan.spec.ddof}",) if "ddof" in plan.norm.options else ()
        files = f"{stats.files} file{'s' if stats.files != 1 else ''}"
        return Facts(
            f"{plan.norm.name}  {plan.norm.title}",
            (
                (
                    "over",
                    (files, f"{stats.samples} samples", format_shape(plan.grid.shape), stats.subject.dtype),
                ),
                ("axes", (f"{names} reduced", *eps, *ddof, *(("NaN left out",) if stats.omits_nan else ()))),
                ("groups", (f"{plan.grid.group_count} of {plan.grid.group_size} values",)),
            ),
        )

    def _list(self, names: Sequence[str], view: View) -> Table:
        plan = self.plan
        columns = ("group", *(_LABELS.get(name, name) for name in names))
        numbers: list[int | None] = list(range(plan.grid.group_count))
        note = None
        if not view.full and plan.grid.group_count > 2 * _SHOWN + 1:
            numbers = [*numbers[:_SHOWN], None, *numbers[-_SHOWN:]]
            note = f"{plan.grid.group_count - 2 * _SHOWN} groups more; --full shows all"
        flat = [self.fields[name].reshape(-1) for name in names]
        rows = [
            None
            if number is None
            else Row((plan.grid.group_name(number), *(_spell(values[number], view) for values in flat)), number)
            for number in numbers
        ]
        return Table(None, columns, (False, *(True for _ in names)), rows, note)


def _spell(value: Any, view: View) -> str:
    return str(value) if value.dtype.kind in "iu" else format_statistic(float(value), view.digits)


def emit(answer: StatisticsAnswer, framework: str) -> str:
    """Return statistics as code to paste.

    Parameters
    ----------
    answer : StatisticsAnswer
    framework : str
        Of `EMITTERS`.

    Raises
    ------
    UsageError
        If the framework has no such thing.
    """
    return EMITTERS[framework](answer)


def _require(answer: StatisticsAnswer, framework: str, axes: int | None = None) -> Plan:
    plan = answer.plan
    if "std" not in plan.norm.statistics:
        raise UsageError(f"--emit {framework} takes a mean and a deviation; {plan.norm.name} has none")
    if axes is not None and len(plan.grid.kept) != axes:
        raise UsageError(
            f"--emit {framework} takes one mean a channel; there is one for {plan.grid.kept_names or 'all'}"
        )
    return plan


def _emit_torchvision(answer: StatisticsAnswer) -> str:
    _require(answer, "torchvision", 1)
    mean, std = answer.own["mean"].tolist(), answer.own["std"].tolist()
    lines = ["from torchvision import transforms", "", f"transforms.Normalize(mean={mean}, std={std})"]
    if "image_std" in answer.fields:
        lines.append(
            f"# the mean of each image's own std is another number: {answer.fields['image_std'].tolist()}"
        )
    if 0.0 in std:
        lines.append("# a channel is constant: torchvision refuses its std of 0; 1 leaves it centred")
    return "\n".join(lines)


def _emit_keras(answer: StatisticsAnswer) -> str:
    plan = _require(answer, "keras")
    axis = repr(plan.grid.kept[0] if len(plan.grid.kept) == 1 else plan.grid.kept) if plan.grid.kept else None
    mean, var = answer.own["mean"].tolist(), answer.own["var"].tolist()
    return f"import keras\n\nkeras.layers.Normalization(axis={axis}, mean={mean}, variance={var})"


def _emit_sklearn(answer: StatisticsAnswer) -> str:
    _require(answer, "sklearn")
    mean, var, std = (answer.fields[name].reshape(-1).tolist() for name in ("mean", "var", "std"))
    counts = answer.fields["count"].reshape(-1)
    seen = repr(int(counts[0])) if (counts == counts[:1]).all() else f"np.array({counts.tolist()})"
    return "\n".join(
        [
            "import numpy as np",
            "from sklearn.preprocessing import StandardScaler",
            "",
            "scaler = StandardScaler()",
            f"scaler.mean_ = np.array({mean})",
            f"scaler.var_ = np.array({var})",
            f"scaler.scale_ = np.array({[value or 1.0 for value in std]})",
            f"scaler.n_features_in_ = {len(mean)}",
            f"scaler.n_samples_seen_ = {seen}",
        ]
    )


def _emit_json(answer: StatisticsAnswer) -> str:
    import json

    return json.dumps({name: to_lists(values) for name, values in answer.fields.items()}, allow_nan=False)


EMITTERS: Mapping[str, Callable[[StatisticsAnswer], str]] = {
    "torchvision": _emit_torchvision,
    "keras": _emit_keras,
    "sklearn": _emit_sklearn,
    "json": _emit_json,
}
"""Framework → what writes the code."""
