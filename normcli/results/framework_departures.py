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
    of_tensor = [Degeneracy(_KIND, None, plan.grid.group_count, words) for words in (
        *_find_refusals(plan, convention, found), *_find_rounded_product(plan, convention, inputs),
    )]  # fmt: skip
    of_groups = []
    with np.errstate(all="ignore"):
        for chosen, words in _find_departing_groups(plan, convention, statistics):
            numbers = np.flatnonzero(chosen)
            if numbers.size:
                first = plan.grid.group_name(int(numbers[0]))
                of_groups.append(Degeneracy(_KIND, first, numbers.size, words))
    return (*found, *of_tensor, *of_groups)


def _find_refusals(plan: Plan, convention: Convention, found: Collection[Degeneracy]) -> Iterator[str]:
    """Yield a sentence for each kind of input that the framework raises an error for and that this tensor has.

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
            yield f"{convention.framework} refuses {refusal.value}: here is the definition's result"


def _find_rounded_product(plan: Plan, convention: Convention, inputs: Inputs) -> Iterator[str]:
    """Yield a sentence if the framework rounds x̂ · gamma to half precision before it adds beta."""
    dtype = plan.choose_output_dtype(plan.tensor_dtype)
    if convention.rounds_product and is_half(dtype) and len(inputs.parameters) > 1:
        yield f"{convention.framework} rounds x̂ · gamma to {dtype.name} before it adds beta: here it is not"


def _find_departing_groups(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[tuple[Selected, str]]:
    """Yield (groups, sentence) for each way of the framework's in which the statistics of groups lose digits.

    `groups` is True for a group whose result differs; the framework calculates as its row of conventions says:

    * E[x²] − E[x]² as the variance (`one_pass`), of groups far from zero;
    * x / size − centre / size, the size being the divisor without eps (`divides_first`), likewise;
    * a length or deviation, or its square, that overflows in half precision (`short`);
    * Σ|x|ᵖ that overflows or is subnormal in the dtype of its sums. p is 2 for deviations; norms by minimum,
      maximum or quantiles have no such sums.
    """
    framework, divisor, dtype = convention.framework, plan.norm.divisor, plan.tensor_dtype
    wide: np.dtype[Any] = np.dtype(np.float32 if is_short_float(dtype) else np.float64)  # as frameworks do
    size, unit = statistics.get(divisor.spread or "", np.zeros(())), get_eps(wide) / 2.0
    if convention.one_pass:
        lost = unit * (statistics["mean"] * statistics["rstd"]) ** 2
        sentence = (
            f"lies far from zero: {framework} takes its variance as E[x²] − E[x]², which {wide} has no "
            "digits for; this is the exact one"
        )
        yield np.isfinite(lost) & (lost > _LOST), sentence
    if convention.divides_first:
        centre = plan.norm.centre.value
        lost = unit * np.abs(statistics[centre]) / size
        sentence = (
            f"lies far from zero: {framework} subtracts {centre} / {divisor.size} from x / {divisor.size}, "
            f"which {wide} has no digits for; this is the exact result"
        )
        yield np.isfinite(lost) & (lost > _LOST) & (size > 0.0), sentence
    if convention.short is not None and is_float(dtype) and is_half(dtype):
        what, rounded = divisor.size, size
        if convention.short is ShortRule.SQUARE:
            what, rounded = f"square of its {what}", size**2
        sentence = f"has a {what} beyond {dtype}, in which {framework} gives 0; this is the exact result"
        yield np.isfinite(rounded) & (rounded > get_largest(dtype.name)), sentence
    if divisor.spread is not None and not plan.norm.is_by_order:
        wide = np.dtype(np.float64) if convention.sums_in_float64 else wide
        sums = size ** (plan.spec.p or 2.0) * (plan.grid.group_size if plan.spec.p is None else 1)
        least = (
            0.0 if plan.spec.eps else np.finfo(wide).smallest_normal
        )  # with an eps, small sums do not matter
        sentence = (
            f"has a sum of powers that {wide} does not hold, in which {framework} calculates: "
            "this is the exact result"
        )
        yield np.isfinite(size) & (size > 0.0) & ((sums > get_largest(wide.name)) | (sums < least)), sentence
