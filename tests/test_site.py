"""The site that `samples/site/build.py` makes: how helps become pages; and in Chromium, where NORMCLI_SITE is its folder."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

from normcli.cli.commands import VERBS
from normcli.language import choose_language
from tests.conftest import ROOT
from tests.page.conftest import CHROMIUM, FLAGS, find_program, need

SITE = os.environ.get("NORMCLI_SITE")


@pytest.fixture(scope="module")
def builder():
    """The module that builds the site."""
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "samples" / "site" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    choose_language("en")


def test_a_help_becomes_terms_and_definitions(builder):
    choose_language("en")
    page = builder.format_help("check", "ln")
    assert "### Options" in page
    assert "`--max-ulp ULP`\n: Tolerate so many ulp instead of both." in page
    assert "```text\nnormcli check ln -i x.npy --actual y.npy\n" in page


def test_a_help_is_in_the_language_that_was_chosen(builder):
    choose_language("zh")
    assert "### 选项" in builder.format_help("bn")


def test_what_markdown_reads_otherwise_is_escaped(builder):
    assert builder.escape("a*b <x> [y] |z|") == r"a\*b \<x\> \[y\] \|z\|"


def test_every_verb_but_two_shows_an_answer(builder):
    assert set(VERBS) - set(builder.EXAMPLES) == {"completion", "help"}


def test_a_broken_link_and_a_missing_place_are_found(builder, tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there"></a><a href="b.html#no"></a><a href="c.html"></a>')
    (tmp_path / "b.html").write_text('<p id="there"><a href="https://example.org/"></a><a href="#there"></a>')
    assert builder.find_broken_links(tmp_path) == ["a.html: b.html#no", "a.html: c.html"]


def test_the_notebook_is_kept_without_its_answers():
    notebook = json.loads((ROOT / "samples" / "lecture.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 10
    assert [cell["outputs"] for cell in cells if cell["outputs"] or cell["execution_count"]] == []


@pytest.fixture(scope="module")
def chromium():
    """Chromium, and the pages of the site."""
    if SITE is None:
        pytest.skip("NORMCLI_SITE is no folder")
    playwright = need("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_program(CHROMIUM), args=list(FLAGS))
        context = browser.new_context()
        context.set_default_timeout(120_000)  # of a machine that others use too
        yield context
        browser.close()


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_page_is_wider_than_a_telephone_or_a_window(chromium):
    page = chromium.new_page()
    pages = [path for path in sorted(Path(SITE).glob("*/**/*.html")) if "live" not in path.parts]
    assert len(pages) > 100
    wide = []
    for path in pages:
        page.goto(path.as_uri())
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(f"{path.relative_to(SITE)} in {width}")
    assert wide == []


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("language", "asked"), [("en", "padding"), ("zh", "填充")])
def test_the_search_finds_pages(chromium, language, asked):
    page = chromium.new_page()
    page.goto(f"{(Path(SITE) / language / 'search.html').as_uri()}?q={asked}")
    page.locator("#search-results li a").first.wait_for()


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_page_leads_to_its_other_language_and_the_lecture_works_in_it(chromium):
    page = chromium.new_page()
    page.goto((Path(SITE) / "en" / "lecture.html").as_uri())
    page.get_by_role("link", name="中文").click()
    assert page.url.endswith("/zh/lecture.html")
    lecture = page.frame_locator("iframe")
    lecture.locator('#norms input[value="1"]').check(force=True)
    assert "层归一化" in lecture.locator("body").inner_text()
