"""The man page says what the helps say."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from normcli import NORMS
from normcli.cli import manual
from normcli.cli.commands import VERBS
from normcli.cli.manual import format_manual
from tests.conftest import ROOT

PAGE = Path(manual.__file__).with_name("normcli.1")


def test_the_page_is_that_of_the_helps_in_force():
    assert PAGE.read_text() == format_manual(), "CONTRIBUTING says how to renew it"


def test_it_is_installed_where_man_looks():
    files = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    assert [ROOT / name for name in files["share/man/man1"]] == [
        ROOT / PAGE.relative_to(Path(manual.__file__).parents[2])
    ]


def test_it_names_every_norm_verb_and_option(normcli):
    text = PAGE.read_text().replace("\\-", "-")
    for name in (*NORMS, *VERBS):
        assert f'.B "{name}"' in text
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", normcli("bn", "--help").out, flags=re.M)
    assert {option for option in options if option not in text} == {"--help"}


def test_man_finds_no_fault_in_it():
    if shutil.which("groff") is None:
        pytest.skip("needs groff")
    command = ["groff", "-man", "-Tutf8", "-ww", "-z", "-Kutf8", PAGE.name]  # it warns of letters in a path
    ran = subprocess.run(command, cwd=PAGE.parent, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
