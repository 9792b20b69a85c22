"""Arrays beside an array that its axes and attributes name: found, copied, and no obstacle."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.peers

zarr = pytest.importorskip("zarr")

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


def put(root, name, values, dims, **attributes):
    """Write an array as xarray does."""
    named = {"dimension_names": dims}
    if root.metadata.zarr_format == 2:
        named, attributes = {}, {"_ARRAY_DIMENSIONS": list(dims), **attributes}
    root.create_array(name, data=np.asarray(values), attributes=attributes, **named)


@pytest.fixture
def x(zarr_format, tmp_path, monkeypatch):
    """Write a store of one variable, its coordinates, and the bounds of one of these."""
    monkeypatch.chdir(tmp_path)
    x = np.arange(24.0, dtype="float32").reshape(4, 3, 2)
    root = zarr.create_group("x.zarr", zarr_format=zarr_format)
    put(root, "t", x, ("time", "lat", "lon"), units="K", coordinates="area")
    put(root, "time", np.arange(4), ("time",), units="days since 2020-01-01", bounds="time_bounds")
    put(root, "time_bounds", np.arange(8).reshape(4, 2), ("time", "side"))
    put(root, "lat", [10.0, 20.0, 30.0], ("lat",))
    put(root, "area", np.ones((3, 2)), ("lat", "lon"))
    return x


@FORMATS
def test_names_attributes_and_coordinates_are_those_of_the_input(x, normcli):
    assert normcli("zscore", "-i", "x.zarr", "-o", "y.zarr:made/z").code == 0
    given, made = zarr.open("x.zarr", mode="r"), zarr.open("y.zarr/made", mode="r")
    assert sorted(made) == ["area", "lat", "time", "time_bounds", "z"]
    for name in made:
        theirs = given["t" if name == "z" else name]
        assert dict(made[name].attrs) == dict(theirs.attrs)
        assert getattr(made[name].metadata, "dimension_names", 0) == getattr(
            theirs.metadata, "dimension_names", 0
        )
        assert name == "z" or np.array_equal(made[name][...], theirs[...])


@FORMATS
def test_a_store_with_coordinates_is_replaced_and_one_of_others_is_not(x, normcli):
    assert normcli("zscore", "-i", "x.zarr", "-o", "y.zarr:z").code == 0
    assert normcli("zscore", "-i", "x.zarr", "-o", "y.zarr:z", "--overwrite").code == 0
    put(zarr.open("y.zarr"), "other", [1.0], ("n",))
    refused = normcli("zscore", "-i", "x.zarr", "-o", "y.zarr:z", "--overwrite")
    assert refused.code == 2
    assert "other of this store would be lost" in refused.err


@FORMATS
def test_zeros_are_not_what_xarray_takes_for_missing(x, normcli):
    assert normcli("zscore", "-i", "x.zarr", "--axes", "time", "-o", "y.zarr:z").code == 0
    assert np.isnan(zarr.open("y.zarr/z").fill_value)


@FORMATS
def test_numbers_that_stand_for_others_are_said_to_and_give_none_that_do(x, normcli):
    packed = {"scale_factor": 0.1, "units": "K"}
    put(zarr.open("x.zarr"), "packed", x.astype("int16"), ("time", "lat", "lon"), **packed)
    made = normcli("zscore", "-i", "x.zarr:packed", "-o", "y.zarr:z")
    assert "its numbers are taken as they are stored, without scale_factor" in made.err
    attributes = dict(zarr.open("y.zarr/z").attrs)
    assert (attributes["units"], "scale_factor" in attributes) == ("K", False)


@FORMATS
def test_xarray_finds_its_coordinates(x, zarr_format, normcli):
    xarray = pytest.importorskip("xarray")
    coords = {"time": np.arange("2020-01-01", "2020-01-05", dtype="M8[D]").astype("M8[ns]"), "lat": [1.0, 2.0, 3.0],
              "lon": [5.0, 6.0], "area": (("lat", "lon"), np.ones((3, 2))), "run": 7}  # fmt: skip
    written = xarray.Dataset({"t": (("time", "lat", "lon"), x)}, coords=coords)
    written.to_zarr("w.zarr", zarr_format=zarr_format, consolidated=zarr_format == 2)
    assert normcli("zscore", "-i", "w.zarr", "--axes", "time,lat,lon", "-o", "y.zarr:t").code == 0
    made = xarray.open_zarr("y.zarr", consolidated=zarr_format == 2)
    given = xarray.open_zarr("w.zarr", consolidated=zarr_format == 2)
    assert made.coords.to_dataset().identical(given.coords.to_dataset())
    assert not made.t.isnull().any()
