"""Whether the two tensors of a question were exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import choose_tolerance
from normcli.dtypes import is_float
from normcli.errors import NormError
from normcli.identifying.question import Kind, Question
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.results.calculate import calculate
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from normcli.identifying.words.diagnosis import Diagnosis

MOST_VALUES = 1 << 20
"""Larger tensors are not tried the other way round."""


def hint_exchange(question: Question, told: Diagnosis) -> Diagnosis:
    """Return a diagnosis that finds no norm, and asks whether x and y were exchanged where x is a norm of y."""
    x, y = question.x, question.y
    if told.verdict not in (Kind.AFFINE, Kind.NONE) or x.shape != y.shape or x.size > MOST_VALUES:
        return told
    if not is_float(x.dtype):
        return told
    x, y = fetch(x), fetch(y)
    tolerance = choose_tolerance(x.dtype)
    with np.errstate(all="ignore"):
        for name in NORMS:
            try:
                made = calculate(
                    make_plan(Request(name, layout=question.layout), y.shape, y.dtype), y
                ).normalized
            except NormError:
                continue
            values = x.astype(np.float64)
            if np.allclose(made.astype(np.float64), values, tolerance.rtol, tolerance.atol) and values.any():
                return told._replace(next_step=f"x is {name} of y: are input and actual exchanged?")
    return told
