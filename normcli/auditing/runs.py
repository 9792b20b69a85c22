"""Two recorded runs of one model, side by side: where the second parts from the first, and which is nearer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.audit import INPUT, OUTPUT, compare_tensors, judge_layer
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.dtypes import get_eps
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.auditing.audit import LayerVerdict, Tolerate
    from normcli.auditing.layer import RecordedLayer
    from normcli.checking.tally import Comparison
    from normcli.engine.walk import Effort

_STATE = ("running_mean", "running_var", "running_mean_after", "running_var_after")


class LayerPair(NamedTuple):
    """One layer of two runs.

    Parameters
    ----------
    first, second : LayerVerdict
        Each against the exact norm of its own input.
    input, output : Comparison or None
        How far the second run's tensors are from the first's; None where a shape differs or one is missing.
    differences : tuple of str
        What the second run has otherwise: settings, weights, running statistics.
    """

    first: LayerVerdict
    second: LayerVerdict
    input: Comparison | None
    output: Comparison | None
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the runs take and give the same here, and have the same settings and weights."""
        return all(one is not None and one.ok for one in (self.input, self.output)) and not self.differences

    @property
    def takes_the_same(self) -> bool:
        """Whether both runs take the same input."""
        return self.input is not None and self.input.ok

    @property
    def parts_here(self) -> bool:
        """Whether the runs take the same, and give or keep something else."""
        gives = self.output is not None and not self.output.ok
        return self.takes_the_same and (gives or bool(self.differences))

    @property
    def nearer(self) -> str | None:
        """The run that is nearer the exact norm: `first`, `second`, or None where both are within an ulp.

        Of runs that take other inputs nothing is said.
        """
        one, other = self.first.max_ulp, self.second.max_ulp
        if one is None or other is None or one == other or max(one, other) <= 1.0 or not self.takes_the_same:
            return None
        return "first" if one < other else "second"


class RunComparison(NamedTuple):
    """Two runs, layer by layer.

    Parameters
    ----------
    pairs : tuple of LayerPair
        The layers that both have, in the order of the first run.
    alone : mapping of str to tuple of str
        `first` and `second` → the names of layers that this run has alone.
    """

    pairs: tuple[LayerPair, ...]
    alone: Mapping[str, tuple[str, ...]]

    @property
    def parting(self) -> LayerPair | None:
        """The first layer at which the runs part; None where no norm is to blame."""
        return next((pair for pair in self.pairs if pair.parts_here), None)

    @property
    def between(self) -> tuple[str | None, str] | None:
        """The last layer whose output agrees, and the next, whose input does not; None where there is none."""
        before = None
        for pair in self.pairs:
            if pair.input is not None and not pair.input.ok:
                return before, pair.first.settings.name
            before = pair.first.settings.name
        return None

    @property
    def ok(self) -> bool:
        """Whether all layers agree, and neither run has one of its own."""
        return not any(self.alone.values()) and all(pair.ok for pair in self.pairs)


def compare_runs(
    first: Sequence[RecordedLayer],
    second: Sequence[RecordedLayer],
    tolerate: Tolerate = choose_tolerance,
    effort: Effort = DEFAULT_EFFORT,
) -> RunComparison:
    """Hold two runs against each other, and each against the exact norms.

    Raises
    ------
    DataError
        If they have no layer in common.
    """
    mine, others = ({layer.name: layer for layer in run} for run in (first, second))
    alone = {
        "first": tuple(name for name in mine if name not in others),
        "second": tuple(name for name in others if name not in mine),
    }
    pairs, has_parted = [], False
    for layer in first:
        if layer.name in others:
            pair = _pair(layer, others[layer.name], first, tolerate, effort)
            pairs.append(_drop_details(pair) if has_parted or not pair.parts_here else pair)
            has_parted = has_parted or pair.parts_here
    if not pairs:
        raise DataError("the two runs have no layer in common")
    return RunComparison(tuple(pairs), alone)


def _drop_details(pair: LayerPair) -> LayerPair:
    return pair._replace(first=pair.first._replace(detail=None), second=pair.second._replace(detail=None))


def _pair(
    one: RecordedLayer, other: RecordedLayer, run: Sequence[RecordedLayer], tolerate: Tolerate, effort: Effort
) -> LayerPair:
    verdicts = judge_layer(one, tolerate, effort), judge_layer(other, tolerate, effort)
    taken, given = (_compare(one, other, role, tolerate) for role in (INPUT, OUTPUT))
    return LayerPair(*verdicts, taken, given, tuple(_list_differences(one, other, run, tolerate)))


def _compare(one: RecordedLayer, other: RecordedLayer, role: str, tolerate: Tolerate) -> Comparison | None:
    """Return how far the second run's tensor is from the first's, in ulp of the shorter of their dtypes."""
    expected, actual = one.load(role), other.load(role)
    if expected is None or actual is None or expected.values.shape != actual.values.shape:
        return None
    dtypes = [choose_counting_dtype(tensor.values.dtype) for tensor in (expected, actual)]
    shorter = max(dtypes, key=get_eps)
    return compare_tensors(actual.values, expected.values, functools.partial(_choose, tolerate, shorter))


def _choose(tolerate: Tolerate, shorter: np.dtype[Any], _: np.dtype[Any]) -> Any:
    return tolerate(shorter)


def _list_differences(
    one: RecordedLayer, other: RecordedLayer, run: Sequence[RecordedLayer], tolerate: Tolerate
) -> Iterator[str]:
    """Yield what the second run's layer has otherwise than the first's."""
    mine, theirs = ({"norm": layer.settings.norm, **layer.settings.options} for layer in (one, other))
    for name in dict.fromkeys((*mine, *theirs)):
        if mine.get(name) != theirs.get(name):
            yield f"{name} is {theirs.get(name)}, not {mine.get(name)}"
    if one.settings.evaluation != other.settings.evaluation:
        how = "running statistics" if other.settings.evaluation else "the batch's statistics"
        yield f"it normalizes with {how}"
    elif one.settings.momentum != other.settings.momentum:
        yield f"momentum is {other.settings.momentum}, not {one.settings.momentum}"
    for role in ("weight", "bias", *_STATE):
        a, b = one.load(role), other.load(role)
        if a is None and b is None:
            continue
        if a is None or b is None:
            yield f"it has {'no' if b is None else 'a'} {role}"
        elif (found := _compare(one, other, role, tolerate)) is None:
            yield f"{role} has another shape"
        elif not found.ok:
            owner = _find_owner(role, b.values, run)
            yield f"{role} is that of {owner}" if owner is not None else f"{role} is another"


def _find_owner(role: str, values: NDArray[Any], run: Sequence[RecordedLayer]) -> str | None:
    """Return the layer of a run that has these very weights."""
    for layer in run:
        own = layer.load(role)
        if own is not None and own.values.shape == values.shape and np.array_equal(own.values, values):
            return layer.name
    return None
