"""Every batch normalization of a state dict, folded into the layer before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.errors import DataError, name_subject
from normcli.numerics.statistics.solution import Given
from normcli.running.fold import Affine, Layer, fold, prove
from normcli.running.norm_pairs import MEMBERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from normcli.norms.rules import EpsMode
    from normcli.running.fold import Proof
    from normcli.running.norm_pairs import NormedLayer


def fold_checkpoint(
    arrays: Mapping[str, NDArray[Any]], pairs: Sequence[NormedLayer], eps: float, eps_mode: EpsMode
) -> tuple[dict[NormedLayer, Proof], dict[str, NDArray[Any]]]:
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
    dict of NormedLayer to Proof
        Each pair with its proof.
    dict of str to ndarray
        A state dict without the norms of the pairs, in the same order; each folded layer has a bias.

    Raises
    ------
    DataError
        If a norm cannot be folded; the message names the layer.
    """
    proofs: dict[NormedLayer, Proof] = {}
    made: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        with name_subject(pair.layer):
            folded, proofs[pair] = _fold_pair(arrays, pair, eps, eps_mode)
        weight, bias = f"{pair.layer}.weight", f"{pair.layer}.bias"
        made[weight] = {weight: folded.weight, bias: folded.bias}
    gone = {f"{pair.norm}.{member}" for pair in pairs for member in MEMBERS}
    return proofs, replace_arrays(arrays, made, gone | {f"{pair.layer}.bias" for pair in pairs})


def _fold_pair(
    arrays: Mapping[str, NDArray[Any]], pair: NormedLayer, eps: float, eps_mode: EpsMode
) -> tuple[Layer, Proof]:
    """Return a layer with the norm after it folded in, and the proof; `eps` is used if the pair has none.

    Raises `DataError` if the norm has no running variance, or cannot be folded.
    """
    layer = Layer(
        arrays[f"{pair.layer}.weight"], arrays.get(f"{pair.layer}.bias"), pair.groups, pair.transposed
    )
    gamma, beta, mean, var = (arrays.get(f"{pair.norm}.{member}") for member in MEMBERS[:4])
    if mean is None or var is None:
        raise DataError(f"{pair.norm} keeps a running mean without a running variance")
    norm = Affine(Given(mean, var), eps if pair.eps is None else pair.eps, gamma, beta, eps_mode)
    folded = fold(layer, norm)
    return folded, prove(layer, norm.apply, folded)


def replace_arrays(
    arrays: Mapping[str, NDArray[Any]],
    made: Mapping[str, Mapping[str, NDArray[Any]]],
    gone: Collection[str],
) -> dict[str, NDArray[Any]]:
    """Return a state dict without the arrays in `gone`, with those `made` of an array in the array's place."""
    after: dict[str, NDArray[Any]] = {}
    for name, values in arrays.items():
        after |= made.get(name, {} if name in gone else {name: values})
    return after
