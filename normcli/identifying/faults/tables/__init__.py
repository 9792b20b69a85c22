"""Rows of faults, a table for each part of a norm that may be wrong.

* `around`: the input of the norm: casts of x, activations, dropout, the residual
* `gating`: the gate, before the norm or behind it
* `counting`: statistics of other values: padding, wrong counts, slices, shards
* `weighting`: sums in which values are left out or count twice
* `borrowing`: statistics of another group, or over other axes
* `masking`: a mask that is ignored, inverted or off by one; masked values in a count or a sum
* `dividing`: mean and divisor: eps, ddof, medians, approximate roots, statistics in half precision
* `scaling`: other centres and divisors, of any norm; those of the first rows alone
* `summing`: sums that overflow, underflow, cancel (E[x²] − E[x]²), or are added in half precision
* `parameters`: gamma, beta and running statistics: left out, exchanged, rolled, rounded, updated first
* `behind`: behind the norm: activations, bounds, dropout, quantization, an added input
* `places`: slices of y in another order; x, 0, NaN or infinity in a part of y
"""
