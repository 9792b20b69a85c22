"""PNG in another language: with a font of the machine, or in English."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from normcli.documents.scene import Scene, Text
from normcli.language.fonts import Fonts, find_chinese_fonts
from normcli.pictures import svg


@pytest.mark.usefixtures("without_fonts")
def test_a_png_says_in_chinese_that_its_words_are_english(normcli, tmp_path, monkeypatch):
    monkeypatch.setattr("resvg_py.svg_to_bytes", lambda svg_string, **options: svg_string.encode())
    line = ("draw", "bn", "--shape", "2,2", "-o")
    assert normcli(*line, tmp_path / "p.png", "--lang", "zh").err.endswith(
        "p.png: 这里没有已知的中文字体，因此 PNG 图中的文字为英文；SVG 图中为中文\n"
    )
    assert normcli(*line, tmp_path / "p.png", "--lang", "zh", "--quiet").err == ""
    assert (
        normcli(*line, tmp_path / "p.png").err == normcli(*line, tmp_path / "p.svg", "--lang", "zh").err == ""
    )
    normcli(*line, tmp_path / "zh.png", "--lang", "zh")
    assert (tmp_path / "zh.png").read_bytes() == (tmp_path / "p.png").read_bytes()


@pytest.fixture
def without_fonts(monkeypatch, tmp_path):
    for name in ("HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.setenv(name, str(tmp_path))
    find_chinese_fonts.cache_clear()
    yield
    find_chinese_fonts.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(find_chinese_fonts() is None, reason="no font with Chinese letters is installed")
def test_a_png_is_in_chinese_where_there_is_a_font(normcli, tmp_path):
    line = ("draw", "bn", "--shape", "2,2", "-o")
    assert normcli(*line, tmp_path / "zh.png", "--lang", "zh").err == ""
    normcli(*line, tmp_path / "en.png")
    assert (tmp_path / "zh.png").read_bytes() != (tmp_path / "en.png").read_bytes()
    assert len({paint(letter) for letter in "批归一化均值方差，"}) == 9


def paint(text):
    stream = io.BytesIO()
    svg.write_png(Scene(30, 30, "", "", (Text(5, 20, text, 16),), 1), stream)
    return stream.getvalue()


def test_texts_with_chinese_letters_are_of_a_family_of_their_own(monkeypatch):
    family = Fonts("Noto Sans CJK SC", (Path("a.ttc"),))
    monkeypatch.setattr(svg, "find_chinese_fonts", lambda: family)
    given = {}
    monkeypatch.setattr("resvg_py.svg_to_bytes", lambda **options: given.update(options) or b"")
    shapes = (Text(5, 20, "mean 1", 16), Text(5, 40, "身高", 16, mono=True))
    svg.write_png(Scene(30, 30, "", "", shapes, 1), io.BytesIO())
    assert given["font_files"][-1] == "a.ttc"
    assert re.findall(r'<text class="(.*?)".*?>(.*?)<', given["svg_string"]) == [
        ("ink", "mean 1"),
        ("ink mono han", "身高"),
    ]
    assert ".normcli .han{font-family:'Noto Sans CJK SC'}</style>" in given["svg_string"]
    svg.write_png(Scene(30, 30, "", "", shapes[:1], 1), io.BytesIO())
    assert "a.ttc" not in given["font_files"]
    assert "han" not in given["svg_string"]
