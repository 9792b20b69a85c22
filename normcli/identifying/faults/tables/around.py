"""Faults of what stands around a norm in a block: a cast or a residual before it, the gate behind it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Fault, Row
from normcli.dtypes import is_half
from normcli.identifying.faults.variant import Variant
from normcli.numerics.elements.activation import Activation
from normcli.numerics.rounding import round_to_short, widen
from normcli.tensors.residual import Addends, ResidualSum, find_sum_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case
    from normcli.numerics.elements.gate import Gated

    Sums = Callable[[NDArray[Any], NDArray[Any]], list[tuple[dict[str, Any], list[NDArray[Any]]]]]


def _use(other: Case, more: Floats | float = 0.0, **values: Any) -> Variant:
    """Return the variant of a kernel that gives the result of another case, plus an addend."""
    right = other.right
    return Variant(result=right.values + more, noise=right.allowed, values=values)


def _normalize(case: Case, x: NDArray[Any]) -> Case:
    """Return the case of another tensor that is normalized."""
    return replace(case, x=widen(x))


def _list_kinds(addends: Addends) -> tuple[ResidualSum, ...]:
    """Return the ways to round x + residual: first the one that was asked for, then the others."""
    others = [kind for kind in ResidualSum if kind is not addends.kind]
    is_short = is_half(find_sum_dtype(addends.values.dtype, addends.residual.dtype))
    return (addends.kind, *(others if is_short else ()))


def _sum_otherwise(list_terms: Sums) -> Callable[[Case], Iterator[Variant]]:
    """Return the function that gives variants with a sum of other terms."""

    def vary(case: Case) -> Iterator[Variant]:
        addends = case.addends
        assert addends is not None
        for values, (first, *rest) in list_terms(addends.values, addends.residual):
            for kind in _list_kinds(addends)[: None if rest else 1]:
                total = first
                for term in rest:
                    total = Addends(total, term, kind).add()
                yield _use(_normalize(case, total), **values)

    return vary


def _round_otherwise(case: Case, addends: Addends) -> Iterator[Variant]:
    """Round sums of half precision before the norm if they should stay exact, and leave them exact if not."""
    for kind in _list_kinds(addends)[1:]:
        how = "rounded to half precision" if kind is ResidualSum.ROUNDED else "not rounded"
        yield _use(_normalize(case, addends._replace(kind=kind).add()), how=how)


def _add_behind(case: Case, addends: Addends) -> Iterator[Variant]:
    residual = widen(addends.residual)
    alone = _normalize(case, addends.values)
    for one, where in ((alone, "behind the norm, not before"), (case, "behind the norm, too")):
        yield _use(one, residual, where=where)


def _activate(case: Case, gate: Gated, *others: Activation) -> Iterator[Variant]:
    """Multiply with another activation of the gate."""
    for one in others:
        if one is not gate.activation:
            yield _use(
                replace(case, gate=gate._replace(activation=one)), used=one.value, asked=gate.activation.value
            )


def _round_input(case: Case) -> Iterator[Variant]:
    """Round x to half precision before the norm, as autocast does; sums with a residual have another row."""
    for name in () if case.addends else ("float16", "bfloat16"):
        rounded = round_to_short(case.x, name)
        if np.isfinite(rounded).all() and (rounded != case.x).any():
            yield _use(_normalize(case, rounded), dtype=name)


def _gate_first(case: Case) -> Iterator[Variant]:
    """Normalize the product of x and the activation of the gate, which half precision may have rounded."""
    gated, bare = case.x * case.factor, replace(case, gate=None)
    yield _use(_normalize(bare, gated))
    if is_half(case.dtype):
        yield _use(_normalize(bare, round_to_short(gated, case.dtype.name)))


def _activate_norm(case: Case, gate: Gated) -> Variant | None:
    """Apply the activation to the norm, and multiply with the gate as it is."""
    if gate.activation is Activation.NONE:
        return None
    right, factor = replace(case, gate=None).right, widen(gate.values)
    return Variant(
        result=gate._replace(values=right.values).activate() * factor, noise=right.allowed * np.abs(factor)
    )


def _roll_gate(case: Case, gate: Gated) -> Iterator[Variant]:
    """Multiply with the gate of the row before or after."""
    for axis, shift in itertools.product(case.kept, (1, -1)):
        rolled = gate._replace(values=np.roll(gate.values, shift, axis))
        yield _use(replace(case, gate=rolled), axis=case.name_axis(axis), shift=shift)


AROUND: Sequence[Row] = (
    Row(Fault("before-input-rounded", "x was rounded to {dtype} before the norm",
              "leave x in its dtype: mixed precision rounds it", "norm(x.astype(np.float16))", ("float16",)),
        _round_input, "moments"),
    Row(Fault("before-residual-missing", "the norm is of {left} alone", "add the residual before the norm",
              "norm(x)", ("x, or of the residual",)),
        _sum_otherwise(lambda x, r: [({"left": "x"}, [x]), ({"left": "the residual"}, [r])]),
        "addends moments"),
    Row(Fault("before-residual-twice", "the residual is added twice before the norm", "add it once",
              "norm(x + r + r)"),
        _sum_otherwise(lambda x, r: [({}, [x, r, r]), ({}, [x, r + r])]), "addends moments"),
    Row(Fault("before-residual-subtracted", "the residual is subtracted, not added", "add it", "norm(x - r)"),
        _sum_otherwise(lambda x, r: [({}, [x, -r])]), "addends moments"),
    Row(Fault("before-residual-rounding", "the sum with the residual is {how} before the norm",
              "choose with --residual-sum which is meant", "norm(x.astype(np.float32) + r)", ("not rounded",)),
        lambda c: _round_otherwise(c, c.addends), "addends moments"),
    Row(Fault("before-gate", "the gate multiplies x, before the norm", "multiply the result instead",
              "norm(x * silu(z))"), _gate_first, "gate moments"),
    Row(Fault("after-residual-added", "the residual is added {where}", "add it before the norm, not behind",
              "norm(x) + r", ("behind the norm, not before",)),
        lambda c: _add_behind(c, c.addends), "addends moments"),
    Row(Fault("after-gate-missing", "the gate is left out", "multiply with the gate's activation", "norm(x)"),
        lambda c: _use(replace(c, gate=None)), "gate"),
    Row(Fault("after-gate-bare", "the gate multiplies without its activation",
              "apply the activation to the gate first", "norm(x) * z"),
        lambda c: _activate(c, c.gate, Activation.NONE), "gate"),
    Row(Fault("after-gate-exchanged", "x and the gate are exchanged", "normalize the other half",
              "norm(z) * silu(x)"),
        lambda c: _use(replace(c, x=widen(c.gate.values), gate=c.gate._replace(values=c.x))), "gate moments"),
    Row(Fault("after-gate-norm", "the activation is applied to the norm, not to the gate",
              "apply it to the gate", "silu(norm(x)) * z"), lambda c: _activate_norm(c, c.gate), "gate"),
    Row(Fault("after-gate-rolled", "the gate is rolled by {shift} along {axis}", "index the gate from 0",
              "norm(x) * silu(np.roll(z, 1, 0))", ("N", "AXIS")), lambda c: _roll_gate(c, c.gate), "gate"),
    Row(Fault("after-gate-activation", "the gate's activation is {used}, not {asked}",
              "apply the other one to the gate", "norm(x) * sigmoid(z)", ("A", "B")),
        lambda c: _activate(c, c.gate, *(one for one in Activation if one is not Activation.NONE)), "gate"),
)  # fmt: skip
"""The likelier ones first."""
