"""The verdicts of an audit: of each tensor, of each layer, and of the whole run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.auditing.dump_file import LayerSettings
    from normcli.checking.check import Checked
    from normcli.checking.gradient_check import CheckedGradients
    from normcli.identifying.question import Diagnosis
    from normcli.results.arguments import Problem


class JudgedTensor(NamedTuple):
    """One tensor of a layer, judged.

    Parameters
    ----------
    role : str
        The tensor's role, one of `dump_file.ROLES`.
    ok : bool
        Whether all values agree.
    max_ulp : float
        The largest distance from the exact values in ulp; NaN where these are not known.
    compared, mismatches : int
        How many values were compared, and how many of them are further off than is tolerated.
    cause : str or None
        The words for a fault, or for a finding on values that agree; None without a finding.
    fault, remedy : str or None
        The id of the fault, and the words for its remedy; None without a fault.
    """

    role: str
    ok: bool
    max_ulp: float
    compared: int
    mismatches: int
    cause: str | None = None
    fault: str | None = None
    remedy: str | None = None


class Detail(NamedTuple):
    """The arrays and findings of one layer, from which the report of `normcli check` is written.

    `source` is the name of the layer's output; `gradients` is None if they were not recorded.
    """

    problem: Problem
    source: str
    checked: Checked
    diagnosis: Diagnosis | None
    gradients: CheckedGradients | None = None


class LayerVerdict(NamedTuple):
    """The verdict on one layer.

    Parameters
    ----------
    settings : LayerSettings
    shape : tuple of int
        The shape of the input; it may be empty with a problem.
    dtype : str
        The dtype of the output by name; it may be empty with a problem.
    parts : tuple of JudgedTensor
        The output, then running statistics and gradients where they were recorded; empty with a problem.
    problem : str or None
        The reason for which the layer could not be judged; None if it was judged.
    detail : Detail or None
        The arrays of the layer; None except for the first bad layer of an `Audit`, as they may be large.
    """

    settings: LayerSettings
    shape: tuple[int, ...] = ()
    dtype: str = ""
    parts: tuple[JudgedTensor, ...] = ()
    problem: str | None = None
    detail: Detail | None = None

    @property
    def ok(self) -> bool | None:
        """Whether everything agrees; None if the layer could not be judged."""
        return None if self.problem is not None else all(part.ok for part in self.parts)

    @property
    def output_ulp(self) -> float | None:
        """The largest distance of the output from the exact values in ulp; None where it is not known."""
        return None if not self.parts or math.isnan(self.parts[0].max_ulp) else self.parts[0].max_ulp

    @property
    def max_ulp(self) -> float | None:
        """The distance, as in `output_ulp`, of the first tensor that is wrong; of the output if none is."""
        wrong = next((part for part in self.parts[1:] if not part.ok), None)
        return self.output_ulp if wrong is None or not self.parts[0].ok else wrong.max_ulp

    @property
    def telling(self) -> JudgedTensor | None:
        """The first tensor of the layer that is wrong; if none, the output if it has a `cause`; else None."""
        finding = (part for part in self.parts[:1] if part.cause is not None)
        return next((part for part in self.parts if not part.ok), None) or next(finding, None)


class Audit(NamedTuple):
    """The verdicts on the layers of a run, in the order in which they ran."""

    layers: tuple[LayerVerdict, ...]

    @property
    def first(self) -> LayerVerdict | None:
        """The first layer that is wrong; None if there is none."""
        return next((one for one in self.layers if one.ok is False), None)

    @property
    def ok(self) -> bool:
        """Whether every layer was judged and agrees."""
        return all(one.ok for one in self.layers)
