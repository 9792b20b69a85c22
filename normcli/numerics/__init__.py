"""Exact numerics: one contract for every result, and how it is kept.

**Every number is the exact value of the formula on the given numbers, rounded once, to nearest, ties to even,
in its dtype**: statistics, elements and gradients, forward and inverse, at any magnitude and conditioning.
There is one right answer, so results depend on the input and the request alone: not on threads, tiles, the
order of memory, how data are split into files, CPU, BLAS, the version of NumPy, or which kernel runs.

Decide or ask (`deciding`): a fast path gives a value with a bound of its error. Where the bound allows one
rounding alone, that is the result; what it does not decide is asked of a slower path. Of `elements` the first
path is the compiled kernel, or pairs of doubles for usual numbers (`kernel`); the next are pairs at any
magnitude (`in_pairs`), and the last are fractions of the group's exact mean and divisor (`in_fractions`), whose
roots are taken to as many bits as the rounding needs: 4,800 at most, beyond which a value is taken for a tie.

**What is known of a group** for its elements: the mean as three doubles and the divisor as a pair, each within
a bound (`KNOWN` of `in_pairs`); a group whose sums do not give them so closely is solved by fractions.

The sums of leaves, of tiles and of files are exact (`sums`). What follows from them is
calculated to within a known bound (`statistics`, `powers`, `gradients`). Where a rounding boundary lies within
the bound, `statistics.solution` asks for the group's sums as integers and decides by fractions (`rational`).
BLAS adds only what is exact in any order; NumPy's powers and logarithms, which differ between processors, reach
no result that has to be rounded.

* `deciding`: the rounding test (does an error bound leave one rounding?); bounds of pairs, powers, activations
* `elements`: each value of y, or of x back from y, and its gate: in doubles, in pairs, in fractions
* `gradients`: dx of groups, and the terms of dgamma and dbeta
* `pairs`: double-double arithmetic: sums, products, quotients and roots of pairs of doubles
* `powers`: powers, logarithms and roots of pairs and of fractions
* `rational`: exact sums, roots and eps as integers and fractions, rounded to a double
* `rounding`: casts from every dtype to float64, exactly, and to every float dtype, rounded once
* `statistics`: mean, variance, ℓp length, extremes and quantiles of a group, and its divisor with eps
* `sums`: exact sums of rows and leaves: fixed point, big integers, Σx and Σx²
* `workspace`: buffers that a thread uses again
"""
