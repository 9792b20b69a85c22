"""Members of a manifest: each is read, or refused if it is of a wrong type or value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.printable import shorten
from normcli.tensors.formats.json_items import RepeatedNameError, make_object
from normcli.tensors.random.recipe import DISTRIBUTIONS, RNGS, Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


SCHEMA = "normcli-golden/2"
"""The version of the manifest."""


def format_member(value: Any) -> str:
    """Return a value as JSON for a message, shortened to 60 characters."""
    return shorten(json.dumps(value), 60)


def read_object(path: Path) -> dict[str, Any]:
    """Return the members of a manifest by name.

    Raises
    ------
    DataError
        If the file cannot be read, is no JSON object, has a name twice, or a number that is not finite.
    """
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no regular file")
    try:
        manifest = json.loads(
            path.read_text(encoding="utf-8"),
            object_pairs_hook=make_object,
            parse_float=_read_float,
            parse_constant=_read_float,
        )
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file, so this is no folder of golden files") from error
    except RepeatedNameError as error:
        raise DataError(f"{path}: an object {error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
    if not isinstance(manifest, dict):
        raise DataError(f"{path} is not the manifest of golden files ({SCHEMA})")
    return manifest


def _read_float(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(text)
    return value


def read_recipe(members: Mapping[str, Any]) -> Recipe:
    """Return a recipe from the members of a manifest; raise `ValueError` or `TypeError` if they are none."""
    if members.keys() != set(Recipe._fields):
        raise ValueError(f"its members are not {', '.join(Recipe._fields)}")
    for name in ("low", "high"):
        if not isinstance(members[name], int | float | None) or isinstance(members[name], bool):
            raise TypeError(f"{name} is no number")
    for name, known in (("dist", DISTRIBUTIONS), ("rng", RNGS)):
        if members[name] not in known:
            raise ValueError(f"{name} {format_member(members[name])} is none of {', '.join(known)}")
    if not isinstance(members["shape"], list):
        raise TypeError("shape is no list")
    whole = {name: require_integer(members[name]) for name in ("seed", "skip")}
    return Recipe(**{**members, **whole, "shape": tuple(map(require_integer, members["shape"]))})


def require_integer(value: Any) -> int:
    """Return a value that is an integer; raise `TypeError` for any other, booleans included."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{format_member(value)} is no integer")
    return value
