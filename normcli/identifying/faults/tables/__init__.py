"""Rows of faults, a table for each part of a norm that may be wrong.

`around` is what stands before the norm and beside it (residual, gate), `stored` running statistics,
`counting` which values are counted, `dividing` what divides them, `computing` how that is rounded,
`parameters` gamma and beta, `behind` a function of y, `thinned` dropout and quantization, `order` where rows
stand, `parts` what stands in a part of y.
"""
