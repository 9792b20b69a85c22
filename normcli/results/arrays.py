"""Arrays and tables of other libraries: read as NumPy arrays, and results given back in their type.

No library is imported here: an array of a library can exist only if the caller has imported it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from normcli.dtypes import LARGEST_EXACT, find_type, is_bfloat16, require_real
from normcli.errors import DataError, UsageError
from normcli.norms.layout import name_layout
from normcli.results.array_reading import read_foreign
from normcli.tensors.tables.column_choice import list_names, match_names
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray

Give = Callable[["NDArray[Any]"], Any]


_LONG_DOUBLE = "g"
"""NumPy's character for the dtype long double."""


def give_back_as_is(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array unchanged: results for callers who gave NumPy arrays or lists."""
    return values


class Taken(NamedTuple):
    """An argument read as a NumPy array, with functions that convert results to the argument's type.

    Parameters
    ----------
    values : ndarray
        The values, of an integer, boolean or float dtype.
    give : callable
        Converts an array of the same shape to the type of the argument.
    columns : tuple of str or None
        The names of a table's columns; None for other arguments.
    layout : str or None
        The names of all axes, as `make_layout` takes them; None if the library has no names.
    give_other : callable
        Converts an array of another shape to an array of the argument's library; for a table, returns it as is.
    """

    values: NDArray[Any]
    give: Give = give_back_as_is
    columns: tuple[str, ...] | None = None
    layout: str | None = None
    give_other: Give = give_back_as_is


def take(x: Any, name: str) -> Taken:
    """Return an argument as an array of real numbers, with the names of its columns or axes.

    Parameters
    ----------
    x : array_like
        A NumPy array, or what NumPy makes an array of; an array of PyTorch, JAX or another library that has
        `__array_namespace__`; a table or a column of pandas or polars; a DataArray of xarray.
    name : str
        The argument's name in messages.

    Raises
    ------
    DataError
        If x holds anything but real numbers (of a table, the message names the columns), is a masked array, or
        holds long doubles that float64 cannot hold.
    MissingExtraError
        If x is a PyTorch tensor of bfloat16, and the package that has this dtype for NumPy is not installed.

    Examples
    --------
    >>> take([[1, 2], [3, 4]], "x").values
    array([[1, 2],
           [3, 4]])
    """
    taken = Taken(x) if type(x) is np.ndarray else _find_reader(x)(x, name)
    require_real(taken.values.dtype, name)
    if taken.values.dtype.char == _LONG_DOUBLE:
        return taken._replace(values=_shorten(taken.values, name))
    return taken


def take_columns(x: Any, name: str, wanted: Sequence[str] | None) -> Taken:
    """Return an argument as `take` does, but of a table only the wanted columns, in their order.

    Results are given back as the whole table, in which the other columns are as they were.

    Raises
    ------
    DataError
        If a table lacks a wanted column or has two of its name; if `take` does.
    """
    names = [*map(str, x.columns)] if _find_reader(x) in (_take_pandas, _take_polars) else None
    if wanted is None or names is None or names == [*wanted]:
        return take(x, name)
    if any(names.count(one) != 1 for one in wanted):
        are_there = {*wanted} <= {*names}
        held = names if are_there else [one for one in names if one in wanted]  # others may be there
        match_names(held or names, wanted, name)  # raises
    chosen = [x.columns[names.index(one)] for one in wanted]
    taken = take(x[chosen], name)

    def give(values: NDArray[Any]) -> Any:
        if hasattr(x, "with_columns"):  # of polars
            return x.with_columns(taken.give(values).get_columns())
        table = x.copy(deep=False)
        table[chosen] = taken.give(values)
        return table

    return taken._replace(give=give)


def _shorten(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return long doubles as float64; raise `DataError` if one changes its value."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float64)
    if not np.array_equal(short, values, equal_nan=True):
        raise DataError(
            f"{name} holds {values.dtype} numbers that float64 does not hold; round them to it first"
        )
    return short


def _find_reader(x: Any) -> Callable[[Any, str], Taken]:
    """Return the function that reads an argument of this class; `_take_array` for classes not in `_READERS`."""
    for module, kind, reader in _READERS:
        library = sys.modules.get(module)
        if library is not None and isinstance(x, getattr(library, kind, ())):
            return reader
    return _take_array


# -- arrays


def _take_array(x: Any, name: str) -> Taken:
    """Read an array without names of columns or axes: NumPy's, another library's, or a list.

    `name` is the argument's name in messages. The result of a torch tensor that is not contiguous is given back
    in the tensor's memory order.

    Raises
    ------
    DataError
        If it is a masked array, or cannot be read as an array of numbers.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array, whose mask would be lost; fill it first")
    try:
        values = read_foreign(x)
    except (ValueError, TypeError, RuntimeError, BufferError) as error:
        _refuse(x, name, error)
    give = _find_way_back(x)
    strided = _is_torch(x) and not x.is_contiguous()  # such as channels_last, which the result then is too
    return Taken(values, partial(_give_strided, x, give) if strided else give, give_other=give)


def _refuse(x: Any, name: str, error: Exception) -> NoReturn:
    """Raise `DataError` with the reason why an array cannot be read."""
    if str(getattr(x, "device", "")) == "meta":
        raise DataError(f"{name} is a meta tensor, which has a shape and no values") from error
    dtype = str(getattr(x, "dtype", "")).rpartition(".")[2]
    if dtype.startswith("float"):
        raise DataError(
            f"{name} holds {dtype} numbers, of which NumPy has no dtype; convert it to float32 first"
        ) from error
    raise DataError(f"{name} is not a rectangular array of numbers") from error


def _is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _find_way_back(x: Any) -> Give:
    """Return the function that turns a NumPy array into an array of the library of `x`, on its device.

    For a NumPy array, a list or an unknown class it returns the array as it is.
    """
    if isinstance(x, np.ndarray):
        return give_back_as_is
    if _is_torch(x):
        return partial(_give_torch, sys.modules["torch"], x.device)
    if hasattr(x, "__array_namespace__"):
        return partial(_give_array, x.__array_namespace__(), getattr(x, "device", None))
    return give_back_as_is


def _give_torch(torch: Any, device: Any, values: NDArray[Any]) -> Any:
    """Return a NumPy array as a tensor of torch on a device; it shares memory on the CPU."""
    if is_bfloat16(values.dtype):  # torch does not know ml_dtypes' bfloat16
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(values).to(device)


def _give_strided(x: Any, give: Give, values: NDArray[Any]) -> Any:
    """Return a tensor of torch with the memory order of the tensor `x`, as channels_last."""
    y = give(values)
    return sys.modules["torch"].empty_like(x, dtype=y.dtype).copy_(y)


def take_place(out: Any) -> Any:
    """Return the NumPy array into which a result for `out` is written; it shares memory with a tensor of torch.

    Anything but a tensor of torch is returned as it is.

    Raises
    ------
    UsageError
        If `out` is a tensor of torch on another device, or one that requires a gradient.
    """
    if not _is_torch(out):
        return out
    if out.device.type != "cpu" or out.requires_grad:
        raise UsageError("out must be a tensor in memory that requires no gradient")
    torch = sys.modules["torch"]
    if out.dtype is torch.bfloat16:
        return out.view(torch.int16).numpy().view(find_type("bfloat16"))
    return out.numpy()


def _give_array(library: ModuleType, device: Any, values: NDArray[Any]) -> Any:
    """Return an array of an array API library; raise `UsageError` if the library changes its dtype."""
    given = library.asarray(values, device=device)
    if str(given.dtype).rpartition(".")[2] != values.dtype.name:
        raise UsageError(
            f"the result is {values.dtype.name}, which {library.__name__} makes {given.dtype}: choose a dtype"
        )
    return given


# -- tables


def _take_pandas(table: Any, name: str) -> Taken:
    """Read a table of pandas; raise `DataError`, with the columns' names, if columns hold no numbers."""
    pandas = sys.modules["pandas"]
    _refuse_columns(name, [str(c) for c, dtype in table.dtypes.items() if not _is_number(pandas, dtype)])
    columns = tuple(map(str, table.columns))
    values = _merge_pandas(table.dtypes.tolist(), table)
    _warn_of_rounding(name, values, [dtype.kind in "iu" for dtype in table.dtypes])
    return Taken(values, lambda y: pandas.DataFrame(y, index=table.index, columns=table.columns), columns)


def _take_series(series: Any, name: str) -> Taken:
    pandas = sys.modules["pandas"]
    _refuse_columns(name, [] if _is_number(pandas, series.dtype) else [str(series.name)])
    values = _merge_pandas([series.dtype], series)
    return Taken(values, lambda y: pandas.Series(y, index=series.index, name=series.name))


def _is_number(pandas: Any, dtype: Any) -> bool:
    types = pandas.api.types
    return bool(types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype))


def _merge_pandas(dtypes: Sequence[Any], table: Any) -> NDArray[Any]:
    """Return a table's or column's values in the NumPy dtype that all of `dtypes` can be converted to.

    Missing values are NaN; integers are then float64.
    """
    common = np.result_type(*(getattr(dtype, "numpy_dtype", dtype) for dtype in dtypes or [np.float64]))
    if common.kind == "f" or not np.asarray(table.isna()).any():
        return np.asarray(table.to_numpy(dtype=common, **({"na_value": np.nan} if common.kind == "f" else {})))
    return np.asarray(table.to_numpy(dtype=np.float64, na_value=np.nan))


def _take_polars(table: Any, name: str) -> Taken:
    """Read a table of polars; raise `DataError`, with the columns' names, if columns hold no numbers."""
    polars = sys.modules["polars"]
    _refuse_columns(
        name, [column for column, dtype in table.schema.items() if not _is_polars_number(polars, dtype)]
    )
    columns, values = tuple(table.columns), table.to_numpy()
    _warn_of_rounding(name, values, [dtype.is_integer() for dtype in table.dtypes])
    return Taken(values, lambda y: polars.DataFrame(y, schema=list(columns), orient="row"), columns)


def _take_polars_series(series: Any, name: str) -> Taken:
    polars = sys.modules["polars"]
    _refuse_columns(name, [] if _is_polars_number(polars, series.dtype) else [series.name])
    return Taken(series.to_numpy(), lambda y: polars.Series(series.name, y))


def _is_polars_number(polars: Any, dtype: Any) -> bool:
    return bool(dtype.is_float() or dtype.is_integer() or dtype == polars.Boolean)


def _warn_of_rounding(name: str, values: NDArray[Any], whole: Sequence[bool]) -> None:
    """Warn if columns of whole numbers (`whole`) were rounded to float64 because other cells are floats."""
    if values.dtype.kind == "f" and (np.abs(values[:, np.asarray(whole, dtype=bool)]) >= LARGEST_EXACT).any():
        message = (
            f"{name}: whole numbers of 2^53 and more are rounded to float64, as other cells are no such numbers"
        )
        warnings.warn(message, stacklevel=2)


def _refuse_columns(name: str, columns: Sequence[str]) -> None:
    if columns:
        raise DataError(f"{name} has columns that hold no numbers: {list_names(columns)}; leave them out")


# -- named axes


def _take_xarray(array: Any, name: str) -> Taken:
    taken = _take_array(array.data, name)
    layout = name_layout([*map(str, array.dims)])
    return Taken(taken.values, partial(_give_xarray, array), layout=layout, give_other=taken.give_other)


def _give_xarray(array: Any, values: Any) -> Any:
    return array.copy(data=values)


_READERS = (
    ("pandas", "DataFrame", _take_pandas),
    ("pandas", "Series", _take_series),
    ("polars", "DataFrame", _take_polars),
    ("polars", "Series", _take_polars_series),
    ("xarray", "DataArray", _take_xarray),
)
"""The classes of libraries by module and name, with the function that reads an object of each."""


_LAZY = {("dask.array", "Array"): "normcli.cluster.arrays"}
"""The classes of arrays that are not in memory, and the module that works on them."""


class Lazy(NamedTuple):
    """An argument that is not in memory.

    Parameters
    ----------
    taken : Taken
        The argument; its `values` are an array of the lazy library, not of NumPy.
    work : module
        The module with functions that fit, normalize, use and check such arrays.
    """

    taken: Taken
    work: ModuleType


def find_lazy(x: Any) -> Lazy | None:
    """Return a lazy argument (a dask array, or a DataArray of one); None for all others, which `take` reads."""
    if type(x) is np.ndarray:
        return None
    taken = Taken(x)
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(x, xarray.DataArray) and x.chunks is not None:
        taken = Taken(x.data, partial(_give_xarray, x), layout=name_layout([*map(str, x.dims)]))
    for (module, kind), home in _LAZY.items():
        library = sys.modules.get(module)
        if library is not None and isinstance(taken.values, getattr(library, kind)):
            return Lazy(taken, import_module(home))  # on use: it takes a while to import
    return None
