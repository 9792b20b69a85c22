"""Lists as NumPy, PyTorch and Python print them: brackets without commas, `tensor(…)`, comments."""

from __future__ import annotations

import re

from normcli.errors import DataError

_PRINTED = re.compile(r"\s*(?:\w+\s*=\s*)?(?:[\w.]+\()?\s*(\[[^()]*\])\s*(?:,[^\[\]()]*)?\)?\s*")
_COMMENT = re.compile(r"#[^\n]*")
_NO_NUMBER = re.compile(r"[\[,]\s*,")
_TOKEN = re.compile(r"[\[\]]|[^\s,\[\]]+")
_WHOLE = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)")


def spell_as_json(text: str, name: str) -> str | None:
    r"""Return a printed list of numbers as JSON; None of any other text.

    Raises
    ------
    DataError
        If numbers are left out of a long list.

    Examples
    --------
    >>> spell_as_json("tensor([[1., 2.], [nan, -.5]], dtype=torch.float64)", "--data")
    '[[1.0,2.0],["nan",-0.5]]'
    >>> spell_as_json("[[6 3]\n [7 4]]", "--data")
    '[[6,3],[7,4]]'
    """
    found = _PRINTED.fullmatch(_COMMENT.sub("", text))
    if found is None or _NO_NUMBER.search(found[1]):
        return None
    tokens = _TOKEN.findall(found[1])
    if "..." in tokens:
        raise DataError(f"{name} leaves out numbers at “...”: print all of them, or save the array to a file")
    spelled = ""
    for token in tokens:
        if token not in "[]" and not _NUMBER.fullmatch(token):
            return None
        spelled += ("" if token == "]" or spelled[-1:] in ("", "[") else ",") + _spell(token)
    return spelled if tokens.count("[") == tokens.count("]") else None


def _spell(token: str) -> str:
    if token in "[]" or _WHOLE.fullmatch(token):
        return token.removeprefix("+")
    return f'"{token}"' if token[-1] in "nf" else repr(float(token))
