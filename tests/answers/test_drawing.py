"""Drawings in the terminal, kept as text. To renew them: `NORMCLI_UPDATE_SNAPSHOTS=1 pytest tests/answers`."""

from __future__ import annotations

import pytest

from normcli import normalize
from normcli.answers.calculating.drawing import Drawing
from normcli.documents.document import View
from normcli.documents.palette import PALETTE
from normcli.pictures import Options
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from tests.conftest import hold_snapshot, render


def tell(norm, shape, view=None, options=None, **settings) -> str:
    tensor = generate(Recipe(shape))
    return render(Drawing(normalize(tensor.values, norm, **settings), tensor, options or Options()), view)


CASES = {
    "draw-gn-80": lambda: tell("gn", (2, 4, 3, 3), View(width=80), groups=2),
    "draw-gn-none-pipe": lambda: tell("gn", (2, 4, 3, 3), options=Options(values="none"), groups=2),
    "draw-ln-normalized-80": lambda: tell("ln", (2, 3, 4), View(width=80), Options(values="y"), layout="NLC"),
    "draw-bn-large-80": lambda: tell("bn", (8, 64, 32, 32), View(width=80), Options(values="none")),
    "draw-ln-histogram-120": lambda: tell("ln", (2, 64), View(width=120), Options(plot="histogram")),
    "draw-ln-histogram-80": lambda: tell("ln", (20, 4), View(width=80), Options(plot="histogram")),
    "draw-gn-y-pipe": lambda: tell("gn", (2, 4, 3), options=Options(values="y"), groups=2),
    "draw-lrn-y-pipe": lambda: tell("lrn", (2, 4, 3), options=Options(values="y")),
    "draw-lrn-pipe": lambda: tell("lrn", (1, 7, 2, 2), options=Options(values="none")),
}


@pytest.mark.all_quick
@pytest.mark.parametrize("name", CASES)
def test_drawings_look_as_they_did(name):
    hold_snapshot(f"{name}.txt", CASES[name]())


@pytest.mark.usefixtures("truecolor")
def test_without_values_each_cell_is_a_block_of_its_groups_colour():
    text = tell("bn", (1, 2, 1, 2), View(width=80, colour=True), Options(values="none"))
    matrices, legend = text.split("group ", 1)
    for group in range(2):
        red, green, blue = (int(PALETTE[group % len(PALETTE)][0][i : i + 2], 16) for i in (1, 3, 5))
        assert f"48;2;{red};{green};{blue}m     \x1b[0m" in matrices
        assert f"48;2;{red};{green};{blue}m c={group} " in legend


@pytest.mark.parametrize("values", ["input", "none"])
def test_numbers_of_many_digits_are_no_wider_than_the_terminal(values):
    text = tell("bn", (2, 300), View(width=80), Options(values=values))
    assert max(map(len, text.splitlines())) <= 80
    assert " 0   1   2 " in text
    assert "299\n" in text
