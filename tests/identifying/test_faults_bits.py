"""Evidence counts what chance would have to hit, less what a choice takes."""

from __future__ import annotations

import math

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
    """Beside that, the places of the wrong values are evidence, in each group."""
    y = standardize(X)
    counts = (y < 0).sum(1)
    bits = counts.sum() + sum(math.log2(math.comb(y.shape[1], int(count))) for count in counts) - 10
    assert find("ln", np.abs(y), fault="after-absolute") == pytest.approx(bits)
    assert bits < find("ln", np.maximum(y, 0), fault="after-relu") < bits + 34


@pytest.mark.parametrize("count", [1, 3, 8])
def test_all_other_values_are_the_evidence_for_a_few_that_are_wrong_here_and_there(count):
    y = standardize(X)
    y.flat[np.random.default_rng(count).choice(y.size, count, replace=False)] += 3.7
    assert find("ln", y, fault="where-values") > 3.5 * (X.size - count)
