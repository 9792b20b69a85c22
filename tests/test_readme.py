"""README says what is true now."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
SIBLINGS = ("samples/README.md", "samples/gallery.md")
"""What there is in Chinese too, beside it: `gallery.zh-CN.md`."""


@pytest.mark.parametrize("name", SIBLINGS)
def test_the_chinese_sibling_shows_the_same_commands(name):
    english, chinese = ((ROOT / path).read_text() for path in (name, name.replace(".md", ".zh-CN.md")))
    commands = re.findall(r"^(?:\$ )?(normcli .*)", english, flags=re.M)
    assert commands
    assert (
        re.findall(r"^(?:\$ )?(normcli .*)", chinese.replace("pictures/zh/", "pictures/"), flags=re.M)
        == commands
    )


def test_the_first_two_commands_set_up_run_and_test():
    first, second = re.findall(r"```sh\n(.*?)\n```", README, flags=re.S)[:2]
    assert first.endswith("normcli bn --shape 2,3,4,4")
    assert second.endswith("python -m pytest -q")
    assert all(line.startswith("python3 -m venv ") for line in (first, second))


def test_every_file_that_it_links_is_there():
    links = re.findall(r"\]\(([\w./-]+)\)", README)
    assert {"CONTRIBUTING.md", "tests/bench/results.md", "samples/README.md"} <= set(links)
    assert [link for link in links if not (ROOT / link).exists()] == []
