"""What goes in comes out: arrays and tables of other libraries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from normcli import backward, fit, normalize
from normcli.errors import DataError, UsageError
from normcli.results.arrays import give_back_as_is, take

X = np.array([[1.0, 2.0], [3.0, 6.0]])
Y = np.array([[-1.0, -1.0], [1.0, 1.0]])


class Array:
    """As small a library of the array API as there can be."""

    float64 = "other.float64"

    def __init__(self, values, device="gpu:1"):
        self.values, self.device = values, device
        self.dtype = f"other.{values.dtype.name}"

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __array_namespace__(self):
        return SimpleNamespace(asarray=lambda values, device: Array(values, device), __name__="other")


class Narrow(Array):
    def __array_namespace__(self):
        return SimpleNamespace(asarray=lambda values, device: Narrow(values.astype("f4")), __name__="narrow")


@pytest.mark.parametrize("x", [X, X.tolist(), tuple(map(tuple, X))], ids=["array", "lists", "tuples"])
def test_what_is_of_no_library_comes_back_as_an_array(x):
    assert take(x, "x").give is give_back_as_is
    assert type(normalize(x, "bn", eps=0).normalized) is np.ndarray


def test_an_array_of_the_standard_comes_back_on_its_device():
    result = normalize(Array(X), "bn", eps=0, gamma=Array(np.ones(2)), beta=Array(np.zeros(2)))
    assert type(result.normalized) is Array
    assert type(result.standardized) is Array
    assert result.normalized.device == "gpu:1"
    assert (result.normalized.values == Y).all()
    assert result.check
    assert not result.warnings


def test_a_dtype_that_the_library_lacks_is_no_silent_rounding():
    with pytest.raises(UsageError, match="float64, which narrow makes other.float32: choose a dtype"):
        _ = normalize(Narrow(X), "bn").normalized
    assert normalize(Narrow(X), "bn", dtype="float32").normalized.values.dtype == np.float32


# -- tables, which the extra `peers` brings


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.mark.peers
def test_tables_and_columns_of_pandas_come_back_with_their_index(pandas):
    frame = pandas.DataFrame({"height": [1, 3], "weight": [2.0, 6.0]}, index=["ann", "bob"])
    result = normalize(frame, "zscore")
    assert result.plan.grid.group_name(1) == "c=1 weight"
    expected = pandas.DataFrame(Y, index=["ann", "bob"], columns=["height", "weight"])
    pandas.testing.assert_frame_equal(result.normalized, expected)
    pandas.testing.assert_series_equal(normalize(frame["height"], "zscore").normalized, expected["height"])


@pytest.mark.peers
def test_gamma_goes_by_the_names_of_columns(pandas):
    frame = pandas.DataFrame({"a": [1.0, 3.0], "b": [2.0, 6.0]})
    gamma = pandas.DataFrame({"b": [10.0], "a": [1.0]})
    assert normalize(frame, "bn", eps=0, gamma=gamma).normalized.to_numpy().tolist() == [[-1, -10], [1, 10]]
    with pytest.raises(DataError, match="gamma has other columns than a, b: there is no b"):
        normalize(frame, "bn", gamma=gamma.rename(columns={"b": "c"}))


@pytest.mark.peers
@pytest.mark.parametrize(
    ("values", "dtype"),
    [([2**62 + 1, 2**62 + 3], "Int64"), ([2**62 + 1, 2**62 + 3], "int64"), ([1, np.nan], "Int64")],
)
def test_whole_numbers_of_pandas_stay_whole_and_missing_ones_are_nan(pandas, values, dtype):
    frame = pandas.DataFrame({"t": pandas.array(values, dtype=dtype)})
    np.testing.assert_array_equal(take(frame, "x").values[:, 0], values, strict=True)


@pytest.mark.peers
@pytest.mark.parametrize("values", [["x", "y"], [1j, 2j]], ids=["text", "complex"])
def test_columns_that_hold_no_numbers_are_named(pandas, values):
    with pytest.raises(DataError, match="x has columns that hold no numbers: species; leave them out"):
        normalize(pandas.DataFrame({"a": [1.0, 2.0], "species": values}), "zscore")
    with pytest.raises(DataError, match="species"):
        normalize(pandas.Series(values, name="species"), "zscore")


@pytest.mark.peers
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_rounded_whole_numbers_are_warned_of(library):
    table = pytest.importorskip(library).DataFrame({"t": [2**62 + 1, 3], "b": [0.5, 1.0]})
    with pytest.warns(UserWarning, match=r"x: whole numbers of 2\^53 and more are rounded"):
        normalize(table, "zscore")


@pytest.mark.peers
def test_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1, 3], "b": [2.0, 6.0]})
    assert normalize(frame, "zscore").normalized.equals(polars.DataFrame({"a": Y[:, 0], "b": Y[:, 1]}))
    assert normalize(frame["a"], "zscore").normalized.equals(polars.Series("a", [-1.0, 1.0]))
    assert np.isnan(take(polars.DataFrame({"a": [1, None]}), "x").values).tolist() == [[False], [True]]
    with pytest.raises(DataError, match="hold no numbers: s;"):
        normalize(polars.DataFrame({"a": [1], "s": ["x"]}), "zscore")


@pytest.mark.peers
def test_dimensions_of_xarray_are_the_layout():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(X[:, :, None], dims=("time", "lat", "lon"), coords={"time": [5, 6]}, name="t")
    result = normalize(x, "zscore", axes="time,lon")
    assert result.plan.grid.group_name(1) == "lat=1"
    assert result.normalized.name == "t"
    assert result.normalized.coords["time"].to_numpy().tolist() == [5, 6]
    assert (result.normalized.to_numpy() == Y[:, :, None]).all()
    assert normalize(xarray.DataArray(X, dims=("N", "C")), "bn").plan.grid.layout.letters == "NC"
    assert normalize(xarray.DataArray(X[0], dims=("time",)), "zscore").plan.grid.layout.words == ("time",)


# -- live frameworks


@pytest.mark.peers
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_a_tensor_of_torch_comes_back_as_one(name):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    x = torch.tensor(X, dtype=dtype, requires_grad=True)
    y = normalize(x, "bn", eps=0).normalized
    assert (y.dtype, y.device, y.tolist()) == (dtype, x.device, Y.tolist())


@pytest.mark.peers
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_an_array_of_jax_comes_back_as_one(name):
    numpy = pytest.importorskip("jax.numpy")
    x = numpy.asarray(X, dtype=name)
    y = normalize(x, "bn", eps=0).normalized
    assert (type(y), y.dtype, y.tolist()) == (type(x), x.dtype, Y.tolist())
    if name == "float32":
        with pytest.raises(UsageError, match=r"float64, which jax.numpy makes float32: choose a dtype"):
            _ = normalize(numpy.arange(4).reshape(2, 2), "bn").normalized


@pytest.mark.peers
def test_a_strict_array_of_the_standard():
    strict = pytest.importorskip("array_api_strict")
    y = normalize(strict.asarray(X), "bn", eps=0).normalized
    assert (type(y), np.asarray(y).tolist()) == (type(strict.asarray(X)), Y.tolist())


needs_long_doubles = pytest.mark.skipif(
    np.dtype(np.longdouble).itemsize <= 8, reason="long double is double here"
)


@needs_long_doubles
@pytest.mark.parametrize(
    "function", [normalize, lambda x: fit(x, "zscore"), lambda x: normalize([1.0, 2.0], gamma=x)]
)
def test_long_doubles_that_are_no_doubles_are_refused(function):
    x = np.array([2**53, 2**53], np.longdouble) + np.array([1, 0], np.longdouble)
    with pytest.raises(
        DataError, match="holds float128 numbers that float64 does not hold; round them to it first"
    ):
        function(x)


@needs_long_doubles
def test_long_doubles_that_are_doubles_are_taken():
    x = np.array([[1.5, np.nan, np.inf, -0.0], [2.0**53, 1.0, 2.0, 3.0]], np.longdouble)
    found = normalize(x, "ln")
    assert found.normalized.tobytes() == normalize(x.astype("f8"), "ln").normalized.tobytes()
    assert found.dtype == np.float64


@pytest.mark.peers
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64"])
def test_gradients_of_tensors_of_torch_are_tensors_of_its_dtype(name):
    torch = pytest.importorskip("torch")
    x, dy = (torch.tensor(a, dtype=getattr(torch, name)) for a in (X, X[::-1].copy()))
    found = backward(x.requires_grad_(), dy, "bn", gamma=torch.ones(x.shape[1], dtype=x.dtype))
    for gradient in (found.dx, found.dgamma, found.dbeta):
        assert (type(gradient), gradient.dtype, gradient.requires_grad) == (torch.Tensor, x.dtype, False)
    expected = backward(x.detach().double().numpy(), dy.double().numpy(), "bn", dtype=name)
    np.testing.assert_array_equal(found.dx.double().numpy(), expected.dx.astype(np.float64))


@pytest.mark.peers
def test_gradients_of_jax_and_of_tables_are_of_their_kind():
    jax, pandas = pytest.importorskip("jax"), pytest.importorskip("pandas")
    x = jax.numpy.asarray(X, dtype="float32")
    assert all(isinstance(a, jax.Array) for a in backward(x, x, "bn").collect().values())
    table = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 4.0, 9.0]})
    found = backward(table, table, "bn")
    assert list(found.dx.columns) == ["a", "b"]
    assert isinstance(found.dgamma, np.ndarray)


@pytest.mark.peers
def test_the_order_of_memory_of_torch_is_kept():
    torch = pytest.importorskip("torch")
    x = torch.arange(96.0).reshape(2, 3, 4, 4).to(memory_format=torch.channels_last)
    y = normalize(x, "bn").normalized
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(y, normalize(x.contiguous(), "bn").normalized)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_results_go_into_tensors_of_torch(name):
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, dtype=getattr(torch, name))
    places = torch.empty_like(x), torch.empty_like(x)
    y, dx = normalize(x, "bn", out=places[0]).normalized, backward(x, x, "bn", out=places[1]).dx
    assert [place.data_ptr() for place in places] == [y.data_ptr(), dx.data_ptr()]
    assert torch.equal(y, normalize(x, "bn").normalized)
    with pytest.raises(UsageError, match="in memory that requires no gradient"):
        normalize(x, "bn", out=torch.empty(x.shape, requires_grad=True))


@pytest.mark.peers
def test_tensors_of_torch_without_values_or_of_other_dtypes_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(DataError, match="^x is a meta tensor, which has a shape and no values$"):
        normalize(torch.empty(2, 3, device="meta"))
    with pytest.raises(
        DataError, match="^x holds float8_e5m2 numbers, of which NumPy has no dtype; convert it"
    ):
        normalize(torch.ones(2, 3).to(torch.float8_e5m2))
