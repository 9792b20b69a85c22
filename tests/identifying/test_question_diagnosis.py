"""The record of what is said: its lines, its sentence, and the words that a cause has room for."""

from __future__ import annotations

from normcli.identifying.question import (
    MOST_WORDS,
    VERDICTS,
    Diagnosis,
    Kind,
    add_clauses,
    count_words,
)

WHOLE = Diagnosis(
    "norm", "y is so", ("a", "b"), ("c", "d", "e", "f", "g"), "normcli ln …", "give --gamma", "stats-count"
)


def test_every_kind_has_a_word_that_is_documented():
    assert {*map(str, Kind), "fault"} <= VERDICTS.keys()
    assert all(line and not line.endswith(".") for line in VERDICTS.values())


def test_each_line_has_a_label_or_is_below_another_of_its_kind():
    assert [*WHOLE.list_details()] == [
        ("evidence", "a"), ("", "b"), ("also", "c"), ("", "d"), ("", "e"), ("", "and 2 more"),
        ("reproduce", "normcli ln …"), ("to tell", "give --gamma"),
    ]  # fmt: skip
    assert [*Diagnosis("none", "nothing known explains y").list_details()] == []


def test_the_sentence_is_all_of_it():
    said = "y is so. Evidence: a; b. Also: c; d; e; and 2 more. Reproduce: normcli ln …. To tell: give --gamma."
    assert WHOLE.sentence == said
    assert WHOLE._replace(alternatives=("c", "d", "e")).shown_alternatives == ("c", "d", "e")


def test_a_cause_takes_the_clauses_for_which_it_has_room():
    start = " ".join("abcdefghijklm")
    assert add_clauses(start, ["n o p", "n o", "p"]) == (f"{start}, n o", ("n o p", "p"))
    assert count_words(f"{start}, n o") == MOST_WORDS
