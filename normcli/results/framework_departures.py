"""Cases in which a framework's result differs from its convention: normcli says so and keeps the convention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, get_largest, is_float, is_half, is_short_float
from normcli.engine.inputs import NO_INPUTS
from normcli.norms.rules import Refusal, ShortRule
from normcli.results.degenerate_groups import Degeneracy, find_degeneracies

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.inputs import Inputs
    from normcli.norms.conventions import Convention
    from normcli.norms.plan import Plan

_KIND = "departure"

_LOST = 2.0**-10
"""The largest relative rounding error of a variance or a divisor that is not reported."""


def find_all_degeneracies(
    plan: Plan,
    values: NDArray[Any],
    statistics: Mapping[str, Floats],
    normalized: NDArray[Any] | None,
    inputs: Inputs = NO_INPUTS,
    counts: Floats | None = None,
) -> tuple[Degeneracy, ...]:
    """Return the degenerate groups, and the cases in which the framework of `like` has another result.

    Such a case has the kind `departure`: the framework's own result differs from the convention that is named
    after it. No departure is returned without `like`, or with running statistics; degenerate groups are. The
    parameters are the parameters of `find_degeneracies`.
    """
    found = find_degeneracies(plan, values, statistics, normalized, inputs, counts)
    if plan.spec.like is None or inputs.given is not None or not plan.grid.group_count:
        return found
    from normcli.norms.conventions import find_convention  # a long table, loaded only if asked for

    convention = find_convention(plan.spec.like, plan.norm.name)
    with np.errstate(all="ignore"):
        return (
            *found,
            *_find_refusals(plan, convention, found),
            *_find_rounded_product(plan, convention, inputs),
            *_find_one_pass(plan, convention, statistics),
            *_find_cancellation(plan, convention, statistics),
            *_find_overflow(plan, convention, statistics),
            *_find_lost_sums(plan, convention, statistics),
        )


def _find_refusals(plan: Plan, convention: Convention, found: Collection[Degeneracy]) -> Iterator[Degeneracy]:
    """Yield a departure for each kind of input that the framework raises an error for and that this tensor has.

    `found` has the degenerate groups, which show whether the tensor holds NaN or an infinity.
    """
    kinds = {kind.kind for kind in found}
    met = {
        Refusal.ONE_IN_GROUP: plan.grid.group_size == 1,
        Refusal.ONE_IN_BATCH: plan.grid.running.group_size == 1,
        Refusal.EPS_0: plan.spec.eps == 0.0,
        Refusal.INFINITY: "infinite" in kinds,
        Refusal.NAN: "nan" in kinds,
    }
    for refusal in convention.refuses:
        if met[refusal]:
            sentence = f"{convention.framework} refuses {refusal.value}: here is the definition's result"
            yield Degeneracy(_KIND, None, plan.grid.group_count, sentence)


def _find_rounded_product(plan: Plan, convention: Convention, inputs: Inputs) -> Iterator[Degeneracy]:
    """Yield a departure if the framework rounds x̂ · gamma to half precision before it adds beta."""
    dtype = plan.choose_output_dtype(plan.tensor_dtype)
    if convention.rounds_product and is_half(dtype) and len(inputs.parameters) > 1:
        sentence = (
            f"{convention.framework} rounds x̂ · gamma to {dtype.name} before it adds beta: here it is not"
        )
        yield Degeneracy(_KIND, None, plan.grid.group_count, sentence)


def _find_one_pass(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[Degeneracy]:
    """Yield a departure for groups far from zero, in which E[x²] − E[x]² loses digits of the variance.

    Nothing is yielded unless the framework calculates the variance so (`Convention.one_pass`).
    """
    if not convention.one_pass:
        return
    dtype = _choose_arithmetic(plan)
    lost = get_eps(dtype) / 2.0 * (statistics["mean"] * statistics["rstd"]) ** 2
    yield from _describe(
        plan,
        np.isfinite(lost) & (lost > _LOST),
        f"lies far from zero: {convention.framework} takes its variance as E[x²] − E[x]², which {dtype} has no "
        "digits for; this is the exact one",
    )


def _find_cancellation(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[Degeneracy]:
    """Yield a departure for groups with a large centre, in which x / size − centre / size loses digits.

    Nothing is yielded unless the framework divides first (`Convention.divides_first`). `size` is the divisor
    without eps.
    """
    if not convention.divides_first:
        return
    dtype, divisor = _choose_arithmetic(plan), plan.norm.divisor
    centre, size = statistics[plan.norm.centre.value], statistics[divisor.spread or ""]
    lost = get_eps(dtype) / 2.0 * np.abs(centre) / size
    yield from _describe(
        plan,
        np.isfinite(lost) & (lost > _LOST) & (size > 0.0),
        f"lies far from zero: {convention.framework} subtracts {plan.norm.centre.value} / {divisor.size} from "
        f"x / {divisor.size}, which {dtype} has no digits for; this is the exact result",
    )


def _find_lost_sums(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[Degeneracy]:
    """Yield a departure for groups whose Σ|x|ᵖ overflows or is subnormal in the dtype of the framework's sums.

    p is 2 for deviations. Norms by minimum, maximum or quantiles have no such sums: nothing is yielded.
    """
    spread = plan.norm.divisor.spread
    if spread is None or plan.norm.is_by_order:
        return
    dtype = np.dtype(np.float64) if convention.sums_in_float64 else _choose_arithmetic(plan)
    size, p = statistics[spread], plan.spec.p or 2.0
    sums = size**p * (plan.grid.group_size if plan.spec.p is None else 1)
    least = 0.0 if plan.spec.eps else np.finfo(dtype).smallest_normal  # with an eps, small sums do not matter
    yield from _describe(
        plan,
        np.isfinite(size) & (size > 0.0) & ((sums > get_largest(dtype.name)) | (sums < least)),
        f"has a sum of powers that {dtype} does not hold, in which {convention.framework} calculates: "
        "this is the exact result",
    )


def _choose_arithmetic(plan: Plan) -> np.dtype[Any]:
    """Return the dtype in which frameworks calculate: float32 for floats of at most 32 bits, else float64."""
    return np.dtype(np.float32 if is_short_float(plan.tensor_dtype) else np.float64)


def _find_overflow(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[Degeneracy]:
    """Yield a departure for groups whose length or deviation, or its square, overflows in half precision.

    Nothing is yielded unless the tensor is float16 or bfloat16 and the convention rounds this quantity to its
    dtype (`Convention.short`).
    """
    dtype = plan.tensor_dtype
    if convention.short is None or not is_float(dtype) or not is_half(dtype):
        return
    what, size = plan.norm.divisor.size, statistics[plan.norm.divisor.spread or ""]
    if convention.short is ShortRule.SQUARE:
        what, size = f"square of its {what}", size**2
    sentence = f"has a {what} beyond {dtype}, in which {convention.framework} gives 0; this is the exact result"
    yield from _describe(plan, np.isfinite(size) & (size > get_largest(dtype.name)), sentence)


def _describe(plan: Plan, chosen: Selected, sentence: str) -> Iterator[Degeneracy]:
    """Yield one departure, with a sentence, for the groups where `chosen` is True; none if no group is."""
    numbers = np.flatnonzero(chosen)
    if numbers.size:
        yield Degeneracy(_KIND, plan.grid.group_name(int(numbers[0])), numbers.size, sentence)
