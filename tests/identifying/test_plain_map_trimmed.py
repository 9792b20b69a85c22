"""A norm with a gamma and a beta that nobody gave, where a few values of y are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.maps.line_fit import Exceptions
from normcli.identifying.maps.plain_map import find_trimmed_map
from normcli.identifying.question import Identification, Kind, Question
from normcli.identifying.words.phrasing import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Spoil = Callable[[NDArray[Any]], None]


def _make(
    norm: str, shape: tuple[int, ...], channels: int, **options: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(7)
    x, gamma, beta = (rng.normal(size=size).astype(np.float32) for size in (shape, channels, channels))
    y = normalize(x, norm, gamma=gamma, beta=beta, **options).normalized  # type: ignore[arg-type]
    return x, np.array(y)


def _add(place: tuple[int, ...], amount: float) -> Spoil:
    def spoil(y: NDArray[Any]) -> None:
        y[place] += np.float32(amount)

    return spoil


def _scale_one(y: NDArray[Any]) -> None:
    y[9] *= np.float32(1.01)


def _clear_last(y: NDArray[Any]) -> None:
    y[-1] = 0.0


def _spoil_many(y: NDArray[Any]) -> None:
    y.reshape(-1)[::19] += np.float32(0.1)


def _spoil_seven(y: NDArray[Any]) -> None:
    y.reshape(-1)[::7] += np.float32(0.1)


def _identify(x: NDArray[Any], y: NDArray[Any], spoil: Spoil) -> Identification:
    wrong = y.copy()
    spoil(wrong)
    return identify(Question(x, wrong))


@pytest.mark.parametrize(
    ("spoil", "count", "first"),
    [
        pytest.param(_add((8, 3), 0.01), 1, (8, 3), id="one"),
        pytest.param(_add((8, 3), 3e-4), 1, (8, 3), id="by little", marks=pytest.mark.slow),
        pytest.param(_add((8, 3), 1e6), 1, (8, 3), id="by much", marks=pytest.mark.slow),
        pytest.param(_add((8, 3), np.nan), 1, (8, 3), id="NaN"),
        pytest.param(_scale_one, 40, (9, 0), id="a factor"),
        pytest.param(_clear_last, 40, (23, 0), id="a group", marks=pytest.mark.slow),
        pytest.param(_spoil_many, 51, (0, 0), id="one of nineteen", marks=pytest.mark.slow),
        pytest.param(_spoil_seven, 138, (0, 0), id="one of seven"),
    ],
)
def test_wrong_values_are_told_from_a_gamma_and_a_beta_of_its_own(
    spoil: Spoil, count: int, first: tuple[int, ...]
) -> None:
    found = _identify(*_make("ln", (24, 40), 40, eps=1e-3), spoil)
    near = found.nearest
    assert near is not None
    assert (near.match.norm, near.match.eps, near.match.affine) == ("ln", 1e-3, "estimated")
    assert (near.mismatches, near.compared, near.first) == (count, 960, first)
    assert found.kind is Kind.NONE
    told = diagnose(found)
    assert told.cause == f"y is layer normalization over c, except for {count} of 960 values, eps 0.001"
    assert "a fitted gamma and beta" in told.evidence
    assert f"the first of them is at ({', '.join(map(str, first))})" in told.evidence
    assert (f"all at n={first[0]}" in told.evidence) == (count == 40)
    assert told.evidence[-1] == "the fitted gamma hides ddof"


@pytest.mark.parametrize(
    ("norm", "shape", "channels", "options"),
    [
        pytest.param("rms", (24, 40), 40, {}, id="rms"),
        pytest.param("ln", (3, 7, 32), 32, {"axes": -1}, id="ln of sequences"),
        pytest.param("in", (4, 6, 5, 7), 6, {}, id="in", marks=pytest.mark.slow),
        pytest.param("gn", (8, 6, 5, 7), 6, {"groups": 3}, id="gn", marks=pytest.mark.slow),
        pytest.param("ln", (1601, 83), 83, {}, id="of a sample", marks=pytest.mark.slow),
    ],
)
def test_wrong_values_of_other_norms(
    norm: str, shape: tuple[int, ...], channels: int, options: dict[str, Any]
) -> None:
    x, y = _make(norm, shape, channels, **options)
    place = tuple(n // 2 for n in shape)
    near = _identify(x, y, _add(place, 0.01)).nearest
    assert near is not None
    assert (near.match.norm, near.match.affine, near.match.eps) == (norm, "estimated", 1e-5)
    assert (near.mismatches, near.compared, near.first) == (1, x.size, place)


@pytest.mark.slow
def test_an_eps_outside_the_root() -> None:
    x, y = _make("ln", (24, 40), 40, eps=0.1, eps_mode="outside")
    near = _identify(x, y, _add((0, 0), 1.0)).nearest
    assert near is not None
    assert (near.match.eps, near.match.eps_mode, near.mismatches) == (0.1, "outside", 1)


@pytest.mark.slow
def test_of_values_of_which_most_are_wrong_nothing_is_said() -> None:
    x, y = _make("ln", (24, 40), 40)
    y[::2] += np.float32(0.1) * x[::2]
    found = identify(Question(x, y))
    assert found.plain is None
    assert diagnose(found).cause == "nothing known explains y"


@pytest.mark.slow
def test_with_a_gamma_that_was_given_none_is_fitted() -> None:
    x, y = _make("ln", (24, 40), 40)
    y[8, 3] += np.float32(0.01)
    found = identify(Question(x, y, gamma=np.full(40, 3.0, np.float32)))
    assert found.nearest is None or found.nearest.match.affine != "estimated"


@pytest.mark.slow
def test_a_map_without_statistics_with_wrong_values() -> None:
    rng = np.random.default_rng(3)
    x, a, b = (rng.normal(size=size).astype(np.float32) for size in ((24, 40), 40, 40))
    found = _identify(x, x * a + b, _add((8, 3), 0.01))
    assert found.kind is Kind.AFFINE
    assert found.plain is not None
    assert found.plain.exceptions == Exceptions(1, 960, (8, 3))
    np.testing.assert_allclose(found.plain.scale[0], a, rtol=1e-5)
    assert diagnose(found).cause == "y is a · x + b in each channel, except for 1 of 960 values"
    assert "the first value of another map is at (8, 3)" in diagnose(found).evidence


@pytest.mark.slow
def test_one_pair_for_all_values_with_wrong_ones() -> None:
    x = np.random.default_rng(3).normal(size=(24, 40)).astype(np.float32)
    found = _identify(x, np.float32(0.37) * x - np.float32(1.5), _spoil_many)
    assert found.plain is not None
    assert (found.plain.axes, found.plain.exceptions) == ((), Exceptions(51, 960, (0, 0)))


def test_values_that_are_mostly_the_inputs_are_told_as_such() -> None:
    x = np.random.default_rng(3).normal(size=(24, 40)).astype(np.float32)
    assert diagnose(identify(Question(x, np.maximum(x, -1.5)))).cause.startswith("y is the input, except for")


@pytest.mark.slow
def test_a_map_of_a_large_tensor_with_wrong_values() -> None:
    rng = np.random.default_rng(3)
    x, a = (rng.normal(size=size).astype(np.float32) for size in ((40, 8, 30, 31), (8, 1, 1)))
    y = x * a
    y[-1, -1, -1, -2:] = np.inf
    found = find_trimmed_map(x, y, y.dtype)
    assert found is not None
    assert (found.axes, found.exceptions) == ((1,), Exceptions(2, x.size, (39, 7, 29, 29)))


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_values_of_half_precision_that_tell_nothing_are_told_as_no_map(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(8, 32)) * 0.1 + 3.0).astype(np.float16)
    y = normalize(x, "ln", gamma=rng.normal(size=32) + 1.0, beta=rng.normal(size=32)).normalized
    assert identify(Question(x, np.asarray(y))).kind is Kind.UNDECIDED


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", pytest.param("float32", marks=pytest.mark.slow)])
def test_a_wrong_value_makes_no_eps_surer(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, gamma, beta = (rng.normal(size=size).astype(dtype) for size in ((16, 64), 64, 64))
    y = np.array(normalize(x, "ln", gamma=gamma, beta=beta).normalized)
    y[3, 63] = 0.0
    near = identify(Question(x, y, gamma, beta)).nearest
    assert near is not None
    assert (near.match.norm, near.match.eps, near.match.eps_mode, near.mismatches) == ("ln", 1e-5, "inside", 1)
    assert near.match.eps_range[0] == (0.0 if dtype == "float16" else 1e-5)
    estimated = identify(Question(x, y)).nearest
    assert estimated is not None
    assert (estimated.match.norm, estimated.match.eps, estimated.mismatches) == ("ln", 1e-5, 1)


def test_the_largest_values_with_a_wrong_one_are_no_map_of_columns() -> None:
    x = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    y = np.array(normalize(x, "maxabs").normalized)
    assert diagnose(identify(Question(x, y))).cause.startswith("y is maximum absolute scaling over n, p inf")
    y[3, 5] = 0.3
    told = diagnose(identify(Question(x, y)))
    assert told.cause == "y is maximum absolute scaling over n, except for 1 of 512 values, p inf"
    assert "the first of them is at (3, 5)" in told.evidence


def test_two_groups_of_which_one_has_a_wrong_value() -> None:
    x = np.random.default_rng(0).integers(-9, 10, (2, 40)).astype(np.float64)
    y = np.array(normalize(x, "minmax", axes=-1).normalized)
    y[1, 3] = 5.0
    near = identify(Question(x, y)).nearest
    assert near is not None
    assert (near.match.norm, near.mismatches, near.first) == ("minmax", 1, (1, 3))
