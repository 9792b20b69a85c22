"""Fonts with Chinese letters, found by the names of their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from normcli.language.fonts import Fonts, _list_folders, find_chinese_fonts, holds_chinese


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_DATA_DIRS", f"{tmp_path}/none:{tmp_path}/shared")
    find_chinese_fonts.cache_clear()
    yield tmp_path
    find_chinese_fonts.cache_clear()


def install(folder, *paths):
    files = [folder / path for path in paths]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return files


@pytest.mark.parametrize("place", ["own/fonts/a", "shared/fonts", "home/.fonts"])
def test_a_family_is_found_with_its_weights_wherever_it_is(place, folder):
    names = ("NotoSansCJK-Bold.ttc", "NotoSansCJK-Regular.ttc")
    files = install(folder, *(f"{place}/{name}" for name in names))
    install(folder, f"{place}/NotoSansCJK-Light.ttc", f"{place}/NotoSerifCJK-Regular.ttc", f"{place}/msyh.ttc")
    assert find_chinese_fonts() == Fonts("Noto Sans CJK SC", tuple(files))


def test_the_font_that_debian_and_ubuntu_install_is_known(folder):
    files = install(folder, "shared/fonts/truetype/droid/DroidSansFallbackFull.ttf")
    assert find_chinese_fonts() == Fonts("Droid Sans Fallback", tuple(files))


def test_where_there_is_none(folder):
    install(folder, "own/fonts/DejaVuSans.ttf", "own/fonts/msyh.txt", "own/fonts/simheibold2.ttf")
    assert find_chinese_fonts() is None


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("platform", "first"), [("win32", "C:/Windows/Fonts"), ("darwin", "/System/Library/Fonts")]
)
def test_other_systems_keep_them_elsewhere(platform, first, folder, monkeypatch):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.delenv("WINDIR", raising=False)
    assert Path(_list_folders()[0]) == Path(first)


def test_which_texts_hold_chinese():
    assert [holds_chinese(text) for text in ("批", "a，b", "√(var + eps) · ℓₚ ‖x‖ — ½")] == [True, True, False]
