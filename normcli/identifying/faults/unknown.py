"""What y shows to be another one, of which no row says what it is: statistics of groups, or gamma and beta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import is_half
from normcli.identifying.faults.tables.parts import UNKNOWN
from normcli.identifying.faults.variant import NEAR, Found, Variant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case


_ONE = UNKNOWN["gamma"].fault._replace(words="{place} is {used}, not {right}")
"""The fault of gamma or beta where a single number is another."""

_LEAST_OF_LINE = 3
"""Any two values lie on a line: that more do is said."""


_MOST = 0.5
"""Where a larger part of y differs, not a few numbers of gamma or beta are others."""


def find_unknown(case: Case) -> Iterator[Found]:
    """Yield what explains y with the fewest numbers of its own: lines in each group, or in each feature.

    Gamma and beta come first where they are right but for a few numbers.
    """
    found = [*_find_statistics(case)]
    parameters = _find_parameters(case)
    if parameters is not None:
        found.insert(0 if case.differs.mean() < _MOST else len(found), parameters)
    fewest = min((one.variants[0].numbers for one in found), default=0)
    yield from (one for one in found if one.variants[0].numbers == fewest)


def _find_statistics(case: Case) -> Iterator[Found]:
    """Yield the mean or the divisor that y shows of each group; both where one is not all."""
    if not case.has_moments or case.count <= _LEAST_OF_LINE:
        return
    used, wrong = case.used, int(case.differs.any(case.axes).sum())
    every = (
        ("divisor", Variant(case.mean, used.divisor, numbers=wrong, is_fitted=True)),
        ("mean", Variant(used.mean, case.divisor, numbers=wrong, is_fitted=True)),
        ("both", Variant(*used, numbers=2 * wrong, is_fitted=True)),
    )
    for name, variant in every:
        prediction = case.predict(variant)
        if (explained := case.explains(prediction)).all():
            yield Found((UNKNOWN[name].fault,), (variant,), prediction, explained)
            return


def _find_parameters(case: Case) -> Found | None:
    """Return the gamma, the beta or both that y shows of each feature that the given ones do not explain."""
    shape = np.broadcast_shapes(case.gamma.shape, case.beta.shape)
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    if not (case.has_gamma or case.has_beta) or case.y.size <= _LEAST_OF_LINE * np.prod(shape):
        return None
    chosen = [np.broadcast_to(values, shape).copy() for values in (case.gamma, case.beta)]
    left = case.differs.any(axes, keepdims=True)
    moved = [np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)]
    for names, theirs in _fit_parameters(case, axes):
        explained = case.explains(case.predict(Variant(gamma=theirs[0], beta=theirs[1])))
        now = left & explained.all(axes, keepdims=True)
        for place in names:
            chosen[place][now] = np.broadcast_to(theirs[place], shape)[now]
            moved[place] |= now
        left = left & ~now
    variant = Variant(
        gamma=chosen[0], beta=chosen[1], numbers=sum(map(np.count_nonzero, moved)), is_fitted=True
    )
    prediction = case.predict(variant)
    if left.any() or not variant.numbers or not (explained := case.explains(prediction)).all():
        return None
    fault, values = _name(case, chosen, moved)
    return Found((fault,), (variant._replace(values=values),), prediction, explained)


def _fit_parameters(
    case: Case, axes: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[Floats, Floats]]]:
    """Yield which of gamma and beta are fitted to each feature, and both: one of them first."""
    x, y, gamma, beta = case.standardized, case.y, case.gamma, case.beta
    if case.has_gamma:
        slope = (x * (y - beta)).sum(axes, keepdims=True) / (x * x).sum(axes, keepdims=True)
        yield (0,), (slope, beta)
    if case.has_beta:
        yield (1,), (gamma, (y - gamma * x).mean(axes, keepdims=True))
    if case.has_gamma:
        yield (0, 1), case.recover_parameters()


def _name(case: Case, used: Sequence[Floats], moved: Sequence[Selected]) -> tuple[Fault, dict[str, str]]:
    """Return the fault of some other gammas and betas, and its values."""
    names = [name for name, some in zip(("gamma", "beta"), moved, strict=True) if some.any()]
    either = moved[0] | moved[1]
    count, size = int(np.count_nonzero(either)), either.size
    if count == len(names) == 1:
        place, there, right = next(_list_first(case, used, moved))
        return _ONE, {"place": place, "used": there, "right": right}
    what = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
    where = f"all {size} indices" if count == size else f"{count} of {size} indices"
    return UNKNOWN["gamma"].fault, {"what": what, "where": where}


def _list_first(
    case: Case, used: Sequence[Floats], moved: Sequence[Selected]
) -> Iterator[tuple[str, str, str]]:
    """Yield the first gamma and the first beta that are others: which, what it is, and the right one."""
    digits = 3 if is_half(case.dtype) else 5
    for name, theirs, right, some in zip(("gamma", "beta"), used, (case.gamma, case.beta), moved, strict=True):
        if some.any():
            shape = case.plan.grid.merge_shape(some.shape)
            first = int(np.flatnonzero(some)[0])
            index = [str(i) for i, n in zip(np.unravel_index(first, shape), shape, strict=True) if n > 1]
            place = f"{name}[{', '.join(index)}]" if index else name
            both = theirs.flat[first], np.broadcast_to(right, some.shape).flat[first]
            there, asked = (f"{float(value):.{digits}g}" for value in both)
            yield place, there, asked


def show_used(case: Case, found: Found) -> tuple[str, ...]:
    """Return the first numbers that were used, beside the right ones; nothing where the cause says it."""
    variant = found.variants[0]
    if "what" in variant.values and variant.gamma is not None and variant.beta is not None:
        used = [np.broadcast_to(values, variant.gamma.shape) for values in (variant.gamma, variant.beta)]
        moved = [values != right for values, right in zip(used, (case.gamma, case.beta), strict=True)]
        return tuple(
            f"{place} is {there}, not {right}" for place, there, right in _list_first(case, used, moved)
        )
    for name in ("divisor", "mean"):
        theirs, right = getattr(variant, name), np.asarray(getattr(case, name))
        if theirs is not None and (off := np.abs(theirs - right) > NEAR * np.abs(right)).any():
            first = np.unravel_index(int(off.argmax()), off.shape)
            right = np.broadcast_to(right, off.shape)
            return (
                f"the first {name} that differs is {float(theirs[first]):.6g}, not {float(right[first]):.6g}",
            )
    return ()
