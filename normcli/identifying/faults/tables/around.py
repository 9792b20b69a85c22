"""Faults of what stands around a norm in a block: the residual that is added before it, the gate behind it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Fault
from normcli.checking.gate import ACTIVATIONS
from normcli.dtypes import is_half
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import Variant
from normcli.numerics.rounding import round_to_half, widen
from normcli.tensors.residual import Addends, ResidualSum, find_sum_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

    Sums = Callable[[NDArray[Any], NDArray[Any]], Iterator[tuple[dict[str, Any], list[NDArray[Any]]]]]


def _use(other: Case, values: Mapping[str, Any] = MappingProxyType({}), more: Floats | float = 0.0) -> Variant:
    """Return the variant of a kernel whose result is another case's, and what is added to it."""
    right = other.right
    return Variant(result=right.values + more, noise=right.allowed, values=values)


def _normalize(case: Case, x: NDArray[Any]) -> Case:
    """Return the case of another tensor that is normalized."""
    return replace(case, x=widen(x))


def _list_kinds(addends: Addends) -> tuple[ResidualSum, ...]:
    """Return how sums may be made, as was asked for first: those of half precision may be exact, too."""
    others = [kind for kind in ResidualSum if kind is not addends.kind]
    is_short = is_half(find_sum_dtype(addends.values.dtype, addends.residual.dtype))
    return (addends.kind, *(others if is_short else ()))


def _sum_otherwise(list_terms: Sums) -> Callable[[Case], Iterator[Variant]]:
    """Return what normalizes the sum of other terms."""

    def vary(case: Case) -> Iterator[Variant]:
        if case.addends is None or not case.has_moments:
            return
        x, residual, _ = case.addends
        for values, (first, *rest) in list_terms(x, residual):
            for kind in _list_kinds(case.addends) if rest else (case.addends.kind,):
                total = first
                for term in rest:
                    total = Addends(total, term, kind).add()
                yield _use(_normalize(case, total), values)

    return vary


def _round_otherwise(case: Case) -> Iterator[Variant]:
    """Round sums of half precision before the norm where none is to be rounded, or the other way round."""
    if case.addends is None or not case.has_moments:
        return
    for kind in _list_kinds(case.addends)[1:]:
        how = "rounded to half precision" if kind is ResidualSum.ROUNDED else "not rounded"
        yield _use(_normalize(case, case.addends._replace(kind=kind).add()), {"how": how})


def _add_behind(case: Case) -> Iterator[Variant]:
    if case.addends is None or not case.has_moments:
        return
    residual = widen(case.addends.residual)
    alone = _normalize(case, case.addends.values)
    for one, where in ((alone, "behind the norm, not before"), (case, "behind the norm, too")):
        yield _use(one, {"where": where}, residual)


def _leave_gate(case: Case) -> Iterator[Variant]:
    if case.gate is not None:
        yield _use(replace(case, gate=None))


def _leave_activation(case: Case) -> Iterator[Variant]:
    yield from _activate(case, {"none"})


def _activate_otherwise(case: Case) -> Iterator[Variant]:
    yield from _activate(case, {*ACTIVATIONS} - {"none"})


def _activate(case: Case, names: set[str]) -> Iterator[Variant]:
    """Multiply with another activation of the gate."""
    if case.gate is None:
        return
    asked = case.gate.activation
    for name in ACTIVATIONS:
        if name in names and name != asked:
            other = replace(case, gate=case.gate._replace(activation=name))
            yield _use(other, {"used": name, "asked": asked})


def _gate_first(case: Case) -> Iterator[Variant]:
    """Normalize the product of x and the activation of the gate, which half precision may have rounded."""
    if case.gate is None or not case.has_moments:
        return
    gated = case.x * case.factor
    bare = replace(case, gate=None)
    yield _use(_normalize(bare, gated))
    if is_half(case.dtype):
        yield _use(_normalize(bare, round_to_half(gated, case.dtype.name)))


def _exchange_gate(case: Case) -> Iterator[Variant]:
    """Normalize the gate, and multiply with the activation of x."""
    if case.gate is not None and case.has_moments:
        gate = case.gate._replace(values=case.x)
        yield _use(replace(_normalize(case, case.gate.values), gate=gate))


def _activate_norm(case: Case) -> Iterator[Variant]:
    """Apply the activation to the norm, and multiply with the gate as it is."""
    if case.gate is not None and case.gate.activation != "none":
        bare = replace(case, gate=None)
        activated = case.gate.activate(bare.right.values)
        gate = widen(case.gate.values)
        yield Variant(result=activated * gate, noise=bare.right.allowed * np.abs(gate))


def _roll_gate(case: Case) -> Iterator[Variant]:
    """Multiply with the gate of the row before or after."""
    if case.gate is not None:
        for axis, shift in itertools.product(case.kept, (1, -1)):
            gate = case.gate._replace(values=np.roll(case.gate.values, shift, axis))
            yield _use(replace(case, gate=gate), {"axis": case.name_axis(axis), "shift": shift})


AROUND: Sequence[Row] = (
    Row(Fault("before-residual-missing", "the norm is of {left} alone", "add the residual before the norm",
              "norm(x)", ("x, or of the residual",)),
              _sum_otherwise(lambda x, r: iter([({"left": "x"}, [x]), ({"left": "the residual"}, [r])]))),
    Row(Fault("before-residual-twice", "the residual is added twice before the norm", "add it once",
              "norm(x + r + r)"), _sum_otherwise(lambda x, r: iter([({}, [x, r, r]), ({}, [x, r + r])]))),
    Row(Fault("before-residual-subtracted", "the residual is subtracted, not added", "add it", "norm(x - r)"),
              _sum_otherwise(lambda x, r: iter([({}, [x, -r])]))),
    Row(Fault("before-residual-rounding", "the sum with the residual is {how} before the norm",
              "choose with --residual-sum which is meant", "norm(x.astype(np.float32) + r)", ("not rounded",)),
              _round_otherwise),
    Row(Fault("before-gate", "the gate multiplies x, before the norm", "multiply the result instead",
              "norm(x * silu(z))"), _gate_first),
    Row(Fault("after-residual-added", "the residual is added {where}", "add it before the norm, not behind",
              "norm(x) + r", ("behind the norm, not before",)), _add_behind),
    Row(Fault("after-gate-missing", "the gate is left out", "multiply with the gate's activation", "norm(x)"),
              _leave_gate),
    Row(Fault("after-gate-bare", "the gate multiplies without its activation",
              "apply the activation to the gate first", "norm(x) * z"), _leave_activation),
    Row(Fault("after-gate-exchanged", "x and the gate are exchanged", "normalize the other half",
              "norm(z) * silu(x)"),
              _exchange_gate),
    Row(Fault("after-gate-norm", "the activation is applied to the norm, not to the gate",
              "apply it to the gate", "silu(norm(x)) * z"), _activate_norm),
    Row(Fault("after-gate-rolled", "the gate is rolled by {shift} along {axis}", "index the gate from 0",
              "norm(x) * silu(np.roll(z, 1, 0))", ("N", "AXIS")), _roll_gate),
    Row(Fault("after-gate-activation", "the gate's activation is {used}, not {asked}",
              "apply the other one to the gate", "norm(x) * sigmoid(z)", ("A", "B")), _activate_otherwise),
)  # fmt: skip
"""The likelier ones first."""
