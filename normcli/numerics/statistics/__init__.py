"""The statistics of groups: what is measured of them, and the mean and the divisor that follow.

* `divisor`: eps, the rules for a divisor of 0, and groups that a convention counts as constant
* `lengths`: ℓp lengths, p not 2
* `moments`: mean and variance, or mean square
* `order_statistics`: extremes and quantiles
* `ranks`: the values at given ranks, in memory or in passes
* `solution`: from what was measured to mean, divisor and statistics
"""
