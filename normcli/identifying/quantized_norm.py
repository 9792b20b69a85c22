"""Which norm's exact result somebody quantized: the norms by default, held against codes and scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from normcli.errors import DataError
from normcli.identifying.faults.fault_search import list_subjects
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.quantizing.judging import judge_quantized
from normcli.quantizing.quantize import quantize_plan
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.identifying.faults.open_case import AskedNorm
    from normcli.identifying.question import Question
    from normcli.quantizing.judging import QuantizedPart
    from normcli.quantizing.quantize import Quantization, Quantized

MOST_DIFFERENT = 0.5
"""The part of the codes that differs from those of a norm that is named, at most."""


class QuantizedNorm(NamedTuple):
    """A norm whose result is quantized.

    Parameters
    ----------
    found : Quantized
        Its exact codes and scales.
    parts : list of QuantizedPart
        Those of somebody, compared with them.
    also : tuple of Quantized
        Norms whose codes and scales differ from somebody's in as few places.
    """

    found: Quantized
    parts: list[QuantizedPart]
    also: tuple[Quantized, ...]

    @property
    def is_near(self) -> bool:
        """Whether the norm explains codes at all, by its own scales or by others."""
        return min(_count(self.parts)) <= MOST_DIFFERENT


def guess_sharing(shape: tuple[int, ...], scales: NDArray[Any]) -> str:
    """Return which values share a scale, as `--per` has it, by the shape of scales.

    Examples
    --------
    >>> import numpy as np
    >>> guess_sharing((4, 64), np.ones((4, 2))), guess_sharing((4, 64), np.ones(4))
    ('block:32', 'token')
    """
    if scales.size == 1:
        return "tensor"
    if scales.size * shape[-1] == math.prod(shape):
        return "token"
    if scales.shape[:-1] == shape[:-1]:
        return f"block:{shape[-1] // max(1, scales.shape[-1])}"
    return "channel"


def identify_quantized(
    question: Question,
    scales: NDArray[Any],
    tensor_scale: NDArray[Any] | None,
    asked: Quantization,
    norm: str | None,
    effort: Effort,
) -> QuantizedNorm | None:
    """Return the norm whose codes and scales differ least from somebody's; None where no group has two values.

    Parameters
    ----------
    question : Question
        Whose y are the codes.
    scales, tensor_scale : ndarray
        As `judge_quantized` takes them.
    asked : Quantization
    norm : str or None
        Try this norm alone.
    effort : Effort

    Raises
    ------
    DataError
        If codes or scales are of other shapes than the tensor has.
    """
    given = question.y, scales, tensor_scale

    def measure(subject: AskedNorm) -> tuple[tuple[float, float], Quantized] | None:
        try:
            found = quantize_plan(subject.plan, question.x, subject.inputs, asked, effort)
        except DataError:  # of a result that is not finite
            return None
        return _count(judge_quantized(found, *given, names_rules=False)), found

    subjects = list_subjects(question.x, question.gamma, question.beta, question.layout, norm)
    if question.x.size < 2:
        return None
    tried = [(measured, subject) for subject in subjects if (measured := measure(_in_doubles(subject)))]
    if not tried:
        return None
    least = min(measured[0] for measured, _ in tried)
    near = [subject for measured, subject in tried if measured[0][0] <= 2.0 * least[0]]
    every = [one for subject in near for other in _list_eps(subject) if (one := measure(other))]
    best = min(counts for counts, _ in every)
    found, *also = (one for counts, one in every if counts == best)
    return QuantizedNorm(found, judge_quantized(found, *given), tuple(also))


def _count(parts: list[QuantizedPart]) -> tuple[float, float]:
    """Return the part of the codes that differs, and that of the scales."""
    shares = {part.name: part.different / part.total for part in parts}
    return shares["codes"], shares["scales"]


def _in_doubles(subject: AskedNorm) -> AskedNorm:
    return subject._replace(plan=subject.plan.change_spec(dtype="float64"))


def _list_eps(subject: AskedNorm) -> Iterator[AskedNorm]:
    """Yield a norm with its default eps, and with each other in use."""
    plan = _in_doubles(subject).plan
    for eps in (plan.spec.eps,) if plan.spec.eps is None else dict.fromkeys((plan.spec.eps, *COMMON_EPS)):
        yield subject._replace(plan=plan.change_spec(eps=eps))
