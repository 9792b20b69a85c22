"""A page that is open, what can be read of it, and documents to open."""

from __future__ import annotations

import re

import numpy as np

from normcli import normalize
from normcli.documents.document import Page
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.tensor import Tensor
from tests.strategies import options_for

WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}


class Stub:
    """A document of several results, as a comparison is one."""

    def __init__(self, results, tensor, at=None, title="a page"):
        self._page = Page(title, results, tensor, at)

    def page(self):
        return self._page


def make(values, *norms, at=None, source="x.npy", columns=None, **options):
    """Return a document of norms of one tensor."""
    values = np.asarray(values)
    results = [
        normalize(values, norm, **(options_for(norm, values.shape) | options)) for norm in norms or ["bn"]
    ]
    return Stub(results, Tensor(values, source, columns), at)


def first():
    """Return the tensor that normcli shows to whom asks for no other."""
    return generate(Recipe((2, 3, 4, 4))).values


def normal(*shape, dtype="float64"):
    return np.random.default_rng(7).normal(1, 2, shape).astype(dtype)


def owners(result):
    shape = result.plan.grid.shape
    return result.plan.grid.locate_groups(np.ix_(*map(np.arange, shape))).reshape(-1)


class Reader:
    """A tab, and everything that its pages asked for or complained of."""

    def __init__(self, page):
        self.page, self.results = page, []
        self.complaints, self.requests = [], []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def forget(self):
        self.complaints.clear()
        self.requests.clear()
        self.page.emulate_media(media="screen")
        self.page.mouse.move(0, 0)

    def open(self, address, document):
        self.results = document.page().results
        self.page.goto(address)

    def go_to_end(self):
        self.page.evaluate("[...document.querySelectorAll('#chain input')].at(-1)?.click()")

    def cell(self, number, side="x"):
        return self.page.locator(f'.side-{side} td[data-cell="{number}"]')

    def lit(self, side="x"):
        return self.page.eval_on_selector_all(
            f".side-{side} td.lit", "boxes => boxes.map(box => +box.dataset.cell)"
        )

    def values(self, side="y"):
        boxes = self.page.eval_on_selector_all(
            f".side-{side} td", "boxes => boxes.map(box => [+box.dataset.cell, box.dataset.value])"
        )
        return np.array([float(value) for _, value in sorted(boxes)])

    def statistics(self, name):
        """Return those of the groups that are listed."""
        cells = self.page.locator(f'#groups td[data-statistic="{name}"]')
        return [float(value) for value in cells.evaluate_all("boxes => boxes.map(box => box.dataset.value)")]

    def focused(self):
        """The cell that has the focus, and its side."""
        return self.page.evaluate(
            "(box => box.dataset.cell === undefined ? null : "
            "[+box.dataset.cell, ['x', 'z', 'y'].find(side => box.closest('.side-' + side))])(document.activeElement)"
        )

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, selector):
        return re.sub(r"\s+", " ", self.page.inner_text(selector)).strip()

    def steps(self):
        """The steps of the arithmetic: (term, value, its signed links as they are printed)."""
        return self.page.locator("#story dl div").evaluate_all(
            "rows => rows.map(row => [row.querySelector('dt').textContent, +row.querySelector('.is').dataset.value, "
            "[...row.querySelectorAll('.by, .end')].map(link => link.textContent)])"
        )

    def said(self):
        return self.page.text_content("#said")

    def move(self, name, value):
        """Type a number: of `x`, `gamma`, `beta` or `eps`."""
        self.page.fill(f"#{name}-number", str(value))

    def flip(self, number):
        """Choose a norm."""
        self.page.locator(f'#norms input[value="{number}"]').check(force=True)

    def overflows(self):
        return self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
