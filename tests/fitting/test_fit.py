"""Statistics over many tensors: as of one, in any order, to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import normcli
from normcli import normalize
from normcli.engine.walk import Effort
from normcli.errors import DataError
from normcli.fitting.fit import Policy, fit
from normcli.fitting.statistics import round_stats
from normcli.fitting.workers import can_fork, run_in_processes
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.tensors.many import Named, name_tensors
from normcli.tensors.tensor import Tensor
from tests.reference.groups import solve_group
from tests.reference.rounding import measure_ulp


def name_arrays(arrays):
    return [Named(f"{i}.npy", lambda wanted, x=x, i=i: Tensor(x, f"{i}.npy")) for i, x in enumerate(arrays)]


def fit_all(arrays, policy=None, request=None, **effort):
    return fit(request or Request("bn"), name_arrays(arrays), policy or Policy(), Effort(**effort))


def fit_arrays(arrays, request=None, policy=None, **effort):
    return fit_all(arrays, policy, request, **effort).stats


def round_arrays(arrays, request=None, policy=None, **effort):
    return round_stats(fit_arrays(arrays, request, policy, **effort)).fields


def require_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name, strict=True)


def make(rng, shape, dtype, scale=3.0, centre=5.0):
    return (rng.standard_normal(shape) * scale + centre).astype(dtype)


@pytest.mark.parametrize(
    "effort",
    [
        {"threads": 3, "block": 64},
        {"threads": 2, "whole": 1, "block": 4096},
        {"threads": 1, "whole": 1, "block": 600},
    ],
)
def test_threads_and_tiles_change_no_bit(effort, rng):
    """Of samples that are one leaf, or several."""
    for shape in ((5, 40, 7, 9), (5, 4, 70, 80)):
        x = make(rng, shape, "float32")
        x[4, 3, 2, 1] = np.nan
        require_same(round_arrays([x], **effort), round_arrays([x], threads=1))


@pytest.mark.parametrize(
    ("scale", "centre"),
    [
        pytest.param(1.0, 1e15, id="ill-conditioned"),
        pytest.param(1e250, 0.0, id="huge"),
        pytest.param(1e-290, 0.0, id="tiny"),
    ],
)
def test_values_of_any_magnitude(scale, centre, rng):
    x = make(rng, (8, 3, 10), "float64", scale, centre)
    fields = round_arrays([x[:3], x[3:]], Request("bn", eps=0.0))
    for c in range(3):
        solved = solve_group(make_plan(Request("zscore"), x[:, c].shape, x.dtype), x[:, c])
        assert measure_ulp(fields["mean"][c], solved.statistics["mean"], "float64") <= 0.54
        assert measure_ulp(fields["std"][c], solved.statistics["std"], "float64") <= 0.54


@pytest.mark.parametrize("norm", ["zscore", "rms"])
def test_a_group_whose_squares_are_beyond_doubles_is_exact(norm):
    x = np.array([[1e200, 1.0], [-1e200, 2.0], [3e200, 3.0], [0.0, 4.0]])
    small = np.array([[1.0, 1.0], [-1.0, 2.0], [3.0, 3.0], [0.0, 4.0]])
    whole, scaled = (normcli.fit(part, norm, axes=0, eps=0.0).apply(part) for part in (x, small))
    np.testing.assert_allclose(whole, scaled, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_omitted_is_as_if_it_were_not_there(dtype, rng):
    x = make(rng, (6, 3, 4, 4), dtype)
    x[1, 0, 2, 3] = x[2, 0] = np.nan
    fields = round_arrays([x[:2], x[2:]], policy=Policy("omit"))
    expected = [normalize(x[:, c][~np.isnan(x[:, c])], "bn", axes=(0,), dtype="float64") for c in range(3)]
    assert fields["var"].tolist() == [float(one.var) for one in expected]
    assert fields["mean"].tolist() == [float(one.mean) for one in expected]
    assert fields["nan_count"].tolist() == [17, 0, 0]
    assert fields["count"].tolist() == [79, 96, 96]
    np.testing.assert_allclose(
        fields["image_std"][0], np.nanstd(x[[0, 1, 3, 4, 5], 0].astype("f8"), axis=(1, 2)).mean()
    )


@pytest.mark.parametrize(
    ("second", "told"),
    [
        pytest.param(np.zeros((2, 4, 5)), r"has the shape \(2, 4, 5\), and 0\.npy \(N, 3, 5\)", id="shape"),
        pytest.param(np.zeros((2, 3)), r"has the shape \(2, 3\)", id="rank"),
        pytest.param(np.zeros((2, 3, 5), "float32"), r"is float32, and 0\.npy float64", id="dtype"),
    ],
)
def test_the_first_tensor_unlike_the_others_is_named(second, told):
    with pytest.raises(DataError, match=rf"^1\.npy {told}"):
        fit_arrays([np.zeros((2, 3, 5)), second, np.zeros((1, 1))])


def fit_named(*names):
    """Fit tables of given names of columns; return those of the statistics, and the files that are noted."""
    tensors = [Tensor(np.eye(2), f"{i}.npy", columns=own) for i, own in enumerate(names)]
    sources = [Named(tensor.source, lambda wanted, tensor=tensor: tensor) for tensor in tensors]
    found = fit(Request("zscore"), sources, Policy(), Effort())
    return found.stats.subject.columns, [name for name, _ in found.notes]


def test_a_file_without_names_first_takes_those_of_the_next_and_refuses_others():
    assert fit_named(None, ("a", "b"), ("a", "b")) == (("a", "b"), ["1.npy", "2.npy"])
    assert fit_named(("a", "b"), ("a", "b")) == (("a", "b"), [])
    told = r"^2\.npy names its columns otherwise than 1\.npy, and the first file does not"
    with pytest.raises(DataError, match=told):
        fit_named(None, ("a", "b"), ("b", "a"))


@pytest.fixture
def workers(monkeypatch):
    """Let small tensors be surveyed in processes, and count how often that is done."""
    calls = []

    def run_counted(task, numbers, count):
        calls.append(count)
        return run_in_processes(task, numbers, count)

    monkeypatch.setattr("normcli.fitting.fit.MUCH", 0)
    monkeypatch.setattr("normcli.fitting.fit.run_in_processes", run_counted)
    return calls


@pytest.fixture
def fit_files(workers, monkeypatch, tmp_path):
    """Fit small files as large ones are: mapped, in processes."""
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 0)

    def fit_arrays(arrays, policy=None, **effort):
        paths = [str(tmp_path / f"{i}.npy") for i in range(len(arrays))]
        for path, array in zip(paths, arrays, strict=True):
            np.save(path, array)
        return fit(Request("bn"), list(name_tensors(paths)), policy or Policy(), Effort(**effort))

    return fit_arrays


@pytest.mark.skipif(not can_fork(), reason="this system has no cheap processes")
def test_files_at_once_change_no_bit(fit_files, workers, rng):
    parts = [make(rng, (n, 3, 8, 5), "float32") for n in (2, 5, 1, 7, 4)]
    fitted = fit_files(parts, threads=2)
    assert workers == [2]
    require_same(round_stats(fitted.stats).fields, round_arrays(parts, threads=1))
    assert workers == [2]


@pytest.mark.skipif(not can_fork(), reason="this system has no cheap processes")
def test_what_is_wrong_with_a_file_is_told_in_order(fit_files, rng):
    parts = [make(rng, (2, 3, 4), "float32") for _ in range(6)]
    parts[2] = make(rng, (2, 4, 4), "float32")
    parts[4][0, 0, 0] = np.nan
    with pytest.raises(DataError, match=r"2\.npy has the shape"):
        fit_files(parts, threads=2)
    fitted = fit_files(parts, Policy(nan="raise", skips_bad=True), threads=2)
    assert ["2.npy has the shape" in fitted.bad[0], "4.npy: 1 value is NaN" in fitted.bad[1]] == [True, True]
    assert (len(fitted.bad), fitted.stats.files) == (2, 4)
    left = [part for number, part in enumerate(parts) if number not in (2, 4)]
    require_same(round_stats(fitted.stats).fields, round_arrays(left, threads=1))


def test_others_may_survey_the_tensors(rng):
    """Whoever does is given how, and all that are left; results come in their order."""
    parts, given = [make(rng, (n, 3), "float32") for n in (2, 4, 1)], []

    def survey_all(survey, sources):
        given.extend(source.name for source in sources)
        return [survey.survey(source, Effort()) for source in sources]

    found = fit(Request("bn"), name_arrays(parts), Policy(), Effort(), survey_all).stats
    assert given == ["0.npy", "1.npy", "2.npy"]
    require_same(round_stats(found).fields, round_arrays(parts))


def refuse(wanted):
    raise DataError("no numbers")


NAN = Named("n", lambda wanted: Tensor(np.full((2, 3), np.nan), "n"))
BAD = [Named(name, refuse) for name in "ab"]


@pytest.mark.parametrize(
    ("sources", "policy", "told"),
    [
        pytest.param([NAN], Policy("raise", skips_bad=True), "no file is left to fit: n: 6 values are NaN", id="NaN"),
        pytest.param(BAD, Policy(skips_bad=True), "no file is left to fit: a: no numbers$", id="two"),
        pytest.param([], Policy(skips_bad=True), "no file is left to fit$", id="none"),
        pytest.param(BAD[:1], Policy(), "a: no numbers$", id="the first"),
    ],
)  # fmt: skip
def test_of_bad_files_alone_nothing_is_left(sources, policy, told):
    with pytest.raises(DataError, match=f"^{told}"):
        fit(Request("bn"), sources, policy, Effort())


def test_quantiles_of_long_integers_beside_other_numbers_are_those_of_doubles():
    parts = [np.array([[2**53 + 1], [2**60 + 1]]), np.array([[0.5], [2.5], [3.0]])]
    tensors = [Tensor(x, f"{i}.csv", has_no_dtype=True) for i, x in enumerate(parts)]
    sources = [Named(tensor.source, lambda wanted, tensor=tensor: tensor) for tensor in tensors]
    fitted = fit(Request("robust"), sources, Policy(), Effort())
    assert [name for name, _ in fitted.notes] == ["the quantiles"]
    assert round_stats(fitted.stats).fields["q3"].tolist() == [2.0**53]
    assert not fit(Request("robust"), sources[:1], Policy(), Effort()).notes


def test_a_file_that_changes_before_its_quantiles_are_found_is_refused():
    versions = iter([1, 2, 3])
    source = Named("a.npy", lambda wanted: Tensor(np.ones((3, 1)), "a.npy"))
    other = Named("b.npy", lambda wanted: Tensor(np.ones((3, 1)), "b.npy", opened=next(versions)))
    with pytest.raises(DataError, match=r"^b\.npy changed while it was read"):
        fit(Request("robust"), [source, other], Policy(), Effort())


@pytest.mark.skipif(not can_fork(), reason="this system has no cheap processes")
def test_an_observer_sees_what_processes_read(workers, rng):
    parts, seen = [make(rng, (2, 3), "float32") for _ in range(3)], []

    class Seen:
        def expect(self, byte_count):
            seen.append(("expect", byte_count))

        def advance(self, byte_count):
            seen.append(("advance", byte_count))

    fit_arrays(parts, threads=2, observer=Seen())
    assert seen == [("expect", 72), *[("advance", 24)] * 3]


@pytest.mark.parametrize("norm", ["zscore", "minmax", "maxabs", "bn"])
def test_groups_of_infinities_alone_or_beside_others_are_those_of_the_norm(norm):
    """Of images, they have no deviation of their own either."""
    inf = math.inf
    x = np.array([[inf, inf], [-inf, -inf], [-inf, inf], [1.0, -inf], [inf, 1.0], [1.0, 3.0]]).T
    with np.errstate(all="ignore"):
        expected = normalize(x, norm, axes=(0,)).statistics
        found = round_arrays([x[:1], x[1:]], Request(norm, axes=(0,)))
        images = round_arrays([x[..., None, None]], Request("bn"))["image_std"]
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values.reshape(-1), err_msg=name)
    np.testing.assert_array_equal(images, [np.nan] * 5 + [0.0])
