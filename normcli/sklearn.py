"""A scaler for scikit-learn's pipelines, whose statistics are exact however the data were split.

It needs the extra `sklearn`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data
except ImportError as _error:
    from normcli.errors import MissingExtraError

    raise MissingExtraError.of("normcli.sklearn", "sklearn") from _error

from normcli.fitting.statistics import find_moments
from normcli.library.fit_tensors import fit
from normcli.norms.divisors import Measurement
from normcli.norms.rules import Centre
from normcli.norms.table import find_norm
from normcli.numerics.statistics.solution import solve

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from normcli.library.statistics import Statistics
    from normcli.norms.rules import EpsModeName, FrameworkName, NanName, NormName


def _adds_up(scaler: Scaler) -> bool:
    """Whether samples can be added to fitted statistics (`partial_fit`): not for a scaler of quantiles."""
    return find_norm(scaler.norm)[0].divisor.measurement is not Measurement.QUANTILES


def _of(*spreads: str) -> Callable[[Callable[[Scaler], Any]], property]:
    """Return a decorator that makes a method a property of scalers whose norm divides by one of `spreads`.

    Reading the property raises `AttributeError` before a scaler is fitted, and for other norms.
    """

    def make(read: Callable[[Scaler], Any]) -> property:
        @functools.wraps(read)
        def get(scaler: Scaler) -> Any:
            stats = vars(scaler).get("statistics_")
            if stats is None or stats.plan.norm.divisor.spread not in spreads:
                what = "that is not fitted" if stats is None else f"of {scaler.norm}"
                raise AttributeError(f"a scaler {what} has no {read.__name__}")
            return read(scaler)

        return property(get)

    return make


class Scaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Normalize each column with statistics over the samples.

    Parameters
    ----------
    norm : str
        A norm of columns: `zscore`, `minmax`, `midrange`, `maxabs`, `robust`, or `bn` of two axes.
    eps, eps_mode, ddof, range, quantiles, no_mean, no_scale, like
        Options of the norm, as in `normcli.normalize`.
    nan : {"omit", "propagate", "raise"}
        The rule for NaN in `fit`; in `transform`, NaN stays NaN. By default it does not count, as in
        scikit-learn's own scalers.

    Attributes
    ----------
    statistics_ : normcli.Statistics
        The fitted statistics, such as `scaler.statistics_.mean`. `partial_fit` on parts of the data, in any
        order, gives the same bits as `fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        The names of the columns of X; absent if X had none.
    n_samples_seen_ : int or ndarray of int, shape (n_features,)
        The number of samples seen; for norms by a variance the number of values that counted, one for each
        feature if features differ.
    mean_, var_ : ndarray of float64, shape (n_features,), or None
        The means and variances of `zscore` and `bn`. The variance is None with `no_scale`; the mean is None if
        `no_mean` is set too.
    center_ : ndarray of float64, shape (n_features,), or None
        The numbers that `robust` and `midrange` subtract; None for `robust` with `no_mean`.
    data_min_, data_max_, data_range_ : ndarray of float64, shape (n_features,)
        Least value, largest value and their difference, for `minmax`.
    max_abs_ : ndarray of float64, shape (n_features,)
        The largest absolute values, for `maxabs`.
    scale_ : ndarray of float64, shape (n_features,), or None
        The divisors of the features, with eps, and 1 in place of 0; None with `no_scale`. For `minmax`, as in
        scikit-learn, the factors of the features.
    min_ : ndarray of float64, shape (n_features,)
        The numbers that `minmax` adds: the result is `X * scale_ + min_`.

    Raises
    ------
    UsageError
        By `fit`, if samples have statistics of their own, or an option makes no sense for the norm.
    DataError
        By `fit`, if X has NaN under `nan="raise"`.

    Examples
    --------
    >>> from normcli.sklearn import Scaler
    >>> Scaler("minmax").fit_transform([[1.0, 2.0], [3.0, 6.0]])
    array([[0., 0.],
           [1., 1.]])
    >>> scaler = Scaler().fit([[1.0, 2.0], [3.0, 6.0]])
    >>> scaler.mean_, scaler.scale_
    (array([2., 4.]), array([1., 2.]))
    """

    statistics_: Statistics
    _dtype: Any

    def __init__(
        self,
        norm: NormName = "zscore",
        *,
        eps: float | None = None,
        eps_mode: EpsModeName | None = None,
        ddof: int | None = None,
        range: tuple[float, float] | None = None,
        quantiles: tuple[float, float] | None = None,
        no_mean: bool | None = None,
        no_scale: bool | None = None,
        like: FrameworkName | None = None,
        nan: NanName = "omit",
    ) -> None:
        self.norm = norm
        self.eps = eps
        self.eps_mode = eps_mode
        self.ddof = ddof
        self.range = range
        self.quantiles = quantiles
        self.no_mean = no_mean
        self.no_scale = no_scale
        self.like = like
        self.nan = nan

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: N803  # scikit-learn's name
        """Fit the statistics of the columns of X, shape (samples, features), anew; `y` is ignored."""
        self._fit(X, more=False)
        return self

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: N803
        """Add the samples of X to the fitted statistics, or begin with them; `y` is ignored.

        A scaler of quantiles (`robust`) has no such method, as they do not follow from sums.
        """
        self._fit(X, more=hasattr(self, "statistics_"))
        return self

    def _fit(self, x: ArrayLike, *, more: bool) -> None:
        """Fit `statistics_` to the samples of x; with `more`, add the samples to the earlier ones."""
        values = self._read(x, reset=not more)
        if more:
            self.statistics_.update(values.astype(self._dtype, copy=False))
        else:
            options = {name: value for name, value in self.get_params().items() if value is not None}
            self._dtype = values.dtype
            self.statistics_ = fit(values, **options)

    def transform(self, X: ArrayLike) -> Any:  # noqa: N803
        """Return the normalized columns of X, shape (samples, features); `NotFittedError` before `fit`."""
        return self._fitted().apply(self._read(X, reset=False))

    def inverse_transform(self, X: ArrayLike) -> Any:  # noqa: N803
        """Return the values that `transform` makes into X, each rounded once; `NotFittedError` before `fit`."""
        return self._fitted().invert(self._read(X, reset=False))

    def _fitted(self) -> Statistics:
        """Return the fitted statistics; raise `NotFittedError` if there are none."""
        check_is_fitted(self, "statistics_")
        return self.statistics_

    def _read(self, x: ArrayLike, *, reset: bool) -> Any:
        """Return X as floats; raise `ValueError` for an infinity, or other features than those fitted.

        With `reset`, the number and the names of the features become those of X.
        """
        return validate_data(self, x, dtype=FLOAT_DTYPES, reset=reset, ensure_all_finite="allow-nan")

    # -- what was fitted, by scikit-learn's names

    @_of("std", "range", "half_range", "norm", "iqr", "q_range")
    def n_samples_seen_(self) -> int | NDArray[np.int64]:
        """Return the number of samples seen; for norms by a variance, the number of values that counted.

        It is an array with one number for each feature if these differ.
        """
        if self.statistics_.plan.norm.divisor.spread != "std":
            return self.statistics_.samples
        counts = self._get("count")
        return counts if np.ptp(counts) else int(counts[0])

    @_of("std")
    def mean_(self) -> NDArray[np.float64] | None:
        """Return the means, one for each feature; None if `no_mean` and `no_scale` are set."""
        is_unused = (
            self.statistics_.plan.norm.centre is Centre.NOTHING
            and not self.statistics_.plan.norm.divisor.divides
        )
        return None if is_unused else self._get("mean")

    @_of("std")
    def var_(self) -> NDArray[np.float64] | None:
        """Return the variances, with the divisor n − `ddof`; None with `no_scale`."""
        return self._get("var") if self.statistics_.plan.norm.divisor.divides else None

    @_of("half_range", "iqr", "q_range")
    def center_(self) -> NDArray[np.float64] | None:
        """Return the number that is subtracted from each column; None if none is subtracted."""
        name = self.statistics_.plan.norm.centre.statistic
        return None if name is None else self._get(name)

    @_of("range")
    def data_min_(self) -> NDArray[np.float64]:
        """Return the smallest values."""
        return self._get("min")

    @_of("range")
    def data_max_(self) -> NDArray[np.float64]:
        """Return the largest values."""
        return self._get("max")

    @_of("range")
    def data_range_(self) -> NDArray[np.float64]:
        """Return the largest value less the smallest one, for each feature."""
        return self._get("range")

    @_of("norm")
    def max_abs_(self) -> NDArray[np.float64]:
        """Return the largest absolute values."""
        return self._get("norm_length")

    @_of("std", "range", "half_range", "norm", "iqr", "q_range")
    def scale_(self) -> NDArray[np.float64] | None:
        """Return the divisors of the features, for `minmax` the factors; None with `no_scale`."""
        plan = self.statistics_.plan
        if not plan.norm.divisor.divides:
            return None
        solution = solve(plan, find_moments(plan, self.statistics_._stats))
        divisor: NDArray[np.float64] = solution.divisor.hi.reshape(-1)
        if plan.norm.divisor.spread != "range":
            return divisor
        low, high = self.range or (0.0, 1.0)
        return (high - low) / divisor

    @_of("range")
    def min_(self) -> NDArray[np.float64]:
        """Return the number that is added to each column after scaling."""
        low = (self.range or (0.0, 1.0))[0]
        added: NDArray[np.float64] = low - self.data_min_ * self.scale_
        return added

    def _get(self, name: str) -> NDArray[Any]:
        """Return a statistic by name, one number for each feature."""
        found: NDArray[Any] = getattr(self.statistics_, name)
        return found.reshape(-1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags
