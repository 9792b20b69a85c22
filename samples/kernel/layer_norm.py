"""Layer normalization over the last axis, written as a Triton kernel is: programs, blocks of lanes, masks.

NumPy stands for the GPU, so that it runs anywhere: `load` and `store` are Triton's, a program works on one row,
and sums are kept in float32, one for each lane. `python layer_norm.py x.npy gamma.npy beta.npy y.npy` writes y.
"""

from __future__ import annotations

import math
import sys

import numpy as np

BLOCK = 64
"""Lanes of a program: a power of two, whatever the length of a row."""

PROGRAMS = 4
"""Of the backward pass: so many partial sums of dgamma and dbeta are kept."""


def load(row, lanes, mask, other=0.0):
    """Return the values of a row at some lanes in float32, another value where there are none."""
    values = np.full(lanes.shape, other, np.float32)
    values[mask] = row[lanes[mask]].astype(np.float32)
    return values


def store(row, lanes, values, mask):
    """Write values to the lanes of a row that there are, in its dtype."""
    row[lanes[mask]] = values[mask].astype(row.dtype)


def blocks(n):
    """Yield the lanes of each block of a row, and which of them lie within it."""
    for start in range(0, n, BLOCK):
        lanes = start + np.arange(BLOCK)
        yield lanes, lanes < n


def statistics(x, n, eps):
    """Return the mean and 1/√(var + eps) of a row: two passes, each with a sum for every lane."""
    total = np.zeros(BLOCK, np.float32)
    for lanes, mask in blocks(n):
        total += load(x, lanes, mask)
    mean = total.sum() / np.float32(n)
    squares = np.zeros(BLOCK, np.float32)
    for lanes, mask in blocks(n):
        centred = np.where(mask, load(x, lanes, mask) - mean, np.float32(0.0))  # 0 beyond n, not −mean
        squares += centred * centred
    return mean, np.float32(1.0) / np.sqrt(squares.sum() / np.float32(n) + np.float32(eps))


def as_rows(x):
    """Return a tensor as rows; of a row without values, −1 would not do."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def forward(x, gamma, beta, eps=1e-5):
    """Return y, of the shape and dtype of x."""
    n = x.shape[-1]
    rows, y = as_rows(x), as_rows(np.empty(x.shape, x.dtype))
    for program in range(len(rows)):
        mean, rstd = statistics(rows[program], n, eps)
        for lanes, mask in blocks(n):
            xhat = (load(rows[program], lanes, mask) - mean) * rstd
            store(y[program], lanes, xhat * load(gamma, lanes, mask) + load(beta, lanes, mask), mask)
    return y.reshape(x.shape)


def backward(dy, x, gamma, eps=1e-5):
    """Return dx, of the shape and dtype of x, and dgamma and dbeta, of those of gamma."""
    n = x.shape[-1]
    rows, slopes, dx = as_rows(x), as_rows(dy), as_rows(np.empty(x.shape, x.dtype))
    parts = np.zeros((2, PROGRAMS, n), np.float32)
    for program in range(len(rows)):
        mean, rstd = statistics(rows[program], n, eps)
        first, second = np.zeros(BLOCK, np.float32), np.zeros(BLOCK, np.float32)
        for lanes, mask in blocks(n):
            xhat = np.where(mask, (load(rows[program], lanes, mask) - mean) * rstd, np.float32(0.0))
            slope = load(slopes[program], lanes, mask)
            weighted = slope * load(gamma, lanes, mask)
            first += weighted
            second += weighted * xhat
            parts[0, program % PROGRAMS, lanes[mask]] += (slope * xhat)[mask]
            parts[1, program % PROGRAMS, lanes[mask]] += slope[mask]
        a, b = first.sum() / np.float32(n), second.sum() / np.float32(n)
        for lanes, mask in blocks(n):
            xhat = (load(rows[program], lanes, mask) - mean) * rstd
            weighted = load(slopes[program], lanes, mask) * load(gamma, lanes, mask)
            store(dx[program], lanes, (weighted - (a + xhat * b)) * rstd, mask)
    dgamma, dbeta = (part.sum(0).astype(gamma.dtype) for part in parts)
    return dx.reshape(x.shape), dgamma, dbeta


if __name__ == "__main__":
    *inputs, output = sys.argv[1:]
    np.save(output, forward(*map(np.load, inputs)))
