"""The same pages in Firefox: what is shown, lit, stepped through, changed and kept, and what axe says of it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from tests.page.reader import first, make

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

VALUES = (
    "return [...document.querySelectorAll(`.side-${arguments[0]} td`)]"
    ".sort((a, b) => a.dataset.cell - b.dataset.cell).map(box => box.dataset.value)"
)
CELL = "document.querySelector('.side-x td[data-cell=\"{}\"]')"
LIT = "return [...document.querySelectorAll(`.side-${arguments[0]} td.lit`)].map(box => +box.dataset.cell)"


@pytest.fixture
def page(firefox, save):
    """A comparison in Firefox."""
    firefox.open(save(make(first(), "bn", "ln")))
    firefox.run("[...document.querySelectorAll('#chain input')].at(-1).click()")
    return firefox


def read_values(page, side):
    return np.array(page.run(VALUES, side), float)


def test_firefox_shows_the_numbers_on_one_screen(page):
    expected = normalize(first(), "bn").normalized.reshape(-1)
    for side in "zy":
        np.testing.assert_array_equal(read_values(page, side), expected)
    assert page.run("return document.querySelector('#tensor').className") == ""
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_firefox_lights_a_group_in_every_view(page):
    page.run(f"{CELL.format(20)}.dispatchEvent(new PointerEvent('pointerover', {{bubbles: true}}))")
    for side in "xzy":
        assert sorted(page.run(LIT, side)) == [*range(16, 32), *range(64, 80)]
    assert page.run("return document.querySelectorAll('#blocks .lit').length") > 0
    assert "Group c=1" in page.run("return document.querySelector('#story').textContent")


def test_firefox_recalculates_an_edited_value_and_keeps_it_in_the_address(page):
    page.run(f"{CELL.format(5)}.click()")
    page.run(
        "const box = document.querySelector('#x-number'); box.value = 4;"
        "box.dispatchEvent(new Event('input', {bubbles: true}));"
    )
    edited = first().astype(float)
    edited.reshape(-1)[5] = 4
    expected = normalize(edited, "bn").normalized.reshape(-1)
    np.testing.assert_allclose(read_values(page, "y"), expected, rtol=1e-13)
    page.run(
        "const end = Date.now() + 5000; return new Promise(done => { const look = () => "
        "location.hash || Date.now() > end ? done() : setTimeout(look, 20); look(); });"
    )
    assert page.run("return location.hash") == "#at=0,0,1,1&x=5:4&step=last"


def test_axe_finds_nothing_in_firefox(page, axe):
    page.run(f"{CELL.format(5)}.click()")
    found = page.run(f"{axe}; return axe.run().then(found => found.violations.map(one => one.id));")
    assert found == []
