"""Arrays of dask: the bits of one machine, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.errors import DataError, UsageError

pytestmark = pytest.mark.peers

SHAPE = (7, 6, 4, 5)


@pytest.fixture(scope="module")
def array():
    return pytest.importorskip("dask.array")


@pytest.fixture
def x(rng):
    return (rng.normal(3.0, 2.0, SHAPE) * 10.0 ** rng.integers(-6, 6, SHAPE)).astype("float32")


REQUESTS = [
    pytest.param("bn", {}, id="bn"),
    pytest.param("bn", {"axes": "NHW", "ddof": 1, "eps": 0.1}, id="options"),
    pytest.param("zscore", {"axes": "NCHW"}, id="one group"),
    pytest.param("minmax", {"axes": "N"}, id="minmax"),
    pytest.param("gn", {"groups": 3}, id="gn"),
    pytest.param("gn", {"groups": 3, "axes": "NCHW"}, id="channel groups over the batch"),
    pytest.param("ln", {"axes": "CHW"}, id="ln"),
    pytest.param("in", {}, id="in"),
    pytest.param("lrn", {}, id="a window"),
    pytest.param("rms", {"dtype": "float64"}, id="another dtype"),
]


@pytest.mark.parametrize(("norm", "options"), REQUESTS)
def test_any_chunks_give_the_bits_of_one_machine(norm, options, array, x, rng):
    expected = normcli.normalize(x, norm, **options)
    for _ in range(4):
        chunks = tuple(int(rng.integers(1, n + 1)) for n in SHAPE)
        result = normcli.normalize(array.from_array(x, chunks=chunks), norm, **options)
        assert isinstance(result.normalized, array.Array)
        assert result.normalized.compute().tobytes() == expected.normalized.tobytes()
        for name, values in result.statistics.items():
            assert values.tobytes() == expected.statistics[name].tobytes()


@pytest.mark.parametrize(("norm", "options"), [("bn", {}), ("ln", {"axes": "CHW"}), ("rms", {})])
def test_gamma_and_beta_are_cut_to_blocks(norm, options, array, x, rng):
    shape = normcli.normalize(x, norm, **options).plan.parameters.shape
    affine = {"gamma": rng.normal(size=shape), "beta": rng.normal(size=shape)}
    expected = normcli.normalize(x, norm, **options, **affine).normalized
    found = normcli.normalize(array.from_array(x, chunks=(2, 4, 3, 2)), norm, **options, **affine).normalized
    assert found.compute().tobytes() == expected.tobytes()


@pytest.mark.parametrize("norm", ["bn", "robust"])
def test_statistics_are_applied_and_undone_lazily(array, x, norm):
    stats, lazy = normcli.fit(x, norm), array.from_array(x, chunks=(3, 2, 4, 2))
    y, back = stats.apply(lazy), stats.invert(stats.apply(lazy), dtype="float64")
    assert isinstance(y, array.Array)
    assert y.compute().tobytes() == stats.apply(x).tobytes()
    assert back.compute().tobytes() == stats.invert(stats.apply(x), dtype="float64").tobytes()


def test_workers_of_another_version_are_refused(array, x, monkeypatch):
    monkeypatch.setattr("normcli.cluster.arrays.__version__", "0.9")
    with pytest.raises(DataError, match="a worker runs normcli .*, and the caller 0.9: install one version"):
        normcli.normalize(array.from_array(x, chunks=(3, 2, 4, 2)), "bn").normalized.compute()


def test_nothing_is_calculated_before_it_is_asked_for(array, x):
    reads, meta = [], np.empty((0,) * 4, "f4")
    lazy = array.from_array(x, chunks=(2, 6, 4, 5)).map_blocks(
        lambda block: reads.append(1) or block, meta=meta
    )
    _ = normcli.normalize(lazy, "ln").normalized
    assert not reads
    result = normcli.normalize(lazy, "bn")
    assert len(reads) == 4  # the statistics alone
    _ = result.normalized
    assert len(reads) == 4


def test_what_needs_the_whole_array_is_refused(array, x):
    lazy = array.from_array(x)
    with pytest.raises(UsageError, match="mask is of arrays in memory"):
        normcli.normalize(lazy, "bn", mask=np.ones(SHAPE, bool))
    with pytest.raises(UsageError, match="robust"):
        normcli.fit(lazy, "robust")


@pytest.mark.parametrize("call", [normcli.fit, normcli.normalize])
def test_what_is_no_array_of_real_numbers_of_a_known_shape_is_refused(call, array, x):
    with pytest.raises(DataError, match="x holds complex128"):
        call(array.from_array(np.array([[1 + 5j, 2.0]])), "zscore")
    lazy = array.from_array(np.arange(6.0))
    with pytest.raises(DataError, match="chunks of unknown lengths"):
        call(lazy[lazy > 2], "zscore")


def test_xarray_on_dask_stays_lazy_and_keeps_its_axes(array, x):
    xarray = pytest.importorskip("xarray")
    whole = xarray.DataArray(x, dims=("time", "lat", "lon", "level"), coords={"lat": np.arange(6.0)})
    lazy, asked = whole.chunk({"time": 2, "lon": 3}), {"norm": "zscore", "axes": "time,lat,lon"}
    stats = normcli.fit(lazy, **asked)
    assert stats == normcli.fit(whole, **asked)
    assert stats.update(lazy) == normcli.fit(whole, **asked).update(whole)
    turned = lazy.transpose("level", "lon", "lat", "time")
    made = normcli.normalize(lazy, **asked).normalized
    for mine, theirs in (
        (made, normcli.normalize(whole, **asked).normalized),
        (stats.apply(turned), stats.apply(turned.compute())),
        (stats.invert(turned), stats.invert(turned.compute())),
    ):
        assert isinstance(mine.data, array.Array)
        xarray.testing.assert_identical(mine.compute(), theirs)
    assert normcli.check(made, lazy, **asked, max_ulp=0.51)
