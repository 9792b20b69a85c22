"""Drawings in the terminal, kept as text. To renew them: `NORMCLI_UPDATE_SNAPSHOTS=1 pytest tests/answers`."""

from __future__ import annotations

import io
import os
import re

import pytest

from normcli import normalize
from normcli.answers.calculating.drawing import Drawing
from normcli.documents.document import View
from normcli.documents.palette import PALETTE
from normcli.pictures import Options
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.writers import write
from tests.conftest import DATA

SNAPSHOTS = DATA / "snapshots"


def render(norm, shape, view=None, options=None, **settings) -> str:
    tensor = generate(Recipe(shape))
    stream = io.StringIO()
    result = normalize(tensor.values, norm, **settings)
    write(Drawing(result, tensor, options or Options()), "table", stream, view or View())
    return stream.getvalue()


CASES = {
    "draw-gn-80": lambda: render("gn", (2, 4, 3, 3), View(width=80), groups=2),
    "draw-gn-none-pipe": lambda: render("gn", (2, 4, 3, 3), options=Options(values="none"), groups=2),
    "draw-ln-normalized-80": lambda: render("ln", (2, 3, 4), View(width=80), Options(values="y"), layout="NLC"),
    "draw-bn-large-80": lambda: render("bn", (8, 64, 32, 32), View(width=80), Options(values="none")),
    "draw-ln-histogram-120": lambda: render("ln", (2, 64), View(width=120), Options(plot="histogram")),
    "draw-ln-histogram-80": lambda: render("ln", (20, 4), View(width=80), Options(plot="histogram")),
    "draw-gn-y-pipe": lambda: render("gn", (2, 4, 3), options=Options(values="y"), groups=2),
    "draw-lrn-y-pipe": lambda: render("lrn", (2, 4, 3), options=Options(values="y")),
    "draw-lrn-pipe": lambda: render("lrn", (1, 7, 2, 2), options=Options(values="none")),
}


@pytest.mark.all_quick
@pytest.mark.parametrize("name", CASES)
def test_drawings_look_as_they_did(name):
    text = CASES[name]()
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("NORMCLI_UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.usefixtures("truecolor")
def test_without_values_each_cell_is_a_block_of_its_groups_colour():
    text = render("bn", (1, 2, 1, 2), View(width=80, colour=True), Options(values="none"))
    matrices, legend = text.split("group ", 1)
    for group in range(2):
        red, green, blue = (int(PALETTE[group % len(PALETTE)][0][i : i + 2], 16) for i in (1, 3, 5))
        assert f"48;2;{red};{green};{blue}m     \x1b[0m" in matrices
        assert f"48;2;{red};{green};{blue}m c={group} " in legend


@pytest.mark.parametrize("norm", ["bn", "lrn"])
@pytest.mark.parametrize("values", ["input", "none"])
def test_where_colours_tell_no_numbers_do(norm, values):
    text = re.sub(r"\x1b\[[\d;]*m", "", render(norm, (2, 4, 3), View(colour=True), Options(values=values)))
    assert "0: " not in text
    assert len(re.findall("(groups|window)  rows", text)) == (values == "none")


@pytest.mark.parametrize("values", ["input", "none"])
def test_numbers_of_many_digits_are_no_wider_than_the_terminal(values):
    text = render("bn", (2, 300), View(width=80), Options(values=values))
    assert max(map(len, text.splitlines())) <= 80
    assert " 0   1   2 " in text
    assert "299\n" in text
