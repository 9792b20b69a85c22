"""Rows of faults, a table for each part of a norm that may be wrong.

`around` is what stands before the norm and beside it (residual, gate), `counting` which values are counted,
`dividing` what divides them and how that is computed, `parameters` gamma, beta and running statistics, `behind`
a function of y, `order` where rows stand, `parts` what stands in a part of y, and what no row has a name for.
"""
