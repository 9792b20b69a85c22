"""`normcli draw`: files, options that contradict, what is missing."""

from __future__ import annotations

import io
import os
import re
import struct
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from normcli import NORMS, backward, normalize
from normcli.documents.scene import Scene, Text
from normcli.pictures import svg
from normcli.pictures.draw import draw
from normcli.pictures.svg import write
from normcli.tensors.tensor import Tensor
from tests.conftest import require_refusal
from tests.marks import costly
from tests.strategies import options_for

SVG = "{http://www.w3.org/2000/svg}"


def read_cells(path):
    """Return the value of each cell of a picture, by its index."""
    cells = [element for element in ET.parse(path).iter(f"{SVG}g") if element.get("class") == "cell"]
    return {tuple(map(int, c.get("data-index").split(","))): float(c.get("data-value")) for c in cells}


@pytest.mark.parametrize("norm", ["ln", "bn", "lrn"])
def test_a_large_file_is_drawn_without_normalizing_all_of_it(norm, normcli, here, monkeypatch):
    monkeypatch.setattr("normcli.results.normalized_part.SMALL", 100)
    x = np.random.default_rng(3).normal(size=(4, 3, 40)).astype("f4")
    np.save("x.npy", x)
    monkeypatch.setattr(
        "normcli.results.result.Result.normalized", property(lambda _: pytest.fail("it was normalized whole"))
    )
    assert normcli("draw", norm, "-i", "x.npy", "--values", "normalized", "-o", "x.svg").code == 0
    cells = read_cells(here / "x.svg")
    monkeypatch.undo()
    expected = normalize(x, norm).normalized
    assert cells == {index: expected[index] for index in cells} != {}


@costly
@pytest.mark.parametrize("scale", [None, 1, 1.5])
def test_png_has_the_size_of_the_svg_times_the_scale(scale, normcli, here):
    arguments = ["draw", "bn", "--shape", "2,3"]
    assert normcli(*arguments, "-o", "x.svg").code == 0
    assert normcli(*arguments, "-o", "x.png", *(() if scale is None else ("--scale", scale))).code == 0
    root = ET.parse("x.svg").getroot()
    size = [float(root.get(name)) * (scale or 2) for name in ("height", "width")]
    width, height = struct.unpack(">II", (here / "x.png").read_bytes()[16:24])
    assert (height, width) == pytest.approx(size, abs=1)


@pytest.mark.slow
def test_png_has_a_glyph_for_every_character_of_the_pictures():
    def paint(text: str) -> bytes:
        stream = io.BytesIO()
        write(Scene(30, 30, "", "", (Text(5, 20, text, 16),), 1), stream)
        return stream.getvalue()

    letters = set()
    for norm in NORMS:
        result = normalize(np.ones((2, 4, 3, 2)), norm, **options_for(norm, (2, 4, 3, 2)))
        stream = io.BytesIO()
        svg.write(draw([result], Tensor(result.input, "randint [0, 10), 1 – 2")), stream)
        letters |= {letter for letter in stream.getvalue().decode() if letter > "~"}
    missing = paint("\ue000")
    assert {"√", "ₚ", "‖", "ℓ", "→"} <= letters
    assert [letter for letter in sorted(letters) if paint(letter) == missing] == []


@pytest.mark.slow
def test_png_is_the_same_each_time_and_with_no_font_installed(normcli, here, monkeypatch):
    for name in ("a.png", "b.png"):
        assert normcli("draw", "bn", "--shape", "2,3", "--scale", 1, "-o", name).code == 0
        monkeypatch.setenv("FONTCONFIG_FILE", "/dev/null")
    assert (here / "a.png").read_bytes() == (here / "b.png").read_bytes()


def test_png_without_its_extra_says_how_to_get_it(normcli, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    ran = normcli("draw", "bn", "--shape", "2,3", "-o", "x.png")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "normcli: PNG needs more than is installed: pip install 'normcli[png]' (SVG needs nothing)\n"
    )
    assert os.listdir() == []


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("bn --shape 2,3 -o x.jpg", 2, "--output x.jpg has the suffix .jpg; .svg, .png are known"),
        ("bn --shape 2,3 -o no/x.svg", 2, "--output no/x.svg: there is no folder no; make it first"),
        ("bn --shape 2,3 --view cubes", 2, "--view cubes needs a file: give -o FILE.svg or FILE.png"),
        ("bn --shape 2,3 --scale 2 -o x.svg", 2, "--scale is the number of pixels"),
        ("bn --shape 2,3 --scale 900 -o x.png", 2, "more than 100,000,000; give a smaller one"),
        ("bn --shape 2,3 --full -o x.svg", 2, "--full is for the terminal"),
        ("bn --shape 2,3 --plot histogram --view flat -o x.svg", 2, "--view and --values are of groups"),
        ("bn --shape 2,3 --bins 3", 2, "add --plot histogram"),
        ("bn --shape 2,1,1,1,1,1,1,1,2 -o x.svg", 2, "at most 8 axes; the tensor has 9"),
        ("lrn --shape 2,3 --mask 1", 2, "leave out --mask"),
        ("ln --shape 2,3 --at 0,0", 2, "--at is where a dy is 1; add --backward"),
        ("ln --shape 2,3 --backward --at 9,9", 2, "--at: 9 is outside"),
        ("ln --shape 2,3 --backward --plot histogram", 2, "--backward shows dx"),
        ("minmax --shape 2,3 --backward", 2, "minmax has no backward pass"),
    ],
)
def test_bad_input_is_told_in_one_line(line, code, told, normcli, here):
    require_refusal(normcli("draw", *line.split()), code, told)
    assert os.listdir() == []


MASKED = ["--data", "[[1,2,3],[4,5,6],[7,8,100]]", "--mask", "[[1,1,1],[1,1,1],[1,1,0]]"]


def test_values_that_do_not_count_have_no_group_in_the_terminal(normcli):
    ran = normcli("draw", "bn", *MASKED)
    assert (ran.code, ran.err) == (0, "")
    assert "2: c=2    4.5   2.25" in ran.out
    assert "  0  1 -1" in ran.out
    assert ran.lines[-1] == "-1: values that do not count"


def test_values_that_do_not_count_are_grey_in_a_picture(normcli, tmp_path):
    assert normcli("draw", "bn", *MASKED, "-o", tmp_path / "x.svg").code == 0
    text = (tmp_path / "x.svg").read_text()
    assert "values that do not count" in text
    assert "Values that do not count are grey." in text
    assert 'data-group="none"' in text


def test_histograms_are_of_what_counts(normcli):
    ran = normcli(
        "draw", "bn", "--data", "[[0],[1],[1],[9]]", "--mask", "[[1],[1],[1],[0]]", "--plot", "histogram"
    )
    assert (ran.code, ran.err) == (0, "")
    assert "the highest bar: 2 values" in ran.out
    assert "3 of 4 values" in ran.out
    assert "9" not in ran.out.split("group ")[1]


REACH = ("draw", "ln", "--data", "[[1,2,3,6],[2,0,1,1]]", "--backward")


def test_what_one_dy_reaches_is_shown_with_its_dx(normcli):
    ran = normcli(*REACH, "--at", "c=1,n=0")
    assert (ran.code, ran.err) == (0, "")
    dx = backward([[1.0, 2, 3, 6]], [[0.0, 1, 0, 0]], "ln").dx[0]
    numbers = [line.split() for line in ran.lines if re.match(r" *-?\d\.\d{5}", line)]
    assert numbers[0] == [f"{value:.5f}" for value in dx]
    assert set(numbers[1]) == {"0.00000"}
    place = ran.lines.index("reach  rows n, columns c")
    assert [line.split() for line in ran.lines[place + 1 : place + 3]] == [list("1011"), list("2222")]
    assert "0: dy is 1 here: n=0 c=1" in ran.lines


def test_of_one_value_and_of_none_there_is_a_picture(normcli):
    assert "0: dy is 1 here: the only value" in normcli("draw", "ln", "--data", "3", "--backward").lines
    assert normcli("draw", "ln", "--shape", "0,3", "--backward").code == 0
