"""Verdicts on codes and scales that somebody made of a norm's result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.answers.judging.quantized_verdict import QuantizedVerdict
from normcli.checking.ulp import measure_unit
from normcli.errors import DataError
from normcli.identifying.quantized_norm import blame_request, guess_sharing, identify_quantized
from normcli.library.judgement import Judgement
from normcli.quantizing.formats import read_quantization
from normcli.quantizing.judging import judge_quantized
from normcli.quantizing.quantize import Quantized, quantize_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.engine.walk import Effort
    from normcli.identifying.question import Question
    from normcli.quantizing.formats import Quantization
    from normcli.results.arguments import Problem
    from normcli.tensors.tensor import Tensor

CODES = ("actual", "actual_scale", "actual_tensor_scale")
"""The names of codes, of their scales, and of the scale of the whole tensor (nvfp4)."""


def judge_codes(
    problem: Problem, asked: Quantization, actual: Mapping[str, Tensor], max_ulp: float | None
) -> Judgement[Quantized]:
    """Compare codes and scales with those of a norm's exact result.

    Parameters
    ----------
    problem : Problem
        The norm with an output of float64.
    asked : Quantization
    actual : mapping of str to Tensor
        The codes and scales to judge, by the names in `CODES`.
    max_ulp : float or None
        The largest error that each value may have had before it was quantized; None: no error.

    Raises
    ------
    NormError
        If the format does not fit the tensor, or codes or scales do not fit the result.
    """
    found = quantize_problem(problem, asked)
    plain = found.exact.plan.change_spec(dtype=None)
    unit = measure_unit(found.exact.normalized, plain.choose_output_dtype(plain.tensor_dtype))
    compared = [None if one is None else one.values for one in map(actual.get, CODES)]
    parts = judge_quantized(found, *compared, unit=unit, max_ulp=max_ulp)
    parts = blame_request(found, compared, parts)
    answer = QuantizedVerdict(found, problem.tensor, tuple(one.source for one in actual.values()), parts)
    return Judgement(answer.ok, found, answer)


def identify_codes(
    question: Question,
    tensors: tuple[Tensor, Tensor],
    scales: tuple[Tensor, Tensor | None],
    quantizing: tuple[str | None, str | None, str | None],
    norm: str | None,
    effort: Effort,
) -> Judgement[Quantized]:
    """Find the norm whose codes and scales are nearest to the given ones.

    Parameters
    ----------
    question : Question
        The question with the codes as its y.
    tensors : pair of Tensor
        The input and the codes.
    scales : pair of Tensor
        The scales, and the scale of the whole tensor (None without one).
    quantizing : tuple of str or None
        The format, the values that share a scale, and the rounding of scales, for `read_quantization`.
    norm : str or None
        The only norm to try; None: all of them.
    effort : Effort

    Raises
    ------
    NormError
        If the arrays do not fit the tensor, or no norm can be tried.
    """
    (name, per, rounding), (each, whole) = quantizing, scales
    asked = read_quantization(name, per, rounding)
    if per is None and asked.row.block is None and question.x.ndim:
        asked = read_quantization(name, guess_sharing(question.x.shape, each.values), rounding)
    of_tensor = None if whole is None else whole.values
    best = identify_quantized(question, each.values, of_tensor, asked, norm, effort)
    if best is None:
        raise DataError("no norm is there to try: no axis of the input has several values")
    sources = tuple(one.source for one in (tensors[1], each, whole) if one is not None)
    answer = QuantizedVerdict(best.found, tensors[0], sources, best.parts, best.also, best.is_near)
    return Judgement(answer.ok, best.found, answer)
