"""A scaler for scikit-learn's pipelines, whose statistics are exact however the data were split.

It needs the extra `sklearn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data
except ImportError as _error:
    from normcli.errors import MissingExtraError

    raise MissingExtraError("normcli.sklearn", "sklearn") from _error

from normcli.library.statistics import Statistics, fit
from normcli.norms.divisors import Measurement
from normcli.norms.table import find_norm

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from normcli.norms.names import EpsModeName, FrameworkName, NanName, NormName


def _adds_up(scaler: ExactScaler) -> bool:
    return find_norm(scaler.norm)[0].divisor.measurement is not Measurement.QUANTILES


class ExactScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Normalize each column with statistics over the samples.

    Parameters
    ----------
    norm : str
        A norm of columns: `zscore`, `minmax`, `midrange`, `maxabs`, `robust`, or `bn` of two axes.
    eps, eps_mode, ddof, range, quantiles, no_mean, no_scale, like
        As of `normcli.normalize`.
    nan : {"omit", "propagate", "raise"}
        What becomes of NaN in `fit`; it stays NaN in `transform`. By default it does not count, as in
        scikit-learn's own scalers.

    Attributes
    ----------
    statistics_ : normcli.Statistics
        By name: `scaler.statistics_.mean`; `partial_fit` in any parts and order gives the same bits.
    n_samples_seen_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had names.

    Raises
    ------
    UsageError, DataError
        As `normcli.fit`.

    Examples
    --------
    >>> from normcli.sklearn import Scaler
    >>> Scaler("minmax").fit_transform([[1.0, 2.0], [3.0, 6.0]])
    array([[0., 0.],
           [1., 1.]])
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
        """Forget what was fitted, and fit the statistics of the columns of X, shape (samples, features)."""
        self._fit(X, more=False)
        return self

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: N803
        """Count more samples. Quantiles (`robust`) follow from no sums: they have no such method."""
        self._fit(X, more=hasattr(self, "statistics_"))
        return self

    def _fit(self, x: ArrayLike, *, more: bool) -> None:
        values = self._read(x, reset=not more)
        if more:
            self.statistics_.update(values.astype(self._dtype, copy=False))
        else:
            options = {name: value for name, value in self.get_params().items() if value is not None}
            self._dtype = values.dtype
            self.statistics_ = fit(values, **options)
        self.n_samples_seen_ = self.statistics_.samples

    def transform(self, X: ArrayLike) -> Any:  # noqa: N803
        """Normalize the columns of X, shape (samples, features)."""
        return self._use(X).apply(self._read(X, reset=False))

    def inverse_transform(self, X: ArrayLike) -> Any:  # noqa: N803
        """Undo `transform`: each value rounded once."""
        return self._use(X).invert(self._read(X, reset=False))

    def _use(self, x: ArrayLike) -> Statistics:
        check_is_fitted(self, "statistics_")
        return self.statistics_

    def _read(self, x: ArrayLike, *, reset: bool) -> Any:
        """Return X as an array of floats without infinity; names of features are held against those fitted."""
        return validate_data(self, x, dtype=FLOAT_DTYPES, reset=reset, ensure_all_finite="allow-nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags


Scaler = ExactScaler
"""The short name. scikit-learn's checks take every class that is called so for its own `StandardScaler`."""
