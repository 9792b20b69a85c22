"""Faults of evaluation: how running statistics that were given are used."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import Variant, list_shifts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_MOMENTA = (0.1, 0.01, 0.001, 0.2, 0.03, 0.05, 0.5, 0.9, 0.99, 0.999)
"""The part of the new statistics in what is kept: those of frameworks and models."""


def _unused(case: Case) -> Iterator[Variant]:
    """Take the batch's own statistics, both or one of them."""
    if case.stored is not None:
        yield Variant(case.own_mean, square=case.own_square, values={"what": "the batch's own statistics are"})
        yield Variant(case.own_mean, case.divisor, values={"what": "the batch's own mean is"})
        yield Variant(square=case.own_square, values={"what": "the batch's own variance is"})


def _exchange(case: Case) -> Iterator[Variant]:
    if case.stored is not None:
        yield Variant(case.stored[1], square=case.stored[0])


def _move(case: Case) -> Iterator[Variant]:
    if case.stored is None:
        return
    mean, var = case.stored
    for axis in case.kept:
        length = mean.shape[axis]
        for shift in list_shifts(length):
            words = f"rolled by {shift if 2 * shift <= length else shift - length}"
            yield from _yield_moved(case, np.roll(mean, shift, axis), np.roll(var, shift, axis), words)
        if length > 2:
            yield from _yield_moved(case, np.flip(mean, axis), np.flip(var, axis), "reversed")


def _yield_moved(case: Case, mean: Floats, var: Floats, words: str) -> Iterator[Variant]:
    yield Variant(mean, square=var, values={"what": "running statistics are", "words": words}, numbers=1)
    yield Variant(mean, case.divisor, values={"what": "the running mean is", "words": words}, numbers=1)
    yield Variant(square=var, values={"what": "the running variance is", "words": words}, numbers=1)


def _leave_root(case: Case) -> Iterator[Variant]:
    if case.stored is not None:
        yield Variant(case.mean, case.stored[1])
        yield Variant(case.mean, case.stored[1] + case.eps)


def _square(case: Case) -> Iterator[Variant]:
    """Take the root of a root, or of a running variance that holds deviations."""
    if case.stored is not None:
        with np.errstate(all="ignore"):
            yield Variant(square=np.sqrt(case.stored[1]))
            yield Variant(case.mean, np.sqrt(np.sqrt(case.stored[1] + case.eps)))


def _update(case: Case) -> Iterator[Variant]:
    """Update the statistics with this batch before they are used."""
    if case.stored is None:
        return
    count = case.count
    unbiased = case.own_square * (case.freedom / max(1.0, count - 1.0))
    for momentum, own in itertools.product(_MOMENTA, (unbiased, case.own_square)):
        mean = (1.0 - momentum) * case.stored[0] + momentum * case.own_mean
        var = (1.0 - momentum) * case.stored[1] + momentum * own
        yield Variant(mean, square=var, values={"momentum": momentum}, numbers=1)


def _bias(case: Case) -> Iterator[Variant]:
    """Take the running variance as a sum of squares divided by n, or by n − 1, of as many values as here."""
    if case.stored is not None and case.count > 1:
        share = (case.count - 1.0) / case.count
        values = {"used": "n", "asked": "n − 1"}
        yield Variant(square=case.stored[1] * share, values=values)
        yield Variant(square=case.stored[1] / share, values={"used": "n − 1", "asked": "n"})


STORED: Sequence[Row] = (
    Row(Fault("stored-unused", "{what} used, not the running ones", "normalize with the running statistics",
              "(x - x.mean(0)) / x.std(0)", ("the batch's own statistics are",)), _unused),
    Row(Fault("stored-exchanged", "running mean and variance are exchanged",
              "pass the mean before the variance", "(x - var) / np.sqrt(mean + eps)"), _exchange),
    Row(Fault("stored-updated", "running statistics were updated with this batch first, momentum {momentum}",
              "normalize before the update", "(x - updated_mean) / np.sqrt(updated_var)", ("M",)), _update),
    Row(Fault("stored-not-rooted", "the running variance divides, not its root",
              "take the root of the variance", "(x - mean) / (var + eps)"), _leave_root),
    Row(Fault("stored-rooted-twice", "the running variance is rooted twice", "take the root once",
              "(x - mean) / np.sqrt(std + eps)"), _square),
    Row(Fault("stored-biased", "the running variance is divided by {used}, not {asked}",
              "keep the variance as the framework divides it", "(x - mean) / np.sqrt(var * (n - 1) / n + eps)",
              ("n", "n − 1")), _bias),
    Row(Fault("stored-rolled", "{what} {words}", "index statistics from 0", "(x - np.roll(mean, 1)) / d",
              ("running statistics are", "rolled by N")), _move),
)  # fmt: skip
"""The likelier ones first."""
