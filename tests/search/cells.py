"""The cells of the search: a norm, a dtype, and a path through the engine; and what a case of one is."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import find_type, is_float
from normcli.engine.walk import Effort
from normcli.norms.options import find_option
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, ParameterRule
from normcli.norms.table import NORMS
from normcli.results.calculate import calculate
from normcli.results.given_inputs import SelectionRequest, fit_inputs
from tests.reference.limits import ELEMENT, STATISTIC
from tests.reference.measuring import measure_groups
from tests.reference.rounding import FORMATS
from tests.search.families import Stream, list_families, make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli import Result
    from normcli.norms.norm import Norm

DTYPES = (*FORMATS, "int64", "uint64", "int16")


class Path(NamedTuple):
    """How groups are laid out, and what they are given.

    Parameters
    ----------
    name : str
    count, length : int
        Of groups, and of values in each (up to three more).
    in_columns : bool
        Whether groups stand side by side as the columns of a matrix.
    effort : Effort
    given : str
        "mask", "nan", "statistics", or "affine" in the dtype of the tensor or "affine float64"; empty for nothing.
    output : str or None
        The dtype of the output.
    inner : int
        The length of a third axis, which groups extend over and channels do not vary along.
    """

    name: str
    count: int
    length: int
    in_columns: bool = False
    effort: Effort = Effort(threads=1)
    given: str = ""
    output: str | None = None
    inner: int = 1


_PASSES = Effort(threads=1, block=64, whole=1)

PATHS = (
    Path("rows", 12, 15),
    Path("columns", 40, 5, in_columns=True),
    Path("wide columns", 6, 40, in_columns=True),
    Path("short groups", 40, 2),
    Path("two passes", 4, 130, effort=_PASSES),
    Path("two passes over columns", 4, 130, in_columns=True, effort=_PASSES),
    Path("mask", 12, 15, given="mask"),
    Path("nan omitted", 12, 15, given="nan"),
    Path("evaluation", 12, 8, in_columns=True, given="statistics"),
    Path("affine", 12, 10, given="affine"),
    Path("affine in float64", 12, 10, given="affine float64"),
    Path("affine columns", 40, 5, in_columns=True, given="affine"),
    Path("to float32", 12, 10, output="float32"),
    Path("to float64", 12, 10, output="float64"),
    Path("affine to float64", 12, 10, given="affine", output="float64"),
    Path("images", 12, 12, given="affine", inner=4),
    Path("images, channels last", 40, 8, in_columns=True, given="affine", inner=4),
    Path("many leaves", 2, 5000),
    Path("many leaves in two passes", 2, 5000, effort=Effort(threads=1, block=1 << 11, whole=1)),
)


class Cell(NamedTuple):
    """A norm, the name of a dtype, and a path."""

    norm: str
    dtype: str
    path: Path

    def __str__(self) -> str:
        return f"{self.norm}, {self.dtype}, {self.path.name}"

    @property
    def row(self) -> Norm:
        """The norm's row of the table."""
        return NORMS[self.norm]

    @property
    def is_long(self) -> bool:
        """Whether one case takes as long as hundreds of others."""
        return self.path.length > 1000

    def exists(self) -> bool:
        """Whether the norm and the dtype have the path."""
        given, slides = self.path.given, self.row.axes is AxesRule.CHANNEL_WINDOW
        return not (
            (given == "statistics" and not self.row.tracks)
            or (given.startswith("affine") and self.row.parameters is ParameterRule.NONE)
            or (given == "nan" and self.dtype not in FORMATS)
            or (given == "affine float64" and self.dtype == "float64")
            or (self.path.output == self.dtype or (self.path.output == "float64" and self.dtype not in FORMATS))
            or (slides and (self.path.length > 100 or self.path.inner > 1))
        )


def list_cells(norm: str | None = None, dtype: str | None = None) -> Iterator[Cell]:
    """Yield the cells (of a norm, of a dtype)."""
    for name in NORMS if norm is None else (norm,):
        for kind in DTYPES if dtype is None else (dtype,):
            yield from (cell for path in PATHS if (cell := Cell(name, kind, path)).exists())


@dataclass
class Case:
    """Groups, and all that they are normalized with.

    Parameters
    ----------
    cell : Cell
    groups : ndarray
        One a row.
    options : dict
        Of the request.
    parameters : dict of ndarray
        Gamma and beta, of the shape that the plan has for them.
    given : tuple of ndarray or None
        A mean and a variance for each group.
    mask : ndarray or None
        Of the shape of `groups`.
    """

    cell: Cell
    groups: NDArray[Any]
    options: dict[str, Any]
    parameters: dict[str, NDArray[Any]] = field(default_factory=dict)
    given: tuple[NDArray[Any], NDArray[Any]] | None = None
    mask: NDArray[np.bool_] | None = None

    @property
    def tensor(self) -> NDArray[Any]:
        """The groups as the path has them."""
        return _lay(self.cell.path, self.groups)

    @functools.cached_property
    def plan(self) -> Any:
        """Of the tensor."""
        x, path, norm = self.tensor, self.cell.path, self.cell.row
        last = x.ndim - 1
        over: dict[str, Any] = {"axes": tuple(range(last)) if path.in_columns else tuple(range(1, x.ndim))}
        if path.inner > 1:
            over["layout"] = "NLC" if path.in_columns else "NCL"
        if norm.axes is AxesRule.CHANNEL_GROUPS:
            over = {
                "groups": 1,
                "layout": ("CLN" if last > 1 else "CN") if path.in_columns else "NCL"[: x.ndim],
            }
        request = Request.collect(norm.name, {**self.options, **over, "dtype": path.output})
        return make_plan(request, x.shape, x.dtype)

    def calculate(self, effort: Effort | None = None, lay: Callable[[Any], Any] = np.asarray) -> Result:
        """Return what the program makes of it, with another effort, or of a tensor that `lay` has put otherwise."""
        path, x = self.cell.path, self.tensor
        asked = SelectionRequest(
            None if self.mask is None else _lay(path, self.mask), nan="omit" if path.given == "nan" else None
        )
        inputs = fit_inputs(self.plan, x, self.parameters, self.given, asked)
        with np.errstate(all="ignore"):
            return calculate(self.plan, lay(x), inputs, effort=effort or path.effort)

    def judge(self) -> list[Verdict]:
        """Return how far off the worst element and the worst statistic of each group are."""
        verdicts = [Verdict(0.0, 0.0, "")] * len(self.groups)
        slides = self.plan.spec.window is not None
        for number, errors in enumerate(measure_groups(self.calculate())):
            group = number
            if slides:
                group = (
                    number % len(self.groups) if self.cell.path.in_columns else number // self.groups.shape[1]
                )
            name, worst = max(errors.statistics.items(), key=lambda item: item[1], default=("", 0.0))
            before = verdicts[group]
            if worst <= before.statistic:
                name, worst = before.name, before.statistic
            verdicts[group] = Verdict(max(before.element, errors.element), worst, name)
        return verdicts

    def repeat(self, group: int) -> Case:
        """Return the case with one of its groups in the place of all."""
        count = len(self.groups)
        along = self.tensor.ndim - 1 if self.cell.path.in_columns else 0
        parameters = dict(self.parameters)
        for name, values in parameters.items():
            if along in self.plan.parameters.axes:
                place = self.plan.parameters.axes.index(along)
                parameters[name] = np.repeat(values.take([group], axis=place), count, axis=place)
        return replace(
            self,
            groups=np.repeat(self.groups[group : group + 1], count, axis=0),
            parameters=parameters,
            given=None
            if self.given is None
            else tuple(np.repeat(a[group : group + 1], count) for a in self.given),
            mask=None if self.mask is None else np.repeat(self.mask[group : group + 1], count, axis=0),
        )


class Verdict(NamedTuple):
    """The worst element of a group and its worst statistic, in ulp, with the statistic's name."""

    element: float
    statistic: float
    name: str

    @property
    def excess(self) -> float:
        """The larger of both beside what is allowed: 1 is the limit."""
        return max(self.element / ELEMENT, self.statistic / STATISTIC)


def _lay(path: Path, groups: NDArray[Any]) -> NDArray[Any]:
    count = len(groups)
    if path.in_columns:
        groups = np.ascontiguousarray(groups.T)
        return groups if path.inner == 1 else groups.reshape(-1, path.inner, count)
    return groups if path.inner == 1 else groups.reshape(count, -1, path.inner)


POWERS = (2.0, 1.0, np.inf, 0.0, 3.0, 0.5, 4.0, 1.5, 20.0, 511.0, 1e-5, -1.0, -np.inf, -2.5)


def draw_options(cell: Cell, stream: Stream) -> dict[str, Any]:
    """Return options, most of them as they are by default."""
    draws = {
        "eps": lambda: stream.pick(
            (None, None, 0.0, 1e-12, 5e-324, 1.0, float(np.ldexp(1.1, stream.one(200) - 100)))
        ),
        "eps_mode": lambda: stream.pick((None, None, "inside", "outside")),
        "ddof": lambda: stream.pick((0, 0, 1, 2)),
        "p": lambda: stream.pick(POWERS if find_option("p").is_allowed(-1.0) else POWERS[:-3]),
        "size": lambda: stream.pick((5, 1, 2, 3)),
        "alpha": lambda: stream.pick((1e-4, 1.0, 1e4)),
        "exponent": lambda: stream.pick((0.75, 0.5, 1.0, 8.0, 0.1)),
        "k": lambda: stream.pick((1.0, 2.0, 0.0, 1e-300)),
    }
    if cell.row.eps is None:  # scores take an eps where one is given alone
        del draws["eps"], draws["eps_mode"]
    return {name: draw() for name, draw in draws.items() if find_option(name).belongs_to(cell.row)}


def start(cell: Cell, families: tuple[str, ...], stream: Stream, *, cancels: bool = True) -> Case:
    """Return a case whose groups are of some families in turn; beta may be chosen to cancel what it is added to."""
    dtype = np.dtype(find_type(cell.dtype))
    length = cell.path.length + (stream.one(4) if cell.path.inner == 1 else 0)
    shape = (max(1, -(-cell.path.count // len(families))), length)
    groups = np.concatenate([make(family, stream, shape, dtype) for family in families])[
        : max(cell.path.count, len(families))
    ]
    case = Case(cell, groups, draw_options(cell, stream))
    if cell.path.given == "mask":
        case.mask = stream.below(3, groups.shape) > 0
        case.mask[:, :2] = True
    elif cell.path.given == "nan":
        groups[:, 2:][stream.below(3, groups[:, 2:].shape) == 0] = np.nan
    elif cell.path.given == "statistics":
        kinds = list_families("float64")
        mean, var = (make(stream.pick(kinds), stream, (1, len(groups)), "float64")[0] for _ in range(2))
        if stream.one(2):
            mean = groups[:, 0].astype(np.float64)
        case.given = mean, np.where(var == 0.0, 1.0, np.abs(var))
    elif cell.path.given:
        _draw_parameters(case, stream)
        if cancels and "beta" in case.parameters and stream.one(2):
            cancel(case, stream)
    return case


def _draw_parameters(case: Case, stream: Stream) -> None:
    """Give a case gamma and beta."""
    wide = case.cell.path.given == "affine float64" or not is_float(case.groups.dtype)
    dtype, shape = np.dtype(np.float64) if wide else case.groups.dtype, case.plan.parameters.shape
    family = stream.pick(("moderate", "moderate", "offset", "mixed", "integers", "powers", "wide"))
    flat = (1, int(np.prod(shape)))
    case.parameters = {
        name: make(family, stream, flat, dtype).reshape(shape) for name in case.cell.row.parameter_names
    }


def cancel(case: Case, stream: Stream) -> None:
    """Let beta be what gamma · x̂ of one group is, but for its sign and rounding."""
    dtype = case.parameters["beta"].dtype
    case.parameters = {**case.parameters, "beta": np.zeros_like(case.parameters["beta"])}
    plan, y = case.plan, case.calculate().normalized
    kept = [axis for axis in range(y.ndim) if axis not in plan.parameters.axes]
    place = tuple(stream.one(y.shape[axis]) if axis in kept else slice(None) for axis in range(y.ndim))
    found = -y[place].astype(np.float64)
    with np.errstate(over="ignore"):
        found = found.astype(dtype)
    case.parameters["beta"] = np.where(np.isfinite(found.astype(np.float64)), found, dtype.type(0)).reshape(
        plan.parameters.shape
    )
