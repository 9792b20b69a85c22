"""Lists as NumPy, PyTorch and Python print them: brackets without commas, `tensor(…)`, a dtype, comments."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from normcli.dtypes import OUTPUT_DTYPES, find_type
from normcli.errors import DataError
from normcli.tuples import NamedTuple

_PRINTED = re.compile(
    r"\s*(?:Parameter containing:\s*)?(?:\w+\s*=\s*)?(?P<call>[\w.]+\()?"
    r"\s*(?P<numbers>\[[^()]*\]|(?(call)[^\s,\[\]()]+|(?!)))"
    r"\s*(?P<options>(?:,(?:[^\[\]()]|\([\d,\s]*\))*)?)\)?\s*"
)
_SCALAR = re.compile(r"\bnp\.\w+\(([^()]*)\)")
_COMMENT = re.compile(r"#[^\n]*")
_DTYPE = re.compile(r"dtype='?(?:torch\.|np\.|numpy\.)?(\w+)")
_NO_NUMBER = re.compile(r"[\[,]\s*,")
_TOKEN = re.compile(r"[\[\]]|[^\s,\[\]]+")
_WHOLE = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)")
_TRUTH = {"True": "true", "False": "false"}


class Printed(NamedTuple):
    """A printed list of numbers.

    Parameters
    ----------
    json : str
        The numbers as nested lists in JSON.
    dtype : dtype or None
        The dtype that is printed behind the numbers; None without one.
    """

    json: str
    dtype: np.dtype[Any] | None


def read_printed(text: str, name: str) -> Printed | None:
    r"""Return the numbers that NumPy, PyTorch or Python printed; None if a text is no such list.

    A single number counts if it stands in a call, such as `tensor(1.5)`.

    Parameters
    ----------
    text : str
    name : str
        The origin of the text, for messages.

    Raises
    ------
    DataError
        If numbers are left out (`...`), or the dtype is none of real numbers.

    Examples
    --------
    >>> read_printed("tensor([[1., 2.], [nan, -.5]], dtype=torch.float64)", "--data")
    Printed(json='[[1.0,2.0],["nan",-0.5]]', dtype=dtype('float64'))
    >>> read_printed("[[6 3]\n [7 4]]", "--data").json
    '[[6,3],[7,4]]'
    """
    text = _COMMENT.sub("", text)
    found = _PRINTED.fullmatch(text) or _PRINTED.fullmatch(_SCALAR.sub(r"\1", text))
    if found is None or _NO_NUMBER.search(found["numbers"]):
        return None
    tokens = _TOKEN.findall(found["numbers"])
    if "..." in tokens:
        raise DataError(f"{name} leaves out numbers at “...”: print all of them, or save the array to a file")
    spelled = ""
    for token in tokens:
        if token not in "[]" and token not in _TRUTH and not _NUMBER.fullmatch(token):
            return None
        spelled += ("" if token == "]" or spelled[-1:] in ("", "[") else ",") + _spell(token)
    if tokens.count("[") != tokens.count("]"):
        return None
    return Printed(spelled, _read_dtype(found["options"], name))


def _spell(token: str) -> str:
    if token in "[]" or _WHOLE.fullmatch(token):
        return token.removeprefix("+")
    if token in _TRUTH:
        return _TRUTH[token]
    return f'"{token}"' if token[-1] in "nf" else repr(float(token))


def _read_dtype(options: str, name: str) -> np.dtype[Any] | None:
    """Return the dtype printed behind numbers, such as `dtype=torch.float16`; None without one."""
    found = _DTYPE.search(options)
    if found is None:
        return None
    dtype = found[1]
    if dtype not in OUTPUT_DTYPES and not re.fullmatch(r"u?int\d+|bool_?", dtype):
        raise DataError(f"{name} holds {dtype}; integers, booleans and floats are taken")
    made: np.dtype[Any] = np.dtype(find_type(dtype))
    return made
