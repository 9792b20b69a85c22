"""The stats file: what it keeps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.fitting.fit import Policy
from normcli.fitting.statistics import merge_stats, round_stats
from normcli.fitting.stats_file import describe_stats, read_stats, write_stats
from normcli.norms.request import Request
from tests.fitting.test_fit import fit_arrays, make, require_same
from tests.strategies import GROUPED, options_for


def write(path, arrays, request=None, policy=None):
    stats = fit_arrays(arrays, request, policy)
    write_stats(str(path), stats, round_stats(stats).fields)
    return str(path)


def change(path, **changed):
    """Write a stats file anew, with other members."""
    with np.load(path) as archive:
        members = dict(archive)
    np.savez(path, **members | changed)


@pytest.mark.parametrize("nan", ["propagate", "omit"])
@pytest.mark.parametrize("norm", ["zscore", "maxabs", "minmax"])
def test_what_is_not_finite_is_counted_once_however_often_it_is_merged(norm, nan):
    x = np.array([[1, np.nan, np.inf], [2, 3, -np.inf], [4, np.nan, np.inf], [np.nan, 5, 0.5]])
    whole, a, b, c = (fit_arrays([part], Request(norm), Policy(nan)) for part in (x, x[:1], x[1:3], x[3:]))
    both = merge_stats(a, b, "a", "b")
    assert describe_stats(both)["count"].tolist() == [3, 1, 0]
    assert describe_stats(both)["min"].tolist() == [1.0, 3.0, -np.inf]
    require_same(round_stats(merge_stats(both, c, "ab", "c")).fields, round_stats(whole).fields)


def test_numpy_reads_it_without_pickle_and_finds_the_statistics(rng, tmp_path):
    x = make(rng, (5, 3, 4, 4), "float64")
    path = write(tmp_path / "s.npz", [x])
    with np.load(path, allow_pickle=False) as archive:
        assert str(archive["schema"]) == "normcli-stats/1"
        assert (str(archive["norm"]), str(archive["layout"]), int(archive["files"])) == ("bn", "NCHW", 1)
        np.testing.assert_allclose(archive["mean"], x.mean(axis=(0, 2, 3)))
        np.testing.assert_allclose(archive["var"], x.var(axis=(0, 2, 3)))


@pytest.fixture(scope="module")
def plain_members(tmp_path_factory):
    """What a stats file of three channels holds."""
    path = tmp_path_factory.mktemp("plain") / "s.npz"
    write(path, [make(np.random.default_rng(20240607), (5, 3, 4, 4), "float64")])
    with np.load(path) as archive:
        return dict(archive)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(lambda m: m.pop("schema"), "and no schema; normcli fit NORM", id="no schema"),
        pytest.param(
            lambda m: m.update(schema=np.array("normcli-stats/9")),
            "is of normcli-stats/9, not normcli-stats/1 or normcli-stats/2; normcli fit",
            id="version",
        ),
        pytest.param(lambda m: m.pop("sum"), "sum is missing", id="missing"),
        pytest.param(lambda m: m.update(count=m["count"][:1]), r"count has the shape \(1,\), not \(3,\)", id="shape"),
        pytest.param(lambda m: m.update(norm=np.array("nosuch")), "there is no norm 'nosuch'", id="unknown norm"),
        pytest.param(lambda m: m.update(axes=np.array([2, 3])), "its norm does not fit", id="other axes"),
        pytest.param(lambda m: m.update(axes=np.array([4])), "axes is 4, not from -4 to 3", id="axes"),
        pytest.param(lambda m: m.update(shape=np.array([5, 3, 4, 4])), "the length of its batch axis is not 0", id="batch"),
        pytest.param(lambda m: m.update(shape=np.zeros(33, int)), "up to 32 axes", id="too many axes"),
        pytest.param(lambda m: m.update(shape=np.array([0, 3, -4, 4])), "shape is -4", id="length"),
        pytest.param(lambda m: m.update(shape=np.array([0, 3, 4, 5])), "a group has 100 values", id="another length"),
        pytest.param(lambda m: m.update(dtype=np.array("f8,f8")), "dtype is 'f8,f8', and no dtype of real", id="dtypes"),
        pytest.param(lambda m: m.update(dtype=np.array("x")), "dtype is 'x', and no dtype of real", id="no dtype"),
        pytest.param(lambda m: m.update(dtype=np.array("f4")), "dtype is 'f4', and no dtype of real", id="an alias"),
        pytest.param(lambda m: m.update(dtype=np.array("complex64")), "dtype is 'complex64', and no dtype", id="complex"),
        pytest.param(lambda m: m.update(square=m["square"].astype(float)), "square is float64, not int64", id="dtype"),
        pytest.param(lambda m: m.update(count=-m["count"]), "count is -80, not from 0", id="negative"),
        pytest.param(lambda m: m.update(count=m["count"] + 1), "count is 81, with the other counts, and a group has 80", id="count"),
        pytest.param(lambda m: m.update(samples=np.array(6)), "count is 80, with the other counts, and a group has 96", id="samples"),
        pytest.param(lambda m: m.update(samples=np.array(2**62)), "samples is 4611686018427387904, not from 0", id="many samples"),
        pytest.param(lambda m: m.update(files=np.array(-1)), "files is -1", id="files"),
        pytest.param(lambda m: m.update(images=m["images"] + 1), "images is 6, not from 0 to 5", id="images"),
        pytest.param(lambda m: m.update(min=m["max"] + 1), "min is .* which its counts and max do not allow", id="min"),
        pytest.param(lambda m: m.update(min=m["min"] * np.nan), "min is nan", id="no min"),
        pytest.param(lambda m: m.update(max=np.full(3, np.inf)), "max is inf, which its counts do not allow", id="max"),
        pytest.param(lambda m: m.update(count=m["count"] - 1, inf_count=np.array([[1] * 3, [0] * 3])), "max is ", id="no infinite max"),
        pytest.param(lambda m: m.update(count=m["count"] - 1, inf_count=np.array([[0] * 3, [1] * 3])), "min is ", id="no infinite min"),
        pytest.param(lambda m: m.update(max=m["min"] - 1), "min is .* which its counts and max do not allow", id="max below min"),
        pytest.param(lambda m: m.update(sum=np.zeros((161, 3), int)), r"sum has the shape \(161, 3\)", id="places"),
        pytest.param(lambda m: m.update(sum=np.array(0)), r"sum has the shape \(\), not \(places, \*\(3,\)\)", id="no places"),
        pytest.param(lambda m: m.update(sum_low=m["sum_low"] + 1), "sum is .*, which counts, min and max do not", id="a place"),
        pytest.param(lambda m: m.update(square_low=m["square_low"] - 1), "square is .*, which counts, min and", id="squares"),
        pytest.param(lambda m: m.update(square=-m["square"][-1:]), "square is -", id="negative squares"),
        pytest.param(lambda m: m.update(nan=np.array("raise")), "nan is 'raise', none of omit, propagate", id="nan"),
        pytest.param(lambda m: m.update(eps=np.array(-1.0)), "eps -1.0 is not a finite number", id="eps"),
        pytest.param(lambda m: m.update(ddof=np.array(-2)), "ddof is -2, not from -1", id="ddof"),
        pytest.param(lambda m: m.update(columns=np.array(["a"])), r"columns has the shape \(1,\), not \(4,\)", id="columns"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_stats_file_is_refused(change, told, plain_members, tmp_path):
    members = dict(plain_members)
    change(members)
    np.savez(tmp_path / "s.npz", **members)
    with pytest.raises(DataError, match=told):
        read_stats(str(tmp_path / "s.npz"))


def test_what_is_no_archive_is_told_what_writes_one(tmp_path):
    (tmp_path / "s.json").write_text("{}")
    told = "it is no .npz; normcli fit NORM FILE… -o STATS.npz writes one; --stats-output keeps no exact sums"
    with pytest.raises(DataError, match=f"s.json is no stats file of normcli: {told}$"):
        read_stats(str(tmp_path / "s.json"))


@pytest.mark.parametrize("norm", GROUPED)
def test_rounded_statistics_that_were_edited_are_refused(norm, rng, tmp_path):
    request = Request(norm, axes=(0, 1), **options_for(norm, (6, 4)))
    path = write(tmp_path / "s.npz", [make(rng, (6, 4), "float64")], request)
    with np.load(path) as archive:
        members = dict(archive)
    fields = round_stats(read_stats(path)).fields.keys() - {"count", "nan_count", "min", "max"}
    rounded = {"norm_length" if name == "norm" else name for name in fields}
    assert rounded <= members.keys()
    for name in rounded:
        np.savez(path, **members | {name: members[name] * (1 + 1.3e-15)})
        with pytest.raises(DataError, match=f"{name} is .*, which is not what its exact sums give"):
            read_stats(path)
    others = {name: array for name, array in members.items() if name not in rounded}
    for kept in ({}, {name: np.nextafter(members[name], np.inf) for name in rounded}):
        np.savez(path, **others, **kept)
        read_stats(path)


@pytest.mark.all_quick
@pytest.mark.parametrize("norm", ["zscore", "minmax", "rms"])
@pytest.mark.parametrize(
    "values",
    [
        pytest.param([[1e308, -1e308], [1e308, 1e-308], [1.7e308, 5e-324]], id="large"),
        pytest.param([[5e-324, -1e-310], [1e-200, -1e-180], [0.0, 0.0]], id="small"),
        pytest.param([[np.inf, 1.0], [-np.inf, np.nan], [2.0, -3e-5]], id="not finite"),
        pytest.param([[np.nan, np.nan], [np.nan, np.inf]], id="nothing finite"),
        pytest.param([[-7.0, 2.0**60], [-7.0, -(2.0**60)], [-7.0, -1.0]], id="cancelling"),
        pytest.param([[0.1, 0.3]] * 7, id="constant"),
        pytest.param([[3.0, 1e308], [-3.0, 1e-300]], id="far apart"),
        pytest.param([[3.0, -1.797e308, 1e-320, -3.0]], id="one row"),
    ],
)
def test_extremes_and_sums_of_any_values_are_believed(values, norm, tmp_path):
    path = write(tmp_path / "s.npz", [np.array(values)], Request(norm, axes=(0,)))
    assert read_stats(path).samples == len(values)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("fit_other", "told"),
    [
        pytest.param(lambda x: fit_arrays([x], Request("mvn")), "norm: mvn and bn", id="norm"),
        pytest.param(lambda x: fit_arrays([x[:, :2]]), r"shape: \(0, 2, 5\) and \(0, 3, 5\)", id="shape"),
        pytest.param(lambda x: fit_arrays([x.astype("f4")]), "dtype: float32 and float64", id="dtype"),
        pytest.param(lambda x: fit_arrays([x], Request("bn", eps=1e-3)), "eps: 0.001 and the norm's own", id="eps"),
        pytest.param(lambda x: fit_arrays([x], Request("bn", axes=(0,))), r"axes: \(0,\) and \(0, 2\)", id="axes"),
        pytest.param(lambda x: fit_arrays([x], policy=Policy("omit")), "NaN: omitted and propagated", id="NaN"),
    ],
)  # fmt: skip
def test_only_alike_is_merged(fit_other, told, rng):
    x = make(rng, (4, 3, 5), "float64")
    with pytest.raises(DataError, match=f"^b and a differ in {told}; they cannot be merged$"):
        merge_stats(fit_arrays([x]), fit_other(x), "a", "b")


def fit_columns(x, names, request):
    stats = fit_arrays([x], request)
    return stats._replace(subject=stats.subject._replace(columns=names))


def test_columns_are_merged_by_their_names(rng):
    x, request = make(rng, (5, 3), "float64"), Request("zscore")
    first = fit_columns(x, ("a", "b", "c"), request)
    merged = merge_stats(first, fit_columns(x[:, [2, 0, 1]], ("c", "a", "b"), request), "1.npz", "2.npz")
    twice = round_stats(fit_arrays([x, x], request)).fields
    assert merged.subject.columns == ("a", "b", "c")
    for name, values in round_stats(merged).fields.items():
        np.testing.assert_array_equal(values, twice[name], err_msg=name)


@pytest.mark.parametrize(
    ("names", "others", "request_"),
    [
        pytest.param("ab", "ac", Request("zscore"), id="others"),
        pytest.param("abb", "bab", Request("zscore"), id="twice the same"),
        pytest.param("ab", "ba", Request("zscore", keep=()), id="in groups of all columns"),
    ],
)
def test_columns_of_other_or_no_certain_names_are_not(names, others, request_, rng):
    x = make(rng, (5, len(names)), "float64")
    stats = [fit_columns(x, tuple(columns), request_) for columns in (names, others)]
    with pytest.raises(DataError, match=r"^2\.npz is of the columns"):
        merge_stats(*stats, "1.npz", "2.npz")


@pytest.mark.parametrize(
    ("request_", "later"),
    [
        (Request("bn", eps=1e-3), ("groups", "group_order", "size", "alpha", "exponent", "k")),
        (Request("minmax", axes=(0,)), ("range_option", "quantiles", "no_mean", "no_scale")),
    ],
    ids=["bn", "minmax"],
)
def test_a_file_of_a_version_that_stored_fewer_options_is_read(request_, later, rng, tmp_path):
    path = write(tmp_path / "s.npz", [make(rng, (5, 3), "float64")], request_)
    with np.load(path) as archive:
        np.savez(tmp_path / "old.npz", **{name: archive[name] for name in archive if name not in later})
    assert read_stats(str(tmp_path / "old.npz")).subject == read_stats(path).subject


def test_quantiles_cannot_be_merged():
    stats = fit_arrays([np.arange(8.0).reshape(4, 2)], Request("robust"))
    with pytest.raises(DataError, match="b and a hold quantiles.*; fit all at once$"):
        merge_stats(stats, stats, "a", "b")


WHOLE = np.array([[0], [2**53 + 1]])
TABLE = np.arange(8.0).reshape(4, 2)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("norm", "x", "member", "value", "told"),
    [
        pytest.param("robust", TABLE, "quantile_values", [[9.0] * 6] * 2, "is 9.0, not from min to max", id="values"),
        pytest.param("robust", TABLE, "quantile_parts", np.full((2, 3), 4), "is 4, not from 0 to 3", id="quarters"),
        pytest.param("zscore", WHOLE, "max_rest", [0.5], "is 0.5, which max does not leave", id="half a rest"),
        pytest.param("zscore", WHOLE, "max_rest", [2.0], "is 2.0, which max does not leave", id="a large rest"),
        pytest.param("zscore", TABLE[:, :1], "max_rest", [-1.0], "is -1.0, which max does not leave", id="a rest of 6"),
        pytest.param("zscore", TABLE, "no_mean", 2, "is 2, not from -1 to 1", id="flag"),
        pytest.param("minmax", TABLE, "range_option", [1.0], r"has the shape \(1,\), not \(2,\)", id="pair"),
    ],
)  # fmt: skip
def test_members_that_some_norms_or_numbers_have_are_refused(norm, x, member, value, told, tmp_path):
    path = write(tmp_path / "s.npz", [x], Request(norm))
    change(path, **{member: np.array(value)})
    with pytest.raises(DataError, match=f" {member} {told}$"):
        read_stats(path)


@pytest.mark.parametrize("name", ["sum", "square"])
def test_a_group_without_values_has_sums_of_0(name, tmp_path):
    x = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    path = write(tmp_path / "s.npz", [x], Request("zscore"), Policy("omit"))
    assert read_stats(path).sums.count.tolist() == [0, 2]
    with np.load(path) as archive:
        digits = archive[name]
    digits[0, 0] = 1
    change(path, **{name: digits})
    with pytest.raises(DataError, match=f"{name} is .*, which counts, min and max do not allow"):
        read_stats(path)


@pytest.mark.parametrize(("group", "total"), [(0, 1), (1, 40)])
def test_deviations_of_images_are_of_those_that_there_are(group, total, rng, tmp_path):
    """Of a group without a value they are 0."""
    x = make(rng, (5, 3, 4, 4), "float64", scale=1.0)
    x[:, 0] = np.nan
    path = write(tmp_path / "s.npz", [x], policy=Policy("omit"))
    digits = np.where(np.arange(3) == group, total, 0)[None]
    change(path, image_std_sum=digits, image_std_sum_low=np.array(0))
    with pytest.raises(DataError, match=f"image_std_sum is {total}.0, which counts, min and max do not allow"):
        read_stats(path)


@pytest.mark.all_quick
@pytest.mark.parametrize("kind", ["sum", "square", "image_std_sum"])
@pytest.mark.parametrize(
    ("digits", "low", "told"),
    [
        pytest.param([[5], [-1]], -81, "_low is -81, not from -80 to 78", id="below the places"),
        pytest.param([[5], [-1]], 79, "_low is 79, not from -80 to 78", id="beyond the places"),
        pytest.param([[-1], [5], [6]], 0, " is -1, and no digit but the highest is negative", id="a negative first digit"),
        pytest.param([[5], [-1], [6]], 0, " is -1, and no digit but the highest is negative", id="a negative second digit"),
        pytest.param([[2**32], [0]], 0, " is 4294967296, not from -2147483648 to 4294967295", id="a large digit"),
        pytest.param([[0], [-(2**31) - 1]], 0, " is -2147483649, not from -2147483648 to 4294967295", id="a small digit"),
        pytest.param([[2**32 - 1], [-(2**31)]], 10, " is -.*, which counts, min and max do not allow", id="the least number"),
        pytest.param([[2**32 - 1], [2**32 - 1]], 78, " is inf, which counts, min and max do not allow", id="the largest"),
    ],
)  # fmt: skip
def test_exact_sums_that_cannot_be_are_refused(kind, digits, low, told, rng, tmp_path):
    path = write(tmp_path / "s.npz", [make(rng, (5, 1, 4), "float64")])
    change(path, **{kind: np.array(digits), f"{kind}_low": np.array(low)})
    with pytest.raises(DataError, match=f" {kind}{told}$"):
        read_stats(path)


@pytest.mark.parametrize("names", [(None, "ab"), ("ab", None), ("ab", "ab"), (None, None)])
def test_merged_columns_have_the_names_that_one_has(names, rng):
    x = make(rng, (5, 2), "float64")
    first, other = (fit_columns(x, name and tuple(name), Request("zscore")) for name in names)
    merged = merge_stats(first, other, "1.npz", "2.npz").subject.columns
    assert merged == (("a", "b") if any(names) else None)
