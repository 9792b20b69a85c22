"""The map y = a · x + b in words: a and b, and the norms, running statistics or σ with which it is made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import get_eps
from normcli.engine.sn.passes import lay_matrix
from normcli.engine.sn.sigma_of_groups import SingularValue
from normcli.identifying.models.known_maps import UNTRAINED, find_untrained_eps
from normcli.identifying.models.matrix_model import MOST_TRIED, Start, iterate
from normcli.identifying.question import Diagnosis, join_words
from normcli.identifying.search.affine_step import WAYS
from normcli.identifying.words.match_words import format_axes
from normcli.identifying.words.request_difference import try_request
from normcli.norms.request import Request
from normcli.norms.rules import Centre, ParameterRule
from normcli.norms.table import NORMS, find_norm
from normcli.printable import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.dtypes import Floats
    from normcli.identifying.models.known_maps import Evaluation
    from normcli.identifying.models.line_fit import PlainMap
    from normcli.identifying.question import Identification, Question
    from normcli.identifying.search.match import Match
    from normcli.norms.layout import Layout
    from normcli.norms.plan import Plan

_MOST_NUMBERS = 4
"""The most numbers that are listed; of more numbers, only the least and the largest are named."""

_MOST_NAMES = 4

_OF_LAYERS = ParameterRule.CHANNEL, ParameterRule.REDUCED
"""The parameter rules of norms that are layers: gamma has the channels or the reduced axes."""


def diagnose_map(found: Identification, plain: PlainMap, layout: Layout) -> Diagnosis:
    """Return the diagnosis of y = a · x + b, with the norms and scalers that may have made y."""
    formula = _format_formula(plain)
    said = f"y is {formula}" if plain.wrong else f"y is {formula} for all values"
    if plain.axes == (layout.channel,):
        said = f"y is {formula} in each channel"
    elif plain.axes:
        said = f"y is {formula} for each index of {format_axes(plain.axes, layout)}"
    possible, evidence = [*found.known], []
    if plain.wrong:
        said = f"{said}, except for {format_count(plain.wrong, 'value')}"
        evidence = [f"the first of these is at ({', '.join(map(str, plain.first_wrong))})"]
    if plain.axes:
        shift = [] if _is_zero(plain.shift) else [f"b is {_format_numbers(plain.shift)}"]
        evidence += [f"a is {_format_numbers(plain.scale)}", *shift]
    elif plain.shift.any():
        centred = name_norms(match for match in found.doubtful if NORMS[match.norm].centre is Centre.MEAN)
        exact = [match for match in found.doubtful if match.equal == 1.0]  # b may be rounding
        possible += dict.fromkeys((*centred, *name_norms(exact)))
        evidence += ["y shows no statistic of x but its mean"] if centred else []
    if plain.axes or not plain.shift.any():
        possible += name_norms(match for match in found.doubtful if match.bits > 0.0)
    stored = "evaluation with stored statistics"
    if plain.axes and found.evaluation is not None and found.evaluation.mean.any():  # no batch has the mean 0
        stored = format_evaluation(found.evaluation)
    subject, untrained = found.question.subject, None
    if found.evaluation is not None and (subject is None or subject.plan.norm.tracks):
        untrained = find_untrained_eps(found.evaluation)
    if untrained is not None:
        possible = [name for name in possible if not name.startswith(UNTRAINED)]
        return Diagnosis(
            "affine", "running statistics are untrained: mean 0, variance 1",
            (said, f"eps is {untrained:g}"), tuple(possible), "load the trained running statistics",
        )  # fmt: skip
    hidden = list_hidden_by_map(found.question, plain)
    evidence += [f"any {join_words(hidden)} with unknown gamma and beta looks so"] if hidden else []
    more = ", or more than one sample" if found.question.x.shape[0] == 1 else ""
    return Diagnosis(
        "affine", said, tuple(evidence), (*possible, stored, "a scaler fitted elsewhere"),
        next_step=f"give --gamma and --beta{more}" if hidden else None,
    )  # fmt: skip


def _format_formula(plain: PlainMap) -> str:
    if plain.axes:
        return "a · x" if _is_zero(plain.shift) else "a · x + b"
    factor, term = float(plain.scale.flat[0]), float(plain.shift.flat[0])
    product = "x" if factor == 1.0 else f"{factor:.9g} · x"
    return product if term == 0.0 else f"{product} {'+' if term > 0.0 else '−'} {abs(term):.9g}"


def _format_numbers(values: Floats) -> str:
    flat = values.reshape(-1)
    if flat.size <= _MOST_NUMBERS:
        return ", ".join(f"{value:.6g}" for value in flat)
    return f"{flat.min():.6g} to {flat.max():.6g}"


def _is_zero(values: Floats) -> bool:
    return math.isclose(float(np.abs(values).max(initial=0.0)), 0.0)


def name_norms(matches: Iterable[Match]) -> list[str]:
    """Return the titles of matches' norms, each once, at most 4; matches with `is_odd` are left out."""
    names = dict.fromkeys(find_norm(match.norm)[0].title for match in matches if not match.is_odd)
    return [*names][:_MOST_NAMES]


def format_evaluation(evaluation: Evaluation) -> str:
    """Return the words for the running statistics, gamma and beta with which evaluation is y = a · x + b."""
    mean, square = _format_numbers(evaluation.mean), _format_numbers(evaluation.square)
    step = evaluation.affine
    neutral = [name for name, v in (("gamma is 1", step.scale), ("beta is 0", step.shift)) if v is None]
    absent = f", if {' and '.join(neutral)}" if neutral else ""
    stored = f"evaluation with running mean ≈ {mean}, running variance + eps ≈ {square}"
    return stored + WAYS[step.way] + absent


def list_hidden_by_map(asked: Question, plain: PlainMap) -> list[str]:
    """Return the names of norms that, with unknown gamma and beta, may be the map y = a · x + b.

    Empty if gamma or beta was given, or if the map has one pair for all values.
    """
    if not plain.axes or asked.gamma is not None or asked.beta is not None:
        return []
    wide, hidden = {axis for axis, length in enumerate(asked.x.shape) if length > 1}, []
    layers = (norm for norm in NORMS.values() if norm.parameters in _OF_LAYERS)
    for norm in layers:
        plan = try_request(Request(norm.name, layout=asked.layout), asked)
        if plan is None or (norm.centre is Centre.NOTHING and plain.shift.any()):
            continue
        if wide & {*plan.grid.canonical.kept} <= {*plain.axes}:
            hidden.append(norm.name)
    return hidden


# -- x / σ is one factor times x

_ROUNDINGS = 64.0
"""The relative error of a kernel's σ, in machine epsilons of y's dtype."""


def tell_sigma(plan: Plan, found: Identification) -> Diagnosis | None:
    """Return the diagnosis of y = factor · x, where x / σ was requested: what its σ is.

    None for norms that are not spectral, for several matrices, and if y is no positive factor of x.

    Parameters
    ----------
    plan : Plan
        The plan of the requested norm.
    found : Identification
    """
    plain, spec, name = found.plain, plan.spec, plan.norm.name
    if spec.rows is None or plan.grid.kept or plain is None or plain.axes or plain.shift.any():
        return None
    factor = float(plain.scale.reshape(-1)[0])
    matrix = lay_matrix(plan, found.question.x).astype(np.float64)
    value = SingularValue(matrix)
    if not 0.0 < factor < math.inf or value.known is not None:
        return None
    sigma, largest = 1.0 / factor, float(value.find())
    tolerance = _ROUNDINGS * get_eps(choose_counting_dtype(found.question.y.dtype))
    place, reason = compare_sigma(sigma, largest, tolerance)
    told = Diagnosis(
        found.kind.value, f"{name} differs: σ is {sigma:.6g}, {place}",
        (f"the largest singular value is {largest:.6g}", *reason),
    )  # fmt: skip
    if spec.iteration is None:
        return told
    given = {name: getattr(spec.iteration, name) for name in ("u", "v")}
    for start in (Start(name, vector) for name, vector in given.items() if vector is not None):
        for steps, made in iterate(matrix, start):
            if abs(made - sigma) <= tolerance * sigma:
                cause = f"{name} differs: σ is of {format_count(steps, 'power iteration')} from {start.name}"
                return told._replace(
                    cause=f"{cause}, not {spec.iteration.steps}",
                    remedy=f"normcli {name} … --iterations {steps}",
                )
    tried = f"no number of power iterations from {spec.iteration.start} up to {MOST_TRIED} gives it"
    return told._replace(evidence=(*told.evidence, tried))


def compare_sigma(sigma: float, largest: float, tolerance: float) -> tuple[str, tuple[str, ...]]:
    """Return σ in words relative to the largest singular value, and a tuple with a clause on power iterations.

    The tuple is empty if σ is the largest singular value up to `tolerance`, a relative error.

    Examples
    --------
    >>> compare_sigma(1.1, 1.0, 1e-6)
    ('10 % above the largest singular value', ('no power iterations end above it',))
    """
    off = sigma / largest - 1.0
    share = f"{100.0 * abs(off):.3g} %"
    if abs(off) <= tolerance:
        return "the largest singular value, to rounding", ()
    if off > 0.0:
        return f"{share} above the largest singular value", ("no power iterations end above it",)
    few = "too few power iterations end below it, and so do many other factors"
    return f"{share} below the largest singular value", (few,)
