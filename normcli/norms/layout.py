"""The layout of a tensor: a letter or a word for each axis, and the axes that letters and numbers mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from normcli.errors import UsageError
from normcli.printable import format_count, make_printable
from normcli.tuples import NamedTuple

AxisSpec = str | int | Iterable[int | str]
"""The ways in which a caller names axes: `"CHW"`, `"1,2"`, `-1`, `(0, 2)` or `("N", 2)`."""

DEFAULT_LAYOUTS = {2: "NC", 3: "NCL", 4: "NCHW", 5: "NCDHW"}
"""Rank → the default layout; axes of tensors of other ranks have numbers only."""

CHANNEL_LAST_LAYOUTS = {2: "NC", 3: "NLC", 4: "NHWC", 5: "NDHWC"}
"""Rank → the default layout where a convention has the channel last."""

CHANNEL_WORDS = frozenset({"c", "channel", "channels", "band", "bands", "feature", "features"})
"""The words that name a channel axis."""

BATCH_WORDS = frozenset({"n", "b", "batch", "sample", "samples"})
"""The words that name a batch axis."""

_TOKEN = r"(?P<number>[+-]?\d{1,18})|(?P<letter>[A-Za-z])|[^\s,()\[\]]"
"""A number of an axis, a letter of an axis, or a character that is not allowed between them."""


class Layout(NamedTuple):
    """The axes of a tensor and their names: letters, words, or numbers only.

    Parameters
    ----------
    ndim : int
        The tensor's rank.
    letters : str or None
        One letter per axis in upper case; None if the axes have words or numbers only.
    channel_last : bool
        Whether the channel of a tensor without names of axes is the last axis; otherwise it is axis 1.
    words : tuple of str or None
        The names of the axes if they are words, as in an xarray `DataArray`; None without words.
    """

    ndim: int
    letters: str | None
    channel_last: bool = False
    words: tuple[str, ...] | None = None

    @property
    def text(self) -> str | None:
        """The text that `make_layout` reads as this layout: `NCHW`, `time,lat,lon`; None without names."""
        return self.letters if self.words is None else ",".join(self.words) + "," * (self.ndim == 1)

    @property
    def channel(self) -> int | None:
        """The channel axis, or None if there is none.

        With letters, it is `C` or else the last axis; with words, the first that is one of `CHANNEL_WORDS`, or
        None; without names, axis 1, or the last axis where `channel_last` is set.
        """
        if self.words is not None:
            return self._find_word(CHANNEL_WORDS, None)
        if "C" in (self.letters or ""):
            return self.names.index("c")
        channel = 1 if self.letters is None and not self.channel_last else self.ndim - 1
        return channel if 0 <= channel < self.ndim else None

    @property
    def batch(self) -> int | None:
        """The batch axis: the first called `N` or `B`, else axis 0; None for a tensor without axes.

        With words, it is the first that is one of `BATCH_WORDS`, else axis 0.
        """
        if self.words is not None:
            return self._find_word(BATCH_WORDS, 0)
        named = (axis for axis, letter in enumerate(self.letters or "") if letter in "NB")
        return next(named, 0 if self.ndim else None)

    def _find_word(self, wanted: frozenset[str], default: int | None) -> int | None:
        return next((axis for axis, word in enumerate(self.words or ()) if word.lower() in wanted), default)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all axes, as `name` returns them."""
        return tuple(map(self.name, range(self.ndim)))

    def name(self, axis: int) -> str:
        """Return the name of an axis in output: its letter in lower case, its word, or else `axis0`."""
        if self.words is not None:
            return self.words[axis]
        return f"axis{axis}" if self.letters is None else self.letters[axis].lower()

    def resolve(self, spec: AxisSpec, option: str) -> tuple[int, ...]:
        """Return the numbers of the axes that `spec` names, sorted, all from 0 up.

        Parameters
        ----------
        spec : str, int or iterable of both
            Letters or words of the layout, numbers (negative ones count from the end), or a mixture.
        option : str
            The name of the option, with which messages begin.

        Raises
        ------
        UsageError
            If an axis is unknown, out of range or named twice.
        """
        tokens = _split(spec, option, words=self.words is not None)
        axes = [self._resolve_token(token, option) for token in tokens]
        labels = self.letters or self.words
        for axis in axes:
            if axes.count(axis) > 1:
                name = f"axis {axis}" if labels is None else f"axis {labels[axis]} ({axis})"
                raise UsageError(f"{option} names {name} twice")
        return tuple(sorted(axes))

    def _resolve_token(self, token: str | int, option: str) -> int:
        """Return the number of one axis, from 0, by its number, letter or word.

        Raises `UsageError` if there is no such axis; the message begins with `option`.
        """
        if isinstance(token, int):
            if not -self.ndim <= token < self.ndim:
                have = f"0 to {self.ndim - 1} (or −{self.ndim} to −1)" if self.ndim else "none"
                raise UsageError(f"{option}: axis {token} is out of range; the tensor's axes are {have}")
            return token % self.ndim
        if self.words is not None:
            if token not in self.words:
                raise UsageError(f"{option}: there is no axis {token!r} among {', '.join(self.words)}")
            return self.words.index(token)
        if self.letters is None:
            raise UsageError(f"{option}: axis {token!r} needs a layout; without one, name axes by number")
        if token.upper() not in self.letters:
            raise UsageError(f"{option}: there is no axis {token!r} in the layout {self.letters}")
        return self.letters.index(token.upper())


def make_layout(text: str | None, ndim: int, *, channel_last: bool = False) -> Layout:
    """Return the layout `text` of a tensor of rank `ndim`; for None, the default layout of the rank.

    Parameters
    ----------
    text : str or None
        One letter per axis, in any case; or one word per axis, separated by commas (a single word ends with a
        comma).
    ndim : int
        The tensor's rank.
    channel_last : bool
        Whether the channel is last in the default layout.

    Raises
    ------
    UsageError
        If `text` is not one distinct letter, or word, per axis.

    Examples
    --------
    >>> make_layout("nhwc", 4).channel
    3
    >>> make_layout(None, 3).letters
    'NCL'
    >>> make_layout(None, 3, channel_last=True).letters
    'NLC'
    >>> make_layout("time,lat,lon", 3).resolve("lat,lon", "axes")
    (1, 2)
    """
    if text is None:
        defaults = CHANNEL_LAST_LAYOUTS if channel_last else DEFAULT_LAYOUTS
        return Layout(ndim, defaults.get(ndim), channel_last)
    is_words = "," in text
    split = _split(text.rstrip(", "), "layout", words=True) if is_words else text.strip().upper()
    labels = tuple(map(str, split))
    if not all(re.fullmatch(r"[^\W\d][^,()\[\]]*" if is_words else "[A-Z]", label) for label in labels):
        raise UsageError(
            f"layout {text!r} is not one letter per axis, such as NCHW, or words with commas between"
        )
    if len(labels) != ndim:
        raise UsageError(
            f"layout {text!r} names {format_count(len(labels), 'axis', 'axes')}; the tensor has {ndim}"
        )
    if len(set(labels)) != ndim:
        raise UsageError(f"layout {text!r} has a {'word' if is_words else 'letter'} twice")
    return Layout(ndim, None, words=labels) if is_words else Layout(ndim, "".join(labels))


def name_layout(dimensions: Sequence[str]) -> str | None:
    """Return names of axes as the text of a layout, separated by commas; None without names.

    Single letters, one of them C or c, are joined without commas. A single word ends with a comma.

    Examples
    --------
    >>> name_layout(["n", "c"]), name_layout(["time", "lat"]), name_layout(["time"])
    ('nc', 'time,lat', 'time,')
    """
    names = [make_printable(name) for name in dimensions]
    if all(re.fullmatch("[A-Za-z]", name) for name in names) and "C" in map(str.upper, names):
        return "".join(names)
    return ",".join(names) + "," * (len(names) == 1) or None


def find_layout(dimensions: Sequence[str] | None) -> str | None:
    """Return names of axes as the text of a layout; None for None, and for names that no layout can have."""
    text = None if dimensions is None else name_layout(dimensions)
    try:
        make_layout(text, len(dimensions or ()))
    except UsageError:
        return None
    return text


def _split(spec: AxisSpec, option: str, *, words: bool) -> list[str | int]:
    """Return the axes that a caller names, in order: numbers as int, letters (with `words`: words) as str.

    `UsageError` is raised for a character that is neither; the message begins with `option`.
    """
    if isinstance(spec, int):
        return [spec]
    if not isinstance(spec, str):
        return [token for part in spec for token in _split(part, option, words=words)]
    if words:
        parts = [word.strip() for word in spec.strip(" ()[]").split(",") if word.strip()]
        return [int(part) if re.fullmatch(r"[+-]?\d{1,18}", part) else part for part in parts]
    tokens: list[str | int] = []
    for found in re.finditer(_TOKEN, spec):
        if found.lastgroup is None:
            raise UsageError(f"{option} {spec!r}: {found[0]!r} is neither a letter nor a number of an axis")
        tokens.append(int(found[0]) if found.lastgroup == "number" else found[0])
    return tokens
