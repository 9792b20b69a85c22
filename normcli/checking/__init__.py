"""Comparisons of given results with exact ones, and the faults of wrong gradients.

* `ulp`: distances in units of the last place of a dtype
* `tally`: counts of distances, the worst value, mismatches of each group
* `check`: a tensor or statistics compared with the exact ones
* `half_precision`: the half precision that a tensor was saved from, and sums in half precision
* `fault`: the record of a fault: id, words, remedy, example; those of `faults.toml`
* `gradient_check`: gradients compared with the exact ones
* `gradient_cause`: the fault, or the rounding, that explains a wrong gradient
* `gradient_faults`: the table of faults of dx, dgamma, dbeta and dgate
* `wrong_gradient`: a wrong gradient with its terms, and those of the norm with other options or gates
* `gradient_forms`: faults of gradients with several forms: other axes, groups, eps, activations
* `gradient_counts`: faults in the values that are summed, and in their count: padding, parts, shards, ddof
* `gradient_terms`: the terms of the gradients of norms that divide by moments or lengths
* `gradient_bounds`: bounds on the rounding errors of right gradients
"""
