"""Evidence counts what chance would have to hit, less what a choice takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.identifying.faulty import ask, draw, draw_affine, standardize

X = draw((12, 64))
GAMMA, BETA = draw_affine(64)


def find(norm, y, *given, fault):
    return max(claim.bits for claim in ask(norm, X, y, *given) if claim.fault.id == fault)


@pytest.mark.slow
def test_more_rows_are_more_evidence_and_more_values_of_a_row_are_not():
    def find_bits(rows, length):
        x = draw((rows, length))
        y = standardize(x, square=(x.astype("f8") ** 2).mean(-1, keepdims=True))
        return max(claim.bits for claim in ask("ln", x, y))

    assert find_bits(4, 64) == pytest.approx(find_bits(4, 1024), rel=0.1)
    assert find_bits(16, 64) > 3 * find_bits(4, 64)


def test_a_sign_and_a_value_that_is_there_already_show_one_bit_each():
    y = standardize(X)
    wrong = int((y < 0).sum())
    assert find("ln", np.abs(y), fault="after-absolute") == pytest.approx(wrong - 10)
    assert wrong - 10 < find("ln", np.maximum(y, 0), fault="after-relu") < wrong + 24


@pytest.mark.parametrize("count", [1, 3, 8])
def test_all_other_values_are_the_evidence_for_a_few_that_are_wrong_here_and_there(count):
    y = standardize(X)
    y.flat[np.random.default_rng(count).choice(y.size, count, replace=False)] += 3.7
    assert find("ln", y, fault="where-values") > 3.5 * (X.size - count)
