"""The statistics of groups: what is measured of them, and the mean and the divisor that follow.

* `constant_groups`: groups that a convention counts as constant
* `divisor`: eps, scales, and the rules for a divisor of 0
* `lengths`: ℓp lengths, p not 2
* `measuring`: how leaves are measured and folded
* `moments`: mean and variance, or mean square
* `order_statistics`: extremes and quantiles
* `ranks`: the values at given ranks, in memory or in passes
* `solution`: from what was measured to mean, divisor and statistics
"""
