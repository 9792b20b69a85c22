"""The 500 results: of every norm, dtype and path, of large tensors, and of statistics over files."""

from __future__ import annotations

import functools
import hashlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import find_type
from normcli.engine.walk import BLOCK, WHOLE, Effort
from normcli.errors import UsageError
from normcli.fitting.fit import Policy, fit
from normcli.fitting.statistics import round_stats
from normcli.fitting.subject import require_fittable
from normcli.fitting.use import Use
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule
from normcli.norms.table import NORMS
from normcli.results.calculate import calculate
from normcli.results.given_inputs import fit_inputs
from normcli.tensors.many import Named
from normcli.tensors.tensor import Tensor
from tests.search.cells import DTYPES, Cell, list_cells, start
from tests.search.families import Stream, list_families, make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli import Result

    Arrays = Mapping[str, NDArray[Any]]

COUNT = 500


class Variation(NamedTuple):
    """What changes no bit.

    Parameters
    ----------
    threads, block, whole : int
        As of `Effort`.
    order : {"C", "F", "reversed"}
        How the tensor lies in memory.
    files : int
        Which split of samples into files, one after another or each for itself; 0 is one file.
    """

    threads: int = 1
    block: int = BLOCK
    whole: int = WHOLE
    order: str = "C"
    files: int = 0

    @property
    def effort(self) -> Effort:
        """The effort of a calculation."""
        return Effort(threads=self.threads, block=self.block, whole=self.whole)

    def lay(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return a tensor in the memory order."""
        if self.order == "reversed":
            every = (slice(None, None, -1),) * x.ndim
            return np.ascontiguousarray(x[every])[every]
        return np.asarray(x, order=self.order)


PLAIN = Variation()

VARIATIONS = (
    Variation(threads=2, block=1 << 12, files=1),
    Variation(threads=3, block=3000, whole=64, order="F", files=2),
    Variation(threads=1, block=1 << 14, whole=1, order="reversed", files=3),
)


class Case(NamedTuple):
    """A result by its name."""

    name: str
    make: Callable[[Variation], Arrays]

    def hash(self, variation: Variation = PLAIN) -> str:
        """Return a hash of dtypes, shapes and values; NaN is one value."""
        total = hashlib.sha256()
        for name, array in self.make(variation).items():
            values = np.asarray(array)
            total.update(f"{name} {values.dtype.name} {values.shape}".encode())
            if values.dtype.kind in "iu":
                total.update(np.ascontiguousarray(values, "<i8").tobytes())
            else:
                wide = np.ascontiguousarray(values, "<f8")
                total.update(np.where(np.isnan(wide), np.nan, wide).tobytes())
        return total.hexdigest()[:16]


def list_cases() -> list[Case]:
    """Return the cases, in order."""
    cases = [*_list_cells(), *_list_large()]
    return [*cases, *itertools.islice(_list_fits(), COUNT - len(cases))]


def _take(result: Result) -> Arrays:
    return {"normalized": result.normalized, **result.statistics}


# -- small groups: of each norm every path and every dtype

_CELLS = 21
"""Of each norm: more than it has paths."""


def _list_cells() -> Iterator[Case]:
    for norm in NORMS:
        cells = list(list_cells(norm))
        cells = [
            cells[place] for place in Stream("bits", norm).draw(len(cells)).argsort(kind="stable").tolist()
        ]
        chosen = {cell.path.name: cell for cell in cells}
        chosen |= {cell.dtype: cell for cell in cells if cell.dtype not in {c.dtype for c in chosen.values()}}
        others = (cell for cell in cells if cell not in chosen.values())
        for cell in [*chosen.values(), *others][:_CELLS]:
            yield Case(str(cell), functools.partial(_make_cell, cell))


def _make_cell(cell: Cell, variation: Variation) -> Arrays:
    families = list_families(find_type(cell.dtype))
    stream = Stream("bits", str(cell))
    if cell.is_long:
        families = (stream.pick(families),)
    case = start(cell, families, stream, cancels=False)
    effort = cell.path.effort if variation == PLAIN else variation.effort
    return _take(case.calculate(effort, variation.lay))


# -- large tensors

LARGE: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((4, 6, 50, 50), (0, 2, 3)),
    ((3, 8, 2500), (1, 2)),
    ((70_000, 1), (0,)),
    ((2000, 4), (1,)),
    ((5, 9001, 2), (0, 1)),
    ((64, 300), (0,)),
    ((40, 1500), (1,)),
)


def _list_large() -> Iterator[Case]:
    number = 0
    for norm, dtype in itertools.product(NORMS, ("float32", "float64")):
        row = NORMS[norm]
        shapes = [pair for pair in LARGE if row.axes is not AxesRule.CHANNEL_GROUPS or pair[0][1] % 2 == 0]
        for _ in range(4):
            shape, axes = shapes[number % len(shapes)]
            families = list_families(dtype)
            family = families[number % len(families)]
            if row.axes is AxesRule.CHANNEL_GROUPS:
                request = Request(norm, groups=2)
            elif row.axes is AxesRule.CHANNEL_WINDOW:
                request, shape = Request(norm, axes=axes[-1:]), tuple(min(n, 500) for n in shape)
            else:
                request = Request(norm, axes=axes)
            name = f"{norm}, {dtype}, {'×'.join(map(str, shape))} over {'×'.join(map(str, axes))}, {family}"
            yield Case(name, functools.partial(_make_large, request, shape, dtype, family))
            number += 1


def _make_large(
    request: Request, shape: tuple[int, ...], dtype: str, family: str, variation: Variation
) -> Arrays:
    stream = Stream("bits", request.norm, dtype, *shape, family)
    x = make(family, stream, (1, int(np.prod(shape))), dtype).reshape(shape)
    plan = make_plan(request, shape, x.dtype)
    flat = (1, int(np.prod(plan.parameters.shape)))
    names = plan.norm.parameter_names if stream.one(2) else ()
    parameters = {name: make("moderate", stream, flat, dtype).reshape(plan.parameters.shape) for name in names}
    inputs = fit_inputs(plan, x, parameters)
    with np.errstate(all="ignore"):
        return _take(calculate(plan, variation.lay(x), inputs, effort=variation.effort))


# -- statistics over files

_TABLES = ((400, 5), (60, 4, 30), (2500, 3), (37, 6, 5, 4))
_MANY_COLUMNS = (300, 8000)


def _list_fits() -> Iterator[Case]:
    """Yield fits for ever: of the norms that have statistics over samples, of every dtype and family."""
    norms = [norm for norm in NORMS if _is_fittable(norm)]
    for norm in ("zscore", "rms"):  # of so many columns that an error of 2⁻¹² ulp before rounding shows
        name = f"fit {norm}, float64, {'×'.join(map(str, _MANY_COLUMNS))}, decimals"
        yield Case(name, functools.partial(_make_fit, norm, "float64", _MANY_COLUMNS, "decimals"))
    for number in itertools.count():
        dtype = DTYPES[number % len(DTYPES)]
        norm, shape = norms[number % len(norms)], _TABLES[number // 3 % len(_TABLES)]
        families = list_families(find_type(dtype))
        family = families[number % len(families)]
        name = f"fit {norm}, {dtype}, {'×'.join(map(str, shape))}, {family}"
        yield Case(name, functools.partial(_make_fit, norm, dtype, shape, family))


def _request_fit(norm: str, shape: tuple[int, ...]) -> Request:
    return Request(norm, axes=tuple(axis for axis in range(len(shape)) if axis != 1))


def _is_fittable(norm: str) -> bool:
    try:
        require_fittable(make_plan(_request_fit(norm, _TABLES[0]), _TABLES[0], np.dtype("f8")))
    except UsageError:
        return False
    return True


def _make_fit(norm: str, dtype: str, shape: tuple[int, ...], family: str, variation: Variation) -> Arrays:
    stream = Stream("bits", "fit", norm, dtype, *shape, family)
    x = make(family, stream, (shape[0], int(np.prod(shape[1:]))), find_type(dtype)).reshape(shape)
    policy = Policy("omit" if dtype.startswith("float") and stream.one(2) else "propagate")
    if policy.nan == "omit":
        x[stream.below(9, shape) == 0] = np.nan
    parts = _split(x, variation.files)
    request, effort = _request_fit(norm, shape), variation.effort

    def name(part: NDArray[Any], number: int) -> Named:
        return Named(f"{number}.npy", lambda wanted: Tensor(variation.lay(part), f"{number}.npy"))

    with np.errstate(all="ignore"):
        sources = [name(part, number) for number, part in enumerate(parts)]
        stats = fit(request, sources, policy, effort).stats
        use = Use(stats)
        plan = use.plan("x", x)
        result = calculate(plan, x, use.fit_inputs(plan), effort=effort)
        return {"normalized": result.normalized, **round_stats(stats).fields}


def _split(x: NDArray[Any], number: int) -> list[NDArray[Any]]:
    """Return samples as files: cut anywhere, and from the second split on also in any order."""
    if number == 0:
        return [x]
    stream = Stream("files", number, len(x))
    if number > 1:
        x = x[stream.draw(len(x)).argsort(kind="stable")]
    cuts = sorted({1 + place for place in stream.below(len(x) - 1, 1 + number).tolist()})
    return np.split(x, cuts)
