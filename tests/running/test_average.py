"""Running statistics, batch after batch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from normcli.errors import UsageError
from normcli.norms.conventions import RunningRule
from normcli.numerics.rational import sum_exactly
from normcli.numerics.statistics.solution import Given
from normcli.running.average import begin, choose_rule, update
from normcli.running.state_file import read_state, replace_state
from tests.marks import costly


def test_both_spellings_of_momentum_are_one(rng):
    result = normalize(rng.normal(size=(4, 3)), "bn")
    rules = RunningRule(0.25, "new"), RunningRule(0.75, "old")
    new, old = (update(begin(result.plan), result, rule).after.statistics for rule in rules)
    np.testing.assert_array_equal(new, old)


@costly
@pytest.mark.parametrize("start", [None, 7])
def test_the_cumulative_average_of_many_batches_is_the_exact_one(start, rng, tmp_path):
    """Also of a state without sums, as earlier versions wrote them; and through a file."""
    path, rule, count, kept = str(tmp_path / "s.npz"), RunningRule(None), start or 0, None
    if start is not None:
        kept = Given(np.array([0.1]), np.array([0.3]))
    state = begin(normalize(rng.normal(size=(4, 1)), "bn").plan, kept)._replace(batches=count)
    exact = [count * Fraction(values.item()) for values in state.statistics]
    for _ in range(100):
        step = update(state, normalize(rng.normal(size=(4, 1)) * 1e3, "bn"), rule)
        state, count = step.after, count + 1
        exact = [total + Fraction(values.item()) for total, values in zip(exact, step.batch, strict=True)]
        if count % 40 == 0:
            with replace_state(path, state):
                pass
            state = read_state(path, "bn")
    assert state.batches == count
    assert [values.item() for values in state.statistics] == [float(total / count) for total in exact]
    assert update(state, normalize(rng.normal(size=(4, 1)), "bn"), RunningRule()).after.totals is None


@pytest.mark.parametrize("norm", ["bn", "in"])
def test_the_variance_of_a_batch_is_rounded_once(norm, rng):
    for _ in range(20):
        x = rng.normal(size=(1, 2, 5))
        found = update(begin(normalize(x, norm).plan), normalize(x, norm), RunningRule()).batch
        exact = [sum_exactly(row).scatter() / 4 for row in x[0]]
        assert found.var.tolist() == list(map(float, exact))


def test_rules_of_frameworks_and_what_overrides_them():
    assert choose_rule("bn", None, None, None, None) == RunningRule(0.1, "new", 1)
    assert choose_rule("bn", "keras", None, None, None) == RunningRule(0.99, "old", 0)
    assert choose_rule("bn", "keras", 0.9, None, 1) == RunningRule(0.9, "old", 1)
    assert choose_rule("bn", None, "none", None, None).momentum is None
    assert choose_rule("bn", None, 0.9, "old", None) == RunningRule(0.9, "old", 1)
    with pytest.raises(UsageError, match="momentum 1.5 is not from 0 to 1"):
        choose_rule("bn", None, 1.5, None, None)
    with pytest.raises(UsageError, match="running ddof -1"):
        choose_rule("bn", None, None, None, -1)
    with pytest.raises(UsageError, match="keeps no running statistics of in"):
        choose_rule("in", "onnx", None, None, None)
