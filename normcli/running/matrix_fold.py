"""Spectral normalization folded into the weight that it divides, alone or in a state dict of torch's."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from normcli.dtypes import get_eps, is_float
from normcli.engine.sn.passes import lay_matrix
from normcli.engine.sn.sigma_of_groups import approximate_largest
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import OF_MATRICES
from normcli.results.calculate import calculate
from normcli.running.checkpoint_fold import replace_arrays
from normcli.running.fold import Layer, prove, require_layer
from normcli.running.norm_pairs import list_names
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.spec import Iteration
    from normcli.running.fold import Proof

_AT_REST = ("keras",)
"""The frameworks whose evaluation divides by nothing: Keras 3.15.1 writes the weight back divided, in training
(layers/normalization/spectral_normalization.py:80)."""


class FoldedMatrix(NamedTuple):
    """A weight that was divided by σ, the largest singular value or an estimate of it.

    Parameters
    ----------
    name : str
        The weight's name.
    weight : ndarray
        The folded weight, of the shape of the weight that was given.
    bias : ndarray or None
        The layer's bias.
    proof : Proof
        The output of the layer without its bias, divided by σ, against that of the folded layer.
    rows : tuple of int
        The axes of the weight that are the rows of the matrix; the other axes are its columns.
    iteration : Iteration or None
        The power iteration that estimates σ; None if σ is the largest singular value.
    sigma : float
        The exact σ, rounded once.
    largest : float
        The largest singular value: σ itself without an iteration, otherwise correct to ten digits.
    has_open_rows : bool
        Whether the weight's shape, u and v do not tell if axis 0 or axis 1 is the rows.
    """

    name: str
    weight: NDArray[Any]
    bias: NDArray[Any] | None
    proof: Proof
    rows: tuple[int, ...]
    iteration: Iteration | None
    sigma: float
    largest: float
    has_open_rows: bool = False

    @property
    def off(self) -> float:
        """σ / largest singular value − 1: negative if σ is below it."""
        return self.sigma / self.largest - 1.0


def divides_in_evaluation(framework: str | None) -> bool:
    """Whether a framework's layer divides its weight by σ in evaluation: False for Keras alone."""
    return framework not in _AT_REST


def fold_matrix(layer: Layer, request: Request, name: str) -> FoldedMatrix:
    """Return the weight of a layer without spectral normalization: divided by σ, in the weight's dtype.

    Parameters
    ----------
    layer : Layer
    request : Request
        Rows, iterations, u, v and framework. Rows that are None are the framework's: axis 1 for a transposed
        layer of torch's.
    name : str
        The weight's name.

    Raises
    ------
    DataError
        If the weight is not of a layer's shape or not finite, σ is 0, or the folded weight is not finite.
    UsageError
        If an option does not fit the weight, as u or v of another length.

    Notes
    -----
    As torch 2.13's `remove_spectral_norm`, and `remove_parametrizations` in evaluation: σ = uᵀWv of the vectors
    as they are (nn/utils/spectral_norm.py:101, nn/utils/parametrizations.py:516).
    """
    require_layer(layer)
    weight = layer.given
    if not np.isfinite(weight).all():
        raise DataError("the weight holds NaN or an infinity")
    if request.rows is None and layer.transposed and request.like in (None, "torch"):
        request = request._replace(rows=(1,))
    request = request._replace(norm=OF_MATRICES, groups=None)
    plan = make_plan(request, weight.shape, weight.dtype)
    result = calculate(plan, weight)
    sigma = float(result.sigma.reshape(-1)[0])
    if not sigma:
        raise DataError("σ is 0, by which nothing can be divided")
    y = result.normalized
    if not np.isfinite(y).all():
        raise DataError(f"the folded weight is beyond {y.dtype.name}; give the weight in a wider dtype")
    iteration, rows = plan.spec.iteration, plan.spec.rows or ()
    largest = sigma if iteration is None else approximate_largest(lay_matrix(plan, weight))
    bare = layer._replace(bias=None)
    proof = prove(bare, lambda output: output / sigma, bare.take_weight(y))
    return FoldedMatrix(name, y, layer.bias, proof, rows, iteration, sigma, largest)


# -- state dicts


class Kept(NamedTuple):
    """The names of the arrays in a state dict that belong to one spectrally normalized weight.

    Parameters
    ----------
    name : str
        The weight's name in the module without the norm.
    weight : str
        The name of the array with the weight before its division by σ.
    u, v : str
        The names of the vectors of the power iteration; "" for a weight of one axis, which
        `torch.nn.utils.parametrizations.spectral_norm` divides by its length
        (nn/utils/parametrizations.py:494).
    """

    name: str
    weight: str
    u: str
    v: str


_HOOKED = re.compile(r"(.*)_orig")
_PARAMETRIZED = re.compile(r"((?:.*\.)?)parametrizations\.([^.]+)\.original")
_ANY_PARAMETRIZED = re.compile(r"((?:.*\.)?)parametrizations\.([^.]+)\..+")

_LEAST_LENGTH = 1e-12
"""torch's eps: the least length by which it divides a weight of one axis."""


def find_kept(names: Collection[str], vectors: Collection[str] = ()) -> Iterator[Kept]:
    """Yield the spectrally normalized weights of a state dict, by the names of its arrays.

    `torch.nn.utils.spectral_norm` keeps `weight_orig`, `weight_u` and `weight_v`, and
    `torch.nn.utils.parametrizations.spectral_norm` keeps `parametrizations.weight.original`,
    `parametrizations.weight.0._u` and `parametrizations.weight.0._v`; for a weight of one axis only the first
    of these. In a module without the norm, the weight is called `weight` in both cases.

    Parameters
    ----------
    names : collection of str
        The names of all arrays.
    vectors : collection of str
        The names of arrays of one axis.

    Raises
    ------
    DataError
        If one of u and v is missing, the weight has another parametrization too, or `weight` is there already
        or would be made twice.

    Examples
    --------
    >>> [*find_kept(["conv.weight_orig", "conv.weight_u", "conv.weight_v", "conv.bias"])]
    [Kept(name='conv.weight', weight='conv.weight_orig', u='conv.weight_u', v='conv.weight_v')]
    """
    found: dict[str, str] = {}
    for weight in names:
        kept = _name_kept(weight, names, vectors)
        if kept is None:
            continue
        if kept.u and (kept.v not in names or kept.u not in names):
            _refuse_partial(kept, names)
        if kept.name in names:
            raise DataError(f"there are {weight} and {kept.name}, which is to be made of it")
        if kept.name in found:
            raise DataError(f"{kept.name} is to be made of both {found[kept.name]} and {weight}")
        found[kept.name] = weight
        yield kept


def _refuse_partial(kept: Kept, names: Collection[str]) -> NoReturn:
    """Raise `DataError` for a weight that has only one of u and v."""
    there, missing = (kept.u, kept.v) if kept.u in names else (kept.v, kept.u)
    if missing == kept.u or _HOOKED.fullmatch(kept.weight) is None:
        raise DataError(f"{kept.weight} has {there} and no {missing}")
    raise DataError(
        f"{kept.weight} has {there} and no {missing}, as old versions of torch save it; "
        "load and save it with a newer one"
    )


def find_parametrized(names: Collection[str]) -> list[str]:
    """Return the names of the weights that parametrizations make in a state dict of torch's.

    Examples
    --------
    >>> find_parametrized(["a.bias", "a.parametrizations.weight.original0"])
    ['a.weight']
    """
    found = (_ANY_PARAMETRIZED.fullmatch(name) for name in names)
    return [*dict.fromkeys("".join(each.groups()) for each in found if each is not None)]


def _name_kept(weight: str, names: Collection[str], vectors: Collection[str]) -> Kept | None:
    """Return the names that belong to the array `weight`; None if it is not spectrally normalized.

    `names` are all names, `vectors` the names of arrays of one axis. Raises `DataError` if the array also has
    another parametrization.
    """
    hooked = _HOOKED.fullmatch(weight)
    if hooked is not None:
        kept = Kept(hooked[1], weight, f"{hooked[1]}_u", f"{hooked[1]}_v")
        return kept if kept.u in names or kept.v in names else None
    parametrized = _PARAMETRIZED.fullmatch(weight)
    if parametrized is None:
        return None
    stem = weight.removesuffix("original")
    others = {name for name in names if name.startswith(stem)} - {weight}
    kept = Kept("".join(parametrized.groups()), weight, f"{stem}0._u", f"{stem}0._v")
    if not others and weight in vectors:
        return kept._replace(u="", v="")
    if not any(name.endswith(("._u", "._v")) for name in others):
        return None
    strange = sorted(others - {kept.u, kept.v})
    if strange:
        raise DataError(
            f"{strange[0]} is of another parametrization of {kept.name}; remove that in torch first"
        )
    return kept


def fold_state(
    arrays: Mapping[str, NDArray[Any]], rows: int = 0
) -> tuple[list[FoldedMatrix], dict[str, NDArray[Any]]]:
    """Fold every spectrally normalized weight of a state dict of torch's, which is left unchanged.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    rows : int
        The axis of the rows (0 or 1) of weights for which shape, u and v leave it open. torch's is 0, and 1 for
        transposed convolutions.

    Returns
    -------
    list of FoldedMatrix
    dict of str to ndarray
        The state dict of the module without spectral normalization, in the same order.

    Raises
    ------
    DataError
        If no weight is spectrally normalized, or one cannot be folded.
    """
    vectors = [name for name, values in arrays.items() if values.ndim == 1]
    kept = {each.weight: each for each in find_kept(arrays, vectors)}
    if not kept:
        raise DataError(
            "no layer keeps spectral normalization: that is weight_orig, weight_u, weight_v, or "
            "parametrizations.weight.original, .0._u, .0._v"
        )
    folded, made = [], {}
    for name, each in kept.items():
        with name_subject(name):
            folded.append(_fold_kept(each, arrays, rows))
        made[name] = {each.name: folded[-1].weight}
    return folded, replace_arrays(arrays, made, {name for each in kept.values() for name in (each.u, each.v)})


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


def _fold_kept(kept: Kept, arrays: Mapping[str, NDArray[Any]], rows: int) -> FoldedMatrix:
    """Return a weight of a state dict over its σ; raise `DataError` if it cannot be folded.

    `rows` is the axis of the rows, 0 or 1, if shape, u and v leave it open.
    """
    weight = arrays[kept.weight]
    matrix = weight[:, np.newaxis] if weight.ndim == 1 else weight
    require_layer(Layer(matrix))
    axis, is_open, vectors = 0, False, {}
    if kept.u:
        vectors = {"u": arrays[kept.u], "v": arrays[kept.v]}
        axis, is_open = find_rows(weight, vectors["u"].reshape(-1), vectors["v"].reshape(-1), rows)
    try:
        request = Request.collect(OF_MATRICES, vectors | {"rows": axis})
        folded = fold_matrix(Layer(matrix, transposed=bool(axis)), request, kept.name)
    except UsageError as error:  # u or v does not fit: both are data here
        raise DataError(str(error)) from error
    except DataError as error:
        if not is_open:
            raise
        raise DataError(f"{error}; its rows could be axis {1 - axis} as well: --rows {1 - axis}") from error
    if not kept.u and folded.sigma < _LEAST_LENGTH:
        raise DataError(f"its length is {folded.sigma:.6g}; torch divides by {_LEAST_LENGTH:g} at least")
    return folded._replace(weight=folded.weight.reshape(weight.shape), has_open_rows=is_open)


def find_rows(weight: NDArray[Any], u: NDArray[Any], v: NDArray[Any], rows: int) -> tuple[int, bool]:
    """Return (axis, is_open): the axis of a weight that has the rows of its matrix, 0 or 1.

    The axis is the one for which the matrix has u.size rows and v.size columns; 0 if neither is. If both are,
    it is the one for which u follows from v by a power iteration, as after a training step. If that holds for
    both or neither, it is `rows`, and `is_open` is True unless σ is the same for both.
    """
    matrices = {}
    for axis in range(min(weight.ndim, 2)):
        matrix = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
        if matrix.shape == (u.size, v.size):
            matrices[axis] = matrix.astype(np.float64)
    if len(matrices) < 2:
        return next(iter(matrices), 0), False
    eps = max(get_eps(each.dtype) for each in (weight, u, v, np.zeros(0)) if is_float(each.dtype))
    left, right = u.astype(np.float64), v.astype(np.float64)
    with np.errstate(all="ignore"):
        sigmas = [float(left @ matrix @ right) for matrix in matrices.values()]
        told = [axis for axis, matrix in matrices.items() if _is_iterated(matrix, left, right, eps)]
    if len(told) == 1:
        return told[0], False
    return rows, bool(np.isfinite(sigmas).all()) and not math.isclose(*sigmas, rel_tol=1e-12)


def _is_iterated(matrix: Floats, u: Floats, v: Floats, eps: float) -> bool:
    """Whether u = Wv/‖Wv‖ or v = Wᵀu/‖Wᵀu‖, within the errors of float32 arithmetic and rounding to `eps`.

    W is `matrix`. Torch's hook makes v and then u, its parametrization u and then v
    (nn/utils/spectral_norm.py:97, nn/utils/parametrizations.py:480).
    """
    allowed = (2.0**-21 + eps) * np.linalg.norm(matrix)
    steps = ((matrix @ v, u), (matrix.T @ u, v))
    return any(np.linalg.norm(made - np.linalg.norm(made) * kept) <= allowed for made, kept in steps)
