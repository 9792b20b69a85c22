"""`normalize`, the function that the package is known by: every option an argument."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from normcli.errors import UsageError
from normcli.results.arguments import GATE, read_arguments
from normcli.results.arrays import find_lazy, take_place
from normcli.results.calculate import calculate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from normcli.norms.layout import AxisSpec
    from normcli.norms.rules import (
        EpsModeName,
        FillName,
        FrameworkName,
        GateActivationName,
        GateOrderName,
        GroupOrderName,
        NanName,
        NormName,
    )
    from normcli.results.result import Result


Function = TypeVar("Function", bound="Callable[..., Any]")


def _call_with_given(declared: Function) -> Function:
    """Return a function with the signature of `declared`, which calls `_normalize` with the options given.

    Python takes longer to collect fifty options, most of them defaults, than a small tensor's norm takes. An
    option of another name goes to `declared`, so that Python raises its own error.
    """

    @functools.wraps(declared)
    def normalize(x: Any, norm: str = "bn", **given: Any) -> Any:
        return _normalize(x, norm, given) if OPTIONS.issuperset(given) else declared(x, norm, **given)

    return normalize  # type: ignore[return-value]


@_call_with_given
def normalize(
    x: Any,
    norm: NormName = "bn",
    *,
    axes: AxisSpec | None = None,
    keep: AxisSpec | None = None,
    layout: str | None = None,
    feature_axes: AxisSpec | None = None,
    gamma_offset: int | None = None,
    rows: AxisSpec | None = None,
    iterations: int | None = None,
    u: ArrayLike | None = None,
    v: ArrayLike | None = None,
    groups: int | None = None,
    group_order: GroupOrderName | None = None,
    eps: float | None = None,
    eps_mode: EpsModeName | None = None,
    ddof: int | None = None,
    dtype: DTypeLike | None = None,
    gamma: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    p: float | None = None,
    size: int | None = None,
    alpha: float | None = None,
    exponent: float | None = None,
    k: float | None = None,
    range: tuple[float, float] | None = None,
    quantiles: tuple[float, float] | None = None,
    over: tuple[int, int] | slice | None = None,
    no_mean: bool | None = None,
    no_scale: bool | None = None,
    like: FrameworkName | None = None,
    residual: ArrayLike | None = None,
    residual_sum: str | None = None,
    clip: tuple[float | str, float | str] | str | None = None,
    gate: ArrayLike | None = None,
    gate_act: GateActivationName | None = None,
    gate_order: GateOrderName | None = None,
    clip_output: tuple[float, float] | None = None,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: Sequence[int] | None = None,
    nan: NanName | None = None,
    fill: FillName | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    statistics: bool = True,
    strict: bool = False,
) -> Result:
    """Normalize a tensor.

    Parameters
    ----------
    x : array_like
        Real numbers; booleans count as 0 and 1. Also a tensor of PyTorch, JAX or another library of the array
        API, a DataFrame or Series of pandas or polars, a DataArray of xarray, or an array of dask. Results of a
        tensor that requires a gradient are detached: no gradient flows back; see `backward`.
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    axes, keep : str, int or sequence of both, optional
        The axes to reduce, or the axes not to reduce, by number or by letter of the layout. The default is the
        norm's.
    layout : str, optional
        One letter per axis, or words: `time,lat,lon`. Default: NC, NCL, NCHW, NCDHW by rank; for xarray, the
        names of its dimensions.
    feature_axes : str, int or sequence of both, optional
        The axes that gamma and beta lie along, instead of the norm's.
    gamma_offset : int, optional
        The number added to gamma: 1 for models that store gamma − 1, as Gemma, DiT and FLUX.
    rows : str, int or sequence of both, optional
        For `sn`: the axes that are the rows of the matrix; the first by default.
    iterations : int, optional
        For `sn`: the number of power iterations from `u` or `v`; the divisor is then uᵀXv of the last vectors
        instead of the largest singular value. 1 by default if `u` or `v` is given.
    u, v : array_like of float, optional
        For `sn`: the vector from which the power iterations start, with one number for each row (u, as in
        `torch.nn.utils.spectral_norm`, Keras and Flax) or column (v, as in
        `torch.nn.utils.parametrizations.spectral_norm` and Equinox). If both are given, there are no
        iterations: σ is uᵀXv, as in evaluation.
    groups : int, optional
        The number of groups of channels (`gn`) or of the last axis reduced (`rms`, `lp`); −1 for groups of one
        channel.
    group_order : {"contiguous", "interleaved"}, optional
        Whether group g holds neighbouring channels, or the channels g, g + groups, g + 2·groups and so on.
    eps : float, optional
    eps_mode : {"inside", "outside"}, optional
        √(var + eps) or √var + eps.
    ddof : int, optional
        The divisor of the variance is n − ddof; 0 by default.
    dtype : {"float16", "bfloat16", "float32", "float64"}, optional
        The dtype of the output. Default: the input's, or float64 for integers.
    gamma, beta : array_like, optional
        The scale and the shift in y = gamma · x̂ + beta. Their shape is the one that the table of norms names,
        or any that broadcasts against `x`: (B, 1, D) for one of each sample; (heads, D) or flat for one of each
        head; (groups) for one of each group.
    weight, bias : array_like, optional
        The frameworks' names of gamma and beta.
    p : float, optional
        For `lp`: the exponent, any number, also ∞ and −∞; 2 by default.
    size, alpha, exponent, k : optional
        For `lrn`: x / (k + alpha/size · Σx²)^exponent.
    range : tuple of float, optional
        For `minmax`: the least and the largest normalized value; (0, 1) by default.
    quantiles : tuple of float, optional
        For `robust`: the two quantiles, in per cent, whose difference is the divisor; (25, 75) by default.
    over : tuple of int or slice, optional
        For `ln`, `rms` and `lp`: the indices (start, stop) along the last reduced axis from which statistics
        are taken; all values are normalized with these statistics.
    no_mean, no_scale : bool, optional
        For `zscore` and `robust`: leave out the subtraction, or the division.
    like : str, optional
        The framework whose convention is followed where no option says otherwise: `normcli conventions` lists
        the frameworks.
    residual : array_like, optional
        A tensor of the shape of `x`: x + residual is normalized, rounded to its dtype first as in frameworks.
    residual_sum : {'rounded', 'exact'}, optional
        Whether x + residual is rounded before the norm; `exact` sums are float64, which has to hold them.
    clip : tuple, optional
        The bounds to which the tensor is clipped first: numbers, or percentiles, as ("0.5%", "99.5%").
    gate : array_like, optional
        A tensor z of a shape that broadcasts to that of `x`: the result is norm(x) · act(z), rounded once. If
        `like` rounds x̂ before gamma, norm(x) is rounded before the product.
    gate_act : {"silu", "sigmoid", "gelu", "gelu-tanh", "relu", "tanh", "none"}, optional
        The function act of the gate; silu by default.
    gate_order : {"after", "before"}, optional
        Whether the gate multiplies the result or the tensor. `before`: the result is norm(x · act(z)), the
        product rounded once to float32, or to float64 if x or z holds float64 or integers. By default the order
        of `like`, or `after`.
    clip_output : tuple of float, optional
        The bounds, each rounded to the output's dtype, to which the result is clipped last.
    running_mean, running_var : array_like, optional
        Both or neither: the statistics to normalize with, as in evaluation, in place of the tensor's own. Their
        shape is (C), for `bn` as for `in`; `track` updates them, as training does.
    mask : array_like of bool, optional
        True, or 1, where a value counts; of a shape that broadcasts to that of `x`. Statistics are taken over
        these values only.
    lengths : sequence of int, optional
        For each sample, the number of positions along the layout's L, T or S that count; the rest is padding.
    nan : {"propagate", "omit", "raise"}, optional
        Whether NaN makes its group's statistics NaN (the default), does not count, or is an error.
    fill : {"pass", "zero", "nan", "normalize"}, optional
        The rule for values that do not count: they are passed through (the default), replaced, or normalized
        with the statistics of the others, as in Keras and Flax.
    out : ndarray, optional
        The array into which the normalized tensor is written: C-contiguous, of the shape of `x` and the dtype
        of the output. It may be a tensor of PyTorch.
    threads : int, optional
        The most threads to use; all processors by default. The result is the same to the bit for any number.
    statistics : bool, optional
        Whether statistics are kept as they are for `x` now; if False, they are measured again from `x` when
        they are read. For very short groups (rows of 4), for which keeping statistics would take longer than
        the arithmetic, a copy of `x` is kept instead, from which they are measured when they are read.
    strict : bool, optional
        Whether degenerate groups (empty, constant, of one value, or not finite) are an error.

    Returns
    -------
    Result

    Raises
    ------
    UsageError
        If an option is unknown to the norm, out of range or contradicts another.
    DataError
        If `x`, gamma, beta or running statistics hold no real numbers or do not fit; if a variance is negative.
    DegenerateError
        If a group is degenerate and `strict` is True.

    Notes
    -----
    Statistics are the exact values rounded once to float64; normalized values are the exact values rounded once
    to the output's dtype (`normcli.numerics`).

    Examples
    --------
    >>> result = normalize([[1, 2, 3, 4], [2, 4, 6, 8]], "ln", eps=0)
    >>> result.mean
    array([2.5, 5. ])
    >>> result.normalized.round(2)
    array([[-1.34, -0.45,  0.45,  1.34],
           [-1.34, -0.45,  0.45,  1.34]])
    """
    raise NotImplementedError  # what runs is `_normalize`


OPTIONS = frozenset(inspect.signature(normalize).parameters) - {"x", "norm"}
"""The names of the options of `normalize`."""


def _normalize(x: Any, norm: str, options: Mapping[str, Any]) -> Result:
    """Normalize a tensor; `options` has the arguments of `normalize` that were given, by name."""
    lazy, strict = find_lazy(x), options.get("strict")
    if lazy is not None:
        options = {**options, "strict": strict or None}
        found: Result = lazy.work.normalize_array(lazy.taken, norm, **options)
        return found
    asked = read_arguments(x, norm, options)
    out = options.get("out")
    place = None if out is None else take_place(out)
    give = asked.give if place is out else asked.give_other  # no copy of a torch tensor's memory
    plan, tensor, inputs, effort = asked[:4]
    result = calculate(plan, tensor.values, inputs, out=place, effort=effort, may_copy=True, give=give)
    if strict:
        result.require_sound()
    return result


def require_options(
    function: str, options: Iterable[str], but: Iterable[str] = (), *, takes_gate: bool = False
) -> None:
    """Raise `UsageError` if one of the `options` is unknown to `normalize`, or not taken by `function`.

    Parameters
    ----------
    function : str
        The function's name, for the message.
    options : iterable of str
        The names of the options that were given.
    but : iterable of str
        Options of `normalize` that the function does not take. No function takes `clip_output` and `strict`.
    takes_gate : bool
        Whether the function takes the options of a gate.
    """
    own = ("clip_output", "strict", *(() if takes_gate else GATE))  # few functions take what follows the norm
    unknown = [name for name in options if name not in OPTIONS or name in (*but, *own)]
    if unknown:
        raise UsageError(f"{function} has no option {unknown[0]!r}")
