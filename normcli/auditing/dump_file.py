"""Dumps: what the norms of a model took and gave, in one safetensors file, with each norm's settings.

A tensor is `NAME.input`, `NAME.output`, `NAME.weight` … (`ROLES`); the file's metadata has under `normcli` the
JSON of the settings, the layers in the order in which they ran. `normcli help dumps` describes it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.dtypes import LARGEST_EXACT
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.option_kinds import OptionKind
from normcli.norms.options import find_option
from normcli.norms.request import Request
from normcli.printable import shorten
from normcli.tensors.formats.safetensors import format_header, name_dtype
from normcli.tuples import NamedTuple
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray


SCHEMA = "normcli-dump/1"

CALL = "#"
"""The sign between a layer's name and the number of its second or later call, as in `NAME#2`."""

METADATA = "normcli"
"""The member of a file's metadata that holds the settings."""

RUNNING = ("running_mean", "running_var")
"""The roles of running statistics."""

WEIGHTS = ("weight", "bias", *RUNNING)
"""The roles of tensors that a layer may share with another one."""

PARAMETERS = {
    "weight": ("weight", "gamma", "scale", "a_2", "g", "weight_g"),
    "bias": ("bias", "beta", "shift", "b_2", "b"),
}
"""Role → the names that modules have for the attribute."""

ROLES = (
    "input", "output", *WEIGHTS, *(f"{role}_after" for role in RUNNING), "grad_output", "grad_input",
    "grad_weight", "grad_bias", "gate", "grad_gate",
)  # fmt: skip
"""The roles of a layer's tensors: the part of a tensor's name behind the layer's name and a point."""


class LayerSettings(NamedTuple):
    """The settings of one layer in a dump; the layer's tensors are stored apart from them.

    Parameters
    ----------
    name : str
    norm : str or None
        A name or alias of the table of norms; None if it is not known.
    options : mapping
        Options of that norm, as golden files or the command line write them.
    evaluation : bool
        Whether the layer normalizes with running statistics.
    momentum : float, "none" or None
        The momentum of the running statistics that the layer updates, "none" for a plain average of all
        batches; None if the layer updates none.
    batches : int
        The number of batches in running statistics that are plain averages; otherwise 0.
    kind : str
        The class of the module.
    note : str
        A remark for the reader: that the norm is guessed, or that only some groups are recorded.
    problem : str
        The reason for which the layer cannot be judged; empty if it can be.
    is_guess : bool
        Whether the norm is guessed from the name of a class.
    weights_of : str
        The layer whose weights and running statistics this one shares; empty if it has its own.
    gate_act : str
        The activation applied to the gate, such as `silu`; empty without a gate.
    gates_input : bool or None
        Whether the gate multiplies the input of the norm, or its result; None: as the option `like` has it.
    left_out : str
        The name of a further tensor that the module took and that is not recorded; empty if there is none.
    """

    name: str
    norm: str | None = None
    options: dict[str, Any] = {}  # noqa: RUF012  # which nobody changes
    evaluation: bool = False
    momentum: float | str | None = None
    batches: int = 0
    kind: str = ""
    note: str = ""
    problem: str = ""
    is_guess: bool = False
    weights_of: str = ""
    gate_act: str = ""
    gates_input: bool | None = None
    left_out: str = ""

    def add_note(self, words: str) -> LayerSettings:
        """Return these settings with a further remark in `note`."""
        return self._replace(note="; ".join(filter(None, (self.note, words))))

    def add_option(self, name: str, value: Any) -> LayerSettings:
        """Return these settings with a further option of the norm."""
        return self._replace(options={**self.options, name: value})

    def read_request(self) -> Request | None:
        """Return the request for the layer's norm and options; None if `norm` is None.

        Raises
        ------
        DataError
            If the norm or an option does not exist, or an option has no valid value.
        """
        if self.norm is None:
            return None
        try:
            return Request.read(self.norm, dict(_read_option(*one) for one in self.options.items()))
        except UsageError as error:
            raise DataError(f"{self.name}: {error}") from error


def _read_option(name: str, value: Any) -> tuple[str, Any]:
    """Return an option's name and value as `Request.read` takes them.

    Hyphens in the name become underscores, text is parsed as on a command line, and a float such as 1.0 becomes
    an integer if the option takes integers. The value of an unknown option is returned as it is.
    """
    name = name.replace("-", "_")
    with contextlib.suppress(KeyError):  # an unknown option, which `Request.read` refuses
        option = find_option(name)
        if isinstance(value, str):
            return name, option.parse(value)
        if option.kind is OptionKind.INTEGER and isinstance(value, float) and value.is_integer():
            return name, int(value)
    return name, value


_ROOM, _ROOM_OF_LAYER = 1 << 16, 1 << 12
"""Bytes kept free for the header: once, and for each layer."""

_PIECE = 1 << 24
"""Bytes moved at a time if the header is longer than its room."""


class DumpWriter:
    """A writer of a dump: tensors are written when they are added, and the header before them by `finish`.

    Threads may add calls and tensors at the same time.

    Parameters
    ----------
    stream : BinaryIO
        A new file that can be read and sought.
    layers : int
        About how many layers there will be, for which space is left at the start of the file. If the header
        needs more, `finish` has to move all values.

    Attributes
    ----------
    layers : list of LayerSettings
        The settings of the calls that were added, in order.
    """

    def __init__(self, stream: BinaryIO, layers: int) -> None:
        self._stream, self._room = stream, _ROOM + layers * _ROOM_OF_LAYER
        self._tensors: dict[str, Any] = {}
        self._end = 0
        self._names: set[str] = set()
        self._lock = threading.Lock()
        self.layers: list[LayerSettings] = []
        stream.seek(self._room)

    def add_call(self, settings: LayerSettings) -> str:
        """Add the settings of a layer's call; return its name: `NAME`, of later calls `NAME#2` …."""
        name, number = settings.name, 1
        with self._lock:
            while name in self._names:
                number += 1
                name = f"{settings.name}{CALL}{number}"
            self._names.add(name)
            self.layers.append(settings._replace(name=name))
        return name

    def add_layer(self, settings: LayerSettings, tensors: Mapping[str, Any]) -> None:
        """Write a layer's call: its settings, and its arrays by role; an array of None is left out."""
        name = self.add_call(settings)
        for role, values in tensors.items():
            if values is not None:
                self.add_array(f"{name}.{role}", np.asarray(values))

    def add(self, name: str, dtype: str, shape: Sequence[int], data: NDArray[np.uint8]) -> None:
        """Write one tensor.

        Parameters
        ----------
        name : str
        dtype : str
            The dtype by its name in safetensors, such as `BF16`.
        shape : sequence of int
        data : ndarray of uint8
            The bytes of the values, in C order.
        """
        with self._lock:
            self._stream.write(data.data)
            offsets = [self._end, self._end + data.nbytes]
            self._tensors[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
            self._end += data.nbytes

    def add_array(self, name: str, values: NDArray[Any]) -> None:
        """Write an array; raise `DataError` if safetensors has no such dtype."""
        with name_subject(name):
            raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            self.add(name, name_dtype(values.dtype), values.shape, raw)

    def finish(self, framework: str) -> None:
        """Write the header: the settings of the calls, the framework that made them, and all tensors."""
        usual = LayerSettings("")._asdict()
        described = [
            {name: value for name, value in one._asdict().items() if value != usual[name]}
            for one in self.layers
        ]
        made_by = f"normcli {__version__}, {framework}"
        settings = {"schema": SCHEMA, "made_by": made_by, "layers": described}
        members = {"__metadata__": {METADATA: json.dumps(settings)}, **self._tensors}
        header = format_header(members, least=self._room)
        if len(header) > self._room:
            self._move(len(header) - self._room)
        self._stream.seek(0)
        self._stream.write(header)
        self._stream.seek(0, os.SEEK_END)

    def _move(self, by: int) -> None:
        """Move all values by `by` bytes towards the end of the file, the last ones first."""
        for number in reversed(range(math.ceil(self._end / _PIECE))):
            start = self._room + number * _PIECE
            self._stream.seek(start)
            piece = self._stream.read(min(_PIECE, self._room + self._end - start))
            self._stream.seek(start + by)
            self._stream.write(piece)


def read_settings(text: str, source: str) -> list[LayerSettings]:
    """Return the settings of a dump's layers.

    Parameters
    ----------
    text : str
        The JSON of the settings.
    source : str
        The dump's name in messages.

    Raises
    ------
    DataError
        If the text is no JSON of this schema, lists no layers or one twice, or a member has a wrong type or
        value.
    """
    with name_subject(source):
        try:
            members = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise DataError("the settings of its layers are not valid JSON") from error
        if not isinstance(members, dict) or members.get("schema") != SCHEMA:
            raise DataError(f"the settings of its layers are not of {SCHEMA}")
        layers = members.get("layers")
        if not isinstance(layers, list) or not layers:
            raise DataError("it lists no layers")
        found = [_read_layer(one) for one in layers]
        counts = Counter(one.name for one in found)
        twice, most = counts.most_common(1)[0]
        if most > 1:
            raise DataError(f"it lists the layer {shorten(twice)} twice")
        return found


_KINDS: Mapping[str, tuple[type, ...]] = {
    **{name: (type(value),) for name, value in LayerSettings("")._asdict().items()},
    "norm": (str,),
    "gates_input": (bool,),
    "momentum": (int, float, str),
}
"""Member of a layer's settings → the types of its values."""

_RANGES: dict[str, Callable[[Any], bool]] = {
    "name": lambda name: bool(name),
    "momentum": lambda weight: weight == "none" if isinstance(weight, str) else 0 <= weight <= 1,
    "batches": lambda count: 0 <= count < LARGEST_EXACT,
}


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


def _read_layer(members: Any) -> LayerSettings:
    """Return the settings of one layer; raise `DataError` if a member has a wrong type or value."""
    if not isinstance(members, dict) or not isinstance(members.get("name"), str):
        raise DataError(f"{shorten(json.dumps(members))} is no layer with a name")
    given = {name: value for name, value in members.items() if name in _KINDS and value is not None}
    for name, value in given.items():
        is_sound = isinstance(value, _KINDS[name]) and (bool in _KINDS[name] or not isinstance(value, bool))
        if not is_sound or not _RANGES.get(name, lambda _: True)(value):
            raise DataError(f"{name} of {shorten(members['name'])} is {shorten(json.dumps(value))}")
    return LayerSettings(**given)
