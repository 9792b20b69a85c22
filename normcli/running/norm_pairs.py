"""Pairs of a layer and the batch norm after it in a state dict: guessed from names, or given; notes on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from normcli.errors import DataError, UsageError
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

MEMBERS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
"""The tensors of a batch norm in a state dict."""

_MEAN = ".running_mean"

_NORM_STEM = re.compile("batch_?norm|normalization|norm|bn")
_LAYER_STEMS = ("convolution", "conv", "linear", "fc", "dense")
"""The parts of layers' names that correspond to `bn` in their norms' names: conv1 and bn1."""

_MOST_NAMES = 5
"""The most names that a note lists."""


class NormedLayer(NamedTuple):
    """A layer and the norm that comes after it, by their names in a state dict.

    Parameters
    ----------
    layer, norm : str
    transposed : bool
        Whether the layer is a transposed convolution, whose weight has the axes (in, out, …).
    is_open : bool
        Whether the weight's shape does not show if it is transposed: it has more than 2 axes, and the first two
        have the same length.
    eps : float or None
        The norm's eps; None if the file has none.
    groups : int
        The number of the layer's groups of channels, which matters only if the layer is transposed.
    is_assumed : bool
        Whether the norm could as well stand before the layer by its channels, and other layers with such names,
        which are before their norms, are all that speaks for the pair.
    """

    layer: str
    norm: str
    transposed: bool = False
    is_open: bool = False
    eps: float | None = None
    groups: int = 1
    is_assumed: bool = False


def list_norms(names: Collection[str]) -> list[str]:
    """Return the names of all modules that keep running statistics."""
    return [name[: -len(_MEAN)] for name in names if name.endswith(_MEAN)]


def has_order(names: Collection[str]) -> bool:
    """Return whether a state dict's names can be in the order of its modules: False if they are sorted."""
    kept = [name for name in names if not name.endswith(MEMBERS[-1])]
    return kept != sorted(kept)


def find_pairs(arrays: Mapping[str, NDArray[Any]], *, is_ordered: bool) -> list[NormedLayer]:
    """Return pairs of a layer and the norm after it, guessed from names such as `conv1` and `bn1`.

    Numbers that follow each other, `net.2` and `net.3`, are such names, too.

    Raises `DataError` if a layer has two norms with fitting names, or nothing shows which of a layer and a norm
    is first.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        A state dict.
    is_ordered : bool
        Whether the state dict has the order of the modules.

    Notes
    -----
    No `conv1` is paired with a `bn1` anywhere in the model if one conv1 and its bn1 do not fit: another number
    of channels or, with `is_ordered`, a bn1 that comes before its conv1. In models such as DenseNet, norms
    stand before their layers. Names that are numbers are judged pair by pair, by the number of channels only.

    Without `is_ordered`, a bn1 may have as many channels as go into conv1 and come out of it. Then modules that
    have all names of this module's layers and norms, and perhaps more, decide: the pair is left if a layer and
    norm in one of them do not fit, and taken if none does so and one layer fits only before its norm.
    """
    places = {name: place for place, name in enumerate(arrays)}
    found: list[tuple[NormedLayer, str, tuple[str, str] | None]] = []
    modules: dict[str, dict[tuple[str, str], bool | None]] = {}  # None: the norm could be first, too
    for norm in list_norms(arrays):
        for layer, by_number in _list_namesakes(norm):
            weight = f"{layer}.weight"
            if weight not in arrays:
                continue
            parent, _, own = norm.rpartition(".")
            pair, stems = _match(arrays, layer, norm), (layer.rpartition(".")[2], own)
            if pair is not None:
                found.append((pair, parent, None if by_number else stems))
            if not by_number:
                is_after = is_ordered and places[weight] > places[norm + _MEAN]
                fits = not (pair is None or pair.transposed or is_after)
                is_open = (
                    fits and not is_ordered and _fits_before(arrays[weight].shape, arrays[norm + _MEAN].size)
                )
                modules.setdefault(parent, {})[stems] = None if is_open else fits
            break
    misnamed = {stems for module in modules.values() for stems, fits in module.items() if fits is False}
    pairs: dict[str, NormedLayer] = {}
    is_unclear = False
    for pair, parent, named in found:
        if named in misnamed:
            continue
        if named is not None and modules[parent][named] is None:
            alike = [module.values() for module in modules.values() if modules[parent].keys() <= module.keys()]
            verdicts = {fits for module in alike for fits in module}
            if False in verdicts:
                continue
            is_unclear |= True not in verdicts
            pair = pair._replace(is_assumed=True)
        if pair.layer in pairs:
            others = f"{pairs[pair.layer].norm} and {pair.norm}"
            raise DataError(f"{pair.layer} may stand before {others}; --pairs says which")
        pairs[pair.layer] = pair
    if is_unclear:
        first = next(pair for pair in pairs.values() if pair.is_assumed)
        told = _write_pairs(arrays, pairs)
        raise DataError(
            f"{first.norm} may stand behind {first.layer} or before it: the file has no order of modules, and "
            f"the channels fit both; if each layer is first, give --pairs '{told}', otherwise others"
        )
    return list(pairs.values())


def _write_pairs(arrays: Mapping[str, NDArray[Any]], pairs: Mapping[str, NormedLayer]) -> str:
    """Return the value of `--pairs` that gives these pairs, with * for parts of names where it can stand."""
    groups: dict[tuple[str, str], list[NormedLayer]] = {}
    for pair in pairs.values():
        groups.setdefault((pair.layer.rpartition(".")[2], pair.norm.rpartition(".")[2]), []).append(pair)
    texts: list[str] = []
    for (layer, norm), members in groups.items():
        alone = [f"{pair.layer}={pair.norm}" for pair in members]
        for text in (f"*.{layer}=*.{norm}", f"*{layer}=*{norm}"):
            try:
                given = {(pair.layer, pair.norm) for pair in read_pairs(arrays, [text])}
            except UsageError:
                continue
            if len(members) > 1 and given == {(pair.layer, pair.norm) for pair in members}:
                alone = [text]
                break
        texts += alone
    return ",".join(texts)


def read_pairs(arrays: Mapping[str, NDArray[Any]], given: Sequence[str]) -> list[NormedLayer]:
    """Return the pairs given as texts LAYER=NORM, in which * stands for any text, the same on both sides.

    Raises
    ------
    UsageError
        If a text has another form, names no layer or norm, pairs two of different channels, or repeats a layer.
    """
    pairs: dict[str, NormedLayer] = {}
    for text in given:
        layer, separator, norm = text.partition("=")
        if not separator or layer.count("*") != norm.count("*") or norm.count("*") > 1:
            raise UsageError(f"--pairs {text}: give LAYER=NORM, with one * in both or in none")
        pattern = re.compile(re.escape(norm).replace(r"\*", "(.*)"))
        found = [match for match in map(pattern.fullmatch, list_norms(arrays)) if match]
        if not found:
            raise UsageError(f"--pairs {text}: nothing with running statistics is called {norm}")
        for match in found:
            name = layer.replace("*", match[1]) if match.groups() else layer
            if f"{name}.weight" not in arrays:
                raise UsageError(f"--pairs {text}: there is no {name}.weight")
            pair = _match(arrays, name, match[0])
            if pair is None:
                shape = arrays[f"{name}.weight"].shape
                channels = arrays[match[0] + _MEAN].size
                raise UsageError(
                    f"--pairs {text}: {name}.weight has the shape {shape}, and {match[0]} {channels} channels"
                )
            if name in pairs:
                raise UsageError(f"--pairs {text}: {name} is folded into once")
            pairs[name] = pair
    return list(pairs.values())


def pair_norms(
    arrays: Mapping[str, NDArray[Any]], given: str | None, *, is_ordered: bool
) -> tuple[list[NormedLayer], list[str]]:
    """Return the (layer, norm) pairs of a state dict, and the names of its batch norms.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The state dict.
    given : str or None
        The value of `--pairs`, texts LAYER=NORM with commas (`read_pairs`, which raises `UsageError`); None:
        the pairs of `find_pairs`.
    is_ordered : bool
        Whether the state dict has the order of the modules; it matters to `find_pairs`.

    Raises
    ------
    DataError
        If no module has running statistics, or the names imply no pair, or two norms for a layer.
    """
    names = list_norms(arrays)
    if not names:
        raise DataError("no module keeps running statistics: NAME.running_mean and NAME.running_var")
    if given is not None:
        return read_pairs(arrays, given.split(",")), names
    pairs = find_pairs(arrays, is_ordered=is_ordered)
    if not pairs:
        raise DataError(f"no name tells the layer before {list_names(names)}; --pairs LAYER=NORM does")
    return pairs, names


def describe_pairs(pairs: Sequence[NormedLayer], left: Sequence[str], *, is_given: bool) -> Iterator[str]:
    """Yield notes on pairs that were guessed, weights that may be transposed, and norms without a pair.

    Parameters
    ----------
    pairs : sequence of NormedLayer
    left : sequence of str
        The names of the norms in no pair.
    is_given : bool
        Whether the user or the graph of a model gave the pairs; False if they follow from modules' names.
    """
    if not is_given:
        yield "names tell the pairs; a norm before its layer is none of them, and --pairs says others"
    if is_open := [pair.layer for pair in pairs if pair.is_open]:
        yield f"{list_names(is_open)} could be transposed: taken for ordinary, (out, in, …)"
    if left:
        yield f"{format_count(len(left), 'norm')} left: {list_names(left)}"


def list_names(names: Sequence[str]) -> str:
    """Return the first five names as a list with commas, which ends with `…` if there are more."""
    return ", ".join((*names[:_MOST_NAMES], *(("…",) if len(names) > _MOST_NAMES else ())))


def _list_namesakes(norm: str) -> Iterator[tuple[str, bool]]:
    """Yield pairs (name, is_by_number): the names that the layer before a norm may have.

    `is_by_number` is True for a name that is 1 lower: (`net.2`, True) for the norm `net.3`, nothing for
    `net.0`. It is False for names such as `net.conv1`, `net.linear1` and `net.fc1`, for the norm `net.bn1`.
    """
    parent, dot, own = norm.rpartition(".")
    if own.isdecimal():
        if int(own):
            yield f"{parent}{dot}{int(own) - 1}", True
        return
    for stem in _LAYER_STEMS:
        renamed = _NORM_STEM.sub(stem, own, count=1)
        if renamed != own:
            yield f"{parent}{dot}{renamed}", False


def _match(arrays: Mapping[str, NDArray[Any]], layer: str, norm: str) -> NormedLayer | None:
    """Return a layer and a norm as a pair; None if the norm has another number of channels than the layer.

    A layer counts as transposed if the norm's channels lie along axis 1 of its weight alone.
    """
    shape, channels = arrays[f"{layer}.weight"].shape, arrays[norm + _MEAN].size
    if len(shape) < 2 or channels not in (shape[:1] if len(shape) == 2 else shape[:2]):
        return None
    transposed = shape[0] != channels
    return NormedLayer(layer, norm, transposed, is_open=len(shape) > 2 and shape[0] == shape[1])


def _fits_before(shape: tuple[int, ...], channels: int) -> bool:
    """Return whether a norm could stand before a layer with a weight (out, in, …), by its number of channels.

    A convolution may have groups, and then a multiple of `in` goes in. Two groups are left out: they are rare,
    and layers that double the channels are common.
    """
    count, rest = divmod(channels, shape[1]) if shape[1] else (0, 0)
    return not rest and (count == 1 or (count > 2 and len(shape) > 2))
