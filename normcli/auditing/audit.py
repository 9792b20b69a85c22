"""Every layer of a recorded run held against the exact norm: one verdict a layer, the first bad one in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.auditing.alike import KnownNorms
from normcli.auditing.dump_file import RUNNING
from normcli.auditing.layer_verdict import Audit, Detail, JudgedTensor, LayerVerdict
from normcli.auditing.running_check import check_running
from normcli.checking.check import NORMALIZED, check
from normcli.checking.gradient_check import check_gradients
from normcli.checking.ulp import choose_counting_dtype, choose_tolerance
from normcli.dtypes import is_half
from normcli.engine.walk import DEFAULT_EFFORT, Effort, count_processors
from normcli.errors import DataError, NormError
from normcli.fitting.workers import can_fork, run_in_processes
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.tables.places import UNKNOWN
from normcli.identifying.question import Question
from normcli.identifying.words.request_phrasing import diagnose_actual
from normcli.norms.plan import make_plan
from normcli.numerics.statistics.solution import Given
from normcli.printable import make_printable
from normcli.results.arguments import Problem
from normcli.results.calculate import calculate
from normcli.results.given_inputs import fit_given, fit_inputs
from normcli.results.surroundings import GateOrder, Surroundings
from normcli.running.average import begin, choose_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.auditing.layer import RecordedLayer
    from normcli.checking.gradient_check import CheckedGradients
    from normcli.checking.tally import Comparison
    from normcli.checking.ulp import Tolerance
    from normcli.identifying.question import Diagnosis
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor

    Tolerate = Callable[..., Tolerance]

Judged = TypeVar("Judged")

INPUT, OUTPUT = "input", "output"

MUCH = 1 << 26
"""The least size in bytes of a run whose layers are judged by several processes."""

_WORKERS = 2
"""The number of these processes; each has a layer in memory."""

_TWICE_ROUNDED = 2.0
"""The distance tolerated, in ulp of half precision, of results that are rounded before gamma and after it."""

_MOST_TRIED = 1 << 14
"""About how many values of an output are compared first with what another layer's gamma gives."""

_LENT = (("gamma",), ("beta",), ("gamma", "beta"))
"""The parameters that a kernel may take of another layer."""

_GRADIENTS = {"dx": "grad_input", "dgamma": "grad_weight", "dbeta": "grad_bias", "dgate": "grad_gate"}
"""The gradients that `check_gradients` knows → their roles in a dump."""


def audit(
    layers: Sequence[RecordedLayer], tolerate: Tolerate = choose_tolerance, effort: Effort = DEFAULT_EFFORT
) -> Audit:
    """Return the verdict on each layer; only the first bad one has a `detail`, as the arrays may be large.

    Parameters
    ----------
    layers : sequence of RecordedLayer
    tolerate : callable
        Takes a dtype and returns the `Tolerance` for its values.
    effort : Effort
    """
    known, found = KnownNorms(), list[LayerVerdict]()
    judged = judge_each(
        [layer.byte_count for layer in layers],
        lambda number, own: judge_layer(layers[number], tolerate, own, known, layers),
        lambda verdict: verdict._replace(detail=None),
        effort,
    )
    is_first = True
    for layer, verdict in zip(layers, judged, strict=True):
        if is_first and verdict.ok is False:
            is_first = False
            is_left_out = verdict.detail is None and verdict.settings.norm is not None
            found.append(judge_layer(layer, tolerate, effort, run=layers) if is_left_out else verdict)
        else:
            found.append(verdict._replace(detail=None))
    return Audit(tuple(found))


def judge_each(
    sizes: Sequence[int],
    judge: Callable[[int, Effort], Judged],
    strip: Callable[[Judged], Judged],
    effort: Effort,
) -> Iterator[Judged]:
    """Yield the judgement of each layer in order; two processes share a run of 64 MiB or more, where they can.

    Parameters
    ----------
    sizes : sequence of int
        The bytes of each layer.
    judge : callable
        Takes the number of a layer and an effort; returns the judgement.
    strip : callable
        Takes a judgement and returns it without its arrays; called only in another process, before sending it.
    effort : Effort
        Its observer gets the bytes of finished layers; of a single layer, the progress within it.
    """
    observer = None if len(sizes) == 1 else effort.observer
    if observer is not None:
        observer.expect(sum(sizes))
        effort = effort._replace(observer=None)
    numbers, most = range(len(sizes)), effort.threads or count_processors()
    judged: Iterator[Judged]
    if min(most, len(sizes)) < _WORKERS or sum(sizes) < MUCH or not can_fork():
        judged = (judge(number, effort) for number in numbers)
    else:
        single = effort._replace(threads=1)
        judged = run_in_processes(lambda number: strip(judge(number, single)), numbers, _WORKERS)
    for size, one in zip(sizes, judged, strict=True):
        if observer is not None:
            observer.advance(size)
        yield one


def judge_layer(
    layer: RecordedLayer,
    tolerate: Tolerate = choose_tolerance,
    effort: Effort = DEFAULT_EFFORT,
    known: KnownNorms | None = None,
    run: Sequence[RecordedLayer] = (),
) -> LayerVerdict:
    """Return the verdict on one layer; a `NormError` while it is judged becomes the verdict's `problem`.

    A norm that the settings do not name is identified; norms in `known` are tried first, and a new one is
    added. If the layer used the gamma or beta of another layer of `run`, the verdict names it.
    """
    try:
        return _judge(layer, tolerate, effort, known or KnownNorms(), run)
    except NormError as error:
        return LayerVerdict(layer.settings, problem=str(error))


def _judge(
    layer: RecordedLayer, tolerate: Tolerate, effort: Effort, known: KnownNorms, run: Sequence[RecordedLayer]
) -> LayerVerdict:
    """Return the verdict on one layer, by the norm of its settings, or without one by `known.identify`.

    `run` are the layers of the run, whose gamma or beta this layer may have used by mistake. With a problem, or
    without a named norm, `detail` (the arrays for a report) is None. Pass on `NormError`.
    """
    settings = layer.settings
    if settings.problem:
        return LayerVerdict(settings, problem=settings.problem)
    request = settings.read_request()
    tensor, actual = layer.load(INPUT), layer.load(OUTPUT)
    if tensor is None or actual is None:
        missing = INPUT if tensor is None else OUTPUT
        return LayerVerdict(settings, problem=f"{layer.name}.{missing} is missing")
    blank = LayerVerdict(settings, tensor.values.shape, actual.values.dtype.name)
    arrays = layer.load_parameters()
    if request is None:
        question = Question(tensor.values, actual.values, arrays["gamma"], arrays["beta"])
        gate = layer.load("gate")
        what, ulp = known.identify(question, settings.kind, None if gate is None else gate.values)
        found = (float("nan") if ulp is None else ulp, actual.values.size, 0)
        output = JudgedTensor(OUTPUT, ulp is not None, *found, what.cause, what.fault, what.remedy)
        return blank._replace(parts=(output,))
    around, ungated = _find_surroundings(layer), tensor.values
    request, values = around.prepare(request, ungated)
    tensor = tensor._replace(values=values)
    plan = make_plan(request, tensor.values.shape, tensor.values.dtype).adopt_parameters(arrays)
    before = _pair(layer, plan, RUNNING)
    if settings.evaluation and before is None:
        return blank._replace(problem="the running statistics of evaluation are missing")

    def pose(arrays: Mapping[str, NDArray[Any] | None]) -> Problem:
        inputs = fit_inputs(plan, tensor.values, arrays, before if settings.evaluation else None)
        inputs = around.surround(inputs, plan, ungated)
        return Problem(plan, tensor, inputs, effort, dy=layer.load("grad_output"))

    problem = pose(arrays)
    checked = check(problem, {NORMALIZED: actual.values}, tolerate)
    told = diagnose_actual(problem, actual.values, checked)
    if told is not None and told.fault == UNKNOWN["gamma"].id:
        cause = _find_lender(run, arrays, lambda lent: _agrees(pose(lent), actual.values))
        if cause is not None:
            told = told._replace(cause=f"{plan.norm.name} differs: {cause}", remedy="use the layer's own")
    output = _summarize(OUTPUT, checked.comparisons[NORMALIZED], told)
    if plan.spec.rounds_before_gamma and output.max_ulp <= _TWICE_ROUNDED and is_half(actual.values.dtype):
        output = output._replace(ok=True)  # x̂ near a tie, rounded to its other neighbour
    is_bare = all(values is None for values in arrays.values())
    if is_bare and told is not None and told.asks_for_gamma and not output.ok:
        return blank._replace(problem="y has a gamma or beta that is not recorded: give --weights")
    if settings.left_out and not output.ok:
        return blank._replace(problem=f"the module took {settings.left_out} too, which is not recorded")
    if settings.is_guess and not output.ok:
        return blank._replace(problem=f"{settings.note.partition(';')[0]}, which it is not: name it with also=")
    parts, gradients = [output], None
    is_finite = all(np.isfinite(values).all() for values in (tensor.values, *(before or ())))
    if settings.momentum is not None and not is_finite:
        words = "running statistics are not judged: they or the batch hold NaN or infinity"
        blank = blank._replace(settings=settings.add_note(words))
    elif settings.momentum is not None:
        parts += _judge_running(layer, plan, tensor, before, tolerate, effort)
    if problem.dy is not None:
        given = {name: layer.load(role) for name, role in _GRADIENTS.items()}
        theirs = {name: one.values for name, one in given.items() if one is not None}
        gradients = check_gradients(problem, theirs, tolerate)
        parts += _list_gradients(gradients)
    detail = Detail(problem, actual.source, checked, told, gradients)
    return blank._replace(parts=tuple(parts), detail=detail)


def _find_lender(
    run: Sequence[RecordedLayer],
    own: Mapping[str, NDArray[Any] | None],
    agrees: Callable[[Mapping[str, NDArray[Any] | None]], bool],
) -> str | None:
    """Return words on the first layer of a run whose gamma, beta or both another layer used; None without one.

    Parameters
    ----------
    run : sequence of RecordedLayer
    own : mapping
        `gamma` and `beta` of that other layer, None if it has none.
    agrees : callable
        Takes such a mapping, and returns whether that layer's output is the norm's result with it.
    """
    for layer in run:
        theirs = layer.load_parameters()
        for names in _LENT:
            pairs = [(own[name], theirs[name]) for name in names]
            if all(one is not None and two is not None and one.shape == two.shape for one, two in pairs):
                lent = {name: theirs[name] for name in names}
                if agrees({**own, **lent}):
                    owner = make_printable(layer.name)
                    both = f"the gamma and beta of {owner} are used"
                    return both if len(names) > 1 else f"the {names[0]} of {owner} is used"
    return None


def _agrees(problem: Problem, actual: NDArray[Any]) -> bool:
    """Whether an output is a norm's result but for rounding: first in a part of it, then in all of it."""
    cases = open_cases((problem,), actual, choose_counting_dtype(actual.dtype), most=_MOST_TRIED)
    is_near = any(case.explains(case.right).all() for case in cases)
    return is_near and check(problem, {NORMALIZED: actual}).ok


def _find_surroundings(layer: RecordedLayer) -> Surroundings:
    """Return a layer's recorded gate, its activation and its place before or after the norm; empty without it.

    Raises `DataError` if the settings name an activation of a gate, but no gate was recorded.
    """
    gate, settings = layer.load("gate"), layer.settings
    if gate is None:
        if settings.gate_act:
            raise DataError(f"{layer.name}.gate is missing")
        return Surroundings()
    order = {None: None, True: GateOrder.BEFORE, False: GateOrder.AFTER}[settings.gates_input]
    return Surroundings(gate=gate.values, gate_act=settings.gate_act or None, gate_order=order)


def _summarize(role: str, found: Comparison, told: Diagnosis | None = None) -> JudgedTensor:
    cause, fault, remedy = (None,) * 3 if told is None else (told.cause, told.fault, told.remedy)
    return JudgedTensor(role, found.ok, found.max_ulp, found.compared, found.mismatches, cause, fault, remedy)


def _pair(layer: RecordedLayer, plan: Plan, roles: tuple[str, str]) -> Given | None:
    """Return a recorded mean and variance in the shape of a plan's statistics; None if one is missing."""
    mean, var = (layer.load(role) for role in roles)
    return None if mean is None or var is None else fit_given(plan, Given(mean.values, var.values), roles)


def _judge_running(
    layer: RecordedLayer, plan: Plan, tensor: Tensor, before: Given | None, tolerate: Tolerate, effort: Effort
) -> Iterator[JudgedTensor]:
    """Yield a verdict each on running mean and variance after a training step; none if any was not recorded."""
    after = _pair(layer, plan, ("running_mean_after", "running_var_after"))
    if before is None or after is None:
        return
    rule = choose_rule(plan.norm.name, plan.request.like, layer.settings.momentum, None, None)
    result = calculate(plan, tensor.values, effort=effort, statistics_alone=True)
    state = begin(plan, before)._replace(batches=layer.settings.batches)
    stored = {name: one.values for name in RUNNING if (one := layer.load(f"{name}_after")) is not None}
    for name, found, words in check_running(state, [result], rule, stored, tolerate):
        yield _summarize(f"{name}_after", found)._replace(cause=words)


def _list_gradients(found: CheckedGradients) -> Iterator[JudgedTensor]:
    """Yield the verdicts on gradients; a gradient off only by roundings of its summed terms is right."""
    for name, comparison in found.comparisons.items():
        part, finding = _summarize(_GRADIENTS[name], comparison), found.causes.get(name)
        if finding is not None and finding.is_rounding:
            part = part._replace(ok=True, cause=f"{name}: {finding.fault.words}")
        elif finding is not None:
            fault, words = finding.fault, f"{name} differs: {finding.fault.words}"
            part = part._replace(cause=words, fault=fault.id or None, remedy=fault.remedy or None)
        elif not part.ok:
            part = part._replace(cause=f"{name} differs")
        yield part
