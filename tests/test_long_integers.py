"""Integers beyond 2⁵³, nanoseconds among them, are normalized as what they are: by every norm, on every path."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.walk import Effort
from normcli.fitting.statistics import round_stats
from normcli.fitting.stats_file import read_stats, write_stats
from normcli.norms.request import Request
from normcli.results.calculate import calculate
from tests.fitting.test_fit import fit_arrays
from tests.fitting.test_use import apply, invert
from tests.reference.limits import ELEMENT, STATISTIC
from tests.reference.measuring import measure_groups

pytestmark = pytest.mark.usefixtures("either_kernel")

NOW = 1_750_000_000_123_456_789
"""Nanoseconds since 1970."""


def check(result):
    for errors in measure_groups(result):
        assert errors.element <= ELEMENT
        assert max(errors.statistics.values(), default=0.0) <= STATISTIC


def draw(shape, step=977, dtype="int64"):
    """Times that lie a few steps apart, of which float64 tells few."""
    return (NOW + step * np.random.default_rng(7).integers(-30, 30, shape)).astype(dtype)


NEAR = np.full((1, 5000), NOW)
NEAR[0, 77] += 1
NEAR_THE_TOP = np.full((1, 5577), 2**64 - 1001, np.uint64)
NEAR_THE_TOP[0, 5] -= np.uint64(1)

CASES = {
    "columns": (draw((90, 3)), "zscore", {"ddof": 1}),
    "rows": (draw((3, 90), 1), "ln", {"eps": 0.0}),
    "unsigned": (draw((3, 90), dtype="uint64"), "ln", {}),
    "bytes in the other order": (draw((3, 90)).astype(">i8"), "ln", {}),
    "one differs by 1": (NEAR, "ln", {"eps": 0.0}),
    "one differs by 1 near the top": (NEAR_THE_TOP, "ln", {"eps": 0.0}),
    "no mean": (draw((3, 90)), "rms", {}),
    "minmax": (draw((3, 90)), "minmax", {"axes": 1}),
    "midrange": (draw((3, 90)), "midrange", {"axes": 1}),
    "robust": (draw((3, 90), 1), "robust", {"axes": 1}),
    "the largest of the least integer": (np.array([[-(2**63), 2**63 - 1]]), "maxabs", {"axes": 1}),
    "the largest of any": (np.random.default_rng(0).integers(2**60, 2**63, (3, 90)), "maxabs", {"axes": 1}),
    "the least": (draw((3, 90), 1), "lp", {"p": -np.inf}),
    "a power": (draw((3, 90), 1), "lp", {"p": 3.0}),
    "a logarithm": (draw((3, 90), 1), "lp", {"p": 1.3}),
    "a small power": (draw((3, 4), 1), "lp", {"p": 1e-5, "eps": 0.0}),
    "a length of 2^560": (draw((30, 4), 1), "lp", {"p": 0.004}),
    "a window": (draw((3, 9), 1), "lrn", {"size": 3}),
    "a window with a mask": (draw((3, 9), 1), "lrn", {"mask": np.arange(9) % 3 > 0}),
    "gamma and beta": (draw((3, 8)), "ln", {"gamma": np.linspace(-3, 2, 8), "beta": np.linspace(1, 9, 8)}),
    "known statistics": (draw((4, 2)), "bn", {"running_mean": [1.75e18, 0.0], "running_var": [1e6, 1.0]}),
    "known statistics far apart": (draw((4, 2)), "bn", {"running_mean": [1e290, 0.0], "running_var": [1e300, 1.0]}),
    "a mean that is a double": (
        np.array([[2**60, 2**60 + 1, 2**60 - 1, 2**60 + 2**40, 2**60 - 2**40]]), "ln", {},
    ),
    "to float32": (draw((3, 40)), "ln", {"dtype": "float32"}),
    "a scale by eps": (draw((3, 40)), "ln", {"eps": 1e290}),
    "wide": (np.array([[2**63 - 1, -(2**63), 5, 2**53 + 1, -(2**60) - 3]] * 2), "ln", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_integers_are_what_they_are(name):
    x, norm, options = CASES[name]
    check(normalize(x, norm, **options))


@pytest.mark.parametrize("norm", ["ln", "minmax", "robust"])
@pytest.mark.parametrize("count", [130, 9001])
def test_two_passes_give_what_one_does(norm, count):
    x = draw((2, count), 3)
    one = normalize(x, norm, **({} if norm == "ln" else {"axes": 1}))
    two = calculate(one.plan, x, effort=Effort(threads=1, block=256, whole=1))
    np.testing.assert_array_equal(two.normalized, one.normalized)
    assert two.statistics.keys() == one.statistics.keys()
    for name, values in two.statistics.items():
        np.testing.assert_array_equal(values, one.statistics[name])


@pytest.mark.parametrize("norm", ["ln", "lrn"])
def test_what_does_not_count_is_passed_on_rounded_once(norm):
    tie = 2**60 + 2**36  # in the middle of two numbers of float32, the first of them even
    x = np.array([[tie + 1, tie, 5, 2**60]])
    mask = np.array([False, False, True, True])
    result = normalize(x, norm, mask=mask, dtype="float32")
    assert result.normalized[0, :2].tolist() == [2.0**60 + 2.0**37, 2.0**60]


def test_a_list_of_integers_is_of_integers():
    assert normalize([[NOW, NOW + 2]], "minmax", axes=1).normalized.tolist() == [[0.0, 1.0]]
    np.testing.assert_array_equal(
        normalize([[2**62 + 1, 2**62 + 2, 2**62 + 3, 2**62 + 4]], "ln", eps=0).normalized,
        normalize([[1, 2, 3, 4]], "ln", eps=0).normalized,
    )


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("norm", ["zscore", "minmax", "midrange", "robust", "maxabs", "rms", "bn"])
def test_what_is_fitted_of_parts_is_the_norm_of_the_whole(norm, dtype, tmp_path):
    x = draw((60, 3), 1, dtype)
    x[5, 1] = np.iinfo(dtype).max
    request = Request(norm, axes=(0,))
    whole = normalize(x, norm, axes=0)
    parts = [x[:7], x[7:8], x[8:]]
    stats = fit_arrays(parts, request)
    fields = round_stats(stats).fields
    for name, values in whole.statistics.items():
        np.testing.assert_array_equal(fields[name].reshape(values.shape), values)
    np.testing.assert_array_equal(apply(stats, x), whole.normalized)
    path = str(tmp_path / "stats.npz")
    write_stats(path, stats, fields)
    np.testing.assert_array_equal(apply(read_stats(path), x), whole.normalized)


def test_constant_is_what_is_equal(normcli, tmp_path):
    for number, values in enumerate(([NOW, NOW + 1], [NOW + 1, NOW + 1])):
        np.save(tmp_path / f"{number}.npy", values)
    assert "constant" not in normcli("fit", "minmax", tmp_path / "0.npy", tmp_path / "1.npy").err
    assert "constant" not in normcli("zscore", "-i", tmp_path / "0.npy", "--axes", "0").err
    assert "constant" in normcli("fit", "minmax", tmp_path / "1.npy").err


def test_what_is_undone_is_an_integer_too():
    stats = fit_arrays([np.array([[-1], [1]])], Request("bn", eps=0.0))
    values, _ = invert(stats, np.array([[2**60 + 1], [2**60 - 3]]), beta=np.array([2.0**60]))
    assert values.tolist() == [[1.0], [-3.0]]
