"""How far results may be from what is exact, in ulp, in one place."""

ELEMENT, STATISTIC = 0.5000000003, 0.5000001
"""As specified: the largest errors of an element, in its dtype, and of a statistic, in float64."""
