"""The rows of the tables of faults: each says what is wrong, what to do, and how such code looks."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from normcli.checking.gradient_faults import list_faults
from normcli.cli.verbs.reference.help import JOINTS
from normcli.identifying.faults.claim import FAULTS
from normcli.identifying.question import MOST_WORDS, count_words

FORWARD = [row.fault for row in FAULTS]
ALL = [*FORWARD, *list_faults()]

MOST = 13
"""Words of a fault: `ln differs:` stands before them in a cause."""


def test_ids_are_unique():
    assert not [name for name, count in Counter(fault.id for fault in ALL).items() if count > 1]


def test_an_id_is_a_joint_and_a_name():
    joints = "|".join(JOINTS)
    assert not [fault.id for fault in ALL if not re.fullmatch(rf"({joints})(-[a-z0-9]+)+", fault.id)]
    assert {fault.id.split("-")[0] for fault in ALL} == {*JOINTS}


def test_each_says_what_to_do_and_how_such_code_looks():
    assert not [fault.id for fault in ALL if not (fault.words and fault.remedy and fault.example)]


@pytest.mark.parametrize("faults", [FORWARD, ALL], ids=["forward", "all"])
def test_words_are_few(faults):
    most = MOST if faults is FORWARD else MOST_WORDS
    assert not [fault.id for fault in faults if count_words(fault.generalize().words) > most]


def test_what_is_shown_of_a_value_leaves_no_braces():
    assert not [fault.id for fault in ALL if re.search(r"[{}]", "".join(fault.generalize()[1:3]))]


def test_a_value_without_a_place_stands_behind_the_words():
    """Those of parts of a tensor, whose words are found with the part."""
    places = [
        (fault.id, len(fault.shown) - len({*re.findall(r"{(\w+)}", fault.words + fault.remedy)}))
        for fault in ALL
    ]
    assert {name for name, left in places if left} == {name for name, _ in places if name.startswith("where-")}
    assert {left for _, left in places} == {0, 1}
