"""Five well-read texts on BatchNorm and LayerNorm as the scripts of a student: each command, and what the text has.

A script has a command a line, behind `$`; below it, in their order, what lines of the answer begin with or hold: words
as they are, numbers to the digits that the text prints. `exit 1` is the exit code, which is 0 without one.
"""

from __future__ import annotations

import re
import shlex
from decimal import Decimal
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "walkthrough").glob("*.txt"))

_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def read_script(path):
    """Return the commands of a script, each with what it expects."""
    commands = []
    for line in path.read_text().splitlines():
        if line.startswith("$ normcli "):
            commands.append((line.removeprefix("$ normcli "), []))
        elif line and not line.startswith("#"):
            commands[-1][1].append(line)
    return commands


def agrees(word, found):
    """Whether a word of an answer is one of a text: a number, if it rounds to the digits that the text has."""
    if word == found or not (_NUMBER.fullmatch(word) and _NUMBER.fullmatch(found)):
        return word == found
    digits = Decimal(word)
    return abs(Decimal(found) - digits) <= Decimal(1).scaleb(digits.as_tuple().exponent) * Decimal("1.01")


def holds(line, expected):
    """Whether words stand in a line, one behind the other."""
    words, found = expected.split(), line.split()
    starts = range(len(found) - len(words) + 1)
    return any(all(map(agrees, words, found[start:])) for start in starts)


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_student_gets_the_numbers_of_the_text(path, normcli, here):
    commands = read_script(path)
    assert len(commands) >= 4
    for command, expected in commands:
        code = next((int(line.removeprefix("exit ")) for line in expected if line.startswith("exit ")), 0)
        ran = normcli(*shlex.split(command))
        assert ran.code == code, (command, ran.err)
        lines = iter(ran.lines)
        for line in expected:
            if not line.startswith("exit "):
                assert any(holds(found, line) for found in lines), (command, line, ran.out)
