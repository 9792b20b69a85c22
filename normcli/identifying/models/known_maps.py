"""Well-known plain maps y = a · x + b: image constants, other scalers, division by a spectral norm.

They are named as possibilities, since any other map with these a and b fits as well. Evaluation of a norm is
another possibility, with the running statistics that follow from a and b.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.identifying.models.error_bounds import Level
from normcli.identifying.models.line_fit import PlainMap
from normcli.norms.conventions import CONVENTIONS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.search.affine_step import AffineStep


class Constants(NamedTuple):
    """The map y = (x / unit − mean) / std, with a mean and a std for each channel or one for all.

    Parameters
    ----------
    words : str
        The name of the map, as a diagnosis prints it.
    mean, std : tuple of float
        A number for each channel, or a single number.
    unit : float
        The number by which x is divided first.
    source : str
        A place where the constants are defined.
    """

    words: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    unit: float
    source: str


class KnownScaler(NamedTuple):
    """A scaler y = (x − centre) / divisor, of statistics of each group of values.

    Parameters
    ----------
    words : str
        The name of the scaler, as a diagnosis prints it; of classes, that of scikit-learn's.
    centre, divisor : str
        Keys of `CENTRES` and `SPREADS`.
    """

    words: str
    centre: str
    divisor: str


_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_KERAS = "Keras 3.15, applications/imagenet_utils.py, preprocess_input"
_TIMM = "timm, data/constants.py"

CONSTANTS = (
    Constants("x / 255, bytes from 0 to 1", (0.0,), (1.0,), 255.0, "torchvision, transforms.ToTensor"),
    Constants("x / 127.5 − 1, bytes from −1 to 1", (1.0,), (1.0,), 127.5, f"{_KERAS}, mode tf"),
    Constants("(x − 0.5) / 0.5, from −1 to 1", (0.5,), (0.5,), 1.0, f"{_TIMM}, IMAGENET_INCEPTION_MEAN"),
    Constants("ImageNet's mean and std of 0 to 1", *_IMAGENET, 1.0, f"{_TIMM}, IMAGENET_DEFAULT_MEAN"),
    Constants("ImageNet's mean and std of 0 to 255", *_IMAGENET, 255.0, f"{_KERAS}, mode torch"),
    Constants("ImageNet's mean in BGR", (103.939, 116.779, 123.68), (1.0,) * 3, 1.0, f"{_KERAS}, mode caffe"),
    Constants("CLIP's mean and std of 0 to 1", *_CLIP, 1.0, f"{_TIMM}, OPENAI_CLIP_MEAN"),
    Constants("CLIP's mean and std of 0 to 255", *_CLIP, 255.0, f"{_TIMM}, OPENAI_CLIP_MEAN"),
    Constants("MNIST's mean and std", (0.1307,), (0.3081,), 1.0, "pytorch/examples, mnist/main.py"),
    Constants(
        "CIFAR-10's mean and std",
        (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 1.0, "kuangliu/pytorch-cifar, main.py",
    ),
)  # fmt: skip
"""Constants by which images are normalized, each with a place where they are defined."""

UNTRAINED_EPS = sorted({row.eps for row in CONVENTIONS if row.running and isinstance(row.eps, float)})
"""The default eps of frameworks' layers with running statistics, ascending."""

UNTRAINED = "evaluation before any training"

_UNTRAINED = tuple(
    Constants(
        f"evaluation before any training: running mean 0, running variance 1, eps {eps:g}",
        (0.0,), (math.sqrt(1.0 + eps),), 1.0, "the statistics that layers start with",
    )
    for eps in UNTRAINED_EPS
)  # fmt: skip
"""The maps of layers whose running statistics were never updated, one for each eps."""

CENTRES: Mapping[str, Callable[[Floats], Floats]] = {
    "nothing": lambda rows: np.zeros(len(rows)),
    "the mean": lambda rows: rows.mean(-1),
    "the median": lambda rows: np.median(rows, -1),
    "the minimum": lambda rows: rows.min(-1),
    "the middle of the range": lambda rows: (rows.min(-1) + rows.max(-1)) / 2.0,
}
"""The centre of each row of a group's values, by its name."""


def _measure_median_deviation(rows: Floats) -> Floats:
    return np.asarray(np.median(np.abs(rows - np.median(rows, -1, keepdims=True)), -1))


def _measure_quantiles(rows: Floats, low: float, method: Any = "linear") -> Floats:
    return np.asarray(np.subtract(*np.percentile(rows, (100.0 - low, low), -1, method=method)))


_METHODS = "linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased"
"""The rules for quartiles between two values, as NumPy has them."""

_RANGES = {q: f"the range from {q} % to {100 - q} %" for q in (1, 2, 5, 10, 20)}
"""The names of ranges between quantiles, by the lower percentage."""

SPREADS: Mapping[str, Callable[[Floats], Floats]] = {
    "nothing": lambda rows: np.ones(len(rows)),
    "the standard deviation": lambda rows: rows.std(-1),
    "the standard deviation of n − 1": lambda rows: (
        rows.std(-1) * math.sqrt(1.0 + 1.0 / max(1, rows.shape[-1] - 1))
    ),
    "the median absolute deviation": _measure_median_deviation,
    "1.4826 times the median absolute deviation": lambda rows: 1.4826 * _measure_median_deviation(rows),
    "the mean absolute deviation": lambda rows: np.abs(rows - rows.mean(-1, keepdims=True)).mean(-1),
    "the root of the deviation": lambda rows: np.sqrt(rows.std(-1)),
    "the range": lambda rows: np.ptp(rows, -1),
    "the sum": lambda rows: rows.sum(-1),
    "the maximum": lambda rows: rows.max(-1),
    "the largest |x|": lambda rows: np.abs(rows).max(-1),
    "the largest |x − mean|": lambda rows: np.abs(rows - rows.mean(-1, keepdims=True)).max(-1),
    **{f"the quartile range ({one})": partial(_measure_quantiles, low=25, method=one) for one in _METHODS},
    **{name: partial(_measure_quantiles, low=q) for q, name in _RANGES.items()},
}
"""The divisor of each row, by its name; 1 takes the place of 0."""

SCALERS = (
    KnownScaler("StandardScaler(with_mean=False)", "nothing", "the standard deviation"),
    KnownScaler(
        "StandardScaler(with_std=False): the mean is subtracted, nothing divided", "the mean", "nothing"
    ),
    KnownScaler("RobustScaler(with_centering=False)", "nothing", "the quartile range (linear)"),
    KnownScaler("RobustScaler(with_scaling=False)", "the median", "nothing"),
    *(
        KnownScaler(f"RobustScaler(quantile_range=({q}, {100 - q}))", "the median", name)
        for q, name in _RANGES.items()
    ),
    KnownScaler("a division by the sum", "nothing", "the sum"),
    KnownScaler("a division by the largest value", "nothing", "the maximum"),
)
"""Scalers that are no norm of the table; their a and b are computed from the values."""

WEIGHT = "weight normalization with g = a · ‖w‖ of each output"
"""The words for y = a · x with any a for each output, since g may be any number; Salimans & Kingma 2016."""

SPECTRAL = "sn, w divided by its spectral norm, the largest singular value"
"""The words for matrices; Miyato et al. 2018, torch.nn.utils.spectral_norm, which finds it by iteration."""

_ITERATED = 2.0**12
"""The error of a singular value found by iteration, in machine epsilons."""

_ROUNDINGS, _ROUNDINGS_OF_HALF = 8.0, 1.0
"""Bounds of a kernel's errors, in machine epsilons of y's dtype: of longer dtypes, and of half precision."""

_PLACES = 6
"""The decimal places of the ends of a range to which values are scaled."""

MOST_VALUES = 1 << 20
"""Scalers are not fitted to tensors with more values than this."""


def list_constants(
    axes: Sequence[int], x: Floats, y: Floats, dtype: np.dtype[Any]
) -> Iterator[tuple[str, PlainMap]]:
    """Yield the words and the map of image constants and untrained layers that are y within rounding.

    Parameters
    ----------
    axes : sequence of int
        The axes along which constants for channels are tried.
    x, y : ndarray
        Input and output, or a sample of them, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    level = choose_map_level(dtype)
    for constants in (*CONSTANTS, *_UNTRAINED):
        for made in _place(constants, x.shape, axes):
            if made.explains(x, y, dtype, level):
                yield constants.words, made
                break


def choose_map_level(dtype: np.dtype[Any]) -> Level:
    """Return the level at which a well-known map holds: each of its steps may be rounded to a dtype."""
    return Level(dtype.name, 1.0, _ROUNDINGS_OF_HALF if is_half(dtype) else _ROUNDINGS)


def name_map(found: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], *, is_whole: bool) -> Iterator[str]:
    """Yield the words for well-known maps that are y within rounding; nothing if none is.

    Parameters
    ----------
    found : PlainMap
        The map y = a · x + b that was fitted, and holds within rounding.
    x, y : ndarray
        Input and output, or a sample of them, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    is_whole : bool
        False if x and y are only a sample: then scalers and spectral norms are not tried.
    """
    yield from (words for words, _ in list_constants(found.axes, x, y, dtype))
    careless, iterated = choose_map_level(dtype), Level(dtype.name, 1.0, _ITERATED)
    if len(found.axes) == 1 and x.ndim > 1 and not found.shift.any():
        yield WEIGHT
    if not is_whole or x.size > MOST_VALUES or not np.isfinite(x).all():
        return
    others = tuple(axis for axis in range(x.ndim) if axis not in found.axes)
    rows = x.transpose(*found.axes, *others).reshape(-1, math.prod(x.shape[axis] for axis in others))
    for scaler in SCALERS:
        a = (1.0 / SPREADS[scaler.divisor](rows)).reshape(found.scale.shape)
        b = -CENTRES[scaler.centre](rows).reshape(a.shape) * a
        if PlainMap(found.axes, a, b).explains(x, y, dtype, careless) and _has_slope(a, x, y, others, dtype):
            yield scaler.words
    ends = y.transpose(*found.axes, *others).reshape(rows.shape)
    low, high = (round(float(end(ends)), _PLACES) for end in (np.min, np.max))
    if len(rows) > 1 and np.allclose(
        [ends.min(1), ends.max(1)], [[low], [high]], rtol=get_eps(dtype) * _ROUNDINGS
    ):
        yield f"MinMaxScaler(feature_range=({low:g}, {high:g}))"
    if x.ndim >= 2 and not found.axes:
        for axis in (0, 1):
            length = np.linalg.norm(np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1), 2)
            candidate = found._replace(
                scale=np.full_like(found.scale, 1.0 / length), shift=np.zeros_like(found.shift)
            )
            if candidate.explains(x, y, dtype, iterated):
                yield SPECTRAL
                break


def _has_slope(a: Floats, x: Floats, y: Floats, others: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return True if y − a · x is constant along the axes `others`, within the roundings of y.

    The bound is of the size of y only: that of a · x and b, if they are large, would hide a wrong a.
    """
    rest, size = y - a * x, np.abs(y)
    allowed = _ROUNDINGS * get_eps(dtype) * (size + size.mean(others, keepdims=True))
    return bool(np.all(np.abs(rest - np.median(rest, others, keepdims=True)) <= allowed))


def _place(constants: Constants, shape: tuple[int, ...], axes: Sequence[int]) -> Iterator[PlainMap]:
    """Yield the maps y = a · x + b that constants may mean for a tensor.

    A single mean and std make one map. Otherwise there is one map for each of `axes` that is as long as they
    are.

    Parameters
    ----------
    constants : Constants
    shape : tuple of int
        The shape of the tensor.
    axes : sequence of int
        The axes along which a and b may vary.
    """
    mean, std = np.array(constants.mean), np.array(constants.std)
    a, b = 1.0 / (constants.unit * std), -mean / std
    if len(mean) == 1:
        yield PlainMap((), a.reshape((1,) * len(shape)), b.reshape((1,) * len(shape)))
        return
    for axis in axes:
        if shape[axis] == len(mean):
            lengths = [len(mean) if other == axis else 1 for other in range(len(shape))]
            yield PlainMap((axis,), a.reshape(lengths), b.reshape(lengths))


class Evaluation(NamedTuple):
    """The evaluation of a norm with running statistics: y = scale · (x − mean) / √square + shift.

    Parameters
    ----------
    mean : ndarray
        The running mean, of the shape of the map's a and b.
    square : ndarray
        The running variance plus eps, of that shape.
    affine : AffineStep
        The way in which gamma and beta entered.
    """

    mean: Floats
    square: Floats
    affine: AffineStep


def read_evaluation(found: PlainMap, affines: Iterable[AffineStep]) -> Evaluation | None:
    """Return the running statistics with which a norm's evaluation is a map y = a · x + b.

    Parameters
    ----------
    found : PlainMap
    affines : iterable of AffineStep
        The ways in which gamma and beta may enter, the likelier ones first; the first possible way is taken,
        and ways without gamma or beta are tried last.

    Returns
    -------
    Evaluation or None
        None if every way would need a variance that is not positive and finite, or has a gamma or beta that
        does not fit the shape of a and b.
    """
    shape = found.scale.shape
    for step in sorted(affines, key=lambda step: (step.scale is None) + (step.shift is None)):
        if any(not has_place(values, shape) for values in (step.scale, step.shift)):
            continue
        gamma = np.ones(1) if step.scale is None else step.scale
        beta = np.zeros(1) if step.shift is None else step.shift
        with np.errstate(all="ignore"):
            rstd, mean = found.scale / gamma, (beta - found.shift) / found.scale
            square = 1.0 / rstd**2
        known = (rstd > 0.0) & (square > 0.0) & np.isfinite(square)  # a gamma of 0 makes no factor
        if np.all(known) and np.all(np.isfinite(mean)):
            return Evaluation(mean, square, step)
    return None


def find_untrained_eps(found: Evaluation) -> float | None:
    """Return the default eps, if running statistics are untrained: mean 0 and variance 1 everywhere; else None.

    They are if the mean is 0, and variance + eps − 1 is within 25 % of a default eps.
    """
    if np.any(np.abs(found.mean) > _NO_MEAN):
        return None
    added = found.square - 1.0
    return next((eps for eps in UNTRAINED_EPS if np.all(np.abs(added - eps) <= _SEEN * eps)), None)


_NO_MEAN, _SEEN = 1e-4, 0.25
"""The largest |mean| that counts as 0, and the error of variance − 1 as a part of eps."""


def has_place(values: Floats | None, shape: tuple[int, ...]) -> bool:
    """Whether an array has a length of 1, or that of a shape, along each axis; True for None."""
    return values is None or all(n in (1, full) for n, full in zip(values.shape, shape, strict=True))
