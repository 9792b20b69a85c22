"""The steps in which kernels calculate a norm: the orders of additions, the dtypes of sums, the roundings.

* `table`: algorithms by name, dtypes of sums, orders of casts, practices of frameworks; to add one, add a row
* `summation_orders`: sums of a row: in turn, by halves, as NumPy, as torch; x · y + z rounded once
* `moment_formulas`: mean and variance of a row: one pass, two passes, Welford
* `row_formula`: from moments to y: the orders of casts to the narrow dtype
* `row_computation`: an algorithm, a dtype of sums and an order of casts together, run on rows
* `moment_bounds`: the largest errors of mean and variance, by theorem
* `element_bounds`: the largest error of each value of y, dx, dgamma and dbeta

Each step is NumPy's, in the dtype of the sums, so that it is rounded as a kernel's would be. Steps of float16
and bfloat16 are calculated in float32 and rounded after each, with the bits of the narrow dtype: float32
has enough digits that rounding twice makes no difference in sums, products, quotients and roots (Figueroa 1995,
"When is double rounding innocuous?"). Groups are rows of an array, and all rows are calculated at once.
"""
