"""Plain maps that people use are named, each of what it makes and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.models.known_maps import SCALERS, SPECTRAL, name_map
from normcli.identifying.models.line_fit import PlainMap

X = np.random.default_rng(0).uniform(0.0, 255.0, (4, 3, 5))
ROWS = X.transpose(1, 0, 2).reshape(3, -1)


def name(y, axes, x=X, dtype="f8", *, is_whole=True, shift=1.0):
    """Return the maps that give y, of which one with a pair for each index of some axes is known."""
    lengths = [n if axis in axes else 1 for axis, n in enumerate(x.shape)]
    found = PlainMap(axes, np.ones(lengths), np.full(lengths, shift))
    return list(name_map(found, x, y, np.dtype(dtype), is_whole=is_whole))


@pytest.mark.parametrize(
    ("words", "unit", "mean", "std"),
    [
        ("ImageNet's mean and std of 0 to 255", 255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ("ImageNet's mean in BGR", 1.0, [103.939, 116.779, 123.68], [1.0, 1.0, 1.0]),
        ("CLIP's mean and std of 0 to 1", 1.0, [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]),
        ("MNIST's mean and std", 1.0, [0.1307] * 3, [0.3081] * 3),
        ("x / 127.5 − 1, bytes from −1 to 1", 127.5, [1.0] * 3, [1.0] * 3),
    ],
)  # fmt: skip
def test_constants_are_those_that_people_write(words, unit, mean, std):
    y = (X / unit - np.array(mean)[:, None]) / np.array(std)[:, None]
    assert name(y, (1,)) == [words]


MADE = {
    "StandardScaler(with_mean=False)": lambda rows: rows / rows.std(1, keepdims=True),
    "StandardScaler(with_std=False)": lambda rows: rows - rows.mean(1, keepdims=True),
    "RobustScaler(with_centering=False)": lambda rows: rows / np.subtract(*np.percentile(rows, (75, 25), axis=1, keepdims=True)),
    **{
        f"quantile_range=({q}, {100 - q})": lambda rows, q=q: (rows - np.median(rows, 1, keepdims=True))
        / np.subtract(*np.percentile(rows, (100 - q, q), axis=1, keepdims=True))
        for q in (1, 2, 5, 10, 20)
    },
    "a division by the sum": lambda rows: rows / rows.sum(1, keepdims=True),
    "a division by the largest value": lambda rows: rows / rows.max(1, keepdims=True),
}  # fmt: skip


@pytest.mark.parametrize("words", MADE)
def test_scalers_are_named_of_all_values(words):
    y = MADE[words](ROWS).reshape(3, 4, 5).transpose(1, 0, 2)
    (found,) = name(y, (1,))
    assert words in found
    assert found in [scaler.words for scaler in SCALERS]
    assert not name(y, (1,), is_whole=False)
    assert not name(y * 1.0001, (1,))
    assert not name(y, (2,))
    assert name(MADE[words](X.reshape(1, -1)).reshape(X.shape), ()) == [found]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("off", [0.0, 2.0**-42])
def test_a_matrix_over_about_its_largest_singular_value_is_named(axis, off):
    sigma = np.linalg.norm(np.moveaxis(X, axis, 0).reshape(X.shape[axis], -1), 2)
    assert name(X / sigma * (1.0 + off), ()) == [SPECTRAL]
    assert not name(X / sigma * (1.0 + 2.0**-38), ())
    assert not name(X / sigma, (1,))


def test_of_what_is_not_finite_no_scaler_is_fitted():
    x = X.copy()
    x[0, 0, 0] = np.inf
    with np.errstate(all="ignore"):
        assert not name(x / x.max(), (), x)
        assert name(x / 255.0, (), x) == ["x / 255, bytes from 0 to 1"]


def test_a_scaler_without_division_is_not_named_where_y_is_divided():
    x = (np.random.default_rng(7).standard_normal((16, 3)) + 100).astype("f2").astype("f8")
    y = (1.1 * (x - x.mean(0))).astype("f2").astype("f8")
    assert not any("with_std=False" in words for words in name(y, (1,), x, "f2"))
