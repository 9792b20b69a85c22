"""Translation of a text, by finding the messages of a catalogue that it was made from."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PLACE = re.compile(r"\{(\d)([!#&@]?)\}")
"""The place of a value in a message: `{0}`.

In a translation, a mark behind the number says how the value is translated: `{0!}` is left as it is (names, or
a path, but not `_NO_FILE`); `{0&}` is a list of names, of which only the commas are translated; `{0@}` is left
as it is, and must have no punctuation; `{0#}` has no words (a number).
"""

_STAYS, _WORDLESS, _STAYING_LIST, _STAYING_NAMES = "!", "#", "&", "@"

_NO_FILE = "standard input"
"""The name that messages give the input if it is no file; it is translated in the place of a name too."""

_UNMARKED = re.compile(r"[^,;:()]*[^,;:().]")

_SHORT = 6
"""The least number of fixed characters of a message whose values may themselves be messages."""

_WORD = re.compile(r"(?<![\w.\-/'’@,:])(?=[A-Za-z]*[a-z])[A-Za-z]{2,}(?![\w\-/(=@'’]|[.,:]\w)")
"""An English word, and no part of a name as in `--eps`, `x.npy`, `float64`, `f(x)`, `a,b` or `CHW`."""

_SHAPES = re.compile(r"\S+ → \S+")
_OPERATOR = re.compile(r" [=≈·/+−^] |[=^]")
_PROSE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
_LISTED = re.compile(r"[,:;.] ")

NAMES = frozenset((
    "abs", "alpha", "arange", "areal", "arXiv", "atol", "bash", "BERT", "bert", "beta", "bfloat", "bn", "bytes",
    "caffe", "CSV", "csv", "dask", "dbeta", "ddof", "dgamma", "dgate", "DIR", "DiT", "dit", "dx", "dy", "eps",
    "equinox", "exponent", "FILE", "fish", "Flax", "flax", "float", "flux", "gamma", "GB", "gelu", "gemma",
    "GiB", "GitHub", "gn", "HDF", "HTML", "html", "inf", "install", "JAX", "jax", "JSON", "json", "jsonl",
    "kB", "Keras", "keras", "KEY", "KiB", "llama", "ln", "lp", "lrn", "mamba", "markdown", "max", "maxabs",
    "MB", "mean", "megatron", "MiB", "midrange", "min", "minmax", "MLX", "mlx", "ms", "mvn", "NaN", "nan",
    "nc", "ncdhw", "nchw", "ncl", "nnunet", "NORM", "norm", "normal", "normcli", "npy", "npz", "NumPy", "numpy",
    "ONNX", "onnx", "openvino", "opset", "pairwise", "paper", "Parquet", "pip", "PNG", "png", "PyTorch",
    "randint", "ReLU", "relu", "ResNet", "revin", "rms", "robust", "rstd", "rtol", "scipy", "shifted",
    "sigmoid", "SiLU", "silu", "size", "sklearn", "sn", "sqrt", "std", "stdin", "sum", "SVG", "svg",
    "table", "tanh", "TensorFlow", "tensorflow", "timm", "torch", "torchvision", "Transformer", "trl",
    "transformers", "tree", "TSV", "tsv", "ulp", "uniform", "var", "verl", "welford", "wn", "ws", "xhat",
    "Zarr", "zarr", "zscore", "zsh",
))  # fmt: skip
"""Words that are the same in every language: norms, statistics in formulas, dtypes, frameworks, formats."""

_SENTENCES = re.compile(r"(?<=[.?!\]]) (?=[A-ZΣ√x̂“|`([-]|[a-z]+: )")

_WHERE = re.compile(
    r"(?<!the first) (?=for [\w ×]+(?:=| ≥ | < )\d|for (?:every \d|[\d,]+ (?:values, the|of \d))"
    r"|at \([\d, ]+\)$|from an index of |for (?:one index|some indices|values here|a part) )"
)
"""The space between a statement and the values of a tensor that it is about."""

_CLAUSES = (
    (re.compile("; or "), "；或"),
    (re.compile("; "), "；"),
    (re.compile(", and "), "，且"),
    (_WHERE, "，"),
)
"""(English joint, Chinese joint) of clauses that are messages of their own; tried before whole messages."""

_JOINTS = (
    (re.compile(r" {3,}"), "   "),
    (re.compile(" · "), " · "),
    (re.compile(": "), "："),
    (re.compile(", and |, "), "、"),
    (re.compile(" and "), " 和 "),
    (re.compile(" or "), " 或 "),
    (re.compile(" → "), " → "),
)
"""(English joint, Chinese joint) of several messages in one text, the loosest joint first."""

_STOPPED = re.compile(r"[\w%)]\.$")
"""A value that ends in a full stop, which belongs to the sentence and not to the value."""

_NUMBERED = re.compile(r"[-−\d.,e+]*\d\.")
"""A number with a full stop, which belongs to the sentence and not to the value."""

_ENDED = re.compile(r"(?<!^\d)\.\0")
"""An English full stop between two sentences; not the one behind the number of a step, such as `1.`."""

_TORN = re.compile(r"= .*|.*[,:]|(?:fix: |\w+ differs: |(?:y is )?\w+, but ).*", re.DOTALL)
"""Texts that match as a value only by chance: a side of an equation, or the beginning of a line or clause."""

_ENDS = {".": "。", ":": "：", "?": "？", "!": "！"}
_MARKED = re.compile(r"(\d+\. |[✓✗←…·#] )(.+)", re.DOTALL)
_BRACKETED = re.compile(r"(.+?) ?\((.+)\)", re.DOTALL)


class _Message(NamedTuple):
    """A message with numbered values, such as `{0} of {1} differ`, and its translation.

    Parameters
    ----------
    pattern : re.Pattern
        Matches a text that is made from the message, with a group for each value.
    literal : str
        The longest part between values: a text without it cannot be made from the message.
    places : tuple of int
        The number of the value that each group of the pattern matches.
    said : str
        The translation.
    used : mapping of int to str
        The number of each value that the translation uses → its mark there, such as `!` (see `PLACE`), or "".
    fixed : int
        The number of characters of the message outside values.
    """

    pattern: re.Pattern[str]
    literal: str
    places: tuple[int, ...]
    said: str
    used: Mapping[int, str]
    fixed: int

    @classmethod
    def parse(cls, message: str, said: str) -> _Message:
        """Compile a message of the catalogue, such as `{0} values`, to the pattern of the texts made from it.

        Parameters
        ----------
        message : str
            The English message, with `{0}`, `{1}` … for values, or with none.
        said : str
            Its translation, whose values may have a mark (see `PLACE`).
        """
        parts = PLACE.split(message)
        literals, places = parts[::3], tuple(map(int, parts[1::3]))
        pattern = "(.*?)".join(map(re.escape, literals))
        used = {int(place): kind for place, kind in PLACE.findall(said)}
        return cls(
            re.compile(pattern, re.DOTALL), max(literals, key=len), places, said, used, sum(map(len, literals))
        )

    def match(self, text: str) -> dict[int, str] | None:
        """Return the values, by number, of a text that is made from this message; None for any other text."""
        found = self.pattern.fullmatch(text) if self.literal in text else None
        return None if found is None else dict(zip(self.places, found.groups(), strict=True))


class Reader:
    """A translator of texts by a catalogue.

    Parameters
    ----------
    messages : mapping of str to str
        Message → its translation.
    """

    def __init__(self, messages: Mapping[str, str]) -> None:
        self._messages = messages
        self._constant = {key: said for key, said in messages.items() if key and not PLACE.search(key)}
        templates = [_Message.parse(key, said) for key, said in messages.items() if PLACE.search(key)]
        # The most particular first: the one of which most is fixed.
        self._templates = sorted(templates, key=lambda message: -message.fixed)

    def look_up(self, message: str) -> str:
        """Return the translation of a message, its values written `{0}` without marks; "" without one."""
        return PLACE.sub(r"{\1}", self._messages.get(message, ""))

    def translate(self, text: str, names: frozenset[str] = frozenset()) -> str:
        """Return the translation of a whole text; the text unchanged if any part of it has no translation.

        Parameters
        ----------
        text : str
        names : frozenset of str
            The user's own words, which are not translated.
        """
        known = self._read(text, names, {})
        return text if known is None else _space(known)

    def _read(self, text: str, names: frozenset[str], seen: dict[str, str | None]) -> str | None:
        """Return a text's translation, or None. `names` stay as they are; results are stored in `seen`."""
        if text in names:
            return text
        if text in self._constant:
            return self._constant[text]
        if not find_foreign_words(text):
            return _separate(text)
        if text not in seen:
            seen[text] = None  # while it is being read
            seen[text] = next(self._find_readings(text, names, seen), None)
        return seen[text]

    def _find_readings(self, text: str, names: frozenset[str], seen: dict[str, str | None]) -> Iterator[str]:
        """Yield translations of a text, by one rule after the other; nothing if no rule fits.

        A rule divides the text and translates its parts. In order, the surest first: a mark at its start,
        sentences, clauses, messages with values, a mark at its end, formulas, lists, brackets, a capital at its
        start.
        """
        bare = text.strip(" ")
        if bare != text:
            inner = self._read(bare, names, seen)
            if inner is not None:
                yield text.replace(bare, inner)
            return
        marked = _MARKED.fullmatch(text)
        if marked:
            inner = self._read(marked[2], names, seen)
            if inner is not None:
                yield marked[1] + inner
        for sentences in self._join(text, _SENTENCES, "\0", names, seen):
            yield _ENDED.sub("。", sentences).replace("\0", "")
        for joint, joined in _CLAUSES:
            yield from self._join(text, joint, joined, names, seen)
        for message in self._templates:
            values = message.match(text)
            if values is None:
                continue
            read = {
                place: self._read_value(values[place], kind, message.fixed < _SHORT, names, seen)
                for place, kind in message.used.items()
            }
            if None not in read.values():
                yield PLACE.sub(lambda place: read[int(place[1])] or "", message.said)  # noqa: B023
        if text[-1] in _ENDS:
            inner = self._read(text[:-1], names, seen)
            if inner is not None:
                yield inner + _ENDS[text[-1]]
        if is_formula(text):
            yield text
        for joint, joined in _JOINTS:
            yield from self._join(text, joint, joined, names, seen)
        bracketed = _BRACKETED.fullmatch(text)
        if bracketed:
            outside, inside = (self._read(part, names, seen) for part in bracketed.groups())
            if outside is not None and inside is not None:
                yield f"{outside}（{inside}）"
        if text[0].isupper():  # a message that begins a sentence
            inner = self._read(text[0].lower() + text[1:], names, seen)
            if inner is not None:
                yield inner

    def _read_value(
        self, value: str, kind: str, is_short: bool, names: frozenset[str], seen: dict[str, str | None]
    ) -> str | None:
        """Return the translation of a value in a message; None if the message cannot have this value.

        Parameters
        ----------
        value : str
        kind : str
            The mark of the value in the translation (see `PLACE`); "" for none.
        is_short : bool
            Whether the message has few characters outside values: a value with words is then translated only if
            it is a message itself.
        names : frozenset of str
            The user's own words, which are not translated.
        seen : dict
            Earlier results of `_read`, which are added to.
        """
        bare = value.strip()
        if kind == _STAYS or bare in names:
            return self._constant.get(bare, value) if bare == _NO_FILE else value
        if kind == _STAYING_NAMES:
            return value if _UNMARKED.fullmatch(value) else None
        if kind == _STAYING_LIST:
            return value.replace(", ", "、")
        if bare == "a" or _NUMBERED.fullmatch(bare) or _TORN.fullmatch(bare):  # an article, not an axis
            return None
        if _STOPPED.search(bare):
            return None
        if kind != _WORDLESS and not is_short:
            read = self._read(value, names, seen)
            if read is None or ": " in bare or find_foreign_words(bare):
                return read
            return read.replace("; ", "；")
        if find_foreign_words(bare):
            return None if kind else self._constant.get(bare)
        return _separate(value)

    def _join(
        self, text: str, joint: re.Pattern[str], joined: str, names: frozenset[str], seen: dict[str, str | None]
    ) -> Iterator[str]:
        """Yield the translation of a text that is split at a joint such as `; `; nothing if a part has none.

        Parts that together are one message, which contains the joint, are translated as one. `joined` is the
        joint in the translation.
        """
        parts = self._gather(joint.split(text), text)
        if len(parts) > 1:
            read = [self._read(part, names, seen) for part in parts]
            if None not in read:
                yield joined.join(filter(None, read))

    def _gather(self, parts: list[str], text: str) -> list[str]:
        """Return the parts of a text, with neighbouring parts joined if together they are one message."""
        if len(parts) < 3:
            return parts
        for first, last in itertools.combinations(range(len(parts)), 2):
            start = text.find(parts[first])
            end = text.find(parts[last], start) + len(parts[last])
            if text[start:end] in self._constant and 0 < last - first < len(parts) - 1:
                return [*parts[:first], text[start:end], *self._gather(parts[last + 1 :], text[end:])]
        return parts


_NAMED = r"(?:--[\w-]+|\(\d[\d, ]*\)|[-−]?\d[\d.e+-]*|[A-Za-z][\w-]*(?:[:=][\w:=.+-]*)?(?: [\d.e+-]+)?)"
_NAMES_LISTED = re.compile(rf"{_NAMED}(?:, {_NAMED})+")
"""Names, shapes or numbers separated by commas; a name may have options or a number: `bn, gn:groups=2`."""

_BETWEEN = re.compile(r", (?![^(]*\))")


def _separate(text: str) -> str:
    """Return a text without words; if it is a list of names, with Chinese commas."""
    return _BETWEEN.sub("、", text) if _NAMES_LISTED.fullmatch(text) else text


_HAN = "\u4e00-\u9fff"
_CLOSED = re.compile(f"(?<=[{_HAN}，。：；）、]) (?=[{_HAN}（])")
_MEETING = re.compile(f"(?<=[{_HAN}])(?=[A-Za-z0-9√−ℓ]|-\\d)|(?<=[A-Za-z0-9%\u0302])(?=[{_HAN}])")


def _space(text: str) -> str:
    """Return a text with a space between Chinese and other characters, and none between Chinese ones."""
    return _MEETING.sub(" ", _CLOSED.sub("", text))


def is_formula(text: str) -> bool:
    """Whether a text is a formula, whose words are names of quantities.

    Examples
    --------
    >>> is_formula("y = x / (k + alpha · Σx²/size)^exponent"), is_formula("gamma is 1")
    (True, False)
    """
    return bool(_OPERATOR.search(text)) and not _PROSE.search(text) and not _LISTED.search(text)


def find_foreign_words(text: str) -> list[str]:
    """Return the words of a text that need translation: English words that are not in `NAMES`.

    Examples
    --------
    >>> find_foreign_words("3 groups of x.npy, by --eps and mean")
    ['groups', 'of', 'by', 'and']
    """
    return [word for word in _WORD.findall(_SHAPES.sub("", text)) if word not in NAMES]
