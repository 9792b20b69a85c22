"""Fonts with Chinese letters on this machine, for pictures that bring none of their own."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from normcli.tuples import NamedTuple

_KNOWN = (
    ("NotoSansCJK", "Noto Sans CJK SC"),
    ("NotoSansSC", "Noto Sans SC"),
    ("NotoSansCJKsc", "Noto Sans CJK SC"),
    ("SourceHanSansSC", "Source Han Sans SC"),
    ("SourceHanSansCN", "Source Han Sans CN"),
    ("SourceHanSans", "Source Han Sans SC"),
    ("PingFang", "PingFang SC"),
    ("Hiragino Sans GB", "Hiragino Sans GB"),
    ("STHeiti", "Heiti SC"),
    ("msyh", "Microsoft YaHei"),
    ("simhei", "SimHei"),
    ("wqy-microhei", "WenQuanYi Micro Hei"),
    ("wqy-zenhei", "WenQuanYi Zen Hei"),
    ("DroidSansFallback", "Droid Sans Fallback"),
)
"""Beginnings of file names of sans-serif fonts with Chinese letters, and the family of each, the best first."""

_SUFFIXES = (".ttc", ".otf", ".ttf")

_WEIGHTS = ("", "full", "regular", "bold", "bd", "vf")
"""The ends of such file names that are accepted: the weights that pictures use."""


class Fonts(NamedTuple):
    """A family of fonts.

    Parameters
    ----------
    family : str
    files : tuple of Path
        The font files of the family that exist, one for each weight.
    """

    family: str
    files: tuple[Path, ...]


def holds_chinese(text: str) -> bool:
    """Whether a text has Chinese ideographs or punctuation, which fonts for Latin letters lack."""
    return any("\u2e80" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uffef" for letter in text)


@functools.cache
def find_chinese_fonts() -> Fonts | None:
    """Return a font family with Chinese letters; None if no known one is installed on this machine."""
    files = [
        Path(folder, name)
        for place in _list_folders()
        for folder, _, names in os.walk(place)
        for name in names
        if name.lower().endswith(_SUFFIXES)
    ]
    for stem, family in _KNOWN:
        found = [file for file in files if _is_of(file, stem.lower())]
        if found:
            return Fonts(family, tuple(sorted(found)))
    return None


def _is_of(file: Path, stem: str) -> bool:
    name = file.stem.lower()
    return name.startswith(stem) and name.removeprefix(stem).strip("-_ ") in _WEIGHTS


def _list_folders() -> list[str]:
    """Return the folders of the system's fonts and of the user's own fonts."""
    home = Path.home()
    if sys.platform == "win32":
        own = os.environ.get("LOCALAPPDATA", str(home))
        return [str(Path(os.environ.get("WINDIR", "C:/Windows"), "Fonts")), f"{own}/Microsoft/Windows/Fonts"]
    if sys.platform == "darwin":
        return ["/System/Library/Fonts", "/Library/Fonts", str(home / "Library/Fonts")]
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    own = os.environ.get("XDG_DATA_HOME") or str(home / ".local/share")
    return [f"{folder}/fonts" for folder in (own, *shared.split(":"))] + [str(home / ".fonts")]
