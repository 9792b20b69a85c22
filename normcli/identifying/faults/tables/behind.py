"""Faults behind the norm: something is added, applied or cut off after gamma and beta."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.checking.gate import ACTIVATIONS
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


_ONE = np.ones(())
"""The slope of a step that makes no change much larger."""


def _apply(function: Callable[[Floats], Floats]) -> Callable[[Case], Iterator[Variant]]:
    """Return what applies a function to the result."""

    def vary(case: Case) -> Iterator[Variant]:
        with np.errstate(all="ignore"):
            yield Variant(result=function(case.right.values), slope=_ONE)

    return vary


_LEAKS = (0.01, 0.1, 0.2, 0.3)


def _leak(case: Case) -> Iterator[Variant]:
    for slope in _LEAKS:
        values = case.right.values
        yield Variant(
            result=np.where(values < 0.0, slope * values, values), values={"slope": slope}, slope=_ONE
        )


def _apply_gelu(case: Case) -> Iterator[Variant]:
    for name in ("gelu", "gelu-tanh"):
        yield from _apply(ACTIVATIONS[name])(case)


def _clip(case: Case) -> Iterator[Variant]:
    """Values end at bounds that several of them have."""
    finite = case.y[np.isfinite(case.y)]
    if not finite.size:
        return
    below, above = -math.inf, math.inf
    low, high = float(finite.min()), float(finite.max())
    several = [np.count_nonzero(finite == end) > 1 for end in (low, high)]
    ends = (
        (several[0], low, above, f"below {low:.6g}"), (several[1], below, high, f"above {high:.6g}"),
        (all(several), low, high, f"beyond {low:.6g} and {high:.6g}"),
    )  # fmt: skip
    for is_shown, least, most, words in ends:
        within = np.count_nonzero((case.right.values > least) & (case.right.values < most))
        if is_shown and within:  # of values that are all cut off, nothing of the norm is left
            numbers = int(least > below) + int(most < above)
            result = np.clip(case.right.values, least, most)
            yield Variant(result=result, values={"beyond": words}, numbers=numbers, slope=_ONE)


def _add_input(case: Case) -> Iterator[Variant]:
    if np.array_equal(case.y, case.x):  # where what is added to x is lost, there is no sign of it
        return
    yield Variant(result=case.right.values + case.x, values={"sign": "added to"}, slope=_ONE)
    yield Variant(result=case.right.values - case.x, values={"sign": "subtracted from"}, slope=_ONE)


def _gate(case: Case) -> Iterator[Variant]:
    with np.errstate(all="ignore"):
        for name, words in (("silu", "silu(x)"), ("sigmoid", "sigmoid(x)"), ("none", "x")):
            factor = ACTIVATIONS[name](case.x)
            yield Variant(result=case.right.values * factor, values={"gate": words}, slope=factor)


BEHIND: Sequence[Row] = (
    Row(Fault("after-input-added", "x is {sign} the result", "add the residual outside the norm", "y + x",
              ("added to",)), _add_input),
    Row(Fault("after-relu", "relu follows", "leave the activation out", "np.maximum(y, 0)"),
              _apply(ACTIVATIONS["relu"])),
    Row(Fault("after-leaky-relu", "leaky relu of slope {slope} follows", "leave the activation out",
              "np.where(y < 0, 0.01 * y, y)", ("A",)), _leak),
    Row(Fault("after-gelu", "gelu follows", "leave the activation out", "gelu(y)"), _apply_gelu),
    Row(Fault("after-silu", "silu follows", "leave the activation out", "y / (1 + np.exp(-y))"),
              _apply(ACTIVATIONS["silu"])),
    Row(Fault("after-sigmoid", "sigmoid follows", "leave the activation out", "1 / (1 + np.exp(-y))"),
              _apply(ACTIVATIONS["sigmoid"])),
    Row(Fault("after-tanh", "tanh follows", "leave the activation out", "np.tanh(y)"), _apply(np.tanh)),
    Row(Fault("after-absolute", "the absolute value follows", "leave the sign in", "np.abs(y)"),
              _apply(np.abs)),
    Row(Fault("after-clipped", "values are cut off {beyond}", "leave the bounds out", "np.clip(y, -2, 2)",
              ("above A",)), _clip),
    Row(Fault("after-gated", "{gate} multiplies the result", "leave the gate out", "y * silu(x)",
              ("silu(x)",)), _gate),
)  # fmt: skip
"""The likelier ones first."""
