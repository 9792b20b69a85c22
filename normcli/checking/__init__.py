"""How far somebody's result is from the exact one, and how a gradient is wrong.

* `ulp`: distances in units of the last place of a dtype
* `tally`: counts of distances, the worst value, mismatches of each group
* `check`: a tensor or statistics held against the exact ones
* `half_precision`: which half precision a tensor was saved from
* `fault`: the record of a fault: id, words, remedy, example
* `gradient_check`: gradients held against the exact ones
* `gradient_faults`: the table of faults of backward passes
* `gradient_forms`: faults of backward passes that have several forms: axes, shards, an eps
* `gradient_terms`: the terms that gradients of moments and lengths are made of
"""
