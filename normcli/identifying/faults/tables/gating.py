"""Faults of a gate, before a norm or behind it: left out, bare, exchanged, rolled, or rounded."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row
from normcli.checking.half_precision import HALVES
from normcli.dtypes import is_half
from normcli.identifying.faults.case_sampling import change_case
from normcli.identifying.faults.tables.around import (
    ROUNDINGS,
    normalize_other,
    round_bounded,
    use_other,
    use_rounded,
)
from normcli.identifying.faults.variant import Variant
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rounding import round_to_short, widen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case
    from normcli.numerics.elements.gate import Gated

_OTHERS = tuple(one for one in Activation if one is not Activation.NONE)


def _activate(case: Case, *others: Activation) -> Iterator[Variant]:
    """Yield a variant for each of the activations `others`, applied to the gate in place of its own."""
    own = _find_gate(case)
    for one in others:
        if one is not own.activation:
            gated = _replace_gate(case, own._replace(activation=one))
            used = use_other(gated, used=one.value, asked=own.activation.value)
            if case.gated_input is None:
                times = change_case(case, gate=None).right.values
            else:
                times = widen(own.times) * gated.gamma / gated.divisor
            off = np.abs(widen(own.values) * times)  # 1 + erf(z) cancels where z is below 0
            yield used._replace(noise=gated.right.allowed + ROUNDINGS * case.arithmetic * off)


def _find_gate(case: Case) -> Gated:
    """Return the gate of a case, behind the norm or before it; the case must have one."""
    gate = case.gate or case.gated_input
    assert gate is not None
    return gate


def _replace_gate(case: Case, gate: Gated | None) -> Case:
    """Return the case with another gate, or without one, before or behind the norm as it was."""
    own = case.gated_input
    if own is None:
        return change_case(case, gate=gate)
    return replace(case, x=widen(own.times if gate is None else gate.activate()), gated_input=gate)


def _gate_first(case: Case) -> Iterator[Variant]:
    """Yield variants where x is multiplied by the activated gate before the norm, and not y after it.

    For y of half precision, there are two more: with the product rounded to it, and with both the activation
    and the product rounded.
    """
    gated, bare, name = case.x * case.factor, change_case(case, gate=None), case.dtype.name
    yield use_other(normalize_other(bare, gated))
    if is_half(case.dtype):
        yield use_other(normalize_other(bare, round_to_short(gated, name)))
        act, off = _round_activation(case, _find_gate(case), name)
        yield use_rounded(bare, *round_bounded(case.x * act, np.abs(case.x * off), name))


def _exchange(case: Case) -> Variant:
    """Return the variant in which x and the gate are exchanged.

    If the gate belongs before the norm, x is activated and multiplies the gate's values, and the norm follows.
    Otherwise the gate's values are normalized, and multiplied by the activation of x.
    """
    gate = _find_gate(case)
    if case.gated_input is not None:
        return use_other(_replace_gate(case, gate._replace(values=gate.times, times=gate.values)))
    return use_other(replace(normalize_other(case, gate.values), gate=gate._replace(values=case.x)))


def _activate_norm(case: Case, gate: Gated) -> Variant | None:
    """Return the variant with the activation applied to the norm, not to the gate; None without activation."""
    if gate.activation is Activation.NONE:
        return None
    right, factor = change_case(case, gate=None).right, widen(gate.values)
    return Variant(
        result=gate._replace(values=right.values).activate() * factor, noise=right.allowed * np.abs(factor)
    )


def _roll_gate(case: Case) -> Iterator[Variant]:
    """Yield variants with the gate rolled by one place, forwards and backwards, along each kept axis."""
    gate = _find_gate(case)
    for axis, shift in itertools.product(case.kept, (1, -1)):
        rolled = gate._replace(values=np.roll(gate.values, shift, axis))
        yield use_other(_replace_gate(case, rolled), axis=case.name_axis(axis), shift=shift)


def _round_gate(case: Case) -> Iterator[Variant]:
    """Yield variants with a gate behind the norm and numbers rounded to half precision before their product.

    Rounded are the gate, its activation, the norm, all three of these, or activation and norm.
    """
    gate, factor = _find_gate(case), case.factor
    norm = change_case(case, gate=None).right
    for name in HALVES:
        short, z = _round_z(case, gate, name)
        yield from z
        act, norms = _round_activation(case, gate, name), round_bounded(norm.values, norm.allowed, name)
        for what, (one, of_one), (two, of_two) in (
            ("the activation", (norm.values, norm.allowed), act),
            ("the norm", norms, (factor, 0.0)),
            ("each step", norms, _round_activation(case, short, name)),
            ("each step behind the gate", norms, act),
        ):
            noise = of_one * np.abs(two) + of_two * np.abs(one)
            yield Variant(result=one * two, noise=noise, values={"what": what, "dtype": name})


def _round_gated_input(case: Case) -> Iterator[Variant]:
    """Yield variants with a gate before the norm and numbers rounded to half precision before the norm.

    Rounded are the gate, its activation, the product with x, or all three.
    """
    gate, exact = _find_gate(case), case.x
    x = widen(gate.times)
    for name in HALVES:
        short, z = _round_z(case, gate, name)
        yield from z
        (act, of_act), (last, of_last) = (_round_activation(case, one, name) for one in (gate, short))
        for what, product, off in (
            ("the activation", x * act, x * of_act),
            ("the product", *round_bounded(exact, case.arithmetic * np.abs(exact), name)),
            ("each step", *round_bounded(x * last, np.abs(x * of_last), name)),
        ):
            yield use_rounded(case, product, off, what=what, dtype=name)


def _round_z(case: Case, gate: Gated, name: str) -> tuple[Gated, list[Variant]]:
    """Return the gate with its values rounded to the half precision `name`, and a list with the variant of it.

    The variant is the norm with this gate. The list is empty if rounding changes no value.
    """
    z = widen(gate.values)
    short = gate._replace(values=round_to_short(z, name))
    moves = bool((short.values != z).any())
    return short, [use_other(_replace_gate(case, short), what="the gate", dtype=name)] if moves else []


def _round_activation(case: Case, gate: Gated, name: str) -> tuple[Floats, Floats]:
    factor = gate._replace(times=None).activate()
    return round_bounded(factor, ROUNDINGS * case.arithmetic * np.abs(factor), name)


GATES: Sequence[Row] = (
    Row("before-gate", _gate_first, "gate moments"),
    Row("before-gate-missing", lambda c: use_other(_replace_gate(c, None)), "gated-input moments"),
    Row("before-gate-bare", lambda c: _activate(c, Activation.NONE), "gated-input moments"),
    Row("before-gate-exchanged", _exchange, "gated-input moments"),
    Row("before-gate-rolled", _roll_gate, "gated-input moments"),
    Row("before-gate-activation", lambda c: _activate(c, *_OTHERS), "gated-input moments"),
    Row("before-gate-rounded", _round_gated_input, "gated-input moments"),
    Row("after-gate",
        lambda c: use_other(replace(_replace_gate(c, None), gate=c.gated_input._replace(times=None))),
        "gated-input moments"),
    Row("after-gate-missing", lambda c: use_other(_replace_gate(c, None)), "gate"),
    Row("after-gate-bare", lambda c: _activate(c, Activation.NONE), "gate"),
    Row("after-gate-exchanged", _exchange, "gate moments"),
    Row("after-gate-norm", lambda c: _activate_norm(c, c.gate), "gate"),
    Row("after-gate-rolled", _roll_gate, "gate"),
    Row("after-gate-activation", lambda c: _activate(c, *_OTHERS), "gate"),
    Row("after-gate-rounded", _round_gate, "gate"),
)  # fmt: skip
"""The rows of faults of a gate, before or behind the norm, the likeliest first."""
