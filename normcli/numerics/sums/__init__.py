"""Exact sums, in any order: of rows of values, of leaves, of tiles, of files.

There are three forms of an exact sum, each for what the others cannot do. `Leaves` are the doubles that the C
and NumPy's dot products give, with a bound of what these leave, and with NaN and infinities: moments follow
from them at once, and few of them add up in half the time of `Fixed`. `Fixed` has integers of 32 bits, which
any finite numbers are added to without end; stats files keep them. `ScaledIntegers` are Python's, for products
and quotients.

* `fixed_point`: accumulators in fixed point: sums of any size, without end, and averages
* `leaf_records`: records of leaves (Σx, Σx², count), cutting rows into leaves, and folding records
* `row_sums`: Σx and Σx² of rows by NumPy's dot products
* `scaled_integers`: exact numbers as Python's integers times a power of two
"""
