"""What made a tensor, as the last lines of an answer and as members of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.documents.document import Line, describe_members
from normcli.identifying.words.diagnosis import begin

if TYPE_CHECKING:
    from normcli.identifying.words.diagnosis import Diagnosis


def build_verdict(diagnosis: Diagnosis, mark: bool | None) -> Line:
    """Return the cause, and below it evidence, what fits as well, what to try, and what would tell more."""
    return Line((f"{begin(diagnosis.cause)}.",), mark, tuple(diagnosis.list_details()))


def describe_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the members of JSON: `verdict` is one of `normcli.identifying.diagnosis.VERDICTS`."""
    return describe_members(diagnosis, *diagnosis._fields)
