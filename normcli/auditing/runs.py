"""Two recorded runs of one model, side by side: where the second parts from the first, and which is nearer."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.alike import KnownNorms
from normcli.auditing.audit import INPUT, OUTPUT, judge_each, judge_layer
from normcli.auditing.dump_file import WEIGHTS
from normcli.auditing.onnx_graph import KINDS
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.dtypes import get_eps
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, NormError
from normcli.identifying.attempts import Candidate
from normcli.identifying.reproduction import reproduce
from normcli.identifying.search.affine_step import enumerate_affine_steps
from normcli.norms.plan import make_plan
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.auditing.audit import Tolerate
    from normcli.auditing.layer import RecordedLayer
    from normcli.auditing.layer_verdict import LayerVerdict
    from normcli.engine.walk import Effort

_STATE = ("running_mean", "running_var", "running_mean_after", "running_var_after")

_IMPLIED = ("like", "zero_rule", "flat_rule", "omits_nan", "rounds_before_gamma")
"""The numeric fields of a plan that no option sets, only a framework's name; where they count, y differs."""

_AS_NEAR = 2.0
"""Two runs are equally near the exact norm if the larger distance is at most this times the smaller."""


class LayerPair(NamedTuple):
    """One layer in two runs of a model, compared.

    Parameters
    ----------
    first, second : LayerVerdict
        The verdict on each run's layer, against the exact norm of that run's input.
    input, output : Comparison or None
        The distance of the second run's tensors from the first's; None if shapes differ or one is missing.
    differences : tuple of str
        Words for each setting, weight, running statistic or shape that differs in the second run.
    algorithms : tuple of str or None
        For the first pair with equal inputs that differs, the name of the algorithm that reproduces each run's
        output bit for bit, None if none does. For all other pairs, both are None.
    """

    first: LayerVerdict
    second: LayerVerdict
    input: Comparison | None
    output: Comparison | None
    differences: tuple[str, ...] = ()
    algorithms: tuple[str | None, str | None] = (None, None)

    @property
    def ok(self) -> bool | None:
        """Whether input, output, settings and weights of the layer agree in both runs.

        None if nothing differs, but input or output could not be compared.
        """
        both = [None if one is None else one.ok for one in (self.input, self.output)]
        if self.differences or False in both:
            return False
        return None if None in both else True

    @property
    def takes_the_same(self) -> bool:
        """Whether the inputs of both runs agree."""
        return self.input is not None and self.input.ok

    @property
    def parts_here(self) -> bool:
        """Whether the inputs agree, and outputs, settings or weights do not."""
        gives = self.output is not None and not self.output.ok
        return self.takes_the_same and (gives or bool(self.differences))

    @property
    def nearer(self) -> str | None:
        """The run whose output is nearer to the exact norm, `first` or `second`.

        None if both are about equally near, their inputs differ, or one was not judged.
        """
        one, other = self.first.output_ulp, self.second.output_ulp
        if one is None or other is None or not self.takes_the_same:
            return None
        near, far = sorted((one, other))
        if far <= max(1.0, _AS_NEAR * near):
            return None
        return "first" if one < other else "second"


class RunComparison(NamedTuple):
    """Two recorded runs of a model, compared layer by layer.

    Parameters
    ----------
    pairs : tuple of LayerPair
        The layers that both runs have, in the order of the first run.
    alone : mapping of str to tuple of str
        The keys are `first` and `second`: the names of layers that are in that run alone.
    by_order : bool
        Whether the runs have no name in common, and their layers are paired in their order.
    without_weights : tuple of str
        The runs, `first` or `second`, that lack the weights of a layer, which was judged with the other run's.
    """

    pairs: tuple[LayerPair, ...]
    alone: Mapping[str, tuple[str, ...]]
    by_order: bool = False
    without_weights: tuple[str, ...] = ()

    @property
    def parting(self) -> LayerPair | None:
        """The first layer whose inputs agree and whose outputs, settings or weights differ, or None."""
        return next((pair for pair in self.pairs if pair.parts_here), None)

    @property
    def between(self) -> tuple[str | None, str] | None:
        """The names of two layers between which the runs begin to differ; None if no inputs differ.

        The second is the first layer whose inputs differ between the runs. The first is the last layer before
        it whose inputs were compared, or None if there is none.
        """
        before = None
        for pair in self.pairs:
            if pair.input is not None and not pair.input.ok:
                return before, pair.first.settings.name
            before = before if pair.input is None else pair.first.settings.name
        return None

    @property
    def suspects(self) -> tuple[LayerPair, ...]:
        """The layers that lie within `between` and could not be compared: each may be the cause."""
        found: list[LayerPair] = []
        for pair in self.pairs:
            if pair.input is None:
                found.append(pair)
            elif pair.input.ok:
                found.clear()
            else:
                return tuple(found)
        return ()

    @property
    def ok(self) -> bool:
        """Whether all layers agree, and both runs have the same layers."""
        return not any(self.alone.values()) and all(pair.ok for pair in self.pairs)


def compare_runs(
    first: Sequence[RecordedLayer],
    second: Sequence[RecordedLayer],
    tolerate: Tolerate = choose_tolerance,
    effort: Effort = DEFAULT_EFFORT,
) -> RunComparison:
    """Compare two runs layer by layer, and each with the exact norms.

    Layers are paired by name; if the runs have no name in common, in their order. A layer without settings has
    those of the other run, and a layer without a class or weights the weights of the other run.

    Of all pairs, only the first whose outputs differ though the inputs agree has `algorithms`, and verdicts
    with a `detail` (the arrays of the layer).

    Raises
    ------
    DataError
        If the runs have no name in common, and not one norm after the other in common.
    """
    mine, others = ({layer.name: layer for layer in run} for run in (first, second))
    alone = {
        "first": tuple(name for name in mine if name not in others),
        "second": tuple(name for name in others if name not in mine),
    }
    common = [(layer, others[layer.name]) for layer in first if layer.name in others]
    by_order = not common
    if by_order:
        for both in zip_longest(first, second):
            norms = {layer.settings.norm for layer in both if layer is not None}
            if None in both or len(norms - {None}) > 1:
                place = " and ".join(
                    "nothing" if layer is None else f"{layer.name} ({layer.settings.norm})" for layer in both
                )
                raise DataError(
                    f"the two runs have no name of a layer in common, and in their order {place} are no pair: "
                    "leave out what one of them lacks, by --only and --skip"
                )
        common, alone = list(zip(first, second, strict=True)), dict.fromkeys(alone, ())
    turned = [(other, one) for one, other in common]
    without = tuple(
        run for run, both in (("first", common), ("second", turned)) if any(_borrows(*pair) for pair in both)
    )
    common = [(_complete(one, other), _complete(other, one)) for one, other in common]
    known = KnownNorms()

    def judge(number: int, own: Effort) -> LayerPair:
        return _pair(*common[number], first, tolerate, own, known)

    sizes = [one.byte_count + other.byte_count for one, other in common]
    pairs, has_parted = list[LayerPair](), False
    for number, pair in enumerate(judge_each(sizes, judge, _drop_details, effort)):
        if has_parted or not pair.parts_here:
            pairs.append(_drop_details(pair))
        else:
            has_parted = True
            whole = pair if pair.first.detail is not None else judge(number, effort)
            one, other = map(_name_algorithm, common[number], (whole.first, whole.second))
            pairs.append(whole._replace(algorithms=(one, other)))
    return RunComparison(tuple(pairs), alone, by_order, without)


def _borrows(layer: RecordedLayer, other: RecordedLayer) -> bool:
    """Whether a layer has neither weights nor a class, by which it would have all it needs, and `other` has."""
    lacks, has = (not any(role in one.tensors for role in WEIGHTS) for one in (layer, other))
    return lacks and not has and not layer.settings.kind


def _complete(layer: RecordedLayer, other: RecordedLayer) -> RecordedLayer:
    """Return a layer with the settings of another run's layer if it has no norm and no problem of its own.

    It has the weights of that layer too, if it `_borrows` them.
    """
    own = layer.settings
    if _borrows(layer, other):
        lent = {role: other.tensors[role] for role in WEIGHTS if role in other.tensors}
        layer = layer._replace(tensors={**layer.tensors, **lent})
    if own.norm or own.problem:
        return layer
    return layer._replace(settings=other.settings._replace(name=own.name, kind=own.kind))


def _drop_details(pair: LayerPair) -> LayerPair:
    return pair._replace(first=pair.first._replace(detail=None), second=pair.second._replace(detail=None))


def _pair(
    one: RecordedLayer, other: RecordedLayer, run: Sequence[RecordedLayer],
    tolerate: Tolerate, effort: Effort, known: KnownNorms,
) -> LayerPair:  # fmt: skip
    """Return one layer of two runs compared.

    Parameters
    ----------
    one, other : RecordedLayer
        The layer in the first and in the second run.
    run : sequence of RecordedLayer
        The whole first run, which is searched for a layer whose weight the second run's layer has, or either
        run's layer used.
    tolerate : callable
    effort : Effort
    known : KnownNorms
    """
    verdicts = judge_layer(one, tolerate, effort, known, run), judge_layer(other, tolerate, effort, known, run)
    taken, given = (_compare(one, other, role, tolerate) for role in (INPUT, OUTPUT))
    return LayerPair(*verdicts, taken, given, tuple(_list_differences(one, other, run, tolerate)))


def _name_algorithm(layer: RecordedLayer, verdict: LayerVerdict) -> str | None:
    """Return the name of the algorithm that reproduces a layer's output bit for bit, such as `two-pass`.

    None if no algorithm does, or if the layer has a gate or normalizes with running statistics.
    """
    detail, actual = verdict.detail, layer.load(OUTPUT)
    if detail is None or actual is None or layer.settings.evaluation or layer.settings.gate_act:
        return None
    x, given = detail.problem.values, (detail.problem.inputs.gamma, detail.problem.inputs.beta)
    way = next(iter(enumerate_affine_steps(x.shape, *given))).way
    candidate = Candidate(detail.problem.plan.request, way, tuple(range(x.ndim)))
    told = reproduce(x, actual.values, [candidate], *given)
    return told[0].computation.name if told and told[0].is_certain else None


def _compare(one: RecordedLayer, other: RecordedLayer, role: str, tolerate: Tolerate) -> Comparison | None:
    """Return the distances of the second run's tensor of a role from the first's, in ulp of the coarser dtype.

    None if the shapes differ, or either run has no such tensor.
    """
    expected, actual = one.load(role), other.load(role)
    if expected is None or actual is None or expected.values.shape != actual.values.shape:
        return None
    dtypes = [choose_counting_dtype(tensor.values.dtype) for tensor in (expected, actual)]
    found = Comparison(tolerate(max(dtypes, key=get_eps)))
    found.compare_all(actual.values, expected.values)
    return found


def _list_differences(
    one: RecordedLayer, other: RecordedLayer, run: Sequence[RecordedLayer], tolerate: Tolerate
) -> Iterator[str]:
    """Yield words for each setting, weight and shape of the second layer that differs from the first.

    `run` is the whole first run: if another of its layers has the second layer's weight, the words name it.
    Nothing is yielded if either run lacks the layer's input: then nothing else may have been recorded.
    """
    if any(INPUT not in layer.tensors for layer in (one, other)):
        return
    for role in (INPUT, OUTPUT):
        loaded = [tensor.values.shape for tensor in (one.load(role), other.load(role)) if tensor is not None]
        if len({*loaded}) > 1:
            yield f"its {role} is {loaded[1]}, not {loaded[0]}"
    mine, theirs = _resolve(one), _resolve(other)
    shared = [name for name in mine if name in theirs]
    is_exported = len({layer.settings.kind in KINDS for layer in (one, other)}) > 1
    if is_exported:  # a graph names fewer options, and gamma even where it is 1
        named = one.settings.options.keys() & other.settings.options.keys()
        shared = [name for name in shared if name == "norm" or name in named]
    for name in shared:
        if mine[name] != theirs[name]:
            yield f"{name} is {theirs[name]}, not {mine[name]}"
    if one.settings.evaluation != other.settings.evaluation:
        by_running, by_batch = (
            "it normalizes with running statistics",
            "it normalizes with the batch's statistics",
        )
        yield by_running if other.settings.evaluation else by_batch
    elif None not in (momenta := [layer.settings.momentum for layer in (one, other)]) and len({*momenta}) > 1:
        yield f"momentum is {other.settings.momentum}, not {one.settings.momentum}"
    for role in ("weight", "bias", *_STATE):
        mine_of, theirs_of = one.load(role), other.load(role)
        if mine_of is theirs_of is None or (is_exported and None in (mine_of, theirs_of)):
            continue
        if mine_of is None or theirs_of is None:
            yield f"it has no {role}" if theirs_of is None else f"it has a {role}"
        elif (found := _compare(one, other, role, tolerate)) is None:
            yield f"{role} has another shape"
        elif not found.ok:
            owner = _find_owner(role, theirs_of.values, run)
            yield f"{role} is that of {owner}" if owner is not None else f"{role} is another"


def _resolve(layer: RecordedLayer) -> dict[str, Any]:
    """Return a layer's settings by name as they are resolved for its input; empty without a norm or an input.

    Axes are numbers from 0, options that are not set have their defaults, and `feature_axes` are left out if
    the layer has neither weight nor bias. If the settings do not fit the input, `norm` says why.
    """
    settings, tensor, arrays = layer.settings, layer.load(INPUT), layer.load_parameters()
    try:
        request = settings.read_request()
        if request is None or tensor is None:
            return {}
        plan = make_plan(request, tensor.values.shape, np.dtype(np.float32)).adopt_parameters(arrays)
    except NormError as error:
        return {"norm": f"{settings.norm} ({error})"}
    grid, has_any = plan.grid, any(values is not None for values in arrays.values())
    spec = {name: value for name, value in plan.spec._asdict().items() if name not in _IMPLIED}
    found = {
        "norm": plan.norm.name,
        "axes": [*grid.axes],
        "groups": grid.groups,
        "group_order": grid.group_order,
    }
    return {**found, **({"feature_axes": [*plan.parameters.axes]} if has_any else {}), **spec}


def _find_owner(role: str, values: NDArray[Any], run: Sequence[RecordedLayer]) -> str | None:
    """Return the name of the first layer of a run whose tensor of a role equals `values`.

    A role is a name such as `weight`.

    None if there is no such layer.
    """
    for layer in run:
        own = layer.load(role)
        if own is not None and own.values.shape == values.shape and np.array_equal(own.values, values):
            return layer.name
    return None
