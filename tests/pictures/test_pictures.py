"""Pictures, read back: their values, colours, texts and places."""

from __future__ import annotations

import io
import itertools
import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.documents.excerpt import MOST_CELLS, MOST_COLOURS, choose_drawn
from normcli.documents.palette import HATCHES, PALETTE, choose_look
from normcli.documents.scene import measure_text, wrap
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule
from normcli.pictures import Options
from normcli.pictures.cubes import Cubes
from normcli.pictures.draw import draw
from normcli.pictures.svg import DARK, LIGHT, write
from normcli.results.calculate import calculate
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.tensor import Tensor
from tests.conftest import hold_snapshot
from tests.marks import sampled, slowly

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = [
    (), (1,), (10,), (123456,), (2, 3), (40, 50), (2, 3, 4), (2, 4, 4, 4), (3, 64, 20, 17), (2, 4, 2, 2, 2),
    (2, 2, 2, 2, 2, 2), (1, 2, 1, 2, 1, 2, 1, 3), (12345, 2, 2, 1, 1), (0, 4), (2, 4, 0),
]  # fmt: skip
COMMON, LARGE = (2, 4, 4, 4), (3, 64, 20, 17)
OF_EACH_KIND = ("bn", "ln", "gn", "lrn")
"""Groups over all axes but one, over the last, over parts of an axis, and windows."""
VIEWS = ("both", "cubes", "flat", "drawers")


class Piece(NamedTuple):
    """An element where it lies on the page: its box is known for texts and rectangles."""

    element: ET.Element
    x: float
    y: float


def has_groups(norm: str) -> bool:
    return NORMS[norm].axes is AxesRule.CHANNEL_GROUPS


def make(norm: str, shape, values=None, **options):
    """Return a result and the tensor it is of; a norm that has groups of channels gets two."""
    if has_groups(norm):
        options = {"groups": 2, **options}
    tensor = generate(Recipe(shape)) if values is None else Tensor(np.asarray(values), "typed in place")
    return normalize(tensor.values, norm, **options), tensor


def fits(norm: str, shape) -> bool:
    """Whether a norm takes a shape (a window or a group needs a channel)."""
    try:
        make_plan(Request(norm, groups=2 if has_groups(norm) else None), shape, np.dtype(np.float32))
    except UsageError:
        return False
    return True


def spell(scene) -> bytes:
    stream = io.BytesIO()
    write(scene, stream)
    return stream.getvalue()


def paint(norm, shape, options=None, **settings) -> ET.Element:
    result, tensor = make(norm, shape, **settings)
    return ET.fromstring(spell(draw([result], tensor, options)))


def walk(element, x=0.0, y=0.0):
    """Yield all elements with their place on the page."""
    moved = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    if element.tag in (f"{SVG}defs", f"{SVG}style"):
        return
    yield Piece(element, x, y)
    for child in element:
        yield from walk(child, x, y)


def cells(root):
    return [e for e in root.iter(f"{SVG}g") if e.get("class") == "cell"]


def swatches(root):
    return [e for e in root.iter() if e.get("data-swatch")]


def paint_of(element) -> str:
    """Return what an element is filled with, whether a colour, a pattern or a class."""
    return element.get("fill") or element.get("class")


def box(piece: Piece):
    """Return left, top, right, bottom of a text."""
    e = piece.element
    mono, bold = "mono" in e.get("class"), "bold" in e.get("class")
    size = float(e.get("font-size"))
    width = measure_text(e.text, size, mono=mono, bold=bold)
    before = {"start": 0, "middle": width / 2, "end": width}[e.get("text-anchor", "start")]
    if e.get("transform"):
        return piece.x - size * 0.75, piece.y - width + before, piece.x + size * 0.2, piece.y + before
    x, y = piece.x + float(e.get("x")) - before, piece.y + float(e.get("y"))
    return x, y - size * 0.75, x + width, y + size * 0.2


def quickly(cases):
    """Leave the quick loop every norm of one shape, and a norm of each kind of a shape that is cut."""
    return [
        case
        if case.values[1] == COMMON or (case.values[0] in OF_EACH_KIND and case.values[1] == LARGE)
        else slowly([case])[0]
        for case in cases
    ]


EVERY = quickly(
    pytest.param(norm, shape, id=f"{norm}-{'x'.join(map(str, shape)) or '0d'}")
    for norm in NORMS
    for shape in SHAPES
    if (norm in OF_EACH_KIND or shape in (COMMON, LARGE)) and fits(norm, shape)
)
"""Every norm of two shapes, and every shape with a norm of each kind."""


ELSE = quickly(
    pytest.param("ln", shape, options, id=f"{options[0]}-{shape}")
    for options in (Options(view="drawers"), Options(plot="histogram"), Options(values="y", digits=17))
    for shape in SHAPES
)


@sampled
@pytest.mark.parametrize(
    ("norm", "shape", "options"),
    [*(pytest.param(*case.values, None, id=case.id, marks=case.marks) for case in EVERY), *ELSE],
)
def test_all_lies_within_the_view_and_no_text_on_another(norm, shape, options):
    root = paint(norm, shape, options)
    drawn = [(find_edges(piece), piece.element) for piece in walk(root)]
    width, height = map(float, root.get("viewBox").split()[2:])
    for edges, element in drawn:
        if edges is not None:
            assert np.isfinite(edges).all()
            assert (np.array(edges) >= 0).all(), element.text or element.get("d")
            assert (np.array(edges) <= (width + 0.01, height + 0.01) * 2).all(), element.text or element.get(
                "d"
            )
    texts = [element.text for _, element in drawn if element.tag == f"{SVG}text"]
    boxes = np.array([edges for edges, element in drawn if element.tag == f"{SVG}text"])
    for i, (left, top, right, bottom) in enumerate(boxes):
        rest = boxes[i + 1 :]
        meets = (rest[:, 0] < right) & (rest[:, 2] > left) & (rest[:, 1] < bottom) & (rest[:, 3] > top)
        assert not meets.any(), (texts[i], texts[i + 1 + int(np.argmax(meets))])


def find_edges(piece: Piece):
    """Return left, top, right and bottom of what is drawn; None of an element that only holds others."""
    e = piece.element
    if e.tag == f"{SVG}text":
        return box(piece)
    if e.tag == f"{SVG}rect":
        x, y = piece.x + float(e.get("x", "0")), piece.y + float(e.get("y", "0"))
        return x, y, x + float(e.get("width")), y + float(e.get("height"))
    if e.tag == f"{SVG}path":
        places = np.array([float(n) for n in re.findall(r"-?[\d.]+", e.get("d"))]).reshape(-1, 2)
        places += (piece.x, piece.y)
        return *places.min(axis=0), *places.max(axis=0)
    return None


@pytest.mark.parametrize("values", ["y", "xhat", "input", "none"])
@pytest.mark.parametrize(("norm", "shape"), [(norm, COMMON) for norm in OF_EACH_KIND])
def test_any_values_that_are_shown_are_those_of_the_result(norm, shape, values):
    result, tensor = make(norm, shape)
    compare_cells(result, ET.fromstring(spell(draw([result], tensor, Options(values=values)))), values)


@pytest.mark.slow
@sampled
@pytest.mark.parametrize(("norm", "shape"), EVERY)
def test_values_and_legend_are_the_results_to_the_last_bit(norm, shape):
    result, tensor = make(norm, shape)
    root = ET.fromstring(spell(draw([result], tensor, Options(values="y"))))
    compare_cells(result, root, "y")
    entries = [e for e in root.iter(f"{SVG}g") if e.get("class") == "entry"]
    if result.plan.spec.window is None:
        assert bool(entries) == bool(result.input.size)
        for entry in entries:
            compare_entry(result, entry)


def compare_cells(result, root, values):
    array = {"y": result.normalized, "xhat": result.standardized}.get(values, result.input)
    found = cells(root)
    assert bool(found) == bool(array.size)
    for cell in found:
        index = tuple(int(i) for i in cell.get("data-index").split(",") if i)
        assert float(cell.get("data-value")) == float(array[index])
        if result.plan.spec.window is None:
            group = int(result.plan.grid.locate_groups([np.array([i]) for i in index]).reshape(-1)[0])
            assert cell.get("data-group") == str(group)


def compare_entry(result, entry):
    swatch, name, *stated = entry
    group = int(swatch.get("data-group"))
    assert name.text == result.plan.grid.group_name(group)
    for text, statistic in zip(stated, list(result.statistics)[:2], strict=True):
        expected = float(result.statistics[statistic].reshape(-1)[group])
        assert float(text.text) == pytest.approx(expected, rel=1e-7, nan_ok=True)


@pytest.mark.slow
@sampled
@pytest.mark.parametrize(("norm", "shape"), EVERY)
@pytest.mark.parametrize("view", VIEWS)
def test_the_legend_has_the_colour_of_every_group_that_is_shown_exactly_once(view, norm, shape):
    result, tensor = make(norm, shape)
    root = ET.fromstring(spell(draw([result], tensor, Options(view=view))))
    key = "data-group" if result.plan.spec.window is None else "data-part"
    legend = {s.get(key): paint_of(s) for s in swatches(root)}
    assert len(legend) == len(swatches(root)) == len(set(legend.values()))
    shown = {
        cell.get(key): {paint_of(child) for child in cell if child.tag != f"{SVG}text"} for cell in cells(root)
    }
    assert {owner: {colour} for owner, colour in legend.items()} == shown


@pytest.mark.parametrize("view", VIEWS)
def test_the_file_is_self_contained_and_speaks_to_screen_readers(view):
    result, tensor = make("bn", (2, 3, 4, 4))
    text = spell(draw([result], tensor, Options(view=view)))
    root = ET.fromstring(text)
    assert root.get("role") == "img"
    identifiers = {e.get("id"): e for e in root.iter() if e.get("id")}
    title, description = (identifiers[name] for name in root.get("aria-labelledby").split())
    assert (title.tag, title.text) == (f"{SVG}title", "Batch normalization of a tensor of shape (2, 3, 4, 4)")
    assert "c=0: mean 4.65625, var 6.1005859" in description.text
    assert b"<script" not in text
    assert set(re.findall(rb"https?://[^\"<]+", text)) == {b"http://www.w3.org/2000/svg"}
    assert not re.search(rb"(href|src)=|@import|@font-face|url\((?!#)", text)
    assert b"@media (prefers-color-scheme:dark)" in text


def test_a_name_from_outside_is_escaped():
    result, tensor = make("ln", (2, 2))
    root = ET.fromstring(spell(draw([result], Tensor(tensor.values, '<b>&"\x1b.npy'))))
    assert any('<b>&"\\x1b.npy' in (e.text or "") for e in root.iter(f"{SVG}text"))


def test_the_bytes_are_the_same_on_every_machine():
    result, tensor = make("bn", (2, 3))
    hold_snapshot("draw-bn-2x3.svg", spell(draw([result], tensor)).decode())


def test_columns_that_have_names_are_named_in_the_legend():
    tensor = generate(Recipe((4, 2)))
    plan = make_plan(Request("zscore"), (4, 2), tensor.values.dtype, ("length", "width"))
    root = ET.fromstring(spell(draw([calculate(plan, tensor.values)], tensor)))
    names = [entry[1].text for entry in root.iter(f"{SVG}g") if entry.get("class") == "entry"]
    assert names == ["c=0 length", "c=1 width"]


@pytest.mark.slow
@sampled
@pytest.mark.parametrize("norm", [*OF_EACH_KIND, *slowly(norm for norm in NORMS if norm not in OF_EACH_KIND)])
@pytest.mark.parametrize("view", [VIEWS[1], *slowly(VIEWS[2:])])
def test_large_tensors_are_cut_with_the_number_of_what_is_left_out(norm, view):
    result, tensor = make(norm, (8, 64, 16, 16))
    text = spell(draw([result], tensor, Options(view=view)))
    root = ET.fromstring(text)
    words = [e.text for e in root.iter(f"{SVG}text")]
    indices = {tuple(map(int, cell.get("data-index").split(","))) for cell in cells(root)}
    channels = len({index[1] for index in indices})
    assert channels < 64
    assert (f"… {64 - channels} more" if view == "cubes" else f"… {64 - channels} more c …") in words
    assert len(text) < 200_000
    assert len(swatches(root)) <= MOST_COLOURS
    if view != "cubes":
        assert any(f"{len(indices)} of 131,072 values" in word for word in words)


@pytest.mark.parametrize(("norm", "shape"), EVERY)
def test_what_is_shown_is_bounded(norm, shape):
    plan = make(norm, shape)[0].plan
    shown = choose_drawn(plan)
    assert np.prod([p.size for p in shown]) <= MOST_CELLS
    for positions, length in zip(shown, shape, strict=True):
        assert sorted(set(positions.shown)) == list(positions.shown)
        assert all(0 <= i < length for i in positions.shown)
        assert (positions.gap is not None) == (positions.size < length)


@pytest.mark.parametrize(
    ("layout", "axes", "labels"),
    [
        pytest.param("NCHW", (2, 3, 4, 5), ["C = 3", "N = 2", "H×W = 4×5 = 20"], id="channels first"),
        pytest.param("BND", (2, 3, 4), ["D = 4", "B = 2", "N = 3"], id="words"),
        pytest.param(None, (10,), ["axis0 = 10"], id="one axis"),
    ],
)
def test_the_axes_of_the_cubes_are_labelled_with_letter_and_size(layout, axes, labels):
    root = paint("ln", axes, Options(view="cubes"), layout=layout)
    bold = [e.text for e in root.iter(f"{SVG}text") if "bold" in e.get("class")]
    assert bold[1:] == labels


def test_the_cubes_that_face_the_viewer_are_drawn_and_no_others():
    plan = make("bn", (3, 4, 5))[0].plan
    seen = set(Cubes(plan, choose_drawn(plan)).cells)
    assert seen == {
        (n, c, h) for n in range(3) for c in range(4) for h in range(5) if n == 0 or c == 3 or h == 0
    }


def test_gaps_open_faces_that_nothing_hides():
    plan = make("bn", (2, 64, 2))[0].plan
    cubes = Cubes(plan, choose_drawn(plan))
    right = cubes.edges[0]
    before = right.shown.shown[right.shown.gap - 1]
    assert (1, before, 1) in set(cubes.cells)


def test_a_window_is_shown_of_one_value_and_said_to_be():
    root = paint("lrn", (2, 9, 3, 3))
    parts = {}
    for cell in cells(root):
        parts.setdefault(cell.get("data-part"), set()).add(cell.get("data-index"))
    assert parts["value"] == {"0,4,0,0"}
    assert parts["window"] == {f"0,{c},0,0" for c in (2, 3, 5, 6)}
    description = root.find(f"{SVG}desc").text
    assert "shown is that of n=0 c=4 h=0 w=0: its window: c=2…6. All other values are grey." in description


def test_long_numbers_fit_their_cells():
    root = paint("ln", (2, 2), Options(view="flat"), values=[[1e-300, -12345.678901], [2.0, 3e200]])
    for cell in cells(root):
        rect, text = cell
        assert box(Piece(text, 0, 0))[0] >= float(rect.get("x"))
        assert box(Piece(text, 0, 0))[2] <= float(rect.get("x")) + float(rect.get("width"))


@pytest.mark.parametrize(
    ("values", "options", "held", "written"),
    [
        ([[np.nan, np.inf, -np.inf]], {}, ["nan", "inf", "-inf"], ["nan", "inf", "-inf"]),
        ([[1.23456, 2.0]], {"digits": 2}, ["1.23456", "2.0"], ["1.2", "2.0"]),
        (np.array([[0, 1]], "u1"), {}, ["0", "1"], ["0", "1"]),
        (np.array([[0, 1]], "bool"), {}, ["0", "1"], ["0", "1"]),
        (np.array([[0, 1]], ml_dtypes.bfloat16), {}, ["0.0", "1.0"], ["0", "1"]),
    ],
    ids=["not finite", "digits", "bytes", "booleans", "bfloat16"],
)
def test_values_are_held_as_they_are_and_written_with_the_digits_asked_for(values, options, held, written):
    drawn = cells(paint("ln", (), Options(view="flat", **options), values=values))
    assert [cell.get("data-value") for cell in drawn] == held
    assert [cell[1].text for cell in drawn] == written


@pytest.mark.parametrize(
    ("count", "beside"), [pytest.param(2, True, id="two"), pytest.param(4, False, id="four")]
)
def test_words_stand_beside_the_blocks_where_that_is_nearer_to_a_slide(count, beside):
    norms = [make(norm, (2, 3, 4, 4)) for norm in ("bn", "in", "ln", "rms")[:count]]
    scene = draw([result for result, _ in norms], norms[0][1])
    pieces = list(walk(ET.fromstring(spell(scene))))
    title, caption = (
        next(p for p in pieces if p.element.text == text) for text in ("bn", "C = 3 to the right")
    )
    assert (title.x < caption.x) == beside
    assert 1 < scene.width / scene.height < 2.2


def test_too_many_results_are_refused():
    result, tensor = make("bn", (2, 2))
    with pytest.raises(UsageError, match="at most 12 norms"):
        draw([result] * 13, tensor)


def test_an_empty_tensor_is_said_to_be_empty():
    assert any("no values" in e.text for e in paint("bn", (0, 3)).iter(f"{SVG}text"))


@pytest.mark.parametrize("norm", NORMS)
def test_histograms_count_every_value_of_a_group(norm):
    result, tensor = make(norm, (2, 4, 4, 4))
    root = ET.fromstring(spell(draw([result], tensor, Options(plot="histogram"))))
    plots = [e for e in root.iter(f"{SVG}g") if e.get("class") == "histogram"]
    assert plots
    for plot in plots:
        values = result.input if plot.get("data-plot") == "input" else result.normalized
        if result.plan.spec.window is None:
            group = int(plot.get("data-group"))
            values = values.reshape(result.plan.grid.view_shape)[result.plan.grid.select_group(group)]
        flat = values.astype(np.float64).reshape(-1)
        bars = [e for e in plot if e.get("class") == "cell"]
        edges = [float(bar.get("data-low")) for bar in bars] + [float(bars[-1].get("data-high"))]
        expected, _ = np.histogram(flat, edges)
        assert [int(bar.get("data-count")) for bar in bars] == expected.tolist()
        assert expected.sum() == flat.size
    heights = {e: float(e[0].get("height")) for plot in plots for e in plot if e.get("class") == "cell"}
    assert all((height > 0) == (e.get("data-count") != "0") for e, height in heights.items())


def test_histograms_far_apart_have_each_a_scale_below():
    root = paint("bn", (), Options(plot="histogram", bins=4, log=True), values=[[0, 0], [1, 500], [2, 900]])
    ticks = [e.text for e in root.iter(f"{SVG}text") if e.get("class") == "muted mono"]
    assert {"0.5", "800"} <= set(ticks)
    assert sum(e.get("class") == "cell" for e in root.iter(f"{SVG}g")) == 16
    assert any("logarithms" in (e.text or "") for e in root.iter(f"{SVG}text"))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([[1.0, np.nan, np.inf, 2.0]], id="not finite"),
        pytest.param([[np.nan, np.nan]], id="none finite"),
        pytest.param([[5.0, 5.0]], id="constant"),
        pytest.param([[-1.7e308, 1.7e308]], id="as wide as can be"),
        pytest.param([[1e-300, 3e200]], id="long"),
    ],
)
def test_histograms_of_odd_values_say_what_is_in_no_bin(values):
    with np.errstate(all="ignore"):
        root = paint("ln", (), Options(plot="histogram"), values=values)
    plot = next(e for e in root.iter(f"{SVG}g") if e.get("class") == "histogram")
    counted = sum(int(e.get("data-count")) for e in plot if e.get("class") == "cell")
    others = sum(not np.isfinite(value) for value in values[0])
    assert counted == len(values[0]) - others
    assert any(f"not finite {others}" in (e.text or "") for e in plot) == bool(others)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


LOOKS = [choose_look(number) for number in range(len(PALETTE) * len(HATCHES))]


def test_looks_are_distinct_and_the_first_are_the_palette():
    assert len({(look.ground, look.hatch) for look in LOOKS}) == len(LOOKS)
    assert [(look.ground, look.text) for look in LOOKS[: len(PALETTE)]] == list(PALETTE)
    assert all(one.ground != other.ground for one, other in itertools.pairwise(LOOKS))


def test_text_on_a_colour_and_on_its_hatching_is_readable():
    shown = LOOKS[: 2 * MOST_COLOURS]
    grounds = [(look, ground) for look in shown for ground in (look.ground, look.lines)]
    assert [look for look, ground in grounds if contrast(look.text, ground) < 4.5] == []


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "frame", "frame2", "neutral"])
def test_text_on_the_paper_is_readable(colours, ground):
    assert contrast(colours["ink"], colours[ground]) >= 7
    if ground != "neutral":
        assert contrast(colours["muted"], colours[ground]) >= 4.5


def test_facts_are_wrapped_between_and_within():
    assert wrap(["a b", "c d"], 10, 10_000) == ["a b   c d"]
    assert wrap(["a b", "c d"], 10, measure_text("c d", 10) + 1) == ["a b", "c d"]
    assert wrap(["a b c"], 10, measure_text("a b", 10) + 1) == ["a b", "c"]


@pytest.mark.parametrize("shape", [(4, 6, 2, 3, 3), (3, 40, 5), (12, 2, 9, 9)])
def test_blocks_of_a_comparison_are_broken_alike(shape):
    plans = [make_plan(Request(norm), shape, np.dtype("f8")) for norm in ("bn", "in", "ln")]
    shown = choose_drawn(*plans)
    edges = [[edge.shown for edge in Cubes(plan, shown, plans).edges] for plan in plans]
    assert edges[0] == edges[1] == edges[2]
    assert any(positions.gap is not None for positions in edges[0])


@pytest.mark.slow
def test_a_long_legend_makes_no_gap_between_blocks():
    results = [normalize(np.zeros((4, 6, 2, 3, 3)), norm) for norm in ("ln", "bn")]
    alone, both = (
        draw(some, Tensor(results[0].input, "x"), Options(view="cubes")) for some in (results[1:], results)
    )
    assert both.width < 3 * alone.width


@pytest.mark.parametrize(
    ("shape", "beside"), [pytest.param((2, 3, 4), False, id="low"), pytest.param((2, 3, 4, 4), True, id="high")]
)
def test_drawers_that_would_stand_too_high_are_set_beside_each_other(shape, beside):
    root = paint("bn", shape, Options(view="drawers"))
    first, second = (next(p for p in walk(root) if p.element.text == name) for name in ("n=0", "n=1"))
    assert (first.x < second.x, first.y < second.y) == (beside, not beside)


def test_histograms_mark_zero_mean_and_deviation_below_round_ticks():
    root = paint("bn", (2, 2, 6, 6), Options(plot="histogram"))
    plots = [e for e in root.iter(f"{SVG}g") if e.get("class") == "histogram"]
    for plot in plots:
        marks = {e.get("data-mark") for e in plot.iter(f"{SVG}g") if e.get("class") == "mark"}
        assert marks == {"mean", "−σ", "+σ"}
        assert any(e.get("class") == "gap" for e in plot.iter(f"{SVG}path")), "at zero"
    texts = {e.text for e in root.iter(f"{SVG}text")}
    assert {"0", "2", "4", "6", "8"} <= texts
