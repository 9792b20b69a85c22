"""A norm that happens on its page: its steps, and what follows from values, gamma, beta and eps that were moved."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.tensor import Tensor
from tests.page.reader import NARROW, WIDE, Stub, first, make, normal
from tests.strategies import options_for

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SEEDS = [(2, 3, 4, 4), (2, 4, 8), (4, 3, 2, 2), (2, 2, 2, 3), (2, 3, 4), (3, 4)]
"""Shapes of the tensors in the texts that people learn from."""


def calculate(values, norm, **options):
    return normalize(values, norm, **(options_for(norm, values.shape) | options))


# -- steps


def test_each_step_changes_the_numbers_in_place_and_lights_its_part_of_the_formula(read):
    reader = read(make(first()))
    x = first().astype(float)
    mean, var = (getattr(x, name)((0, 2, 3), keepdims=True) for name in ("mean", "var"))
    whole = np.ones_like(x)
    expected = [x, mean * whole, x - mean, (x - mean) ** 2, (x - mean) / np.sqrt(var + 1e-5)]
    lit = ["x", "mean", "(x − mean)", "var", " / √(var + eps)", "gamma ·  + beta"]
    heads = ["x", "mean", "x − mean", "(x − mean)²", "x̂", "x̂"]
    assert reader.page.locator("#forward").is_disabled()
    for _ in range(5):
        reader.page.click("#back")
    assert reader.page.locator("#back").is_disabled()
    for number, values in enumerate([*expected, expected[-1]]):
        np.testing.assert_allclose(reader.values("z"), values.reshape(-1), rtol=1e-13)
        assert "".join(reader.page.locator("#formula .now").all_text_contents()) == lit[number]
        assert reader.page.locator(".side-z .head").first.text_content() == heads[number]
        assert reader.page.locator("#tensor.later").count() == (number < 5)
        np.testing.assert_array_equal(reader.values("y"), reader.results[0].normalized.reshape(-1))
        if number < 5:
            reader.page.click("#forward")
    assert reader.said() == "Step 6 of 6, gamma, beta: x̂"
    reader.press("ArrowLeft", "ArrowLeft", "ArrowLeft")
    assert reader.page.locator("#chain input:checked").get_attribute("value") == "2"
    reader.press("ArrowRight")
    assert reader.page.locator("#groups th.now").all_text_contents() == ["var", "std"]


def test_a_page_opens_at_its_first_step_and_a_link_at_the_one_it_names(read):
    document = make(first())
    for link, step in (("#", 0), ("#step=last", 5), ("#step=3", 3)):
        reader = read(document, link=link)
        assert reader.page.locator("#chain input:checked").get_attribute("value") == str(step)
        assert reader.page.locator("#tensor.later").count() == (step < 5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_norm_has_its_steps(read):
    values = normal(2, 4, 3)
    results = [calculate(values, norm) for norm in NORMS]
    reader = read(Stub(results, Tensor(values, "x.npy")))
    for number, result in enumerate(results):
        reader.flip(number)
        names = reader.page.locator("#chain span").all_text_contents()
        assert names[0] == "group"
        assert "divide" in names
        assert ("gamma, beta" in names) == bool(result.plan.norm.parameter_names)
        for step in range(len(names)):
            reader.page.locator(f'#chain input[value="{step}"]').evaluate("box => box.click()")
            shown = reader.values("z")
            assert np.isfinite(shown).all()
            assert reader.page.locator("#formula .now").count() or names[step] == "gamma, beta"
        np.testing.assert_allclose(shown, result.standardized.reshape(-1), rtol=1e-13)


def test_another_norm_keeps_the_step_and_recolours_in_place(read):
    reader = read(make(first(), "bn", "in"))
    reader.page.locator('#chain input[value="1"]').evaluate("box => box.click()")
    colours = "boxes => boxes.map(box => box.getAttribute('class').match(/c\\d/)[0])"
    before = reader.page.eval_on_selector_all("#blocks [data-cell]", colours)
    reader.flip(1)
    assert reader.page.eval_on_selector_all("#blocks [data-cell]", colours) != before
    assert reader.page.locator(".side-z .head").first.text_content() == "mean"
    means = np.repeat(reader.results[1].mean.reshape(-1), 16)
    np.testing.assert_array_equal(reader.values("z"), means)


# -- what is moved


@pytest.mark.parametrize("norm", NORMS)
def test_all_that_depends_on_an_edited_value_follows(norm, read):
    values = normal(2, 4, 3, 2)
    affine = dict.fromkeys(NORMS[norm].parameter_names, 0.75)
    reader = read(make(values, norm, at=(0, 1, 1, 0), **affine))
    reader.move("x", 7.25)
    assert reader.text("#exactness").startswith("Recalculated in the browser, in double precision: 1 value of")
    edited = values.copy()
    edited[0, 1, 1, 0] = 7.25
    expected = calculate(edited, norm, **affine)
    np.testing.assert_allclose(reader.values("x"), edited.reshape(-1))
    np.testing.assert_allclose(reader.values("z"), expected.standardized.reshape(-1), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(reader.values("y"), expected.normalized.reshape(-1), rtol=1e-13, atol=1e-15)
    if expected.plan.spec.window is None:
        for name in NORMS[norm].statistics:
            told = getattr(expected, name).reshape(-1)[:24]
            np.testing.assert_allclose(reader.statistics(name), told, rtol=1e-14, atol=1e-15)
    reader.page.click("#reset")
    np.testing.assert_array_equal(reader.values("y"), reader.results[0].normalized.reshape(-1))
    np.testing.assert_array_equal(reader.values("x"), values.reshape(-1))


def test_a_gate_follows_an_edited_value(read):
    values, gate = normal(2, 4, 3), normal(3)
    reader = read(make(values, "ln", at=(0, 1, 1), gate=gate, gate_act="gelu", gamma=0.75))
    np.testing.assert_array_equal(reader.values("y"), reader.results[0].normalized.reshape(-1))
    assert "gelu(z)" in reader.text("#story")
    reader.move("x", 7.25)
    values[0, 1, 1] = 7.25
    expected = calculate(values, "ln", gate=gate, gate_act="gelu", gamma=0.75)
    np.testing.assert_allclose(reader.values("y"), expected.normalized.reshape(-1), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(reader.values("z"), expected.standardized.reshape(-1), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("p", [0, 1, 3, np.inf, -np.inf])
def test_a_length_of_any_p_follows(p, read):
    values = normal(3, 4)
    reader = read(make(values, "lp", at=(1, 2), p=p))
    reader.move("x", -6.5)
    values[1, 2] = -6.5
    np.testing.assert_allclose(reader.values(), calculate(values, "lp", p=p).normalized.reshape(-1), rtol=1e-13)


def test_groups_that_an_edit_does_not_touch_keep_their_exact_numbers(read):
    reader = read(make(normal(2, 3, dtype="float32"), "ln", at=(0, 0)))
    reader.move("x", 5)
    np.testing.assert_array_equal(reader.values("y")[3:], reader.results[0].normalized[1])


def test_the_mean_is_right_to_the_last_digits_where_it_is_large(read):
    values = 1e9 + normal(1, 50)
    reader = read(make(values, "ln", at=(0, 0)))
    reader.move("x", 1e9 + 0.5)
    values[0, 0] = 1e9 + 0.5
    expected = calculate(values, "ln")
    np.testing.assert_allclose(reader.statistics("var"), expected.var.reshape(-1), rtol=1e-14)


@pytest.mark.parametrize("norm", [norm for norm in NORMS if NORMS[norm].parameter_names])
def test_gamma_and_beta_can_be_moved_though_none_was_given(norm, read):
    values = normal(2, 4, 3, 2)
    reader = read(make(values, norm))
    names = NORMS[norm].parameter_names
    for name, value in zip(names, (1.5, -0.25), strict=False):
        reader.move(name, value)
    expected = calculate(values, norm, **dict(zip(names, (1.5, -0.25), strict=False)))
    np.testing.assert_allclose(reader.values("y"), expected.normalized.reshape(-1), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(reader.values("z"), reader.results[0].normalized.reshape(-1))
    assert "gamma · " in reader.text("#formula")


def test_the_gamma_of_the_selected_value_is_moved_alone(read):
    reader = read(make(first(), "bn", gamma=[1.0, 2.0, 3.0], at=(0, 1, 0, 0)))
    assert reader.text("#gamma-label") == "gamma[1]"
    reader.move("gamma", -1)
    expected = normalize(first(), "bn", gamma=[1.0, -1.0, 3.0]).normalized
    np.testing.assert_allclose(reader.values("y"), expected.reshape(-1), rtol=1e-13)


def test_a_value_is_edited_from_its_cell_by_keyboard(read):
    reader = read(make(first()))
    reader.cell(5).focus()
    reader.press("4", ".", "5", "Enter")
    assert reader.focused() == [5, "x"]
    assert reader.values("x")[5] == 4.5
    assert reader.cell(5).inner_text() == "4.5"
    reader.press("Enter")
    assert reader.page.evaluate("document.activeElement.id") == "x-number"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x", "", "Empty is not a number: 6 stays."),
        ("gamma", "", "Empty is not a number: 1 stays."),
        ("eps", "-1", "−1 is not a number of 0 or more: 0.00001 stays."),
    ],
)
def test_what_is_no_number_is_said_and_changes_nothing(name, text, told, read):
    reader = read(make(first(), at=(0, 0, 0, 0)))
    reader.move(name, text)
    assert reader.text(f"#{name}-error") == told
    assert reader.page.get_attribute(f"#{name}-number", "aria-invalid") == "true"
    np.testing.assert_array_equal(reader.values("y"), reader.results[0].normalized.reshape(-1))
    reader.move(name, 2)
    assert reader.page.locator(f"#{name}-error").is_hidden()


def test_values_of_a_part_or_under_given_statistics_cannot_be_edited(read):
    for document in (
        make(normal(3, 2000), "ln", at=(0, 0)),
        make([[1.0, 2], [3, 6]], at=(0, 0), running_mean=[2.0, 4.0], running_var=[1.0, 4.0]),
    ):
        assert read(document).page.locator("#knob-x").is_hidden()


# -- histograms


def test_histograms_count_the_values_before_and_after_by_group_on_one_scale(read):
    reader = read(make(first()))
    bars = reader.page.locator("#plot rect").evaluate_all(
        "bars => bars.map(b => [+b.dataset.group, +b.getAttribute('x'), +b.getAttribute('height')])"
    )
    assert {group for group, _, _ in bars} == {0, 1, 2}
    heights = np.array([height for _, _, height in bars])
    assert round(heights.sum() / heights.min()) == 2 * 96  # a value has the same height on both sides
    ticks = reader.page.locator("#plot text:not(.name)").all_text_contents()
    assert ticks == ["0", "5"]
    assert reader.page.locator("#plot .zero").count() == 2
    assert reader.page.locator("#plot .mark").count() == 6


# -- the link


def test_a_link_keeps_the_state(read, save):
    document = make(first(), "bn", "ln")
    reader = read(document)
    reader.flip(1)
    reader.page.locator('#chain input[value="2"]').evaluate("box => box.click()")
    reader.cell(5).click()
    reader.move("x", 7.5)
    reader.move("eps", 0.5)
    reader.move("gamma", 2)
    reader.page.wait_for_url("**gamma1=1:2")
    link = reader.page.evaluate("location.hash")
    assert link == "#at=0,0,1,1&x=5:7.5&norm=1&step=2&eps1=0.5&gamma1=1:2"
    y, z = reader.values("y"), reader.values("z")
    again = read(document, link=link)
    np.testing.assert_array_equal(again.values("y"), y)
    np.testing.assert_array_equal(again.values("z"), z)
    assert again.page.locator("#norms input:checked").get_attribute("value") == "1"
    assert "n=0 c=0 h=1 w=1" in again.text("#story")


@pytest.mark.parametrize(
    "link",
    ["#", "#nonsense", "#norm=7&step=99&at=9,9,9,9&x=500:1,a:b&eps0=-1&gamma0=9:9", "#at=1&x=1:nan", "#%"],
)
def test_what_a_link_says_amiss_is_left_out(link, read):
    reader = read(make(first()), link=link)
    np.testing.assert_array_equal(reader.values("y"), reader.results[0].normalized.reshape(-1))
    assert reader.lit() == []
    assert reader.text("#exactness").startswith("Exact")


# -- one screen, and small ones


@pytest.mark.parametrize("screen", [WIDE, {"width": 1200, "height": 768}], ids=["1280", "1200"])
@pytest.mark.parametrize("shape", SEEDS, ids=str)
def test_the_tensors_of_the_texts_are_on_one_screen(shape, screen, read):
    reader = read(make(generate(Recipe(shape)).values, "bn" if len(shape) > 2 else "ln"), screen)
    box = reader.page.locator("#tensor").bounding_box()
    assert reader.page.locator("#tensor.more, #groups .more, #groups.more").count() == 0
    assert box["x"] + box["width"] <= screen["width"]
    assert box["y"] + box["height"] <= screen["height"]
    for part in ("#blocks", "#knobs", "#groups", "#story", "#formula"):
        assert reader.page.locator(part).bounding_box()["y"] < screen["height"]


def test_matrices_too_wide_for_the_screen_stand_one_above_the_other_unless_they_are_long(read):
    reader = read(make(normal(2, 3, 6), "ln"))
    assert reader.page.locator("#tensor.stacked:not(.more)").count() == 1
    assert not read(make(normal(2, 13, 6), "ln")).page.locator("#tensor.stacked").count()


def test_the_panel_of_a_small_screen_covers_a_quarter_at_most_and_can_be_closed(read):
    reader = read(make(first(), at=(0, 0, 0, 0)), NARROW)
    assert reader.page.locator("#story").bounding_box()["height"] <= NARROW["height"] / 4
    reader.page.click("#fold")
    assert reader.page.locator("#story").bounding_box()["height"] < 70
    assert reader.page.get_attribute("#fold", "aria-expanded") == "false"
    reader.page.click("#fold")
    assert reader.page.locator("#arithmetic").is_visible()


def test_tables_that_are_cut_off_say_so_until_they_are_scrolled(read):
    reader = read(make(normal(2, 13, 4)), NARROW)
    assert reader.page.locator("#tensor.more").count() == 1
    reader.page.evaluate("document.querySelector('#tensor').scrollLeft = 9999")
    reader.page.wait_for_selector("#tensor:not(.more)")
    assert reader.cell(3, "y").is_visible()
