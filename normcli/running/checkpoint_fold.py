"""Every batch normalization of a state dict, folded into the layer before it; notes on folded weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.errors import DataError, name_subject
from normcli.numerics.statistics.solution import Given
from normcli.running.fold import Affine, Layer, fold, prove
from normcli.running.norm_pairs import MEMBERS, list_names
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from normcli.norms.rules import EpsMode
    from normcli.running.matrix_fold import FoldedMatrix
    from normcli.running.norm_pairs import NormedLayer


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
    gone = {f"{pair.norm}.{member}" for pair in pairs for member in MEMBERS}
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
    members = [arrays.get(f"{pair.norm}.{member}") for member in MEMBERS[:4]]
    gamma, beta, mean, var = members
    if mean is None or var is None:
        raise DataError(f"{pair.norm} keeps a running mean without a running variance")
    norm = Affine(Given(mean, var), eps if pair.eps is None else pair.eps, gamma, beta, eps_mode)
    folded = fold(layer, norm)
    return FoldedPair(pair, folded, prove(layer, norm, folded))
