"""Pairs and triples of doubles, made of exact numbers and read as such."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from normcli.numerics.rational import split


def add_up(parts, place):
    """Return the exact number at a place of a pair or a triple, or of one array."""
    return sum(Fraction(part[place].item()) for part in (parts if isinstance(parts, tuple) else (parts,)))


def lay(values, count):
    """Return numbers as a column of pairs (of a count of 2) or of triples, each nearest to what those before leave."""
    return [np.array(part)[:, None] for part in zip(*(split(value, count) for value in values), strict=True)]
