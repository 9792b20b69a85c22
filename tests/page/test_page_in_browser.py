"""Pages as a reader uses them, in headless Chromium. Needs the [browser] extra; NORMCLI_REQUIRE_BROWSER=1 skips nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.norms.conventions import find_convention, list_frameworks
from normcli.norms.options import find_option
from normcli.norms.rules import AxesRule, Centre, EpsRule
from normcli.tensors.tensor import Tensor
from tests.page.reader import NARROW, WIDE, Stub, first, make, normal, owners
from tests.strategies import options_for
from tests.teach.printed import check_true

pytestmark = [
    pytest.mark.browser,
    # What the driver itself warns of when it is imported is its own.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

DTYPES = ("float64", "float32", "int64")
EACH = [pytest.param(norm, DTYPES[n % 3], id=f"{norm} {DTYPES[n % 3]}") for n, norm in enumerate(NORMS)]


# -- lighting


@pytest.mark.parametrize("norm", [norm for norm in NORMS if not find_option("size").belongs_to(NORMS[norm])])
def test_moving_over_a_cell_lights_exactly_its_group(norm, read):
    reader = read(make(normal(2, 4, 3, 2), norm))
    group = owners(reader.results[0])
    for cell in (0, 17, 47):
        reader.cell(cell).hover()
        expected = np.flatnonzero(group == group[cell]).tolist()
        assert sorted(reader.lit("x")) == sorted(reader.lit("z")) == sorted(reader.lit("y")) == expected
        assert reader.page.locator("#tensor .chosen").count() == 3
        seen = reader.page.eval_on_selector_all("#blocks .lit", "boxes => boxes.map(box => +box.dataset.cell)")
        assert set(seen) <= set(expected)
    reader.page.mouse.move(1, 1)
    assert reader.lit() == []


def test_a_window_is_lit_where_the_tensor_has_it(read):
    reader = read(make(normal(1, 6, 1, 2), "lrn", size=3))
    for cell, expected in ((0, [0, 2]), (5, [3, 5, 7]), (11, [9, 11])):
        reader.cell(cell).hover()
        assert sorted(reader.lit()) == expected
        assert f"n = {len(expected)} values" in reader.text("#story")


def test_what_is_lit_keeps_its_colour_and_the_rest_loses_it(read):
    reader = read(make(first()))
    style = "box => getComputedStyle(box).backgroundColor"
    before = reader.cell(40).evaluate(style)
    reader.cell(0).hover()
    assert reader.cell(1).evaluate(style) == "rgb(86, 180, 233)"
    assert before == "rgb(0, 158, 115)"
    assert reader.cell(40).evaluate(style) != before


def test_a_group_is_lit_from_the_cubes_and_from_the_table_too(read):
    reader = read(make(first()))
    reader.page.locator('#blocks [data-cell="32"]').first.hover()
    assert sorted(reader.lit()) == [*range(32, 48), *range(80, 96)]
    reader.page.locator('#groups tr[data-group="1"] td').first.hover()
    assert sorted(reader.lit("z")) == [*range(16, 32), *range(64, 80)]
    reader.page.locator('#plot rect[data-group="0"]').first.dispatch_event("pointerover")
    assert sorted(reader.lit("y")) == [*range(16), *range(48, 64)]


@pytest.mark.parametrize(
    ("norm", "shape", "marked"),
    [
        pytest.param("bn", (2, 3, 2, 2), "figcaption", id="a matrix"),
        pytest.param("ln", (2, 3), 'th[scope="row"]', id="a row"),
        pytest.param("zscore", (2, 3), 'th[scope="col"]', id="a column"),
        pytest.param("gn", (2, 4), "td", id="cells"),
    ],
)
def test_groups_are_marked_without_colour_beside_the_numbers(norm, shape, marked, read):
    reader = read(make(normal(*shape), norm))
    group = reader.results[0].plan.grid.group_name(int(owners(reader.results[0])[1]))
    assert reader.cell(1).get_attribute("aria-label").endswith(f"group {group}")
    touching = reader.page.evaluate(
        """() => [...document.querySelectorAll("#tensor .badge:not([hidden])")].filter((badge) => {
          const a = badge.getBoundingClientRect();
          return [...document.querySelectorAll("#tensor .number")].some((number) => {
            const b = number.getBoundingClientRect();
            return a.left < b.right + 3 && b.left < a.right + 3 && a.top < b.bottom && b.top < a.bottom;
          });
        }).length"""
    )
    assert touching == 0
    badges = reader.page.locator("#tensor .badge:not([hidden])").count()
    assert 0 < badges == reader.page.locator(f"#tensor {marked} > .badge:not([hidden])").count()


# -- the numbers


@pytest.mark.parametrize(("norm", "dtype"), EACH)
def test_the_numbers_are_exact_to_the_last_digit(norm, dtype, read):
    values = (normal(3, 4, 2, 2) * 10).astype(dtype)
    reader = read(make(values, norm))
    (result,) = reader.results
    np.testing.assert_array_equal(reader.values("x"), values.reshape(-1))
    np.testing.assert_array_equal(reader.values("y"), result.normalized.reshape(-1))
    for name in NORMS[norm].statistics if result.plan.spec.window is None else ():
        assert reader.statistics(name) == result.statistics[name].reshape(-1).tolist()[:24]


def test_the_arithmetic_of_four_numbers_is_that_on_paper(read):
    reader = read(make([[1.0, 2, 3, 4], [2, 4, 6, 8]], "ln", at=(0, 0)))
    assert reader.text("#story") == (
        "n=0 c=0: 1 → −1.3416354 0 Group n=0 n = 4 values "
        "mean = Σx / n = (1 + 2 + 3 + 4) / 4 = 10 / 4 = 2.5 "
        "var = Σ(x − mean)² / n = ((−1.5)² + (−0.5)² + 0.5² + 1.5²) / 4 = 5 / 4 = 1.25 "
        "var + eps = 1.25 + 0.00001 = 1.25001 divisor = √(var + eps) = √1.25001 ≈ 1.1180385 "
        "The value x = 1 x − mean = 1 − 2.5 = −1.5 y = (x − mean) / divisor ≈ (−1.5) / 1.1180385 ≈ −1.3416354"
    )


@pytest.mark.parametrize(
    ("norm", "options", "told"),
    [
        pytest.param("bn", {"ddof": 1}, "Σ(x − mean)² / (n − 1)", id="ddof"),
        pytest.param("mvn", {}, "√var + eps", id="outside"),
        pytest.param("lp", {}, "max(‖x‖, eps)", id="floor"),
        pytest.param("lp", {"p": 0}, "how many x are not 0", id="p 0"),
        pytest.param("rms", {}, "ms = Σx² / n", id="mean square"),
        pytest.param("rms", {"like": "gemma", "gamma": 0.5}, "(1 + gamma[0]) · x̂", id="offset"),
    ],
)
def test_the_arithmetic_follows_the_row(norm, options, told, read):
    reader = read(make(normal(3, 4), norm, at=(0, 0), **options))
    assert told in reader.text("#story")
    *_, (_, y, _) = reader.steps()
    assert y == float(reader.results[0].normalized[0, 0])


def centred(told, norm):
    """Return what is divided in the end, of the values that the steps told."""
    centre = NORMS[norm].centre
    return told["x"] if centre is Centre.NOTHING else told[f"x − {centre.value}"]


# -- the signs


def spell(text):
    """Return printed arithmetic with numbers as a machine reads them."""
    superscripts = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
    text = re.sub(
        r"(?<![\d.])10([⁻⁰¹²³⁴-⁹]+)", lambda found: f"1e{int(found[1].translate(superscripts)):+d}", text
    )
    return re.sub(r"√(max\([^()]*\))", r"√(\1)", text.replace("·1e", "e"))


def check_signs(reader):
    """Assert that `=` stands between equals as they are printed, and `≈` between others; count what was held."""
    near, checked = set(), 0
    for term, value, links in reader.steps():
        line = spell(f"{term} {' '.join(links)}")
        if "nan" in line or "∞" in line:
            continue
        first = spell(links[0])
        last = spell(links[-1][2:])
        exact = float(last.replace("−", "-")) == value
        if len(links) == 1:
            assert first.startswith("=") == exact, line
        elif first.startswith("="):  # of names, whose values are then told to the last digit
            assert not near & set(re.findall(r"[\d.]+(?:e[-+]\d+)?", first)), line
        if not exact:
            near.add(last.strip("−"))
        checked += check_true(spell("v " + " ".join(links)), 8)
    return checked


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("number", range(len(NORMS)), ids=list(NORMS))
def test_what_is_called_equal_is_equal_as_it_is_printed(number, read):
    norm = list(NORMS)[number]
    dtype = ("float64", "float32", "float16")[number % 3]
    whole = np.array([[4, 1, 14, 6], [7, 7, 7, 7], [0, 3, 4, 0]])
    affine = dict.fromkeys(NORMS[norm].parameter_names, 0.75)
    for values, options in ((whole.astype(dtype), affine), (normal(3, 12, dtype=dtype) * 100, {})):
        reader = read(make(values, norm, **options))
        checked = 0
        for cell in (0, 5, values.size - 1):
            reader.cell(cell).evaluate("box => box.click()")
            checked += check_signs(reader)
        if NORMS[norm].eps is not None:  # scores have none unless it is given
            reader.move("eps", 0.5)
            checked += check_signs(reader)
        assert checked >= 3


@pytest.mark.parametrize(
    ("values", "norm", "told"),
    [
        pytest.param([[4.0, 1, 14]], "ln", "x − mean ≈ 4 − 6.3333333 = −2.3333333", id="rounded before"),
        pytest.param([[3.0, 4]], "wn", "√Σx² = √(3² + 4²) = 5", id="root"),
        pytest.param([[3e-7, 0]], "ln", "(1.5·10⁻⁷)²", id="power of a power of ten"),
        pytest.param([[1.0, np.nan]], "ln", "(1 + nan) / 2 = nan / 2 = nan", id="nan"),
    ],
)
def test_a_sign_is_chosen_by_what_stands_beside_it(values, norm, told, read):
    axes = {"axes": -1} if norm in ("mvn", "wn") else {}
    assert told in read(make(values, norm, at=(0, 0), **axes)).text("#story")


# -- rounding


def test_rounding_to_the_dtype_is_a_step_of_its_own(read):
    values = np.array([[3, 7, 4], [9, 1, 6]], np.float16)
    reader = read(make(values, "bn", at=(0, 0), gamma=2.0))
    assert (
        "x̂ = (x − mean) / divisor ≈ (−3) / 3.0000017 ≈ −0.99999944 "
        "gamma[0] · x̂ ≈ 2 · (−0.99999944) ≈ −1.9999989 "
        "y = gamma[0] · x̂, rounded once, to float16 = −2"
    ) in reader.text("#story")
    reader.move("eps", 0.5)
    assert "y = gamma[0] · x̂, in double precision, not rounded to float16 ≈ −1.9466571" in reader.text("#story")
    assert "in double precision and not rounded to float16: eps = 0.5." in reader.text("#exactness")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    ("norm", "options"),
    [("bn", {}), ("bn", {"gamma": 0.3, "beta": -1.7}), ("rms", {"like": "llama", "gamma": 0.3}), ("lrn", {})],
    ids=["alone", "gamma and beta", "twice", "window"],
)
def test_the_rounding_that_is_told_is_the_one_that_was_done(dtype, norm, options, read):
    reader = read(make(normal(4, 3, dtype=dtype), norm, **options))
    for cell in range(12):
        reader.cell(cell).evaluate("box => box.click()")
        *_, (_, before, _), (_, y, _) = reader.steps()
        assert np.dtype(dtype).type(before) == y


# -- the keyboard, touch


def test_the_tensor_is_one_tab_stop_and_arrows_move(read):
    reader = read(make(first()))
    assert reader.page.locator('#tensor [tabindex="0"]').count() == 1
    reader.page.focus("#back")  # and the way forward is at its end
    reader.press("Tab", "Tab")
    assert reader.focused() == [0, "x"]
    for key, expected in [
        ("ArrowRight", [1, "x"]), ("ArrowDown", [5, "x"]), ("End", [7, "x"]), ("ArrowRight", [4, "z"]),
        ("ArrowLeft", [7, "x"]), ("Home", [4, "x"]), ("ArrowUp", [0, "x"]), ("ArrowUp", [0, "x"]), ("PageDown", [16, "x"]),
        ("PageDown", [32, "x"]), ("PageUp", [16, "x"]), ("ArrowLeft", [16, "x"]),
    ]:  # fmt: skip
        reader.press(key)
        assert reader.focused() == expected, key
    assert sorted(reader.lit()) == [*range(16, 32), *range(64, 80)]
    reader.press("End", "ArrowRight", "End", "ArrowRight")
    assert reader.focused() == [16, "y"]
    reader.press("ArrowLeft")
    assert reader.focused() == [19, "z"]
    assert reader.page.locator('#tensor [tabindex="0"]').count() == 1
    reader.press("Tab")
    assert reader.focused() is None
    reader.press("Shift+Tab")
    assert reader.focused() == [19, "z"]


def test_what_is_selected_is_said(read):
    reader = read(make(first()))
    reader.cell(0).focus()
    assert reader.said() == "n=0 c=0 h=0 w=0: input 6, normalized 0.54404, group c=0, 32 values, mean 4.6563."
    reader.press("PageDown")
    assert reader.said().startswith("n=0 c=1 h=0 w=0: input 1, normalized −1.2978, group c=1")
    reader.press("Escape")
    assert reader.lit() == []
    assert reader.page.locator('[aria-selected="true"]').count() == 0
    assert reader.said() == "Nothing is selected."


def test_a_tap_selects(read):
    reader = read(make(first()), NARROW, has_touch=True, is_mobile=True)
    reader.cell(1).tap()
    assert sorted(reader.lit()) == [*range(16), *range(48, 64)]
    assert "n=0 c=0 h=0 w=1" in reader.text("#story")


# -- several norms


def test_flipping_keeps_the_value_and_changes_its_group(read):
    reader = read(make(first(), "bn", "ln", "lrn"))
    assert reader.text("#norms") == "Norm bn ln lrn"
    reader.page.locator('#norms input[value="0"]').focus()
    reader.press("ArrowRight")
    np.testing.assert_array_equal(reader.values(), reader.results[1].normalized.reshape(-1))
    reader.cell(20).click()
    reader.page.mouse.move(1, 1)
    for number, result in ((0, reader.results[0]), (1, reader.results[1]), (0, reader.results[0])):
        reader.flip(number)
        group = owners(result)
        assert sorted(reader.lit()) == np.flatnonzero(group == group[20]).tolist()
        np.testing.assert_array_equal(reader.values(), result.normalized.reshape(-1))
        assert "n=0 c=1 h=1 w=0" in reader.text("#story")
        assert reader.text("#facts").startswith(result.plan.norm.title)
    reader.flip(2)
    assert sorted(reader.lit()) == [4, 20, 36]
    assert reader.page.locator("#eps-slider").is_hidden()


def test_two_rows_of_one_norm_are_told_apart(read):
    values = normal(2, 4, 3)
    results = [normalize(values, "ln"), normalize(values, "ln", axes=(1, 2)), normalize(values, "ln", eps=1.0)]
    reader = read(Stub(results, Tensor(values, "x.npy")))
    assert reader.text("#norms") == "Norm ln keeps N×C = 2×4 (1) ln keeps N = 2 ln keeps N×C = 2×4 (2)"


# -- eps


@pytest.mark.parametrize(
    ("keys", "eps"),
    [(["Home"], 0), (["End"], 100), (["End", *["ArrowLeft"] * 20], 1)],
    ids=["least", "most", "between"],
)
def test_the_slider_is_logarithmic_and_holds_0(keys, eps, read):
    values = normal(2, 3, 4, 4)
    reader = read(make(values))
    reader.page.locator("#eps-slider").focus()
    reader.press(*keys)
    assert float(reader.page.input_value("#eps-number")) == eps
    assert reader.page.get_attribute("#eps-slider", "aria-valuetext") == str(eps)
    np.testing.assert_allclose(
        reader.values(), normalize(values, "bn", eps=eps).normalized.reshape(-1), rtol=1e-12
    )


def every_way(values, norm, **options):
    """Return the norm's own result and that of every convention of it that takes the options."""
    results = []
    for framework in (None, *list_frameworks(norm)):
        row = None if framework is None else find_convention(framework, norm)
        given = options_for(norm, values.shape) | options | ({} if row is None else {"like": framework})
        if row is not None and row.axes is AxesRule.GIVEN:
            given["axes"] = 1 if find_option("size").belongs_to(NORMS[norm]) else -1
        if row is not None and row.eps is EpsRule.GIVEN:
            given.setdefault("eps", 0.1)
        if find_option("size").belongs_to(NORMS[norm]):
            given["size"] = 3
        results.append(normalize(values, norm, **given))
    return results


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("norm", NORMS)
def test_every_convention_is_what_normcli_makes_of_it(norm, read):
    """Whatever the row says of eps, zeros and windows: the page divides as the kernel does."""
    values = normal(2, 4, 4)
    values[:, 1], values[:, 2] = 0.0, 0.5
    results = every_way(values, norm)
    reader = read(Stub(results, Tensor(values, "x.npy"), at=(1, 3, 1)))
    wished = (0.0, 0.3) if NORMS[norm].eps is not None else ()
    moved = {eps: every_way(values, norm, eps=eps) for eps in wished}
    for number, result in enumerate(results):
        if len(results) > 1:
            reader.flip(number)
        np.testing.assert_array_equal(reader.values(), result.normalized.reshape(-1))
        told = {term: value for term, value, _ in reader.steps()}
        np.testing.assert_allclose(centred(told, norm) / told["divisor"], told["y"], rtol=1e-13)
        for eps, others in moved.items():
            reader.move("eps", eps)
            expected = others[number].normalized.reshape(-1)
            np.testing.assert_allclose(reader.values(), expected, rtol=1e-12, atol=1e-14)


def test_statistics_that_were_given_are_not_said_to_be_measured(read):
    document = make([[1.0, 2], [3, 6]], at=(0, 0), running_mean=[2.0, 4.0], running_var=[1.0, 4.0])
    story = read(document).text("#story")
    assert "mean = as given = 2 " in story
    assert "var = as given = 1 " in story
    assert "Σ" not in story


@pytest.mark.parametrize(
    ("norm", "options"),
    [
        ("bn", {"gamma": [0.5, 2, -1], "beta": [1.0, 0, 3]}),
        ("rms", {"gamma": [0.5, -0.25, 0, 2], "like": "gemma"}),
    ],
)
def test_gamma_and_beta_hold_at_another_eps(norm, options, read):
    values = normal(2, 3, 4, 4)
    reader = read(make(values, norm, **options))
    reader.move("eps", 0.25)
    expected = normalize(values, norm, **options, eps=0.25).normalized
    np.testing.assert_allclose(reader.values(), expected.reshape(-1), rtol=1e-12, atol=1e-12)


def test_a_divisor_of_zero_has_its_rule(read):
    reader = read(make([[3.0, 3, 3], [0, 1, 2]], "ln", at=(0, 0)))
    reader.move("eps", 0)
    assert reader.values()[:3].tolist() == [0, 0, 0]
    assert "1 stands for it" in reader.text("#story")


@pytest.mark.parametrize("factor", [1e300, 1e-200])
def test_squares_beyond_doubles_do_not_spoil_the_divisor(factor, read):
    values = np.array([[1.0, 2, 4]]) * factor
    reader = read(make(values, "ln", at=(0, 0), eps=0.5))
    assert "beyond double precision" in reader.text("#story")
    reader.move("eps", 0)
    centred = values / factor - 7 / 3
    np.testing.assert_allclose(reader.values(), (centred / centred.std()).reshape(-1), rtol=1e-12)


# -- large, small and odd tensors


def test_a_slice_of_a_large_tensor_is_named_and_its_statistics_are_of_the_whole(read):
    values = normal(8, 64, 32, 32, dtype="float32")
    reader = read(make(values, at=(3, 10, 20, 31)))
    assert "Statistics are those of the whole groups" in reader.text("#slice")
    np.testing.assert_array_equal(
        reader.values(), reader.results[0].normalized[0:4, 8:12, 16:24, 24:32].reshape(-1)
    )
    assert "n = 8,192 values, 256 of them shown; the statistics are of all 8,192" in reader.text("#story")
    reader.move("eps", 0.5)
    expected = normalize(values.astype(float), "bn", eps=0.5).normalized[0:4, 8:12, 16:24, 24:32]
    np.testing.assert_allclose(reader.values(), expected.reshape(-1), rtol=1e-12)


@pytest.mark.parametrize(
    "values",
    [np.array(7.0), np.arange(5.0), np.ones((0, 3)), np.ones((3, 0)), normal(2, 2, 2, 2, 2, 3),
     np.array([[1, np.nan, 3], [4, 5, 6], [np.inf, 1, -np.inf]]), np.array([[1e300, -1e-300], [2e300, 123456.789]])],
    ids=["0-D", "1-D", "empty", "empty groups", "6-D", "not finite", "extreme"],
)  # fmt: skip
def test_any_tensor_has_its_page(values, read):
    reader = read(make(values, "ln"))
    np.testing.assert_array_equal(reader.values(), reader.results[0].normalized.reshape(-1))
    np.testing.assert_array_equal(reader.values("x"), values.reshape(-1))
    if values.size:
        reader.cell(0).click()
        assert len(reader.lit()) == reader.results[0].group_size
    else:
        assert "The tensor holds no values." in reader.text("#tensor")


# -- everybody


@pytest.mark.parametrize(
    ("document", "viewport", "scheme"),
    [
        pytest.param(lambda: make(first(), "bn", "ln", gamma=2.0, beta=1.0), WIDE, "light", id="light"),
        pytest.param(lambda: make(normal(2, 2, 2, 3), "bn", at=(0, 1, 1, 2)), NARROW, "light", id="narrow"),
        pytest.param(lambda: make(normal(2, 2, 3), "bn", "ln", gamma=2.0), WIDE, "dark", id="dark"),
        pytest.param(lambda: make(normal(9, 5), "ln"), NARROW, "dark", id="every colour, dark narrow"),
        pytest.param(lambda: make(normal(1, 6, 2, 3), "lrn"), WIDE, "light", id="window"),
        pytest.param(lambda: make(np.array([[1, np.nan]]), "ln"), WIDE, "light", id="warning"),
        pytest.param(lambda: make(np.array(7.0), "ln"), WIDE, "light", id="0-D"),
    ],
)
def test_axe_finds_nothing_on_a_page_that_is_used(document, viewport, scheme, read, axe):
    reader = read(document(), viewport, scheme)

    def find_violations():
        found = reader.page.evaluate("axe.run()")["violations"]
        return [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found]

    reader.page.evaluate(axe)
    if reader.results[0].input.size == 96:
        assert find_violations() == []
    reader.page.locator('#chain input[value="2"]').evaluate("box => box.click()")
    reader.cell(0).evaluate("box => box.click()")
    reader.move("x" if reader.page.locator("#knob-x").is_visible() else "eps", 0.5)
    assert find_violations() == []


def test_print_shows_the_tensor_and_no_controls(read):
    reader = read(make(first(), at=(0, 0, 0, 0)))
    reader.page.emulate_media(media="print")
    assert reader.page.locator("#controls").is_hidden()
    assert reader.cell(95, "y").is_visible()
    assert reader.page.locator("#story").evaluate("box => getComputedStyle(box).position") == "static"
