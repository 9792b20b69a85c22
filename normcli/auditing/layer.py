"""The layers of a recorded run: names, settings, and tensors that are loaded when they are asked for."""

from __future__ import annotations

import fnmatch
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normcli.auditing.dump_file import METADATA, PARAMETERS, ROLES, WEIGHTS, LayerSettings, read_settings
from normcli.errors import DataError, UsageError
from normcli.norms.request import Request
from normcli.printable import format_bytes, make_printable
from normcli.tensors.files import load
from normcli.tensors.formats.safetensors import find_regions, load_region, read_metadata
from normcli.tensors.held_files import Opened, open_regular
from normcli.tensors.many import list_keys
from normcli.tensors.mapped import Mapped
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.norms.request import NormSpec
    from normcli.tensors.mapped import Region


SETTINGS_FILE = "dump.json"
"""The file of a folder that has its layers' settings."""

_MOST_SETTINGS = 1 << 26
"""Bytes of that file, at most."""

_SUFFIX, _SAFETENSORS = ".npy", ".safetensors"

_PAIRS = re.compile(r"(.+?\.(?:safetensors|npz)):([^=]*)=(.*)", re.IGNORECASE | re.DOTALL)


class HeldTensor(NamedTuple):
    """A tensor of a dump: a function that loads it, and its size in bytes, which may be an estimate."""

    load: Callable[[], Tensor]
    byte_count: int


class RecordedLayer(NamedTuple):
    """A layer of a dump: its settings, and its tensors, which are loaded when they are asked for.

    Parameters
    ----------
    settings : LayerSettings
    tensors : mapping of str to HeldTensor
        The tensors by role, such as `input`.
    """

    settings: LayerSettings
    tensors: Mapping[str, HeldTensor]

    @property
    def byte_count(self) -> int:
        """The bytes of the layer's tensors in the dump, at least 1."""
        return max(1, sum(held.byte_count for held in self.tensors.values()))

    @property
    def name(self) -> str:
        """The layer's name in the model."""
        return self.settings.name

    def load(self, role: str) -> Tensor | None:
        """Return the layer's tensor of a role; None if the dump has none.

        Raises
        ------
        DataError
            If the tensor cannot be read.
        """
        return None if role not in self.tensors else self.tensors[role].load()

    def load_parameters(self) -> dict[str, NDArray[Any] | None]:
        """Return the layer's `gamma` and `beta`, None if it has none."""
        loaded = {name: self.load(role) for name, role in (("gamma", "weight"), ("beta", "bias"))}
        return {name: None if one is None else one.values for name, one in loaded.items()}


def open_dump(path: str, default: NormSpec | None = None) -> list[RecordedLayer]:
    """Return the layers of a dump, in the order in which they ran; in the file's order if it has no settings.

    Parameters
    ----------
    path : str
        A safetensors or npz file, or a folder of npy files whose names are `NAME.input.npy`.
    default : NormSpec or None
        The norm of layers for which the settings name none; None: it stays unknown.

    Raises
    ------
    UsageError
        If `default` is given and the settings name a norm for every layer, or the file is of another format.
    DataError
        If there is no such file, the file or its settings are damaged, or no tensor is called `NAME.input`.
    """
    text = None
    if Path(path).is_dir():
        names, text = _open_folder(Path(path))
    else:
        names = _open_archive(path)
        if path.lower().endswith(_SAFETENSORS):
            text = read_metadata(path).get(METADATA)
    tensors: dict[str, dict[str, HeldTensor]] = {}
    for name, opens in names.items():
        layer, _, end = name.rpartition(".")
        role = next((role for role in ROLES if end in PARAMETERS.get(role, (role,))), None)
        if layer and role is not None:
            own = tensors.setdefault(layer, {})
            own[role] = opens if end == role else own.get(role, opens)
    assumed = _name_default(default)
    every = [LayerSettings(name, *assumed) for name in tensors if "input" in tensors[name]]
    if text is not None:
        every = read_settings(text, path)
        if default is not None and all(one.norm for one in every):
            raise UsageError(f"--norm is of layers without settings; those of {path} have their own")
        every = [one if one.norm else one._replace(norm=assumed[0], options=assumed[1]) for one in every]
    if not every:
        raise DataError(f"{path}: no tensor is called NAME.input; --pairs says which tensors go together")
    layers = [RecordedLayer(one, dict(_find_tensors(one, tensors))) for one in every]
    return layers if text is not None else _order_numbers(layers)


def _order_numbers(layers: list[RecordedLayer]) -> list[RecordedLayer]:
    """Return layers that stand in the order of their names with numbers in names by their size: 2 before 10."""
    names = [layer.name for layer in layers]
    if names != sorted(names):
        return layers
    return sorted(layers, key=lambda layer: _NUMBER.sub(lambda found: found[0].zfill(_DIGITS), layer.name))


_NUMBER, _DIGITS = re.compile("[0-9]+"), 20
"""A number in a layer's name, and the digits to which zeros fill it up."""


def _find_tensors(
    settings: LayerSettings, tensors: Mapping[str, Mapping[str, HeldTensor]]
) -> Iterator[tuple[str, HeldTensor]]:
    """Yield (role, tensor) for a layer: first the weights that it shares with another layer, then its own.

    A dict made of these pairs has the layer's own tensors where both have one.
    """
    shared = tensors.get(settings.weights_of, {})
    yield from ((role, shared[role]) for role in WEIGHTS if role in shared)
    yield from tensors.get(settings.name, {}).items()


def _open_folder(folder: Path) -> tuple[dict[str, HeldTensor], str | None]:
    """Return the tensors of a folder by name, not yet loaded, and the text of its `dump.json` or None.

    Raises `DataError` if the folder or `dump.json` cannot be read, or `dump.json` is too long.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == _SUFFIX and file.is_file())
        names = {
            file.name.removesuffix(_SUFFIX): HeldTensor(partial(load, str(file)), file.stat().st_size)
            for file in files
        }
        kept = folder / SETTINGS_FILE
        if not os.path.lexists(kept):
            return names, None
        with open_regular(kept) as stream:
            data = stream.read(_MOST_SETTINGS + 1)
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror or 'I/O error'}") from error
    if len(data) > _MOST_SETTINGS:
        raise DataError(f"{kept} has more than {format_bytes(_MOST_SETTINGS)}, which no settings have")
    return names, data.decode(errors="replace")


def _open_archive(path: str) -> dict[str, HeldTensor]:
    """Return the tensors of a safetensors or npz file by name, each loaded when it is asked for.

    Raises `DataError` if the file cannot be read, `UsageError` if its format has no tensors by name.
    """
    try:
        with open_regular(path) as stream:
            if path.lower().endswith(_SAFETENSORS):
                regions, opened = find_regions(stream, path), Opened.describe(stream, path, Path(path))
                return {
                    key: HeldTensor(
                        partial(_load_region, region, key, opened),
                        0 if isinstance(region, str) else region.byte_count,
                    )
                    for key, region in regions.items()
                }
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
    keys = list_keys(path)
    if not keys:
        load(path)  # raises an error that says what is wrong
        raise UsageError(f"{path} holds no tensors by name; .safetensors and .npz do")
    share = os.path.getsize(path) // len(keys)  # noqa: PTH202
    return {key: HeldTensor(partial(load, f"{path}:{key}"), share) for key in keys}


def _load_region(region: Region | str, key: str, opened: Opened) -> Tensor:
    """Return a tensor of a safetensors file; raise `DataError` if the file changed since it was opened."""
    name = f"{opened.name}:{key}"
    opened.require_unchanged()
    with open_regular(opened.name) as stream:
        values = load_region(region, stream, name)
    opened.require_unchanged()
    if isinstance(values, Mapped) and not values.temporary:
        values.opened = opened
    return Tensor(values, name, opened=opened)


def _name_default(default: NormSpec | None) -> tuple[str | None, dict[str, Any]]:
    """Return the name of a norm and its options as in `LayerSettings`; (None, {}) for None."""
    return (None, {}) if default is None else (default.name, Request(default.name, **default.own).describe())


def pair_tensors(pairs: str, default: NormSpec | None = None) -> list[RecordedLayer]:
    """Return the layers whose inputs and outputs two patterns name.

    Parameters
    ----------
    pairs : str
        `FILE:*.input=*.output`: each tensor of the file whose name fits the first pattern is an input; the name
        of its output is the second pattern with the same text for `*`.
    default : NormSpec or None
        The norm of the layers; None: it is not known.

    Raises
    ------
    UsageError
        If `pairs` has another form, or a pattern not exactly one `*`.
    DataError
        If the file cannot be read, or no tensor fits the first pattern.
    """
    parts = _PAIRS.fullmatch(pairs)
    if parts is None or any(pattern.count("*") != 1 for pattern in parts.groups()[1:]):
        raise UsageError(f"--pairs {pairs}: that is no FILE:*.input=*.output, with one * in each name")
    path, first, second = parts.groups()
    before, _, behind = first.partition("*")
    sources = _open_archive(path)
    found = []
    for key, source in sources.items():
        if len(key) > len(before) + len(behind) and key.startswith(before) and key.endswith(behind):
            name = key[len(before) : len(key) - len(behind)]
            roles = {"input": source, "output": sources.get(second.replace("*", name))}
            settings = LayerSettings(name, *_name_default(default))
            found.append(RecordedLayer(settings, {role: at for role, at in roles.items() if at is not None}))
    if not found:
        raise DataError(f"--pairs {pairs}: no tensor of {path} is called {first}")
    return _order_numbers(found)


def add_weights(layers: Sequence[RecordedLayer], weights: str) -> list[RecordedLayer]:
    """Return layers with the tensors `NAME.weight`, `NAME.bias` … of a file, where they have none of their own.

    Raises
    ------
    DataError
        If the file cannot be read, or has no weight of any layer.
    """
    others, found, is_used = _open_archive(weights), list[RecordedLayer](), False
    for layer in layers:
        name, added = layer.settings.weights_of or layer.name, dict[str, HeldTensor]()
        for role in WEIGHTS:
            called = (others.get(f"{name}.{end}") for end in PARAMETERS.get(role, (role,)))
            if (held := next(filter(None, called), None)) is not None:
                added[role] = held
        is_used = is_used or "weight" in added
        found.append(layer._replace(tensors={**added, **layer.tensors}))
    if not is_used:
        some, first = ", ".join(map(make_printable, [*others][:3])), layers[0].name
        raise DataError(
            f"--weights {weights} has no {first}.weight, nor one of another layer; its first are {some}"
        )
    return found


def choose_layers(
    layers: Sequence[RecordedLayer], only: Sequence[str], skip: Sequence[str]
) -> list[RecordedLayer]:
    """Return the layers whose names fit a pattern in `only` (all if it is empty) and none in `skip`.

    Patterns are those of `fnmatch`, such as `layers.*.norm`.

    Raises
    ------
    UsageError
        If no layer is left.
    """

    def fits(name: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    left = [one for one in layers if (not only or fits(one.name, only)) and not fits(one.name, skip)]
    if not left:
        named = ", ".join(make_printable(one.name) for one in layers[:3])
        raise UsageError(f"--only and --skip leave none of {len(layers)} layers; the first are {named}")
    return left
