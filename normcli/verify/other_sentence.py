"""What was found that is no norm, as a sentence: a plain map, a slip of a kernel, too little evidence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.norms.rules import Centre
from normcli.norms.table import NORMS, find_norm
from normcli.verify.affine import WAYS
from normcli.verify.apart import format_axes, join_words, list_hidden_by_map
from normcli.verify.identify import Kind
from normcli.verify.moved import find_moved_group
from normcli.verify.ulp import choose_counting_dtype
from normcli.verify.weight import CERTAIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.dtypes import Floats
    from normcli.norms.layout import Layout
    from normcli.numerics.solution import Given
    from normcli.verify.affine import AffineStep
    from normcli.verify.evaluation import Evaluation
    from normcli.verify.hypothesis import Match
    from normcli.verify.identify import Identification, Question
    from normcli.verify.plain import PlainMap
    from normcli.verify.slips import Slip

OF_OTHER_MAPS = (Kind.AFFINE, Kind.SLIP, Kind.UNDECIDED)
"""The kinds that have their sentences here."""

_MOST_NUMBERS = 4
"""Numbers of a list that a sentence holds; of a longer one its least and its largest."""

_MOST_NAMES = 4


def format_other_map(found: Identification, layout: Layout) -> str:
    """Return what made the tensor, and what it may have been."""
    if found.plain is not None:
        return _format_plain(found, found.plain, layout)
    if found.slip is not None:
        return _format_slip(found.slip, layout, choose_counting_dtype(found.question.y.dtype))
    names = _format_names(found.doubtful)
    first = found.doubtful[0]
    if first.is_rough and not first.is_odd:  # of a usual eps, which others may come near
        return _format_rough(first, found.question, layout)
    odd = next((match for match in found.doubtful if match.is_odd), None)
    if odd is not None:
        told = _format_norm(odd, layout)
        return (
            f"No norm is identified: {told} would need an eps of {odd.eps:.6g}, "
            "which is none in use and not small beside the variances."
        )
    if first.takes_up_rounding and first.bits >= CERTAIN:
        return _format_hidden_rounding(first, found.question, layout)
    return f"No norm is identified: {names} would fit, but on so few values so would many other things."


def _format_norm(match: Match, layout: Layout) -> str:
    return " ".join([format_title(match), f"over {format_axes(match.axes, layout)}"])


def format_title(match: Match) -> str:
    """Return the norm of a match in words, and its name."""
    return f"{find_norm(match.norm)[0].title} ({match.norm})"


def _format_hidden_rounding(match: Match, asked: Question, layout: Layout) -> str:
    near = _format_norm(match, layout)
    return (
        f"No norm is identified: {near} with eps {match.eps:g}{format_affine(match.affine, asked)} would fit, "
        "but on so few values so would another eps with statistics that are rounded to "
        f"{choose_counting_dtype(asked.y.dtype)}."
    )


def _format_rough(match: Match, asked: Question, layout: Layout) -> str:
    near = _format_norm(match, layout)
    share = f"only {100.0 * match.equal:.3g} % of the values are the exact ones"
    if match.sums_in_half:
        half = match.precision.split(",")[0]
        kernel = f"a kernel that calculates in {half}, or rounds to it on the way, might give the others"
        kernel += _format_moved(match, choose_counting_dtype(asked.y.dtype))
    else:
        kernel = (
            f"a kernel in {match.precision} whose sums cancel, as E[x²] − E[x]² does, might give the others,"
            " and so might other maps"
        )
    return f"y is near {near}{format_affine(match.affine, asked)}: {share}; {kernel}."


def _format_moved(match: Match, dtype: np.dtype[Any]) -> str:
    """Return which group is off as a whole, as values that are rounded one by one are not."""
    moved = None if match.hypothesis is None else find_moved_group(match.hypothesis, match.eps, dtype)
    if moved is None:
        return ""
    index = ", ".join(map(str, moved.first))
    return (
        f"; the values of the group of ({index}) are {moved.factor:.5g} of what they should be on average, "
        "as where statistics are taken in lower precision"
    )


def format_affine(way: str, asked: Question) -> str:
    """Return how gamma and beta entered, and which of those that were given did not."""
    words = WAYS[way]
    given = [name for name in ("gamma", "beta") if getattr(asked, name) is not None]
    unused = [name for name in given if name not in words]
    return words + (f", without the given {' and '.join(unused)}" if unused else "")


_NEAR_ROUNDINGS = 8.0
"""A slip that moves no factor by more roundings of half precision may be sums of that precision as well."""


def _format_slip(slip: Slip, layout: Layout, dtype: np.dtype[Any]) -> str:
    split = slip.grid.split
    parts = ["x minus its mean" if slip.centred else "x", f"over {format_axes(slip.grid.axes, layout)}"]
    if split is not None:
        parts.append(f"in {split.groups} {split.order} groups")
    told = ", ".join([" ".join(parts), slip.words]) + WAYS[slip.affine]
    if is_half(dtype) and slip.measure_factor() <= _NEAR_ROUNDINGS * get_eps(dtype):
        return (
            f"y is near {told}; "
            f"a norm's kernel that calculates in {dtype}, or rounds to it on the way, might give it as well."
        )
    return f"y is no norm of the table: {told}."


def _format_plain(found: Identification, plain: PlainMap, layout: Layout) -> str:
    formula = f"y = {_format_formula(plain)}"
    if not plain.axes:
        said = f"{formula}, one {'factor' if _is_zero(plain.shift) else 'pair'} for all values"
    else:
        said = f"{formula} for each index of {format_axes(plain.axes, layout)}"
    possible, sentences = [*found.known], [f"{said}."]
    centred = _list_names(match for match in found.doubtful if NORMS[match.norm].centre is Centre.MEAN)
    if not plain.axes and centred and plain.shift.any():
        sentences = [f"{said}: of a norm's statistics at most the mean of this tensor is seen in it."]
        possible += centred
    elif not plain.axes:
        possible += _list_names(match for match in found.doubtful if match.bits > 0.0)
    elif found.evaluation is not None and found.evaluation.mean.any():  # no batch has the mean 0
        sentences.append(format_evaluation(found.evaluation))
    if (left := plain.exceptions) is not None:
        index = ", ".join(map(str, left.first))
        count = f"{left.mismatches:,} of {left.compared:,} values"
        sentences.insert(1, f"This leaves out {count}, the first at ({index}).")
    possible += ["any norm's evaluation with stored statistics", "a scaler fitted elsewhere"]
    sentences.append(f"It may be {', '.join(possible)}, or no norm at all.")
    sentences += list_hidden_by_map(found.question, plain, layout)
    return " ".join(sentences)


def format_evaluation(evaluation: Evaluation) -> str:
    """Return the stored statistics that would make a plain map: `As evaluation: running mean ≈ …`."""
    mean, square = _format_numbers(evaluation.mean), _format_numbers(evaluation.square)
    step = evaluation.affine
    words = f"{WAYS[step.way]}{_format_absent(step)}"
    return f"As evaluation: running mean ≈ {mean}, running variance + eps ≈ {square}{words}."


def _format_absent(step: AffineStep) -> str:
    """Return what gamma and beta have to be where they are not known: `, if gamma is 1 and beta 0`."""
    neutral = [name for name, v in (("gamma is 1", step.scale), ("beta is 0", step.shift)) if v is None]
    return f", if {' and '.join(neutral)}" if neutral else ""


_AGREEING = 1e-3
"""Stored statistics that are off by less than this part are said to be the given ones."""


def format_stored(found: Identification, given: Given | None) -> str:
    """Return how the stored statistics that were given are in the tensor; nothing where none were."""
    if given is None:
        return ""
    if found.kind is Kind.NORM:
        return (
            " These are this tensor's own statistics, as in training, and not the running ones that were given."
        )
    evaluation = found.evaluation
    if evaluation is None or evaluation.mean.size != given.mean.size:
        return ""
    mean, square = evaluation.mean.reshape(-1), evaluation.square.reshape(-1)
    theirs, var = given.mean.reshape(-1), given.var.reshape(-1)
    added = square - var
    same_mean = np.all(np.abs(mean - theirs) <= _AGREEING * np.sqrt(square))
    same_added = np.ptp(added) <= _AGREEING * float(square.min()) and float(added.min()) > -_AGREEING * float(
        var.min()
    )
    if same_mean and same_added:
        eps = float(f"{max(0.0, float(np.median(added))):.2g}")
        return f" The running statistics are those that were given, with an eps of about {eps:g}."
    named = {"mean": same_mean, "variance": same_added}
    others = " and the ".join(f"running {name}" for name, same in named.items() if not same)
    kept = "".join(f"; the running {name} is" for name, same in named.items() if same)
    return f" The {others} {'is' if same_mean or same_added else 'are'} not what was given{kept}."


def _format_formula(plain: PlainMap) -> str:
    if plain.axes:
        a, b = _format_numbers(plain.scale), _format_numbers(plain.shift)
        return f"a · x + b, a = {a}, b = {b}," if not _is_zero(plain.shift) else f"a · x, a = {a},"
    factor, term = float(plain.scale.flat[0]), float(plain.shift.flat[0])
    product = "x" if factor == 1.0 else f"{factor:.9g} · x"
    return product if term == 0.0 else f"{product} {'+' if term > 0.0 else '−'} {abs(term):.9g}"


def _format_numbers(values: Floats) -> str:
    flat = values.reshape(-1)
    if flat.size <= _MOST_NUMBERS:
        return ", ".join(f"{value:.6g}" for value in flat)
    return f"{flat[0]:.6g}, {flat[1]:.6g}, … ({flat.min():.6g} to {flat.max():.6g})"


def _format_names(matches: Iterable[Match]) -> str:
    return join_words(_list_names(matches))


def _list_names(matches: Iterable[Match]) -> list[str]:
    """Return the names of matches, each once, those of whose eps nothing is known left out."""
    names = dict.fromkeys(format_title(match) for match in matches if not match.is_odd)
    return [*names][:_MOST_NAMES]


def _is_zero(values: Floats) -> bool:
    return math.isclose(float(np.abs(values).max(initial=0.0)), 0.0)
