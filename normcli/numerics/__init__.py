"""Exact numerics: what is specified of results, and how it is reached.

**Statistics.** The mean of a group is its exact mean, kept as a double, a second double of what that leaves,
and 36 bits of what both leave, each rounded to nearest. A variance, mean square, length or divisor is its exact
value (ddof, eps and all), kept as a double and 24 bits of what that leaves (`kept`). Float16, bfloat16 and
float32 results need the doubles of the mean and that of the divisor alone. A statistic that is shown is the
exact value, rounded once.

**Elements.** An element is within 0.51 ulp of the exact result in its dtype, float64 included, at any magnitude
and however near to the mean it lies. It is calculated from what is kept of its group by one fixed sequence of
IEEE operations (`kernel`). A fixed test finds those that this does not reach: they are calculated in pairs
(`elements`), and those of which beta cancels nearly everything in exact arithmetic (`settling`).

**All else**, inverses, derivatives, values of windows and running averages, is the exact value, rounded once:
what is known to within an error decides, or is asked for to more bits (`deciding`).

So every result is defined by the input and the request alone: not by threads, tiles, the order of memory, how
data are split into files, CPU, BLAS or the version of NumPy.

How: the sums of leaves are exact (`leaves` and `columns`, `integers` beyond 2⁵³), and so are those of leaves
(`records`) and of files (`fixed`). What follows from them is calculated to within a known bound (`moments`,
`lengths` with `powers`, `order_statistics`, `window`). Where a rounding boundary lies within the bound,
`solution` asks for the group's sums as integers and decides by fractions (`rational`). BLAS adds only what is
exact in any order; NumPy's powers and logarithms, which differ between processors, reach no result that has to
be rounded.
"""
