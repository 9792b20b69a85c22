"""The estimator, held against scikit-learn's own checks and scalers."""

from __future__ import annotations

import doctest
import subprocess
import sys

import numpy as np
import pytest

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

    outcomes = check_estimator(library.Scaler(norm), on_fail=None, on_skip=None)
    assert [one["check_name"] for one in outcomes if one["status"] == "failed"] == []
    assert len(outcomes) > 40


@pytest.mark.parametrize(("norm", "name"), NORMS.items())
def test_it_scales_as_scikit_learn(library, norm, name, rng):
    from sklearn import preprocessing

    x = rng.normal(5.0, 2.0, size=(50, 4))
    x[3, 1] = np.nan
    mine, theirs = library.Scaler(norm).fit(x), getattr(preprocessing, name)().fit(x)
    assert np.allclose(mine.transform(x), theirs.transform(x), rtol=1e-12, atol=1e-14, equal_nan=True)
    assert np.allclose(mine.inverse_transform(mine.transform(x)), x, rtol=1e-14, equal_nan=True)


def test_parts_in_any_order_give_the_same_bits(library, rng):
    x = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-8, 8, size=(40, 1))
    whole = library.Scaler().fit(x)
    parts = library.Scaler().partial_fit(x[30:]).partial_fit(x[:10]).partial_fit(x[10:30])
    assert parts.statistics_ == whole.statistics_
    assert parts.n_samples_seen_ == 40
    assert not hasattr(library.Scaler("robust"), "partial_fit")


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
