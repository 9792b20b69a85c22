"""Hill-climbing on the error: of many changes of the worst group, the one that makes it worse still."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import find_type, is_float
from tests.search.cells import Case, Cell, Verdict, cancel, draw_options, start
from tests.search.families import Stream, list_families, make

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Finding(NamedTuple):
    """The worst group of a climb.

    Parameters
    ----------
    cell : Cell
    family : str
        What the climb started from.
    seed : int
    verdict : Verdict
    case : Case
    group : int
    """

    cell: Cell
    family: str
    seed: int
    verdict: Verdict
    case: Case
    group: int

    def describe(self) -> str:
        """Return the case in words that it can be made again by."""
        case, values = self.case, self.case.groups[self.group]
        shown = {name: value for name, value in case.options.items() if value is not None}
        told = [f"{self.cell}, from {self.family}, seed {self.seed}"]
        told.append(
            f"{self.verdict.element:.6g} ulp, {self.verdict.name or 'no statistic'} {self.verdict.statistic:.9g} ulp"
        )
        told.append(", ".join(f"{name} {value}" for name, value in shown.items()))
        if case.given is not None:
            told.append(f"mean {case.given[0][self.group].item()!r}, var {case.given[1][self.group].item()!r}")
        told += [f"{name} {_list_values(parameter)}" for name, parameter in case.parameters.items()]
        if case.mask is not None:
            told.append(f"mask {case.mask[self.group].astype(int).tolist()}")
        return "; ".join([*filter(None, told), _list_values(values)])


def _list_values(values: NDArray[Any]) -> str:
    wide = values.reshape(-1)
    listed = (wide.astype(np.float64) if is_float(wide.dtype) else wide).tolist()
    return str(listed) if len(listed) <= 60 else f"{len(listed)} values"


ROUNDS = 12
"""Of one climb; then another begins elsewhere."""


def explore(cell: Cell, family: str, seed: int) -> Finding:
    """Return what a long search finds of a cell, a family and a seed: every fourth seed samples all families."""
    if seed % 4 == 0 and not cell.is_long:
        return sample(cell, seed)
    return climb(cell, family, seed, 2 if cell.is_long else ROUNDS)


def sample(cell: Cell, seed: int) -> Finding:
    """Return the worst group of one case that has groups of all families."""
    families = list_families(find_type(cell.dtype))
    case = start(cell, families, Stream("sample", str(cell), seed))
    verdicts = case.judge()
    group = max(range(len(verdicts)), key=lambda g: verdicts[g].excess)
    share = max(1, -(-cell.path.count // len(families)))
    return Finding(cell, families[group // share], seed, verdicts[group], case, group)


def climb(cell: Cell, family: str, seed: int, rounds: int) -> Finding:
    """Return the worst group that some rounds of changes lead to; elements are looked at, or statistics.

    Parameters
    ----------
    cell : Cell
    family : str
        Of the first groups.
    seed : int
        An even one climbs on the error of elements, an odd one on that of statistics.
    rounds : int
    """
    stream = Stream("climb", str(cell), family, seed)
    by_element = seed % 2 == 0

    def rate(verdict: Verdict) -> float:
        return verdict.element if by_element else verdict.statistic

    case, best = start(cell, (family,), stream), None
    for _ in range(rounds):
        verdicts = case.judge()
        group = max(range(len(verdicts)), key=lambda g: rate(verdicts[g]))
        if best is None or rate(verdicts[group]) >= rate(best.verdict):
            best = Finding(cell, family, seed, verdicts[group], case, group)
        if math.isinf(rate(best.verdict)):
            break
        case = _change(best, stream)
    assert best is not None
    return best


def _change(best: Finding, stream: Stream) -> Case:
    """Return a case whose groups are changes of the best one; now and then its options change too."""
    case = best.case.repeat(best.group)
    groups = case.groups.copy()
    for group in groups[1:]:
        for _ in range(1 + stream.one(3)):
            stream.pick(_CHANGES)(group, stream)
    case = replace(case, groups=groups)
    if stream.one(3) == 0:
        _change_request(case, stream)
    return case


def _change_request(case: Case, stream: Stream) -> None:
    """Change an option, gamma, beta, or a given statistic."""
    options = [name for name, value in case.options.items() if value is not None]
    if case.parameters and stream.one(2):
        if "beta" in case.parameters and stream.one(2):
            cancel(case, stream)
        else:
            name = stream.pick(tuple(case.parameters))
            values = case.parameters[name].copy()
            _nudge(values.reshape(-1), stream)
            case.parameters = {**case.parameters, name: values}
    elif case.given is not None and stream.one(2):
        mean, var = (a.copy() for a in case.given)
        _nudge(mean, stream)
        _nudge(var, stream)
        case.given = mean, np.abs(var)
    elif options:
        name = stream.pick(options)
        value = case.options[name]
        other = draw_options(case.cell, stream)[name]
        if isinstance(value, float) and math.isfinite(value) and value and stream.one(2):
            other = value * (1.0 + (stream.one(9) - 4) * 2.0 ** -(3 + stream.one(50)))
        case.options = {**case.options, name: other}


# -- changes of one group, in place


def _nudge(group: NDArray[Any], stream: Stream) -> None:
    """Move a value by some units in its last place, most often by few."""
    farthest = 1 + stream.one(8 * group.dtype.itemsize - 8)
    place, step = stream.one(len(group)), (stream.one(2) * 2 - 1) << stream.one(farthest)
    if not is_float(group.dtype):
        info = np.iinfo(group.dtype)
        group[place] = min(max(int(group[place]) + step, info.min), info.max)
        return
    whole = group.view(f"i{group.dtype.itemsize}")
    lowest = int(np.iinfo(whole.dtype).min)
    bits = int(whole[place])
    order = (bits if bits >= 0 else lowest - bits) + step  # in the order of the numbers
    before = group[place]
    if -lowest > abs(order):
        whole[place] = order if order >= 0 else lowest - order
        if not np.isfinite(np.float64(group[place])):
            group[place] = before


def _scale(group: NDArray[Any], stream: Stream) -> None:
    """Multiply a value, or all of them, by a power of two."""
    place = slice(None) if stream.one(3) == 0 else stream.one(len(group))
    power = stream.one(2 << stream.one(7)) - (1 << stream.one(7))
    if is_float(group.dtype):
        with np.errstate(all="ignore"):
            scaled = np.ldexp(group[place].astype(np.float64), power).astype(group.dtype)
            group[place] = np.where(np.isfinite(scaled.astype(np.float64)), scaled, group[place])
    else:
        group[place] >>= np.asarray(power % 5).astype(group.dtype)


def _copy(group: NDArray[Any], stream: Stream) -> None:
    group[stream.one(len(group))] = group[stream.one(len(group))]


def _negate(group: NDArray[Any], stream: Stream) -> None:
    place = stream.one(len(group))
    if group.dtype.kind not in "iu":
        group[place] = -group[place]
    else:  # the other way round within the dtype
        group[place] = ~group[place]


def _swap(group: NDArray[Any], stream: Stream) -> None:
    one, other = stream.one(len(group)), stream.one(len(group))
    group[one], group[other] = group[other], group[one]


def _renew(group: NDArray[Any], stream: Stream) -> None:
    """Take a value of another family."""
    family = stream.pick(list_families(group.dtype))
    group[stream.one(len(group))] = make(family, stream, (1, 2), group.dtype)[0, 0]


def _bring_near(group: NDArray[Any], stream: Stream) -> None:
    """Move a value to about the mean of all, or halfway between two others."""
    wide = group.astype(np.float64)
    if stream.one(2):
        wide = wide[[stream.one(len(group)), stream.one(len(group))]]
    wide = wide[np.isfinite(wide)]
    if len(wide) and is_float(group.dtype):
        group[stream.one(len(group))] = np.asarray(math.fsum(v / len(wide) for v in wide.tolist())).astype(
            group.dtype
        )


_CHANGES: tuple[Callable[[NDArray[Any], Stream], None], ...] = (
    _nudge,
    _nudge,
    _nudge,
    _scale,
    _copy,
    _negate,
    _swap,
    _renew,
    _bring_near,
)
