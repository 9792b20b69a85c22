"""Rows of faults, a table for each part of a norm that may be wrong.

* `around`: what stands before the norm and beside it: residual, gate
* `counting`: which values statistics are of
* `dividing`: what divides, how it is computed, and in which dtype mean, variance and reciprocal are kept
* `summing`: sums that overflow, or that are added in half precision
* `parameters`: gamma, beta and running statistics
* `behind`: a function of y: an activation, a factor, a cast
* `places`: where rows stand; x, 0 or NaN in a part of y
"""
