"""Coordinates of a Zarr array: other arrays that its axes and attributes name, as xarray writes them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np

REFERRING = ("coordinates", "bounds", "grid_mapping")
"""Attributes that name the arrays which belong to an array (CF conventions 1.11, sections 5 and 7)."""

OF_STORED = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
"""Attributes that say what stored numbers stand for (CF 1.11, section 8.1; netCDF): wrong for other numbers."""


def read_names(array: Any) -> list[Any]:
    """Return the names of a Zarr array's axes, from its metadata or xarray's attribute; `[]` without names."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    return list(names) if isinstance(names, list | tuple) else []


def list_coordinates(name: str, arrays: Mapping[str, Any]) -> list[str]:
    """Return the names of an array's coordinate arrays in a store, such as `time` and `lat`.

    These are the arrays with the name of one of its axes, or named in one of its attributes in `REFERRING`, and
    in turn the coordinates of these. An array is not its own coordinate.

    Parameters
    ----------
    name : str
        The array's name in the store.
    arrays : mapping of str to zarr.Array
        All arrays of the store, by name.
    """
    group = name.rpartition("/")[0]
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        array = arrays[waiting.pop()]
        texts = (array.attrs.get(key) for key in REFERRING)
        named = [
            *read_names(array),
            *(word for text in texts if isinstance(text, str) for word in text.split()),
        ]
        for one in named:
            place = f"{group}/{one}" if group else str(one)
            if place in arrays and place not in found and place != name:
                found[place] = None
                waiting.append(place)
    return list(found)


def drop_coordinates(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays that are no coordinates of another one; all arrays, if every one of them is."""
    belonging = {other for name in arrays for other in list_coordinates(name, arrays)}
    return {name: array for name, array in arrays.items() if name not in belonging} or dict(arrays)


def choose_attributes(array: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the attributes to copy from a stored array to a result that is calculated from it.

    Attributes about the stored numbers (`OF_STORED`, such as `scale_factor` and `missing_value`) are left out,
    unless `dtype`, the result's, is the array's own and it has no scale factor and no offset.
    """
    kept = dict(array.attrs)
    if dtype == array.dtype and not any(name in kept for name in OF_STORED[:2]):
        return kept
    return {name: value for name, value in kept.items() if name not in OF_STORED}


def describe_packing(array: Any) -> str | None:
    """Return a note that numbers are read without their scale factor or offset; None if they have neither."""
    found = [name for name in OF_STORED[:2] if name in array.attrs]
    if not found:
        return None
    return f"its numbers are taken as they are stored, without {' and '.join(found)}"


def copy_coordinates(zarr: Any, folder: Path, key: str, like: Any) -> None:
    """Copy the coordinates of an array into the store of a result that was made from it.

    If the metadata of the old store are consolidated, those of the new one are, too.

    Parameters
    ----------
    zarr : module
    folder : Path
        The folder of the store that is written.
    key : str
        The name of the result in that store, where it is already.
    like : zarr.Array
        The array from which the result was made.
    """
    own, group = (path.rpartition("/")[0] for path in (like.path, key))
    try:
        root = zarr.open_group(like.store, path=own, mode="r")
    except (KeyError, FileNotFoundError):  # the array lies in no group
        return
    zarr.open_group(str(folder), path=group, mode="a", zarr_format=like.metadata.zarr_format)
    arrays = find_arrays(zarr, root)
    for name in list_coordinates(like.path.rpartition("/")[2], arrays):
        _copy(zarr, folder, f"{group}/{name}" if group else name, arrays[name])
    if getattr(root.metadata, "consolidated_metadata", None) is not None:
        with warnings.catch_warnings(action="ignore"):  # a warning that format 3 does not specify it
            zarr.consolidate_metadata(str(folder))


def _copy(zarr: Any, folder: Path, name: str, array: Any) -> None:
    """Copy a Zarr array, with its attributes and format, to a store in a folder under a name."""
    names = getattr(array.metadata, "dimension_names", None)
    with warnings.catch_warnings(action="ignore"):  # warnings about texts, which format 3 does not specify
        zarr.from_array(
            str(folder),
            data=array,
            name=name,
            zarr_format=array.metadata.zarr_format,
            fill_value=array.fill_value,
            attributes=dict(array.attrs),
            **({} if names is None else {"dimension_names": names}),
        )


def find_arrays(zarr: Any, root: Any) -> dict[str, Any]:
    """Return path → array for all arrays of a Zarr group and of the groups within it."""
    with warnings.catch_warnings(action="ignore"):  # warnings about folders that are no part of the store
        return {name: one for name, one in root.members(max_depth=None) if isinstance(one, zarr.Array)}
