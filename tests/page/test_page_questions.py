"""What a page opens on, its questions, and norms beside each other, in headless Chromium."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.language import choose_language
from tests.page.reader import NARROW, WIDE, first, make, normal

pytestmark = [
    pytest.mark.browser,
    # What the driver itself warns of when it is imported is its own.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

LARGE = {"width": 1920, "height": 1080}


def ask(reader):
    """Answer each question until the answer is right: a question, and what is told then."""
    told = {}
    for question in reader.page.locator(".question").all():
        for button in question.locator("button").all():
            button.click()
            if "right" in (button.get_attribute("class") or ""):
                break
        told[question.locator("p").first.inner_text()] = question.locator(".told").inner_text()
    return told


def test_a_page_opens_on_the_arithmetic_of_its_first_value(read):
    reader = read(make(first()), link="#")
    assert reader.text("#chosen") == "n=0 c=0 h=0 w=0: 6 → 0.5440419"
    assert reader.steps()[0][2] == ["= (6 + 3 + 7 + … + 9) / 32", "= 149 / 32", "= 4.65625"]
    assert reader.page.locator("#tensor .chosen:visible").count() == 2
    assert reader.lit() == []


@pytest.mark.parametrize("viewport", [WIDE, NARROW])
def test_the_first_step_shows_the_input_once(viewport, read):
    reader = read(make(first()), viewport, link="#")
    assert not reader.page.locator(".side-z").first.is_visible()
    reader.cell(3).focus()
    reader.press("ArrowDown" if viewport is NARROW else "ArrowRight")
    reader.page.locator("#forward").click()
    assert reader.page.locator(".side-z").first.is_visible()


def test_five_questions_are_answered_by_the_numbers(read):
    reader = read(make(first()))
    assert ask(reader) == {
        "n=0 c=0 h=0 w=0 has mean 4.6563. Which value shares it?": "Yes. n=0 c=0 h=0 w=0 and n=1 c=0 h=0 w=0 "
        "are in group c=0, of 32 values.",
        "x at n=0 c=0 h=0 w=0 doubles, from 6 to 12. What becomes of y at n=0 c=0 h=0 w=0?": "Yes. y at "
        "n=0 c=0 h=0 w=0 goes from 0.54404 to 2.5799.",
        "Which norm has these groups?": "Yes. layer normalization: reduces W = 4 · keeps N×C×H = 2×3×4 · "
        "nchw → nch1 · 24 groups × 4",
        "x at n=1 c=0 h=0 w=0 becomes 18 larger. What becomes of y at n=0 c=0 h=0 w=0?": "Yes. y at "
        "n=0 c=0 h=0 w=0 goes from 0.54404 to 0.18718.",
        "10 is added to every x of group c=0. What becomes of y at n=0 c=0 h=0 w=0?": "Yes. y at "
        "n=0 c=0 h=0 w=0 stays 0.54404.",
    }
    doubled = first()
    doubled[0, 0, 0, 0] = 12
    assert f"{normalize(doubled, 'bn').normalized[0, 0, 0, 0]:.4f}" == "2.5799"
    assert reader.values("x").tolist() == first().reshape(-1).tolist(), "x is put back"


def test_the_batch_matters_to_the_answer_as_it_does_to_the_norm(read):
    reader = read(make(normal(3, 4), "bn", "ln"))
    far = next(text for question, text in ask(reader).items() if "larger" in question)
    assert "goes from" in far
    reader.flip(1)
    far = next(text for question, text in ask(reader).items() if "larger" in question)
    assert "stays" in far


def test_a_wrong_answer_is_told_to_be_wrong_and_others_can_be_asked_for(read):
    reader = read(make(first()))
    question = reader.page.locator(".question").nth(1)
    question.locator("button").nth(2).click()
    assert question.locator(".told").inner_text().startswith("No. y at")
    reader.page.locator("#others").click()
    assert "n=0 c=0 h=1 w=1 halves" in reader.page.locator(".question").nth(1).inner_text()
    assert "instance normalization" in ask(reader)["Which norm has these groups?"]


def test_the_answers_differ_from_round_to_round(read):
    """That x doubles always had the answer that y rises, that 10 is added that it stays."""
    reader = read(make(first(), "bn"))
    told = []
    for _ in range(3):
        told.append(ask(reader))
        reader.page.locator("#others").click()
    ways = [
        [answer.count("stays") for question, answer in asked.items() if "every x" in question] for asked in told
    ]
    assert ways == [[1], [0], [0]]
    pictures = [asked["Which norm has these groups?"].split(":")[0] for asked in told]
    assert pictures[0] != "Yes. batch normalization"
    assert len({*pictures}) == 3


@pytest.mark.parametrize(
    ("values", "norm", "most"),
    [
        pytest.param([1.0, 2.0, 6.0], "ln", 5, id="one axis"),
        pytest.param([[np.nan, np.nan]], "ln", 1, id="not finite"),
        pytest.param(np.zeros((2, 3)), "ln", 1, id="zeros"),
        pytest.param(np.zeros((0, 3)), "bn", 0, id="no values"),
        pytest.param(normal(2, 3, 2, 2), "lrn", 5, id="windows"),
        pytest.param(normal(64, 32, 12, 12), "bn", 3, id="a part of a large tensor"),
    ],
)
def test_only_what_can_be_told_is_asked(values, norm, most, read):
    reader = read(make(values, norm))
    assert len(ask(reader)) == most
    assert reader.complaints == []


def test_in_a_wide_window_another_norm_stands_beside_with_its_own_group_lit(read):
    reader = read(make(first(), "bn", "ln", "in"), LARGE, link="#")
    reader.page.locator("#forward").click()
    assert reader.page.locator(".side-o .head").first.inner_text() == "ln: mean"
    reader.cell(0).hover()
    assert len(reader.lit("x")) == 32
    assert reader.lit("o") == [0, 1, 2, 3]
    lit = reader.page.eval_on_selector_all("#beside .lit", "boxes => boxes.map(box => +box.dataset.cell)")
    assert set(lit) <= {0, 1, 2, 3}
    means = reader.values("o").reshape(24, 4)
    np.testing.assert_allclose(means[:, 0], first().mean(axis=-1).reshape(-1))
    reader.flip(2)
    assert reader.page.locator(".side-o .head").first.inner_text() == "bn: mean", (
        "the norm that was shown before"
    )
    reader.page.set_viewport_size(WIDE)
    assert not reader.page.locator(".side-o").first.is_visible()
    assert not reader.overflows()


def test_chinese_names_stand_beside_those_of_the_formula(read):
    choose_language("zh")
    try:
        reader = read(make(first()))
    finally:
        choose_language("en")
    assert [name for name, *_ in reader.steps()[:4]] == ["均值 mean", "方差 var", "var + eps", "除数 divisor"]
    assert reader.text("#groups thead") == "组 n 均值 mean 方差 var 标准差 std rstd"
    assert "哪种归一化是这样分组的？" in ask(reader)
