"""The gradients of norms of groups: each is the exact one, rounded once.

* `coefficients`: the numbers of a group that its gradients are made of
* `in_doubles`: gradients that are rounded to short floats, in doubles with bounds
* `in_fractions`: the same, and gradients, exactly
* `rows`: the values of groups that they follow from
* `sums`: the exact sums they follow from
* `values`: the gradients of single values, in pairs
"""
