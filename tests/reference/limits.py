"""How far results may be from what is exact, in ulp, in one place."""

ELEMENT, STATISTIC = 0.5 + 2.0**-31, 0.5 + 2.0**-23
"""The largest errors of an element, in its dtype, and of a statistic, in float64: those of one rounding.

Errors are known to 2⁻³² ulp; elements that are as near to the middle are held against the exact value, rounded.
"""
