"""Faults in gamma and beta: left out, applied otherwise than they should be, or others in their place."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.checking.saved import HALVES
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.tables.order import find_shift
from normcli.identifying.faults.variant import MOST_SHIFTS, Variant, list_shifts
from normcli.numerics.rounding import round_to_half

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


def _change_gamma(change: Callable[[Floats], Floats]) -> Callable[[Case], Iterator[Variant]]:
    """Return what applies another gamma, made of the given one without what is added to it."""

    def vary(case: Case) -> Iterator[Variant]:
        if case.has_gamma:
            with np.errstate(all="ignore"):
                yield Variant(gamma=change(case.gamma - case.plan.spec.gamma_offset))

    return vary


def _change_beta(change: Callable[[Floats], Floats]) -> Callable[[Case], Iterator[Variant]]:
    def vary(case: Case) -> Iterator[Variant]:
        if case.has_beta:
            yield Variant(beta=change(case.beta))

    return vary


def _leave_gamma(case: Case) -> Iterator[Variant]:
    if case.has_gamma:
        yield Variant(gamma=np.ones_like(case.gamma))


def _leave_beta(case: Case) -> Iterator[Variant]:
    if case.has_beta:
        yield Variant(beta=np.zeros_like(case.beta))


def _leave_both(case: Case) -> Iterator[Variant]:
    if case.has_gamma and case.has_beta:
        yield Variant(gamma=np.ones_like(case.gamma), beta=np.zeros_like(case.beta))


def _swap(case: Case) -> Iterator[Variant]:
    if case.has_gamma and case.has_beta and case.gamma.shape == case.beta.shape:
        yield Variant(gamma=case.beta, beta=case.gamma)


def _shift_first(case: Case) -> Iterator[Variant]:
    if case.has_gamma and case.has_beta:
        yield Variant(beta=case.gamma * case.beta)


def _add_one(case: Case) -> Iterator[Variant]:
    """1 + gamma where gamma is meant, and the other way round."""
    if case.has_gamma:
        for offset in (1.0, -1.0):
            is_meant = case.plan.spec.gamma_offset + offset in (0.0, 1.0)
            if is_meant:
                used, meant = ("1 + gamma", "gamma") if offset > 0.0 else ("gamma", "1 + gamma")
                yield Variant(gamma=case.gamma + offset, values={"used": used, "meant": meant})


def _list_axes(values: Floats) -> list[int]:
    return [axis for axis, n in enumerate(values.shape) if n > 1]


def _move(case: Case, change: Callable[[Floats], Floats]) -> Iterator[tuple[str, Variant]]:
    """Yield gamma, beta or both with a change, each with its name and the verb to it."""
    is_alike = case.gamma.shape == case.beta.shape and case.has_gamma and case.has_beta
    if case.has_gamma:
        yield "gamma is", Variant(gamma=change(case.gamma))
    if case.has_beta:
        yield "beta is", Variant(beta=change(case.beta))
    if is_alike:
        yield "gamma and beta are", Variant(gamma=change(case.gamma), beta=change(case.beta))


def _roll_of(names: Sequence[str]) -> Callable[[Case], Iterator[Variant]]:
    """Return what rolls parameters of some names along each of their axes, by few places first."""

    def vary(case: Case) -> Iterator[Variant]:
        shape = case.plan.grid.merge_shape(case.gamma.shape if case.has_gamma else case.beta.shape)
        for axis, length in enumerate(shape):
            for shift in list_shifts(length):
                by = shift if 2 * shift <= length else shift - length
                for name, variant in _move(case, functools.partial(_roll, shape, axis, shift)):
                    if name in names:
                        yield variant._replace(values={"what": name, "by": by}, numbers=1)

    return vary


def _roll(shape: tuple[int, ...], axis: int, shift: int, values: Floats) -> Floats:
    """Return a parameter of the view that is rolled along an axis of the tensor."""
    if values.size != math.prod(shape):
        return values
    return np.roll(values.reshape(shape), shift, axis).reshape(values.shape)


def _reverse(case: Case) -> Iterator[Variant]:
    for axis, length in enumerate(case.gamma.shape):
        if length > 1:
            for name, variant in _move(case, functools.partial(np.flip, axis=axis)):
                yield variant._replace(values={"what": name})


def _round(case: Case) -> Iterator[Variant]:
    offset = case.plan.spec.gamma_offset
    for dtype in HALVES:
        gamma = round_to_half(case.gamma - offset, dtype) + offset
        rounded = {"gamma is": Variant(gamma=gamma)} if case.has_gamma else {}
        if case.has_beta:
            beta = round_to_half(case.beta, dtype)
            rounded |= {"beta is": Variant(beta=beta), "gamma and beta are": Variant(gamma=gamma, beta=beta)}
        for name, variant in rounded.items():
            yield variant._replace(values={"what": name, "dtype": dtype})


def _take_other_sample(case: Case) -> Iterator[Variant]:
    """Gamma and beta of another index of an axis that they share with the groups, or of one index for all."""
    for axis in _list_axes(case.gamma):
        if axis in case.axes or len(_list_axes(case.gamma)) < 2:
            continue
        for index in range(min(case.gamma.shape[axis], MOST_SHIFTS)):
            gamma, beta = (
                values.take([index], axis) if values.shape[axis] > 1 else values
                for values in (case.gamma, case.beta)
            )
            words = f"{case.name_axis(axis)}={index} in every sample"
            yield Variant(
                gamma=gamma, beta=beta, values={"what": "gamma and beta are those", "which": words}, numbers=1
            )
            yield Variant(gamma=gamma, values={"what": "gamma is that", "which": words}, numbers=1)


def _permute(case: Case) -> Iterator[Variant]:
    """Put gamma, and beta with it or without, in the order that the slopes of the features show."""
    size = case.gamma.size
    if not case.has_gamma or size < 3 or size > _MOST_PERMUTED:
        return
    shown = case.recover_parameters()[0].reshape(-1)
    order = np.abs(shown[:, None] - case.gamma.reshape(1, -1)).argmin(1)
    count = int(np.count_nonzero(order != np.arange(size)))
    is_plain = find_shift(size, order) or np.array_equal(order, np.arange(size)[::-1])
    if count and len(np.unique(order)) == size and not is_plain:
        for name, variant in _move(case, lambda values: values.reshape(-1)[order].reshape(values.shape)):
            yield variant._replace(values={"what": name, "count": count}, numbers=count)


_MOST_PERMUTED = 2048


def _leave_all(case: Case) -> Iterator[Variant]:
    variant = Variant(gamma=np.zeros_like(case.gamma))
    if case.has_beta and case.explains(case.predict(variant)).all():  # a part of y has words of its own
        yield variant


def _scale_all(case: Case) -> Iterator[Variant]:
    """One factor for all values: of the least squares."""
    with np.errstate(all="ignore"):
        right = case.right.values
        counted = np.isfinite(right) & np.isfinite(case.y)
        for shift in (np.zeros(1), np.broadcast_to(case.beta, right.shape)):
            ours, theirs = (np.where(counted, values - shift, 0.0) for values in (right, case.y))
            square = float((ours * ours).sum())
            factor = _simplify(float((ours * theirs).sum()) / square) if square > 0.0 else 1.0
            if np.isfinite(factor) and factor not in (0.0, 1.0):
                beta = case.beta * (factor if not shift.any() else 1.0)
                yield Variant(
                    gamma=case.gamma * factor,
                    beta=beta,
                    values={"what": "x̂" if shift.any() else "every value", "factor": f"{factor:.6g}"},
                    numbers=1,
                    slope=np.full((), factor),
                )


_EXACT = 1e-7


def _simplify(factor: float) -> float:
    """Return a simpler number that is as good."""
    for digits in range(1, 6):
        rounded = float(f"{factor:.{digits - 1}e}")
        if abs(rounded - factor) <= _EXACT * abs(factor):
            return rounded
    return factor


def _shift_all(case: Case) -> Iterator[Variant]:
    with np.errstate(all="ignore"):
        rest = case.y - case.right.values
        term = _simplify(float(np.median(rest[np.isfinite(rest)]))) if np.isfinite(rest).any() else 0.0
    if term:
        yield Variant(beta=case.beta + term, values={"term": f"{term:.6g}"}, numbers=1, slope=np.ones(()))


PARAMETERS: Sequence[Row] = (
    Row(Fault("affine-missing", "gamma and beta are not applied", "apply gamma and beta", "xhat"), _leave_both),
    Row(Fault("affine-gamma-missing", "gamma is not applied", "multiply by gamma", "xhat + beta"),
              _leave_gamma),
    Row(Fault("affine-beta-missing", "beta is not applied", "add beta", "gamma * xhat"), _leave_beta),
    Row(Fault("affine-swapped", "gamma and beta are exchanged", "pass gamma before beta",
              "beta * xhat + gamma"), _swap),
    Row(Fault("affine-gamma-plus-one", "{used} multiplies, not {meant}", "agree on how gamma is stored",
              "(1 + gamma) * xhat", ("1 + gamma", "gamma")), _add_one),
    Row(Fault("affine-gamma-plus-two", "1 is added to gamma twice", "add 1 in one place",
              "(2 + gamma) * xhat"), _change_gamma(lambda g: 2.0 + g)),
    Row(Fault("affine-gamma-plus-one-twice", "1 + gamma multiplies twice", "multiply once",
              "(1 + gamma) ** 2 * xhat"), _change_gamma(lambda g: (1.0 + g) ** 2)),
    Row(Fault("affine-gamma-twice", "gamma multiplies twice", "multiply by gamma once",
              "gamma ** 2 * xhat + beta"), _change_gamma(lambda g: g * g)),
    Row(Fault("affine-gamma-doubled", "gamma is doubled", "take gamma as it is", "2 * gamma * xhat + beta"),
              _change_gamma(lambda g: 2.0 * g)),
    Row(Fault("affine-gamma-negated", "gamma has the other sign", "take gamma as it is",
              "-gamma * xhat + beta"), _change_gamma(lambda g: -g)),
    Row(Fault("affine-gamma-divided", "gamma divides", "multiply by gamma", "xhat / gamma + beta"),
              _change_gamma(lambda g: 1.0 / g)),
    Row(Fault("affine-gamma-exp", "exp(gamma) multiplies", "take gamma as it is",
              "np.exp(gamma) * xhat + beta"), _change_gamma(np.exp)),
    Row(Fault("affine-gamma-absolute", "|gamma| multiplies", "take gamma with its sign",
              "np.abs(gamma) * xhat + beta"), _change_gamma(np.abs)),
    Row(Fault("affine-beta-first", "beta is added before gamma multiplies", "multiply first, then add beta",
              "gamma * (xhat + beta)"), _shift_first),
    Row(Fault("affine-beta-negated", "beta is subtracted", "add beta", "gamma * xhat - beta"),
              _change_beta(lambda b: -b)),
    Row(Fault("affine-beta-doubled", "beta is added twice", "add beta once", "gamma * xhat + 2 * beta"),
              _change_beta(lambda b: 2.0 * b)),
    Row(Fault("affine-gamma-reversed", "{what} reversed", "index parameters forwards",
              "gamma[::-1] * xhat + beta", ("gamma is",)), _reverse),
    Row(Fault("affine-gamma-rolled", "{what} rolled by {by}", "index parameters from 0",
              "np.roll(gamma, 1) * xhat + beta", ("gamma is", "N")),
              _roll_of(("gamma is", "gamma and beta are"))),
    Row(Fault("affine-beta-rolled", "beta is rolled by {by}", "index parameters from 0",
              "gamma * xhat + np.roll(beta, 1)", ("N",)), _roll_of(("beta is",))),
    Row(Fault("affine-gamma-permuted", "{what} permuted: {count} values stand elsewhere",
              "index parameters in order", "gamma[permutation] * xhat + beta", ("gamma is", "N")), _permute),
    Row(Fault("affine-gamma-other-sample", "{what} of {which}",
              "index them along every axis", "gamma[:1] * xhat + beta[:1]",
              ("gamma and beta are those", "another sample")), _take_other_sample),
    Row(Fault("affine-gamma-rounded", "{what} rounded to {dtype}", "keep parameters in float32",
              "gamma.astype(np.float16) * xhat", ("gamma is", "float16")), _round),
    Row(Fault("affine-beta-alone", "y is beta alone", "add gamma times x̂", "np.zeros_like(x) + beta"),
              _leave_all),
    Row(Fault("affine-constant", "{what} is multiplied by {factor}", "leave the factor out",
              "y * 3.7", ("every value", "C")), _scale_all),
    Row(Fault("affine-offset", "{term} is added to every value", "leave the term out", "y + 1", ("C",)),
              _shift_all),
)  # fmt: skip
"""The likelier ones first, of those that explain as much."""
