"""`normalize`, the function that the package is known by: every option an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.errors import UsageError
from normcli.results.arguments import GATE, read_arguments
from normcli.results.arrays import find_lazy, take_place
from normcli.results.calculate import calculate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        Real numbers: integers are what they are, booleans count as 0 and 1. Also a tensor of PyTorch, JAX or
        another library of the array API, a DataFrame or Series of pandas or polars, a DataArray of xarray.
        Results of a tensor that requires a gradient are detached: no gradient flows back; see `backward`.
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    axes, keep : str, int or sequence of both, optional
        The axes to reduce, or those to keep, by number or by letter of the layout. The default is the norm's.
    layout : str, optional
        One letter per axis, or words: `time,lat,lon`. Default: NC, NCL, NCHW, NCDHW by rank; of xarray its
        dimensions.
    feature_axes : str, int or sequence of both, optional
        The axes that gamma and beta lie along, instead of the norm's.
    gamma_offset : int, optional
        Added to gamma: 1 for a scale that is stored as gamma − 1, as of Gemma, DiT and FLUX.
    rows : str, int or sequence of both, optional
        Of `sn`: the axes that are the rows of the matrix; the first by default.
    iterations : int, optional
        Of `sn`: divide by uᵀXv of so many power iterations from `u` or `v`, exactly, instead of by the largest
        singular value; 1 by default where one of them is given.
    u, v : array_like of float, optional
        Of `sn`: what they start from, one number for each row (as `torch.nn.utils.spectral_norm`, Keras and
        Flax keep it) or column (as `torch.nn.utils.parametrizations.spectral_norm` and Equinox do). If both are
        given, σ is uᵀXv of them as they are, as in evaluation.
    groups : int, optional
        The number of groups of channels (`gn`) or of the last axis reduced (`rms`, `lp`); −1 for one for each.
    group_order : {"contiguous", "interleaved"}, optional
        Group g holds neighbouring channels, or g, g + groups, g + 2·groups and so on.
    eps : float, optional
    eps_mode : {"inside", "outside"}, optional
        √(var + eps) or √var + eps.
    ddof : int, optional
        The divisor of the variance is n − ddof; 0 by default.
    dtype : {"float16", "bfloat16", "float32", "float64"}, optional
        Of the output. Default: the input's, or float64 for integers.
    gamma, beta : array_like, optional
        y = gamma · x̂ + beta, of the shape that the table of norms names, or any that broadcasts against `x`: a
        scale of each sample, (B, 1, D); of each head, (heads, D) or flat; of each group, (groups).
    weight, bias : array_like, optional
        The frameworks' names of gamma and beta.
    p : float, optional
        Of `lp`: any number, ∞ and −∞ too; 2 by default.
    size, alpha, exponent, k : optional
        Of `lrn`: x / (k + alpha/size · Σx²)^exponent.
    range : tuple of float, optional
        Of `minmax`: from where to where values come to lie; (0, 1) by default.
    quantiles : tuple of float, optional
        Of `robust`: the range between which values are divided by, in per cent; (25, 75) by default.
    over : tuple of int or slice, optional
        Of `ln`, `rms` and `lp`: the places of the last axis reduced that statistics are over; all values are
        normalized with them.
    no_mean, no_scale : bool, optional
        Of `zscore` and `robust`: leave out the subtraction, or the division.
    like : str, optional
        The framework whose convention is followed where no option says otherwise: `normcli conventions` lists
        them.
    residual : array_like, optional
        Of the shape of `x`: x + residual is normalized, rounded to its dtype first as in frameworks.
    residual_sum : {'rounded', 'exact'}, optional
        `exact` rounds nothing before the norm: sums of floats are of float64, which has to hold them.
    clip : tuple, optional
        Bring the tensor between two bounds first: numbers, or percentiles of its values, ("0.5%", "99.5%").
    gate : array_like, optional
        z, of a shape that broadcasts to that of `x`: the result is norm(x) · act(z), the exact value, rounded
        once; where `like` rounds x̂ before gamma, of the norm's rounded result.
    gate_act : {"silu", "sigmoid", "gelu", "gelu-tanh", "relu", "tanh", "none"}, optional
        act; silu by default.
    gate_order : {"after", "before"}, optional
        `before`: the result is norm(x · act(z)), whose product is rounded once, to float32, or to float64 where
        x or z is of it; by default what `like` does, else `after`.
    clip_output : tuple of float, optional
        Bring the result between two bounds last, each rounded to its dtype.
    running_mean, running_var : array_like, optional
        Both or neither: normalize with these, as evaluation does, instead of its own statistics. They are of
        the shape (C), of `bn` and `in` alike; `track` updates them, as training does.
    mask : array_like of bool, optional
        True, or 1, where a value counts; of a shape that broadcasts to that of `x`. The statistics are of what
        counts alone.
    lengths : sequence of int, optional
        For each sample, how many positions along the layout's L, T or S count; the rest is padding.
    nan : {"propagate", "omit", "raise"}, optional
        Whether NaN makes its group's statistics NaN (the default), does not count, or is an error.
    fill : {"pass", "zero", "nan", "normalize"}, optional
        What becomes of values that do not count: they are passed through (the default), replaced, or normalized
        with the statistics of the others, as Keras and Flax do.
    out : ndarray, optional
        Where the normalized tensor goes: C-contiguous, of the shape of `x` and the dtype of the output; a
        tensor of PyTorch too.
    threads : int, optional
        At most so many; all processors by default. The result is the same to the bit for any.
    statistics : bool, optional
        False if they are not to be kept, but measured again from `x` when they are asked for. By default they
        are of `x` as it is now. Of groups so short (rows of 4) that memory for them would take longer than the
        arithmetic, a copy of `x` is kept, from which they are measured when they are asked for.
    strict : bool, optional
        Refuse groups that are degenerate: empty, constant, of one value, or not finite.

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
        If a group is degenerate, under `strict`.

    Notes
    -----
    Statistics are the exact values, rounded once to float64; normalized values those of the output's dtype
    (`normcli.numerics`).

    Examples
    --------
    >>> result = normalize([[1, 2, 3, 4], [2, 4, 6, 8]], "ln", eps=0)
    >>> result.mean
    array([2.5, 5. ])
    >>> result.normalized.round(2)
    array([[-1.34, -0.45,  0.45,  1.34],
           [-1.34, -0.45,  0.45,  1.34]])
    """
    options = locals()  # nothing else is bound yet: the arguments by their names
    lazy = find_lazy(x)
    if lazy is not None:
        found: Result = lazy.work.normalize_array(**(options | {"x": lazy.taken, "strict": strict or None}))
        return found
    asked = read_arguments(x, norm, options)
    place = take_place(out)
    give = asked.give if place is out else asked.give_other  # of a tensor's own memory
    plan, values, inputs, effort = asked[:4]
    result = calculate(plan, values, inputs, out=place, effort=effort, may_copy=True, give=give)
    if strict:
        result.require_sound()
    return result


def require_options(
    function: str, options: Iterable[str], but: Iterable[str] = (), *, takes_gate: bool = False
) -> None:
    """Raise `UsageError` if another function is given an option that is none of `normalize`'s."""
    known = normalize.__kwdefaults__ or {}
    own = ("clip_output", "strict", *(() if takes_gate else GATE))  # what follows the norm is seldom of others
    unknown = [name for name in options if name not in known or name in (*but, *own)]
    if unknown:
        raise UsageError(f"{function} has no option {unknown[0]!r}")
