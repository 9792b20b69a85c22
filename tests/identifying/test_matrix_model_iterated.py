"""Power iterations are identified only as far as y tells one number of them from another, and from all."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import identify, normalize
from tests.marks import choose_some


def take(seed, shape=(8, 6)):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape).astype("float32"), rng.normal(size=shape[0]).astype("float32")


def judge(w, u, y, made):
    """Assert that what is named holds what was made: a number of iterations, or None for all."""
    found = identify(y, w, u=u)
    assert found, str(found)
    first = found.found.matches[0]
    assert (first.norm, first.rows) == ("sn", (0,))
    if made is None:
        assert first.steps is None or first.steps.is_largest, str(found)
    else:
        assert first.steps.fewest <= made <= (first.steps.most or made), str(found)
    return found


def iterate(w, u, count):
    """Return w / σ as torch's layer makes it: u and v of length 1, in float32."""
    for _ in range(count):
        v = w.T @ u
        v = v / np.linalg.norm(v)
        u = w @ v
        u = u / np.linalg.norm(u)
    return w / np.dot(u, w @ v)


@pytest.mark.slow
def test_a_singular_value_of_a_kernel_is_not_named_as_iterations():
    w, u = take(2)
    found = judge(w, u, w / np.linalg.norm(w, 2), None)
    assert "by the largest singular value or " in str(found)
    assert " and more power iterations from u" in str(found)


@pytest.mark.slow
def test_iterations_that_a_kernel_may_mistake_are_all_named():
    w, u = take(3)
    found = judge(w, u, iterate(w, u, 9), 9)
    assert "by 9 power iterations from u" in str(found)
    w, u = take(2)
    assert "by 15 to 16 power iterations from u" in str(judge(w, u, iterate(w, u, 15), 15))


@pytest.mark.slow
@pytest.mark.parametrize("seed", choose_some(range(6), 6))
def test_no_wrong_number_is_named(seed):
    w, u = take(seed, (8, 6) if seed % 2 else (5, 4))
    for count in (1, 10, 16, 30):
        judge(w, u, normalize(w, "sn", u=u, iterations=count).normalized, count)
        judge(w, u, iterate(w, u, count), count)
    judge(w, u, normalize(w, "sn").normalized, None)
    judge(w, u, w / np.linalg.norm(w, 2), None)
    judge(w, u, (w / np.linalg.norm(w.astype("float64"), 2)).astype("float32"), None)


@pytest.mark.slow
def test_a_start_at_a_right_angle_leaves_the_end_open():
    w = np.diag([3.0, 2.0, 1.0]).astype("float32")
    w[1, 2] = 0.5
    y = normalize(w, "sn", u=(0.0, 1.0, 1.0), iterations=60).normalized
    found = identify(y, w, u=(0.0, 1.0, 1.0))
    steps = found.found.matches[0].steps
    assert steps.most is None
    assert not steps.is_largest
    assert "or more power iterations from u" in str(found)
