"""Statistics, or gamma and beta, that y used instead of the right ones, and that no row names."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_half
from normcli.identifying.faults.tables.parts import UNKNOWN
from normcli.identifying.faults.variant import NEAR, Found, Variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.checking.fault import Fault
    from normcli.dtypes import Selected
    from normcli.identifying.faults.case import Case


_ONE = UNKNOWN["gamma"].fault._replace(words="{place} is {used}, not {right}")
"""The fault of gamma or beta where a single number is another."""

_LEAST_OF_LINE = 3
"""Any two values lie on a line: that more do is said."""


_MOST = 0.5
"""The largest part of y that differs if only a few numbers of gamma or beta are wrong."""


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
    every = {
        "divisor": Variant(case.mean, used.divisor, numbers=wrong, is_fitted=True),
        "mean": Variant(used.mean, case.divisor, numbers=wrong, is_fitted=True),
        "both": Variant(*used, numbers=2 * wrong, is_fitted=True),
    }
    faults = {name: UNKNOWN[name].fault for name in every}
    if not case.centres:
        faults["divisor"] = faults["divisor"]._replace(words="the divisor is another")
    tried = (case.hold((faults[name],), (variant,)) for name, variant in every.items())
    yield from itertools.islice((found for found in tried if found.explained.all()), 1)


def _find_parameters(case: Case) -> Found | None:
    """Return the gamma, the beta or both that y shows of each feature that the given ones do not explain."""
    shape = np.broadcast_shapes(case.gamma.shape, case.beta.shape)
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    if not (case.has_gamma or case.has_beta) or case.y.size <= _LEAST_OF_LINE * np.prod(shape):
        return None
    chosen = {name: np.broadcast_to(getattr(case, name), shape).copy() for name in _PARAMETERS}
    left = case.differs.any(axes, keepdims=True)
    for fitted in _fit_parameters(case, axes):
        explained = case.explains(case.predict(Variant(**fitted)))
        now = left & explained.all(axes, keepdims=True)
        for name, values in fitted.items():
            chosen[name][now] = np.broadcast_to(values, shape)[now]
        left = left & ~now
    variant = Variant(gamma=chosen["gamma"], beta=chosen["beta"], is_fitted=True)
    moved = _find_moved(case, variant)
    if left.any() or not moved:
        return None
    fault, values = _name(case, variant)
    variant = variant._replace(values=values, numbers=sum(map(np.count_nonzero, moved.values())))
    found = case.hold((fault,), (variant,))
    return found if found.explained.all() else None


_PARAMETERS = "gamma", "beta"


def _fit_parameters(case: Case, axes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield the fits to each feature: of gamma alone, of beta alone, of both."""
    x, y, gamma, beta = case.standardized, case.y, case.gamma, case.beta
    if case.has_gamma:
        yield {"gamma": (x * (y - beta)).sum(axes, keepdims=True) / (x * x).sum(axes, keepdims=True)}
    if case.has_beta:
        yield {"beta": (y - gamma * x).mean(axes, keepdims=True)}
    if case.has_gamma:
        yield dict(zip(_PARAMETERS, case.recover_parameters(), strict=True))


def _find_moved(case: Case, variant: Variant) -> dict[str, Selected]:
    """Return where a variant has another gamma, and where another beta; without either where it has not."""
    moved = {name: np.asarray(getattr(variant, name) != getattr(case, name)) for name in _PARAMETERS}
    return {name: some for name, some in moved.items() if some.any()}


def _name(case: Case, variant: Variant) -> tuple[Fault, dict[str, str]]:
    """Return the fault of some other gammas and betas, and its values."""
    moved = _find_moved(case, variant)
    either = np.logical_or.reduce([*moved.values()])
    count, size = int(np.count_nonzero(either)), either.size
    if count == len(moved) == 1:
        place, there, right = next(_list_first(case, variant))
        return _ONE, {"place": place, "used": there, "right": right}
    what = f"{' and '.join(moved)} {'is' if len(moved) == 1 else 'are'}"
    where = f"all {size} indices" if count == size else f"{count} of {size} indices"
    return UNKNOWN["gamma"].fault, {"what": what, "where": where}


def _list_first(case: Case, variant: Variant) -> Iterator[tuple[str, str, str]]:
    """Yield the first wrong gamma and the first wrong beta: name, used number, right number."""
    digits = 3 if is_half(case.dtype) else 5
    for name, some in _find_moved(case, variant).items():
        shape = case.plan.grid.merge_shape(some.shape)
        first = int(np.flatnonzero(some)[0])
        index = [str(i) for i, n in zip(np.unravel_index(first, shape), shape, strict=True) if n > 1]
        values = (np.broadcast_to(getattr(one, name), some.shape).flat[first] for one in (variant, case))
        there, right = (f"{float(value):.{digits}g}" for value in values)
        yield f"{name}[{', '.join(index)}]" if index else name, there, right


def show_used(case: Case, found: Found) -> tuple[str, ...]:
    """Return the first numbers that were used, beside the right ones; nothing where the cause says it."""
    variant = found.variants[0]
    if found.faults[0].id == UNKNOWN["gamma"].fault.id:
        some = _list_first(case, variant) if "what" in variant.values else ()
        return tuple(f"{place} is {there}, not {right}" for place, there, right in some)
    for name in ("divisor", "mean"):
        theirs, right = getattr(variant, name), np.asarray(getattr(case, name))
        if theirs is not None and (off := np.abs(theirs - right) > NEAR * np.abs(right)).any():
            first = np.unravel_index(int(off.argmax()), off.shape)
            right = np.broadcast_to(right, off.shape)
            return (
                f"the first {name} that differs is {float(theirs[first]):.6g}, not {float(right[first]):.6g}",
            )
    return ()
