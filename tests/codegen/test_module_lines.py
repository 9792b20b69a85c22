"""Long statements as a formatter leaves them."""

from __future__ import annotations

import pytest

from normcli.codegen.module import WIDTH, write_line

LONG = "a_name_that_takes_its_place"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        pytest.param("y = f(x)", ["    y = f(x)"], id="short"),
        pytest.param(
            f"y = function(x, {', '.join([LONG] * 2)}, g(1, [2, 3]), keepdims=True)",
            ["    y = function(", f"        x, {', '.join([LONG] * 2)}, g(1, [2, 3]), keepdims=True", "    )"],
            id="arguments on a line",
        ),
        pytest.param(
            f"y = function(x, {', '.join([LONG] * 4)}, g(1, [2, 3]))",
            ["    y = function(", "        x,", *[f"        {LONG},"] * 4, "        g(1, [2, 3]),", "    )"],
            id="an argument a line",
        ),
        pytest.param(f"y = {' + '.join([LONG] * 4)}", [f"    y = {' + '.join([LONG] * 4)}"], id="no call"),
    ],
)
@pytest.mark.all_quick
def test_a_call_that_is_too_long_is_split_at_its_own_commas(code, lines):
    assert write_line(code) == lines


def test_a_note_that_is_too_far_out_stands_before_its_line_with_the_name():
    code = f"y = f({', '.join([LONG] * 2)})"
    assert write_line(code, "n" * (WIDTH - len(code) - 8)) == [f"    {code}  # {'n' * (WIDTH - len(code) - 8)}"]
    assert write_line(code, "n" * WIDTH) == [f"    # y: {'n' * WIDTH}", f"    {code}"]
    assert write_line(code.removeprefix("y = "), "n" * WIDTH)[0] == f"    # {'n' * WIDTH}"
