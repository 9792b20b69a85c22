"""What a kernel did wrong: each joint of a norm is opened, and what the kernel used is named.

* `fault_search`: the norms that y may be of, and the faults of each
* `case_sampling`: a tensor as a case of one norm, thinned out where it is large
* `case`: what should be in each group, and what y shows instead
* `variant`: what a kernel may have used: another mean, divisor, gamma or result
* `tables`: the rows that yield variants, a table for each part of a norm
* `row_search`: rows tried on a case, on some values first
* `joint_search`: the order in which joints are opened, and parts of y that are wrong
* `unnamed_fault`: what was used where no row names it; the region of a fault, and what made NaN or 0 there
* `claim`: a fault that explains y, with its evidence in bits
"""
