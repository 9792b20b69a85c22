"""Every batch normalization of a state dict, folded into the layer before it; notes on open choices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from normcli.errors import DataError, UsageError, name_subject
from normcli.numerics.statistics.solution import Given
from normcli.printable import format_count
from normcli.running.fold import Affine, Layer, fold, prove
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from normcli.norms.rules import EpsMode
    from normcli.running.matrix_fold import FoldedMatrix

_MEAN = ".running_mean"
_NORM_MEMBERS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")

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
    """

    layer: str
    norm: str
    transposed: bool = False
    is_open: bool = False
    eps: float | None = None
    groups: int = 1


class FoldedPair(NamedTuple):
    """A layer before and after the norm that follows it was folded in.

    Parameters
    ----------
    pair : NormedLayer
        The names of layer and norm.
    folded : Layer
        The layer that replaces both.
    proof : tuple of float
        The largest difference on a random batch between layer and norm and the folded layer, and the largest
        output.
    """

    pair: NormedLayer
    folded: Layer
    proof: tuple[float, float]


def list_norms(names: Collection[str]) -> list[str]:
    """Return the names of all modules that keep running statistics."""
    return [name[: -len(_MEAN)] for name in names if name.endswith(_MEAN)]


def find_pairs(arrays: Mapping[str, NDArray[Any]], *, is_ordered: bool) -> list[NormedLayer]:
    """Return pairs of a layer and the norm after it, guessed from names such as `conv1` and `bn1`.

    Numbers that follow each other, `net.2` and `net.3`, are such names, too.

    Raises `DataError` if a layer has two norms with fitting names.

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
    """
    places = {name: place for place, name in enumerate(arrays)}
    found: list[tuple[NormedLayer, tuple[str, str] | None]] = []
    misnamed = set()
    for norm in list_norms(arrays):
        for layer, by_number in _list_namesakes(norm):
            weight = f"{layer}.weight"
            if weight not in arrays:
                continue
            pair, stems = _match(arrays, layer, norm), (layer.rpartition(".")[2], norm.rpartition(".")[2])
            is_after = is_ordered and places[weight] > places[norm + _MEAN]
            if by_number or not (pair is None or pair.transposed or is_after):
                found += [] if pair is None else [(pair, None if by_number else stems)]
            else:
                misnamed.add(stems)
            break
    pairs: dict[str, NormedLayer] = {}
    for pair, named in found:
        if named in misnamed:
            continue
        if pair.layer in pairs:
            others = f"{pairs[pair.layer].norm} and {pair.norm}"
            raise DataError(f"{pair.layer} may stand before {others}; --pairs says which")
        pairs[pair.layer] = pair
    return list(pairs.values())


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


def describe_state(
    folded: Sequence[FoldedMatrix], saved: Mapping[str, NDArray[Any]], has_open: Sequence[str]
) -> Iterator[str]:
    """Yield notes for the user on the folded weights: what was assumed, and which parametrizations stay.

    Parameters
    ----------
    folded : sequence of FoldedMatrix
    saved : mapping of str to ndarray
        The state dict after folding.
    has_open : sequence of str
        The names of weights whose rows could be axis 0 or axis 1.
    """
    from normcli.running.matrix_fold import find_parametrized

    if has_open:
        yield (
            f"the rows of {list_names(has_open)} could be axis 0 or axis 1: axis 0 is taken, as of all but "
            "transposed convolutions; --rows 1 takes the other one"
        )
    alone = [each.name for each in folded if each.iteration is None]
    if alone:
        yield (
            f"{list_names(alone)} is of one axis and without vectors: taken for one that "
            "spectral_norm divides by its length"
        )
    others = find_parametrized(saved)
    if others:
        yield f"other parametrizations stay as they are: {list_names(others)}"


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


def fold_checkpoint(
    arrays: Mapping[str, NDArray[Any]], pairs: Sequence[NormedLayer], eps: float, eps_mode: EpsMode
) -> tuple[list[FoldedPair], dict[str, NDArray[Any]]]:
    """Fold the norm of each pair into its layer; `arrays` is left unchanged.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        A state dict.
    pairs : sequence of NormedLayer
    eps : float
        The eps of norms whose pair has the eps None.
    eps_mode : EpsMode

    Returns
    -------
    list of FoldedPair
    dict of str to ndarray
        A state dict without the norms of the pairs, in the same order; each folded layer has a bias.

    Raises
    ------
    DataError
        If a norm cannot be folded; the message names the layer.
    """
    folded = []
    for pair in pairs:
        with name_subject(pair.layer):
            folded.append(_fold_pair(arrays, pair, eps, eps_mode))
    after: dict[str, NDArray[Any]] = {}
    gone = {f"{pair.norm}.{member}" for pair in pairs for member in _NORM_MEMBERS}
    ready = {f"{each.pair.layer}.weight": each for each in folded}
    gone |= {f"{pair.layer}.bias" for pair in pairs}
    for name, values in arrays.items():
        if name in ready:
            after[name] = ready[name].folded.weight
            bias = ready[name].folded.bias
            assert bias is not None  # a folded layer has one
            after[f"{ready[name].pair.layer}.bias"] = bias
        elif name not in gone:
            after[name] = values
    return folded, after


def _fold_pair(
    arrays: Mapping[str, NDArray[Any]], pair: NormedLayer, eps: float, eps_mode: EpsMode
) -> FoldedPair:
    """Return a layer with the norm after it folded in, and the error of that on a random batch.

    `eps` is used if the pair has none.

    Raises `DataError` if the norm has no running variance, or cannot be folded.
    """
    weight, bias = (arrays.get(f"{pair.layer}.{member}") for member in ("weight", "bias"))
    assert weight is not None  # the layer was found by its weight
    layer = Layer(weight, bias, pair.groups, pair.transposed)
    members = [arrays.get(f"{pair.norm}.{member}") for member in _NORM_MEMBERS[:4]]
    gamma, beta, mean, var = members
    if mean is None or var is None:
        raise DataError(f"{pair.norm} keeps a running mean without a running variance")
    norm = Affine(Given(mean, var), eps if pair.eps is None else pair.eps, gamma, beta, eps_mode)
    folded = fold(layer, norm)
    return FoldedPair(pair, folded, prove(layer, norm, folded))
