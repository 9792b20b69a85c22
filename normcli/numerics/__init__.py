"""Exact numerics: sums, moments and quotients of which no more is lost than the last rounding."""
