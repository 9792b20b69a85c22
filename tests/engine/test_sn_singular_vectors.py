"""The vectors of σ, and how far an estimate is from the largest singular value."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.sn.sigma_of_groups import approximate_largest
from normcli.errors import MissingStatisticError

X = [[3.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (1, 3), (3, 1)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_singular_vectors_are_lapack_s_with_a_positive_largest_number(shape, scale, rng):
    x = rng.normal(size=shape) * scale
    found = normalize(x, "sn")
    left, values, right = np.linalg.svd(x / scale, full_matrices=False)
    sign = np.sign(right[0][np.argmax(np.abs(right[0]))])
    np.testing.assert_allclose(found.u, sign * left[:, 0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.v, sign * right[0], rtol=1e-12, atol=1e-15)
    assert found.largest == found.sigma == pytest.approx(values[0] * scale, rel=1e-14)
    assert approximate_largest(x) == pytest.approx(values[0] * scale, rel=1e-9)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_matrix_has_none_and_a_largest_of_0(shape, rows):
    found = normalize(np.zeros(shape), "sn", rows=rows)
    assert (found.u.shape, found.v.shape) == ((shape[rows],), (np.prod(np.delete(shape, rows)),))
    assert np.isnan(found.u).all()
    assert np.isnan(found.v).all()
    assert found.largest == 0.0


def test_what_does_not_count_is_0():
    found = normalize([[3.0, 1.0], [np.nan, 1.0]], "sn", nan="omit")
    np.testing.assert_array_equal(found.u, normalize(X, "sn").u)


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(np.eye(2), id="two largest"),
        pytest.param(np.zeros((2, 2)), id="zeros"),
        pytest.param([[1.0, np.nan], [0.0, 1.0]], id="NaN"),
        pytest.param([[1.0, np.inf], [0.0, 1.0]], id="infinite"),
    ],
)
def test_where_there_are_none(x):
    found = normalize(x, "sn")
    assert np.isnan(found.u).all()
    assert np.isnan(found.v).all()
    np.testing.assert_array_equal(found.largest, found.sigma)


@pytest.mark.parametrize("name", ["u", "v", "largest"])
def test_other_norms_have_none(name):
    with pytest.raises(MissingStatisticError, match="ln has no "):
        getattr(normalize(X, "ln"), name)


# -- the answer


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param("--u [1,0]", "σ is 0.0483 % below the largest singular value, 3.17959   that of y is 1.00048"),
        pytest.param("--u [2,0] --v [1,1]", "σ is 152 % above the largest singular value"),
        pytest.param("--u [1,0] --iterations 40", "σ is the largest singular value, 3.17959, to rounding"),
        pytest.param("--u [0,1] --v [1,0]", "σ is 100 % below the largest singular value, 3.17959   y is not"),
        pytest.param("", "✓ y: sigma ≈ 1 (1)"),
    ],
)  # fmt: skip
def test_an_estimate_is_held_against_the_largest(options, told, normcli):
    assert told in normcli("sn", "--data", str(X), *options.split()).out


def test_of_several_estimates_that_which_is_furthest_off(normcli):
    told = normcli("sn", "--data", str([X, [[1, 0], [0, 0.5]]]), "--keep", "0", "--u", "[1,0]").out
    assert "3.17959   that of y is 1.00048   of other matrices nearer" in told
    told = normcli("sn", "--data", str(np.zeros((2, 2)).tolist()), "--u", "[1,0]", "-q").out
    assert "there is no largest singular value to hold σ against" in told


def test_fields(normcli):
    line = ("sn", "--data", str(X), "--u", "[1,0]")
    assert normcli(*line, "--print", "u,v").out.splitlines()[1] == "0.09950371902099892\t0.31622776601683794"
    assert normcli(*line, "--print", "largest").out == "3.179586801558725\n"
    assert normcli("ln", "--data", str(X), "--print", "u").code == 2
