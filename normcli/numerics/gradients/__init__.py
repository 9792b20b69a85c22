"""The gradients of norms of groups: each is the exact one, rounded once.

* `coefficients`: the numbers of a group that its gradients are made of
* `in_doubles`: gradients that are rounded to short floats, in doubles with bounds
* `in_fractions`: coefficients and gradients in rational arithmetic
* `rows`: the values of groups that gradients follow from
* `sums`: the exact sums that coefficients follow from
* `values`: the gradients of single values, in pairs
"""
