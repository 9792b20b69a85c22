"""The rules for the words of every verdict: short, subject first, one fact a sentence."""

from __future__ import annotations

import re

from normcli.identifying.question import MOST_WORDS, VERDICTS, count_words
from normcli.norms.table import NORMS

SUBJECT = re.compile(rf"(y|x itself|x − mean|no norm|nothing known|the [a-z]+|{'|'.join(NORMS)}|[\w -]+ over [a-z ]+) (is|may be|differs|can be|explains|counts|needs|agrees)\b")  # fmt: skip
"""How a cause begins: its subject, and the verb."""

TWISTED = re.compile(r"\b(what is|those of|so many|of which|if this is|whose)\b")

LONGEST = 25
"""Words of a sentence."""


def require_plain_words(told):
    assert told.verdict in VERDICTS
    assert count_words(told.cause) <= MOST_WORDS, told.cause
    assert SUBJECT.match(told.cause), told.cause
    every = [told.cause, *told.evidence, *told.alternatives, told.remedy or "", told.next_step or ""]
    for text in every:
        assert count_words(text) <= LONGEST, text
        assert not TWISTED.search(text), text
        assert text == text.strip().removesuffix("."), text
        assert "  " not in text
