"""The estimator, held against scikit-learn's own checks and scalers."""

from __future__ import annotations

import doctest
import subprocess
import sys

import numpy as np
import pytest

from normcli import fit, normalize

pytestmark = pytest.mark.peers

NORMS = {
    "zscore": "StandardScaler",
    "minmax": "MinMaxScaler",
    "maxabs": "MaxAbsScaler",
    "robust": "RobustScaler",
}


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("sklearn")
    from normcli import sklearn

    return sklearn


@pytest.mark.parametrize("norm", [*NORMS, "midrange", "bn"])
def test_it_passes_check_estimator(library, norm):
    from sklearn.utils.estimator_checks import check_estimator

    # The checks take a class that is called Scaler for one of their own; pickle finds this one by its name.
    named = globals().setdefault(
        "CheckedScaler", type("CheckedScaler", (library.Scaler,), {"__module__": __name__})
    )
    outcomes = check_estimator(named(norm), on_fail=None, on_skip=None)
    assert [one["check_name"] for one in outcomes if one["status"] == "failed"] == []
    assert len(outcomes) > 40


ATTRIBUTES = ("mean_", "var_", "scale_", "n_samples_seen_", "min_", "data_min_", "data_max_", "data_range_", "center_", "max_abs_")  # fmt: skip
OPTIONS = [
    pytest.param("zscore", {}, {}, id="zscore"),
    pytest.param("zscore", {"no_mean": True}, {"with_mean": False}, id="zscore, no mean"),
    pytest.param("zscore", {"no_scale": True}, {"with_std": False}, id="zscore, no scale"),
    pytest.param("zscore", {"no_mean": True, "no_scale": True}, {"with_mean": False, "with_std": False}, id="nothing"),
    pytest.param("minmax", {}, {}, id="minmax"),
    pytest.param("minmax", {"range": (-2.0, 3.0)}, {"feature_range": (-2, 3)}, id="minmax, a range"),
    pytest.param("maxabs", {}, {}, id="maxabs"),
    pytest.param("robust", {}, {}, id="robust"),
    pytest.param("robust", {"no_mean": True}, {"with_centering": False}, id="robust, no mean"),
    pytest.param("robust", {"no_scale": True}, {"with_scaling": False}, id="robust, no scale"),
    pytest.param("robust", {"quantiles": (10.0, 80.0)}, {"quantile_range": (10, 80)}, id="robust, quantiles"),
    pytest.param("robust", {"quantiles": (60.0, 99.5)}, {"quantile_range": (60, 99.5)}, id="robust, above"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "gap"), [(1, False), (30, False), (201, True)])
@pytest.mark.parametrize(("norm", "options", "their_options"), OPTIONS)
def test_what_is_fitted_and_scaled_is_that_of_scikit_learn(
    library, norm, options, their_options, rows, gap, rng
):
    from sklearn import preprocessing

    x = rng.normal(5.0, 2.0, size=(rows, 3))
    x[:, 2] = 7.0
    if gap:
        x[3, 1] = np.nan
    mine, theirs = library.Scaler(norm, **options), getattr(preprocessing, NORMS[norm])(**their_options).fit(x)
    assert not any(hasattr(mine, name) for name in ATTRIBUTES)
    mine.fit(x)
    for name in ATTRIBUTES:
        if name == "n_samples_seen_" and not hasattr(theirs, name):
            continue  # RobustScaler's is no sum
        assert hasattr(mine, name) == hasattr(theirs, name), name
        found, expected = getattr(mine, name, None), getattr(theirs, name, None)
        assert (found is None) == (expected is None), name
        if found is not None:
            assert np.shape(found) == np.shape(expected)
            assert np.allclose(found, expected, rtol=1e-12, atol=0.0), name
    y, stats = theirs.transform(x), fit(x, norm, **options, like="sklearn")
    near = {"rtol": 1e-12, "atol": 1e-13, "equal_nan": True}
    whole = normalize(x, norm, **options, like="sklearn").normalized
    for made in (mine.transform(x), stats.apply(x), whole):
        np.testing.assert_allclose(made, y, **near)
    for made in (mine.inverse_transform(y), stats.invert(y)):
        np.testing.assert_allclose(made, theirs.inverse_transform(y), **near)


def test_the_scale_is_what_divides(library):
    x = np.array([[1.0, 5.0], [3.0, 5.0]])
    scaler = library.Scaler("bn", eps=3.0).fit(x)
    assert scaler.var_.tolist() == [1.0, 0.0]
    assert scaler.scale_.tolist() == [2.0, np.sqrt(3.0)]
    assert library.Scaler("midrange").fit(x * 2.0**-1000).scale_.tolist() == [2.0**-1000, 1.0]
    assert library.Scaler("midrange").fit(x).center_.tolist() == [2.0, 5.0]
    with pytest.raises(AttributeError, match="a scaler of bn has no max_abs_"):
        _ = scaler.max_abs_


def test_it_gives_tables_with_their_names(library):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]}, index=[5, 6])
    scaler = library.Scaler().set_output(transform="pandas").fit(frame)
    assert list(scaler.get_feature_names_out()) == ["a", "b"]
    pandas.testing.assert_frame_equal(
        scaler.transform(frame), pandas.DataFrame({"a": [-1.0, 1.0], "b": [-1.0, 1.0]}, index=[5, 6])
    )


def test_its_examples_are_true(library):
    found = doctest.testmod(library)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_without_scikit_learn_it_names_the_extra():
    code = "import sys; sys.modules['sklearn'] = None; import normcli.sklearn"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'normcli[sklearn]'" in made.stderr
