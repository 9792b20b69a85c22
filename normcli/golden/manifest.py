"""The manifest of golden files: the request, the files, and hashes that show changes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED
from normcli.dtypes import get_eps, is_float
from normcli.errors import DataError, UsageError
from normcli.norms.request import Choices, Request
from normcli.printable import shorten
from normcli.results.backward import draw_gradient
from normcli.results.given_inputs import SelectionRequest
from normcli.tensors.formats.json_items import RepeatedNameError, make_object
from normcli.tensors.pieces import iterate_pieces
from normcli.tensors.random.generate import draw_affine, generate
from normcli.tensors.random.recipe import DEFAULT_RNG, DISTRIBUTIONS, RNGS, Recipe
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from normcli.results.arguments import Problem


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
    """Return a recipe from the members of a manifest; raise `ValueError` or `TypeError` if one is invalid."""
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


_WITHOUT_HASH = "normcli-golden/1"
"""The earlier version of the manifest, refused: it has no hash of itself, so that changes stay hidden."""

MANIFEST, HASH = "manifest.json", "sha256"

INPUT, DY = "input", "dy"
PARAMETERS, RUNNING, MASK = ("gamma", "beta"), ("running_mean", "running_var"), "mask"
"""The names of input files; statistics and results have the names that `check` uses."""

_MEMBERS = (
    "schema", "normcli", "norm", "options", "selection", "source", "recipe", "convention", "files", HASH,
)  # fmt: skip

_MOST_NAMED = 3
"""The most contradictions that a message names."""

_MOST_SKIPPED = 10**6
"""The most numbers that a recipe may skip if the manifest's hash is wrong: more could take hours."""

_DRAWN_WITHIN = 8.0
"""The tolerance of values drawn again, in machine epsilons: logarithms of systems differ in the last bits."""


class Manifest:
    """The manifest of a folder of golden files, read from its file.

    Parameters
    ----------
    path : Path

    Raises
    ------
    DataError
        If there is no file, it is no manifest of golden files, its version has no hash, it names no norm or
        options that exist, or it does not list the files of the norm.

    Attributes
    ----------
    members : mapping
        The members of the manifest by name.
    request : Request
        The norm and its options.
    files : mapping of str to mapping
        The name of each file's array → its members: file, shape, dtype, sha256.
    intact : bool
        Whether the manifest's hash is right.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members = read_object(path)
        schema = self.members.get("schema")
        if schema == _WITHOUT_HASH:
            named = shorten(str(self.members.get("norm")))
            raise DataError(
                f"{path} is of {_WITHOUT_HASH}, which has no hash to hold it against; with the options that it "
                f"lists, normcli golden {named} -i {path.parent / INPUT}.npy -o DIR writes a new one"
            )
        if schema != SCHEMA:
            raise DataError(f"{path} is not the manifest of golden files ({SCHEMA})")
        self.intact = self.members.get(HASH) == digest_members(self.members)
        norm, given = self.members.get("norm"), self.members.get("options")
        if not isinstance(norm, str) or not isinstance(given, dict):
            raise DataError(f"{path} names no norm, or no options")
        try:
            self.request = Request.read(norm, given)
        except UsageError as error:
            raise DataError(f"{path}: {error}") from error
        self.files = self._read_files()

    def _read_files(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the member `files`; raise `DataError` if it lacks a file of the norm, or has another one."""
        try:
            norm = Choices(self.request).norm
        except UsageError as error:
            raise DataError(f"{self.path} does not fit its files: {error}") from error
        files = self.members.get("files")
        needed = [INPUT, NORMALIZED, *norm.statistics]
        of_backward = (DY, *norm.gradient_names) if norm.gradient_names else ()
        if not isinstance(files, dict):
            raise DataError(f"{self.path} names no files")
        for name, entry in files.items():
            if name not in (*needed, *PARAMETERS, *RUNNING, MASK, *of_backward):
                raise DataError(f"{self.path}: {name!r} is the name of no golden file of {norm.name}")
            if not isinstance(entry, dict):
                raise DataError(f"{self.path}: files.{name} is no object")
        for together in (RUNNING, of_backward):
            if files.keys() & set(together):
                needed += together
        unlisted = [name for name in needed if name not in files]
        if unlisted:
            raise DataError(f"{self.path}: files does not list {', '.join(unlisted)}")
        return files

    @property
    def note(self) -> str | None:
        """The remark that the manifest's hash is wrong; None if it is right."""
        return None if self.intact else f"{MANIFEST} is not what was written (sha256)"

    def read_selection(self, mask: NDArray[Any] | None) -> SelectionRequest | None:
        """Return the selection from this manifest and the array of its mask; None without one.

        Raises `DataError` if the member `selection` is no object.
        """
        selection = self.members.get("selection")
        if selection is None:
            return None
        if not isinstance(selection, dict):
            raise DataError("its selection is no object of nan and fill")
        return SelectionRequest(mask, None, selection.get("nan"), selection.get("fill"))

    def require_agreement(self, derived: dict[str, Any]) -> None:
        """Raise `DataError` if members of this manifest differ from the members that follow from its files.

        Unknown and missing members are refused too. The values of `recipe` and `source` are not tested.

        Parameters
        ----------
        derived : dict of str to JSON value
            The members `norm`, `options`, `selection`, `convention` and `files`, derived anew. If another
            version of normcli wrote the manifest, its wording of `convention.formula` is copied into this dict,
            and so counts as equal.
        """
        said = self.members.get("convention")
        complete = self.members.get("normcli") == __version__
        if not complete and isinstance(said, dict):
            derived["convention"]["formula"] = said.get("formula")  # versions word it differently
        found = [
            f"{format_member(name)} is no member of a manifest" for name in self.members if name not in _MEMBERS
        ]
        found += [f"{name} is missing" for name in _MEMBERS if name not in {*self.members, "selection"}]
        for name in ("norm", "options", "selection", "convention", "files"):
            found += _compare(name, self.members.get(name), derived.get(name), complete=complete)
        if found:
            more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            raise DataError(f"{self.path}: {'; '.join(found[:_MOST_NAMED])}{more}")

    def require_origin(self, problem: Problem) -> None:
        """Raise `DataError` unless the files hold what the manifest's recipe draws.

        The input is drawn again if the recipe has a shape, gamma and beta if it has `affine_seed`, dy if it has
        `dy_seed`. Floats may differ by 8 machine epsilons, as logarithms of systems differ in the last bits.
        `DataError` is also raised if `normcli` or `source` is no text, `source` differs from the recipe, or the
        recipe cannot be followed. If `recipe` is null or missing, only `normcli` and `source` are tested.
        """
        recipe = self.members.get("recipe")
        for name in ("normcli", "source"):
            if not isinstance(self.members.get(name), str):
                raise DataError(f"{self.path}: {name} is {format_member(self.members.get(name))}, and no text")
        if recipe is None:
            return
        if not isinstance(recipe, dict):
            raise DataError(f"{self.path}: recipe is {format_member(recipe)}, and no object")
        try:
            wrong = self._follow(dict(recipe), problem)
        except (UsageError, DataError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{self.path}: recipe is none that can be followed: {error}") from error
        if wrong is not None:
            raise DataError(f"{self.path}: {wrong}")

    def _follow(self, recipe: dict[str, Any], problem: Problem) -> str | None:
        """Draw a recipe's tensors again; return a sentence on the first file that differs, or None."""
        seed, rng = recipe.pop("affine_seed", None), recipe.get("rng") or DEFAULT_RNG
        dy_seed = recipe.pop("dy_seed", None)
        plan, tensor, inputs, dy = *problem[:3], problem.dy
        if "shape" in recipe:
            made = read_recipe(recipe)
            if made.shape != tensor.values.shape:
                return f"recipe.shape is {list(made.shape)}; that of input.npy is {list(tensor.values.shape)}"
            if self.members["source"] != str(made):
                return f"source is {format_member(self.members['source'])}; the recipe is {str(made)!r}"
            if not self.intact and made.skip > _MOST_SKIPPED:
                return (
                    f"recipe.skip is {made.skip}, in a manifest that may have been changed: it is not followed"
                )
            if not _are_close(tensor.values, generate(made).values):
                return "the recipe does not give input.npy"
        elif recipe.keys() != (set() if seed is None else {"rng"}) or seed is dy_seed is None:
            return "recipe has no shape"
        if seed is not None:
            dtype = "float64" if plan.request.dtype == "float64" else None
            names = tuple(inputs.parameters) or plan.norm.drawn_names
            drawn = draw_affine(str(rng), require_integer(seed), plan.parameters.shape, names, dtype)
            for name in names:
                kept = getattr(inputs, name)
                if kept is None or not _are_close(kept, plan.fit_parameter(name, drawn[name])):
                    return f"recipe.affine_seed does not give {name}.npy"
        if dy_seed is not None:
            drawn_dy = draw_gradient(plan, require_integer(dy_seed)).values
            if dy is None or not _are_close(dy.values, drawn_dy):
                return f"recipe.dy_seed does not give {DY}.npy"
        return None


def digest_members(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 sum of a manifest without its own hash, as JSON with sorted keys and no spaces."""
    members = {name: value for name, value in manifest.items() if name != HASH}
    return hashlib.sha256(json.dumps(members, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _compare(name: str, said: Any, actual: Any, *, complete: bool) -> Iterator[str]:
    """Yield a sentence for each member whose value in the manifest, `said`, is not the one derived anew.

    A member that is missing in `said` is a difference only if `complete`: the manifest is of this version.
    """
    if isinstance(said, dict) and isinstance(actual, dict):
        for key, value in said.items():
            if key not in actual:
                yield f"{name}.{key} is {format_member(value)}, and should not be there"
            else:
                yield from _compare(f"{name}.{key}", value, actual[key], complete=complete)
        if complete:
            yield from (f"{name}.{key} is missing" for key in actual if key not in said)
    elif type(said) is not type(actual) or said != actual:
        yield f"{name} is {format_member(said)}, and should be {format_member(actual)}"


def _are_close(mine: NDArray[Any], drawn: NDArray[Any]) -> bool:
    """Whether two arrays have equal values in C order, floats within 8 machine epsilons; shapes may differ."""
    if mine.size != drawn.size:
        return False
    drawn = drawn.reshape(mine.shape)
    if not is_float(mine.dtype):
        return np.array_equal(mine, drawn)
    within = _DRAWN_WITHIN * get_eps(mine.dtype)
    pieces = zip(iterate_pieces(mine), iterate_pieces(drawn), strict=True)
    with np.errstate(all="ignore"):
        return all(np.allclose(a.astype(np.float64), b.astype(np.float64), within, 0.0) for a, b in pieces)
