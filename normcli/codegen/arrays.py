"""Each framework's spelling of the array operations of a norm: the table of `arrays.toml`."""

from __future__ import annotations

import pkgutil
import tomllib
from types import MappingProxyType
from typing import TYPE_CHECKING

from normcli.dtypes import is_bfloat16
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np


class Arrays(NamedTuple):
    """The array operations of one framework, each as a template of code.

    Parameters
    ----------
    name : str
        The framework's name in `--emit`.
    title : str
        The framework's name in sentences.
    templates : mapping of str to str
        Operation → its template; an operation without one is not known to the framework.

        * Reductions of the array `{x}` over the axes `{axes}`, which stay as axes of length 1: `mean`, `sum`,
          `max`, `min`, `quantile`, `singular value`. `Writer.reduce` fills in, as far as a template has them:
          `{axis_list}`, the reduced axes as a list; `{count}`, their number; `{last}`, the numbers of as many
          axes at the end, such as (-2, -1); `{kept}`, the shape of the result; `{order}`, all axes with the
          reduced ones at the end; `{flat}`, the shape after that with the reduced axes as one; `{by_rows}` and
          `{matrices}`, an order and a shape in which rows and columns are the last two axes; `{q}`, the
          quantile from 0 to 1, which among the sorted values s is s[{low}] + {rest} · (s[{high}] − s[{low}]).
        * `sqrt`, `abs` and `sign`; `maximum` of an array and a number; `where` of a condition, a number and an
          array; `reshape`, `transpose`, `pad`; `turn`, which swaps the last two axes, for frameworks with
          loops; `slice` and `add` for a framework whose arrays have no `[a:b]`.
        * `cast`, `{x}` in the dtype `{dtype}`; `constant`, the numbers `{x}` as an array of the dtype of the
          array `x`; `make`, a NumPy array `{x}` as an array of the framework; `dtype`, the framework's dtype,
          given its name `{dtype}`.
        * The name of an `Activation`: that of an array `gate`.
    imports : sequence of str
        The lines that import the framework.
    bfloat16 : str
        The code of bfloat16, if it is from the package ml_dtypes; "" otherwise.
    setup : mapping of str to sequence of str
        dtype → the lines after the imports that arrays of this dtype need.
    helpers : mapping of str to str
        Function that templates call → its definition.
    reader : str
        The framework's own module whose `load_file` reads safetensors files, as PyTorch takes no bfloat16 of
        NumPy; "" for NumPy's.
    """

    name: str
    title: str
    templates: Mapping[str, str]
    imports: Sequence[str] = ()
    bfloat16: str = ""
    setup: Mapping[str, Sequence[str]] = MappingProxyType({})
    helpers: Mapping[str, str] = MappingProxyType({})
    reader: str = ""

    @property
    def takes_numpy(self) -> bool:
        """Whether an array of NumPy is one of the framework as it is."""
        return self.templates["make"] == "{x}"

    def write(self, operation: str, **parts: object) -> str:
        """Return the code of an operation."""
        return self.templates[operation].format(**parts)

    def name_dtype(self, dtype: np.dtype[np.generic]) -> str:
        """Return the code of a dtype."""
        is_other = self.bfloat16 and is_bfloat16(dtype)
        return self.bfloat16 if is_other else self.write("dtype", dtype=dtype.name)


def _read_rows() -> Iterator[Arrays]:
    table = tomllib.loads((pkgutil.get_data("normcli.codegen", "arrays.toml") or b"").decode())
    for name, row in table["frameworks"].items():
        modules = row.pop("modules", None)
        usual = {} if modules is None else _fill(table["common"], modules)
        yield Arrays(name, **{**row, "templates": usual | row["templates"]})


def _fill(templates: Mapping[str, str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return templates with the names of modules in the place of `{np}` and `{nn}`."""
    found = dict(templates)
    for sign, module in modules.items():
        found = {name: template.replace(f"{{{sign}}}", module) for name, template in found.items()}
    return found


*_FRAMEWORKS, ONNX = _read_rows()

FRAMEWORKS: Mapping[str, Arrays] = MappingProxyType({row.name: row for row in _FRAMEWORKS})
"""Name of a framework → its arrays; ONNX is not among them, whose operators are written like functions."""
