"""Each recipe of `normcli help symptoms` runs, and its answer says what the table says."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

from normcli.cli.verbs.reference.list_tables import read_symptoms
from tests.marks import costly

RECIPES = read_symptoms()


@costly
@pytest.mark.parametrize("recipe", [pytest.param(row, id=row.symptom.replace(" ", "-")) for row in RECIPES])
def test_the_command_of_a_recipe_names_the_cause(recipe, normcli, here):
    exec(recipe.make, {"np": np})  # the table's own code
    program, *arguments = shlex.split(recipe.command)
    assert program == "normcli"
    ran = normcli(*arguments)
    assert recipe.answer in ran.out + ran.err


def test_there_are_twenty_five_recipes_of_as_many_threads():
    threads = [row.thread for row in RECIPES]
    assert len(set(threads)) == len(threads) >= 25
    assert all(
        re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", thread) for thread in threads
    )


def test_help_lists_symptoms_with_their_commands(normcli):
    printed = normcli("help", "symptoms").out
    words = " ".join(printed.split())
    assert [row.symptom for row in RECIPES if row.symptom not in words] == []
    assert [row.thread for row in RECIPES if row.thread not in printed.split()] == []
    joined = "".join(printed.split())  # wherever a line is wrapped
    assert [row.command for row in RECIPES if "".join(row.command.split()) not in joined] == []
