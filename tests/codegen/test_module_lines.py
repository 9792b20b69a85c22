"""Long statements as a formatter leaves them."""

from __future__ import annotations

from normcli.codegen.module import WIDTH, write_line

LONG = "a_name_that_takes_its_place"


def test_a_note_that_is_too_far_out_stands_before_its_line_with_the_name():
    code = f"y = f({', '.join([LONG] * 2)})"
    short, long = "n" * (WIDTH - len(code) - 8), "n" * WIDTH
    assert write_line(code, short) == [f"    {code}  # {short}"]
    assert write_line(code, long) == [f"    # y: {long}", f"    {code}"]
    assert write_line(code.removeprefix("y = "), long)[0] == f"    # {long}"


def test_a_line_that_no_comma_splits_stays():
    code = f"y = {' + '.join([LONG] * 4)}"
    assert write_line(code) == [f"    {code}"]
