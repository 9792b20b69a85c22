"""The faults of a kernel: each part of a norm is tried with other numbers, to name the fault that led to y.

* `fault_search`: the norms that y may be the result of, and the faults of each
* `case_sampling`: a tensor as a case of one norm, or its first groups
* `thin_case`: some values of a case, in which variants are tried first
* `case`: y with the exact result of a norm, with bounds of rounding errors
* `variant`: the numbers of a kernel with a fault: another mean, divisor, gamma; how near y is to them
* `fault_evidence`: the evidence in bits: the means and divisors that y shows, how closely, and predicted values
* `tables`: the rows that yield variants, a table for each part of a norm
* `row_search`: rows tried on a case, on some values first
* `joint_search`: the order of trials: y constant or only cast, then faults, pairs of faults, wrong parts of y
* `unnamed_fault`: numbers recovered from y that no row names; causes of NaN or 0
* `index_region`: the region of a fault
* `claim`: a fault with its evidence in bits
"""
