"""Faults in the use of gamma and beta (left out, exchanged, applied otherwise) and of running statistics."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.tables.dividing import replace_statistics, round_by
from normcli.identifying.faults.tables.places import find_shift, is_reverse
from normcli.identifying.faults.variant import MOST_SHIFTS, Variant, divide, label, list_roots, list_shifts
from normcli.identifying.models.line_fit import fit_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.tables.dividing import Cast


def _change_gamma(change: Callable[[Floats], Floats]) -> Callable[[Case], Variant]:
    """Return a function from a case to the variant that multiplies by `change(gamma)`, of gamma as given."""
    return lambda case: Variant(gamma=change(case.gamma - case.plan.spec.gamma_offset))


def _add_one(case: Case) -> Variant:
    """Return the variant that multiplies by 1 + gamma where the norm multiplies by gamma, or the reverse."""
    if case.plan.spec.gamma_offset:
        return Variant(gamma=case.gamma - 1.0, values={"used": "gamma", "meant": "1 + gamma"})
    return Variant(gamma=case.gamma + 1.0, values={"used": "1 + gamma", "meant": "gamma"})


def _swap(case: Case) -> Iterator[Variant]:
    """Yield the variants with gamma and beta exchanged, as given, and before 1 was added to the gamma given."""
    for offset in dict.fromkeys((case.plan.spec.gamma_offset, 1)):
        yield Variant(gamma=case.beta + offset, beta=case.gamma - offset)


def _shift_gamma(case: Case) -> Variant | None:
    """Return the variant with one number, the median that y shows, added to each gamma; None if it is 0.

    None too if all gammas are equal: then it is a factor.
    """
    if np.ptp(case.gamma) == 0.0:
        return None
    shown = recover_parameters(case)[0] - case.gamma
    term = float(np.median(shown[np.isfinite(shown)])) if np.isfinite(shown).any() else 0.0
    return Variant(gamma=case.gamma + term, values={"term": f"{term:.3g}"}, numbers=1) if term else None


def _replace(case: Case, gamma: Floats, beta: Floats) -> Iterator[Variant]:
    """Yield variants with another gamma, with another beta, and with both.

    A parameter that the case was not given is not replaced. `values["what"]` is "gamma is", "beta is" or
    "gamma and beta are".
    """
    if case.has_gamma:
        yield Variant(gamma=gamma, values={"what": "gamma is"})
    if case.has_beta:
        yield Variant(beta=beta, values={"what": "beta is"})
    if case.has_gamma and case.has_beta:
        yield Variant(gamma=gamma, beta=beta, values={"what": "gamma and beta are"})


def _reorder(case: Case, moves: Callable[[int], Mapping[int, NDArray[np.intp]]]) -> Iterator[Variant]:
    """Yield the variants whose gamma, beta or both are in other orders along an axis.

    A channel axis that is split into groups is one axis here.

    Parameters
    ----------
    case : Case
    moves : callable
        Returns, for the length of an axis, the orders of its indices by how far they move, 0 for a reversal.
    """
    whole = np.broadcast_shapes(case.gamma.shape, case.beta.shape)
    shape = case.plan.grid.merge_shape(whole)
    own = [np.broadcast_to(p, whole).reshape(shape) for p in (case.gamma, case.beta)]
    several = np.count_nonzero(np.greater(shape, 1)) > 1
    for axis, length in enumerate(shape):
        along = f" along {case.plan.grid.layout.name(axis)}" if several else ""
        for shift, order in moves(length).items():
            gamma, beta = (p.take(order, axis).reshape(whole) for p in own)
            yield from label(_replace(case, gamma, beta), int(shift != 0), by=shift, along=along)


def _roll(case: Case) -> Iterator[Variant]:
    """Yield the variants whose gamma, beta or both are rolled along an axis, by at most 64 indices."""
    return _reorder(case, lambda n: {shift: np.roll(np.arange(n), shift) for shift in list_shifts(n)})


def _reverse(case: Case) -> Iterator[Variant]:
    """Yield the variants whose gamma, beta or both are reversed along an axis."""
    return _reorder(case, lambda n: {0: np.arange(n)[::-1]} if n > 1 else {})


def _round(case: Case, cast: Cast) -> Iterator[Variant]:
    offset = case.plan.spec.gamma_offset
    return _replace(case, cast(case.gamma - offset) + offset, cast(case.beta))


def _take_other_sample(case: Case) -> Iterator[Variant]:
    """Yield variants where every index of a kept axis uses the gamma, or gamma and beta, of one index.

    Each kept axis along which gamma varies is tried, with its first 64 indices, if gamma varies along another
    axis too. For channel groups, gamma and beta are also indexed by the group.
    """
    wide = [axis for axis, n in enumerate(case.gamma.shape) if n > 1]
    for axis in (axis for axis in wide if axis not in case.axes and len(wide) > 1):
        name, length = case.name_axis(axis), case.gamma.shape[axis]
        every = [
            [p.take([index], axis) if p.shape[axis] > 1 else p for p in (case.gamma, case.beta)]
            for index in range(min(length, MOST_SHIFTS))
        ]
        words = [f"{name}={index} in every sample" for index in range(len(every))]
        if name == "group":
            words = [f"{name}={index} in every group" for index in range(len(every))]
            words.append("the group's index, not the channel's")
            shape = [length if other == axis else 1 for other in range(case.gamma.ndim)]
            every.append([p.flat[:length].reshape(shape) if p.size > 1 else p for p in (case.gamma, case.beta)])
        for (gamma, beta), which in zip(every, words, strict=True):
            both = Variant(gamma=gamma, beta=beta, values={"what": "gamma and beta are taken"})
            alone = Variant(gamma=gamma, values={"what": "gamma is taken"})
            yield from label((both, alone), 1, which=which)


def _turn(case: Case) -> Iterator[Variant]:
    """Yield variants with gamma, beta or both along another axis of their length; nothing if they have two."""
    shape = np.broadcast_shapes(case.gamma.shape, case.beta.shape)
    wide = [axis for axis, n in enumerate(shape) if n > 1]
    for axis in wide if len(wide) == 1 else ():
        for other, n in enumerate(case.x.shape):
            if other != axis and n == shape[axis]:
                gamma, beta = (np.broadcast_to(p, shape).swapaxes(axis, other) for p in (case.gamma, case.beta))
                moved, asked = _replace(case, gamma, beta), case.name_axis(axis)
                yield from label(moved, used=case.name_axis(other), asked=asked)


def recover_parameters(case: Case) -> tuple[Floats, Floats]:
    """Return the gamma and beta, of gamma's shape, that fit y = gamma · x̂ + beta by least squares."""
    axes = tuple(axis for axis, n in enumerate(case.gamma.shape) if n > 1)
    fitted = fit_lines(case.standardized, case.y, axes, through_zero=False, refinements=0)
    return fitted.scale, fitted.shift


_MOST_PERMUTED = 2048
"""With more features than this, no other order of gamma is looked for."""


def _permute(case: Case) -> Iterator[Variant]:
    """Yield variants with gamma, beta or both permuted so that each feature's gamma is nearest to that in y.

    Nothing if it is no permutation, or a roll or reversal, and unless there are 3 to 2,048 features.
    """
    size = case.gamma.size
    if not 3 <= size <= _MOST_PERMUTED:
        return
    shown = recover_parameters(case)[0].reshape(-1)
    order = np.abs(shown[:, None] - case.gamma.reshape(1, -1)).argmin(1)
    count = int(np.count_nonzero(order != np.arange(size)))
    is_plain = find_shift(order) or is_reverse(order)
    if count and len(np.unique(order)) == size and not is_plain:
        permuted = (
            p.reshape(-1)[order].reshape(p.shape) if p.size == size else p for p in (case.gamma, case.beta)
        )
        yield from label(_replace(case, *permuted), count, count=count)


def _leave_all(case: Case) -> Variant | None:
    variant = Variant(gamma=np.zeros_like(case.gamma))
    return variant if case.explains(case.predict(variant)).all() else None  # a part of y has words of its own


def _scale_all(case: Case) -> Iterator[Variant]:
    """Yield variants with one factor, fitted to y by least squares, on the result, or on x̂ if beta is not 0."""
    right = case.right.values
    counted = np.isfinite(right) & np.isfinite(case.y)
    shifts = {"every value": np.zeros(1), **({"x̂": case.beta} if case.beta.any() else {})}
    for what, shift in shifts.items():
        ours, theirs = (np.where(counted, values - shift, 0.0) for values in (right, case.y))
        square = float((ours * ours).sum())
        factor = _simplify(case, float((ours * theirs).sum()) / square) if square > 0.0 else 1.0
        every = [(words, one, 0) for words, one in list_roots(factor, {case.count, *case.x.shape})]
        every += [(f"{factor:.6g}", factor, 1)] if np.isfinite(factor) and factor not in (0.0, 1.0) else []
        for words, one, numbers in every:
            beta = case.beta if shift.any() else case.beta * one
            scaled = Variant(gamma=case.gamma * one, beta=beta, slope=np.full((), one))
            yield from label([scaled], numbers, what=what, factor=words)


def _shift_all(case: Case) -> Iterator[Variant]:
    rest = case.y - case.right.values
    term = _simplify(case, float(np.median(rest[np.isfinite(rest)]))) if np.isfinite(rest).any() else 0.0
    if term:
        yield Variant(beta=case.beta + term, values={"term": f"{term:.6g}"}, numbers=1, slope=np.ones(()))


_EXACT = 1e-7


def _simplify(case: Case, factor: float) -> float:
    """Return a number rounded to the fewest digits, 1 … 5, that change it by less than y shows; else as it is.

    y of half precision shows an average over n values to two machine epsilons, divided by √n.
    """
    exact = max(_EXACT, 2.0 * get_eps(case.dtype) / math.sqrt(case.y.size)) if is_half(case.dtype) else _EXACT
    rounded = (float(f"{factor:.{digits}e}") for digits in range(5))
    return next((number for number in rounded if abs(number - factor) <= exact * abs(factor)), factor)


PARAMETERS: Sequence[Row] = (
    Row("affine-missing",
        lambda c: Variant(gamma=np.ones_like(c.gamma), beta=np.zeros_like(c.beta)), "gamma beta"),
    Row("affine-gamma-missing", lambda c: Variant(gamma=np.ones_like(c.gamma)), "gamma"),
    Row("affine-beta-missing", lambda c: Variant(beta=np.zeros_like(c.beta)), "beta"),
    Row("affine-swapped", _swap, "gamma beta"),
    Row("affine-gamma-plus-one", _add_one, "gamma"),
    Row("affine-gamma-plus-two", _change_gamma(lambda g: 2.0 + g), "gamma"),
    Row("affine-gamma-plus-one-twice", _change_gamma(lambda g: (1.0 + g) ** 2), "gamma"),
    Row("affine-gamma-twice", _change_gamma(lambda g: g * g), "gamma"),
    Row("affine-gamma-doubled", _change_gamma(lambda g: 2.0 * g), "gamma"),
    Row("affine-gamma-negated", _change_gamma(lambda g: -g), "gamma"),
    Row("affine-gamma-divided", _change_gamma(lambda g: 1.0 / g), "gamma"),
    Row("affine-gamma-exp", _change_gamma(np.exp), "gamma"),
    Row("affine-gamma-absolute", _change_gamma(np.abs), "gamma"),
    Row("affine-gamma-shifted", _shift_gamma, "gamma"),
    Row("affine-beta-first", lambda c: Variant(beta=c.gamma * c.beta), "gamma beta"),
    Row("affine-beta-negated", lambda c: Variant(beta=-c.beta), "beta"),
    Row("affine-beta-doubled", lambda c: Variant(beta=2.0 * c.beta), "beta"),
    Row("affine-other-axis", _turn),
    Row("affine-gamma-reversed", _reverse, "gamma"),
    Row("affine-gamma-rolled", lambda c: [one for one in _roll(c) if one.gamma is not None]),
    Row("affine-beta-rolled", lambda c: [one for one in _roll(c) if one.gamma is None]),
    Row("affine-gamma-permuted", _permute, "gamma"),
    Row("affine-gamma-other-sample", _take_other_sample),
    Row("affine-gamma-rounded", round_by(_round)),
    Row("affine-beta-alone", _leave_all, "beta"),
    Row("affine-constant", _scale_all),
    Row("affine-offset", _shift_all),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""


# -- running statistics

_MOMENTA = (0.1, 0.01, 0.001, 0.2, 0.03, 0.05, 0.5, 0.9, 0.99, 0.999)
"""Weights of the new batch in updated running statistics that frameworks and models use."""


def _take_own(case: Case) -> list[Variant]:
    whose = "the batch's own statistics are", "the batch's own mean is", "the batch's own variance is"
    return replace_statistics(case, case.own_mean, case.own_square, whose)


def _move_stored(case: Case) -> Iterator[Variant]:
    """Yield variants with running statistics, both or one of them, rolled or reversed along each kept axis."""
    names = "running statistics are", "the running mean is", "the running variance is"
    for axis in case.kept:
        places = np.arange(case.mean.shape[axis])
        moves = {f"rolled by {shift}": np.roll(places, shift) for shift in list_shifts(places.size)}
        for words, order in (moves | ({"reversed": places[::-1]} if places.size > 2 else {})).items():
            moved = replace_statistics(case, case.mean.take(order, axis), case.square.take(order, axis), names)
            yield from label(moved, 1, words=words)


def _update(case: Case) -> Iterator[Variant]:
    """Yield variants whose running statistics were updated with this batch first, for each usual momentum.

    The batch's variance is divided by n − 1, or as the norm has it.
    """
    unbiased = case.own_square * (case.freedom / max(1.0, case.count - 1.0))
    for momentum, own in itertools.product(_MOMENTA, (unbiased, case.own_square)):
        mean = (1.0 - momentum) * case.mean + momentum * case.own_mean
        square = (1.0 - momentum) * case.square + momentum * own
        yield Variant(mean, square=square, values={"momentum": momentum}, numbers=1)


def _bias(case: Case) -> Iterator[Variant]:
    """Yield variants with the running variance times (n − 1) / n and n / (n − 1), of groups of n > 1 values."""
    if case.count > 1:
        share = (case.count - 1.0) / case.count
        yield Variant(square=case.square * share, values={"used": "n", "asked": "n − 1"})
        yield Variant(square=case.square / share, values={"used": "n − 1", "asked": "n"})


STORED: Sequence[Row] = (
    Row("stored-unused", _take_own, "stored"),
    Row("stored-exchanged", lambda c: Variant(c.square, square=c.mean), "stored"),
    Row("stored-updated", _update, "stored"),
    Row("stored-not-rooted", lambda c: divide(c.square, c.square + c.eps), "stored"),
    Row("stored-rooted-twice",
        lambda c: [Variant(square=np.sqrt(c.square)), *divide(np.sqrt(np.sqrt(c.square + c.eps)))], "stored"),
    Row("stored-biased", _bias, "stored"),
    Row("stored-rolled", _move_stored, "stored"),
)  # fmt: skip
"""The likelier ones first."""
