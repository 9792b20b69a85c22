"""Pages as their readers have them: written, opened in headless Chromium or Firefox, and held to be quiet."""

from __future__ import annotations

import io
import itertools
import os
import shutil
from importlib import import_module

import pytest

from normcli.documents.document import View
from normcli.writers import write
from tests.page.reader import WIDE, Reader

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FIREFOX = ("firefox-esr", "firefox")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def need(name):
    """Return a module of the [browser] extra; without it the test is skipped, unless NORMCLI_REQUIRE_BROWSER is set."""
    if os.environ.get("NORMCLI_REQUIRE_BROWSER"):
        return import_module(name)
    return pytest.importorskip(name)


def find_program(names):
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        told = f"there is none of {', '.join(names)}"
        pytest.fail(told) if os.environ.get("NORMCLI_REQUIRE_BROWSER") else pytest.skip(told)
    return path


@pytest.fixture(scope="session")
def chromium():
    driver = need("playwright.sync_api")
    path = find_program(CHROMIUM)
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def firefox(tmp_path_factory):
    from tests.page.firefox import Firefox  # for where it is asked for

    browser = Firefox(find_program(FIREFOX), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def axe():
    """The script that looks for what keeps people from using a page."""
    return need("axe_playwright_python.base").AXE_SCRIPT


@pytest.fixture(scope="session")
def save(tmp_path_factory):
    """Write a document's page; the address of the file is returned."""
    folder, numbers = tmp_path_factory.mktemp("pages"), itertools.count()

    def save_page(document):
        path = folder / f"{next(numbers)}.html"
        text = io.StringIO()
        write(document, "html", text, View())
        path.write_text(text.getvalue())
        return path.as_uri()

    return save_page


@pytest.fixture(scope="session")
def tabs(chromium):
    """Open a tab of a kind, once: to make one takes as long as several pages."""
    opened = {}

    def open_tab(viewport, scheme, **settings):
        kind = (*viewport.values(), scheme, *settings.items())
        if kind not in opened:
            context = chromium.new_context(
                viewport=viewport, color_scheme=scheme, reduced_motion="reduce", **settings
            )
            opened[kind] = Reader(context.new_page())
        return opened[kind]

    return open_tab


@pytest.fixture
def read(tabs, save):
    """Open a document's page, and see at the end that all went quietly and without a network."""
    readers = []

    def open_page(document, viewport=WIDE, scheme="light", link="", **settings) -> Reader:
        reader = tabs(viewport, scheme, **settings)
        if reader not in readers:
            readers.append(reader)
            reader.forget()
        reader.open(save(document) + link, document)
        if not link:  # most tests are of what comes out in the end
            reader.go_to_end()
        return reader

    yield open_page
    for reader in readers:
        assert reader.complaints == []
        assert [url for url in reader.requests if not url.startswith(("file:", "data:"))] == []
